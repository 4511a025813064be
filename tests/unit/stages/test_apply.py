"""Why nothing was sent is in the ledger, whatever was refused first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from pulsar_advisor.admin.connection import AdminConnection
from pulsar_advisor.execution.cluster.probe import PublishProbe
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.stages import apply
from unit.execution.actors import approved, options_of
from unit.execution.doubles import make_plan, unload_step


def test_a_probe_that_can_not_publish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def refusing(*_: object) -> Iterator[None]:
        raise Refused("the publish probe can't publish")
        yield

    monkeypatch.setattr(apply, "publishing", refusing)
    probe = PublishProbe("pulsar://10.0.0.1:6650", "persistent://shop/orders/probe", 5)
    connection = AdminConnection(admin_urls=("http://10.0.0.1:8080",))
    with closing(open_ledger(f"sqlite:///{tmp_path}/ledger.sqlite")) as ledger:
        plan = approved(ledger, make_plan([unload_step()]))
        with pytest.raises(Refused):
            apply.run(plan, ledger, connection, options_of(), print, probe=probe)
        [last] = ledger.events(digest_of(plan), count=1)
    assert (last.kind, last.detail) == ("refused", "the publish probe can't publish")
