from __future__ import annotations

import pytest

from pulsar_advisor.execution.ledger.held_run import LeaseLost
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.runs import end_unheld_run, run_by_id
from pulsar_advisor.model.plans.sealed import digest_of
from unit.execution.actors import started
from unit.execution.doubles import make_plan, unload_step

PLAN = make_plan([unload_step()])


def test_a_run_is_ended_from_outside_once_its_process_is_gone(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    held = started(ledger, PLAN)
    end_unheld_run(ledger, digest_of(PLAN), "its worker is gone")
    assert run_by_id(ledger, held.id).state == "active"
    monkeypatch.setattr("pulsar_advisor.execution.ledger.runs.has_ended", lambda _process: True)
    end_unheld_run(ledger, digest_of(PLAN), "its worker is gone")
    run = run_by_id(ledger, held.id)
    assert (run.state, run.sentence) == ("stopped", "its worker is gone")
    with pytest.raises(LeaseLost):
        held.conclude("step-001", "confirmed", "it was not gone")
