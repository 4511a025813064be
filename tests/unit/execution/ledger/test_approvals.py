from __future__ import annotations

import pytest

from pulsar_advisor.execution.consent.approval import approve, propose
from pulsar_advisor.execution.ledger.approvals import (
    Terms,
    approvals_of_runs,
    record_rejection,
    rejected_at,
    withdraw_approvals,
)
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.tables import Run
from pulsar_advisor.model.errors import StorageError
from pulsar_advisor.model.plans.sealed import digest_of
from unit.execution.actors import ALICE, BOB, FOUR_EYES
from unit.execution.doubles import make_plan, unload_step

PLAN = make_plan([unload_step()])
DIGEST = digest_of(PLAN)


def test_a_rejection_is_known_at_the_gate_where_it_was_given(ledger: Ledger) -> None:
    assert rejected_at(ledger, DIGEST, "airflow, run 1") is None
    record_rejection(ledger, DIGEST, "by olive", "airflow, run 1")
    assert rejected_at(ledger, DIGEST, "airflow, run 1") == "by olive"
    assert rejected_at(ledger, DIGEST, "airflow, run 2") is None
    assert [event.detail for event in ledger.events(DIGEST)] == ["by olive (airflow, run 1)"]


def test_a_rejection_is_over_once_somebody_proposes_the_plan_again(ledger: Ledger) -> None:
    record_rejection(ledger, DIGEST, "by olive", "airflow, run 1")
    propose(ledger, PLAN, ALICE)
    assert rejected_at(ledger, DIGEST, "airflow, run 1") is None


@pytest.mark.parametrize(("comment", "said"), [("", ""), ("after lunch", ": after lunch")])
def test_an_approval_and_its_withdrawal_are_recorded_with_who_and_why_if_they_said_so(
    ledger: Ledger, comment: str, said: str
) -> None:
    propose(ledger, PLAN, ALICE)
    approve(ledger, PLAN, digest=DIGEST, approver=BOB, policy=FOUR_EYES, terms=Terms(comment=comment))
    withdraw_approvals(ledger, DIGEST, ALICE, comment)
    _, approved, withdrawn = ledger.events(DIGEST)
    assert (approved.detail, withdrawn.detail) == (f"by {BOB}{said}", f"by {ALICE}{said}")


def test_an_approval_that_a_run_names_and_the_ledger_lacks_is_named(ledger: Ledger) -> None:
    with pytest.raises(StorageError, match="the ledger has no approval 7, which run 1 names"):
        approvals_of_runs(ledger, [Run(id=1, digest=DIGEST, approval_id=7)])
