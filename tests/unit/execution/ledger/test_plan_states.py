"""The state of a plan follows from what the ledger knows of it."""

from __future__ import annotations

from pulsar_advisor.execution.consent.approval import propose, withdraw
from pulsar_advisor.execution.ledger.approvals import record_refusal, record_rejection
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.lists import runs_on, summaries
from pulsar_advisor.execution.ledger.plan_states import states_of
from pulsar_advisor.execution.undo import propose_undo
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import digest_of
from unit.execution.actors import ALICE, BOB, approved, run
from unit.execution.doubles import FakeCluster, FakeTime, make_plan, unload_step

PLAN = make_plan([unload_step()])


def state(ledger: Ledger, of: Plan = PLAN) -> str:
    (plan,) = [one for one in summaries(ledger, PLAN.cluster) if one.digest == digest_of(of)]
    return states_of(ledger, PLAN.cluster, [plan])[0].state


def test_a_plan_is_proposed_then_approved_then_applied(ledger: Ledger, cluster: FakeCluster) -> None:
    propose(ledger, PLAN, ALICE)
    assert state(ledger) == "proposed"
    approved(ledger, PLAN)
    assert state(ledger) == "approved"
    run(PLAN, ledger, cluster)
    assert state(ledger) == "applied"
    assert [one.state for one in runs_on(ledger, PLAN.cluster)] == ["done"]


def test_a_rejected_plan_may_be_proposed_or_approved_again(ledger: Ledger) -> None:
    propose(ledger, PLAN, ALICE)
    record_rejection(ledger, digest_of(PLAN), "by bob", "airflow")
    assert state(ledger) == "rejected"
    propose(ledger, PLAN, ALICE)
    assert state(ledger) == "proposed"
    record_rejection(ledger, digest_of(PLAN), "no answer in time", "airflow")
    approved(ledger, PLAN)
    assert state(ledger) == "approved"


def test_a_plan_rejected_after_its_approval_has_expired_is_rejected(ledger: Ledger, time: FakeTime) -> None:
    approved(ledger, PLAN)
    record_rejection(ledger, digest_of(PLAN), "by bob", "airflow")
    assert state(ledger) == "approved"
    time.ms += 5 * 3_600_000
    assert state(ledger) == "rejected"


def test_a_refused_attempt_leaves_a_plan_proposed(ledger: Ledger) -> None:
    propose(ledger, PLAN, ALICE)
    record_refusal(ledger, digest_of(PLAN), "alice may not approve what alice proposed")
    assert state(ledger) == "proposed"


def test_an_approval_ends_by_time_or_by_a_person(ledger: Ledger, time: FakeTime) -> None:
    approved(ledger, PLAN)
    time.ms += 5 * 3_600_000
    assert state(ledger) == "expired"
    approved(ledger, PLAN)
    withdraw(ledger, digest_of(PLAN), BOB)
    assert state(ledger) == "withdrawn"


def test_what_has_expired_stays_so_if_the_clock_is_set_back(ledger: Ledger, time: FakeTime) -> None:
    approved(ledger, PLAN)
    time.ms += 5 * 3_600_000
    record_refusal(ledger, digest_of(PLAN), "its approval has expired")
    time.ms -= 5 * 3_600_000
    assert state(ledger) == "expired"


def test_a_plan_is_undone_once_the_plan_that_undoes_it_was_applied(ledger: Ledger, cluster: FakeCluster) -> None:
    run(approved(ledger, PLAN), ledger, cluster)
    undo = propose_undo(PLAN, ledger, cluster)
    propose(ledger, undo, ALICE)
    assert state(ledger) == "applied"
    run(approved(ledger, undo), ledger, cluster)
    assert state(ledger) == "undone"


def test_a_plan_whose_undo_was_undone_is_applied(ledger: Ledger, cluster: FakeCluster) -> None:
    run(approved(ledger, PLAN), ledger, cluster)
    back = approved(ledger, propose_undo(PLAN, ledger, cluster))
    run(back, ledger, cluster)
    assert (state(ledger), state(ledger, back)) == ("undone", "applied")
    there_again = approved(ledger, propose_undo(back, ledger, cluster))
    run(there_again, ledger, cluster)
    assert (state(ledger), state(ledger, back)) == ("applied", "undone")
    run(approved(ledger, propose_undo(there_again, ledger, cluster)), ledger, cluster)
    assert (state(ledger), state(ledger, back)) == ("undone", "applied")


def test_plans_of_another_cluster_are_left_out(ledger: Ledger) -> None:
    propose(ledger, PLAN, ALICE)
    assert not summaries(ledger, "another")
    assert list(runs_on(ledger, "another")) == []
