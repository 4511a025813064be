from __future__ import annotations

import pytest

from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.runs import abort_runs
from pulsar_advisor.execution.ledger.steps import open_steps
from pulsar_advisor.model.errors import StorageError
from pulsar_advisor.model.plans.sealed import digest_of
from unit.execution.actors import ALICE, started
from unit.execution.doubles import make_plan, unload_step

PLAN = make_plan([unload_step()])
DIGEST = digest_of(PLAN)


def test_a_step_can_not_be_confirmed_before_it_is_sent(ledger: Ledger) -> None:
    run = started(ledger, PLAN)
    with pytest.raises(StorageError, match="does not let step step-001 of run 1 become 'confirmed'"):
        run.conclude("step-001", "confirmed", "")
    assert run.steps()["step-001"].state == "pending"


def test_a_confirmed_step_is_never_sent_again(ledger: Ledger) -> None:
    run = started(ledger, PLAN)
    run.sent("step-001", "PUT …", None)
    run.conclude("step-001", "confirmed", "")
    with pytest.raises(StorageError, match="become 'sent'"):
        run.sent("step-001", "PUT …", None)


def test_steps_with_an_open_call_are_known_until_their_run_is_aborted(ledger: Ledger) -> None:
    run = started(ledger, PLAN)
    run.sent("step-001", "PUT …", None)
    run.conclude("step-001", "unresolved", "")
    run.end("stopped", "")
    assert [(each.id, step.step_id) for each, step in open_steps(ledger, "live")] == [(run.id, "step-001")]
    abort_runs(ledger, DIGEST, ALICE)
    assert open_steps(ledger, "live") == []
