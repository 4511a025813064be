"""Which brokers a roll leaves out is said wherever its plan is made: on a terminal, and in a job's log."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pulsar_advisor.stages import roll_order
from pulsar_advisor.storage.root import Root
from unit.planning.kinds.clusters import cluster, room


def test_a_broker_that_the_roll_leaves_out_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(roll_order, "read_manifest", lambda *_: SimpleNamespace(leader=None))
    monkeypatch.setattr(roll_order, "room_of", lambda *_: room(cluster({"a": [10, 10], "b": [20], "c": []})))
    order = roll_order.run(Root("data", "c").snapshot("20261121T083000Z"), (), ())
    assert order.at_rest == ("c:8080",)
    assert [record.getMessage() for record in caplog.records] == list(order.left_out())
