"""Where no broker can be drained, no order is given."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pulsar_advisor.model.errors import DataNotFit
from pulsar_advisor.stages import restart_order
from pulsar_advisor.storage.root import Root
from unit.planning.kinds.clusters import cluster, room


def test_a_simple_cluster_has_no_order_of_drains(monkeypatch: pytest.MonkeyPatch) -> None:
    simple = room(replace(cluster({"a": [10], "b": [10]}), load_manager="simple"))
    monkeypatch.setattr(restart_order, "room_of", lambda *_: simple)
    with pytest.raises(DataNotFit, match="the Simple load manager doesn't keep the destination of an unload"):
        restart_order.run(Root("data", "c").snapshot("20261121T083000Z"))
