from __future__ import annotations

import pytest

from pulsar_advisor.execution.approval import (
    ApprovalPolicy,
    approve,
    person_on_command_line,
    propose,
    standing_approval,
    unsure_because,
    withdraw,
    worse_because,
)
from pulsar_advisor.execution.ledger import Ledger, Person
from pulsar_advisor.model.errors import Refused, UsageError
from pulsar_advisor.model.plan import Doubt, Plan, PlannedSetting, Prediction, Step, digest_of
from unit.execution.actors import ALICE, BOB, FOUR_EYES, approved
from unit.execution.doubles import B1, B2, B3, UPPER, FakeTime, forecast, make_plan, split_step, unload_step

PLAN = make_plan([unload_step()])
DIGEST = digest_of(PLAN)


def predicting(before: dict[str, float | None], after: dict[str, float | None], **changes: object) -> Plan:
    prediction = Prediction(model="proportional", before=forecast(before), after=forecast(after))
    return make_plan([unload_step()], predicted=prediction, **changes)


def test_an_approval_says_who_for_how_long_and_who_vouches_for_the_name(ledger: Ledger, time: FakeTime) -> None:
    propose(ledger, PLAN, ALICE)
    approve(ledger, PLAN, digest=DIGEST, approver=BOB, policy=FOUR_EYES, comment="after the match")
    (approval,) = ledger.approvals(DIGEST)
    assert (approval.approver, approval.source, approval.comment) == ("bob", "airflow", "after the match")
    assert approval.expires_at_ms == time.ms + 4 * 3600 * 1000


@pytest.mark.parametrize("digest", [DIGEST[:-1] + ("0" if DIGEST[-1] != "0" else "1"), DIGEST[:12], DIGEST.upper(), ""])
def test_the_digest_must_be_typed_exactly(ledger: Ledger, digest: str) -> None:
    propose(ledger, PLAN, ALICE)
    with pytest.raises(Refused, match="is not that of the plan"):
        approve(ledger, PLAN, digest=digest, approver=BOB, policy=FOUR_EYES)
    assert ledger.approvals(DIGEST) == []


@pytest.mark.parametrize("name", ["alice", "Alice"])
def test_a_proposer_can_not_approve(ledger: Ledger, name: str) -> None:
    propose(ledger, PLAN, ALICE)
    with pytest.raises(Refused, match="another person has to approve it"):
        approve(ledger, PLAN, digest=DIGEST, approver=Person(name, "airflow"), policy=FOUR_EYES)


def test_a_plan_nobody_proposed_can_not_be_approved(ledger: Ledger) -> None:
    with pytest.raises(Refused, match="has no recorded proposer"):
        approve(ledger, PLAN, digest=DIGEST, approver=BOB, policy=FOUR_EYES)


def test_the_policy_can_let_one_person_do_both(ledger: Ledger) -> None:
    alone = ApprovalPolicy(separate_approver=False)
    propose(ledger, PLAN, ALICE)
    approve(ledger, PLAN, digest=DIGEST, approver=ALICE, policy=alone)
    assert standing_approval(ledger, PLAN, alone).approver == "alice"


def test_splits_have_to_be_allowed(ledger: Ledger) -> None:
    plan = make_plan([split_step()])
    propose(ledger, plan, ALICE)
    with pytest.raises(Refused, match=r"1 split\(s\), which can't be undone: approve with --splits"):
        approve(ledger, plan, digest=digest_of(plan), approver=BOB, policy=FOUR_EYES)


def test_a_plan_without_executable_steps_can_not_be_approved(ledger: Ledger) -> None:
    plan = make_plan([unload_step(executable=False, not_executable_because="the bundle has no owner")])
    propose(ledger, plan, ALICE)
    with pytest.raises(Refused, match="nothing to approve"):
        approve(ledger, plan, digest=digest_of(plan), approver=BOB, policy=FOUR_EYES)


def test_an_approval_needs_a_positive_time(ledger: Ledger) -> None:
    with pytest.raises(UsageError, match="--expires 0s is out of bounds: give a duration from 1s to 3d"):
        approve(ledger, PLAN, digest=DIGEST, approver=BOB, policy=FOUR_EYES, valid_for_s=0)


@pytest.mark.parametrize(
    ("plan", "because"),
    [
        (predicting({B1: 0.8, B2: 0.2}, {B1: 0.5, B2: 0.5}), None),
        (predicting({B1: 0.8, B2: 0.2}, {B1: 0.2, B2: 0.8}), "goes from 80.0% to 80.0%"),
        (predicting({B1: 0.95, B2: 0.2}, {B1: 0.2, B2: 0.9}), f"lifts {B2} to 90.0%"),
        (predicting({B1: 0.95, B2: 0.90}, {B1: 0.94, B2: 0.91}), None),
        (predicting({B1: None}, {B1: None}), "is not known"),
        (
            predicting(
                {B1: 0.8, B2: 0.2},
                {B1: 0.5, B2: 0.7},
                settings={
                    "loadBalancerBrokerOverloadedThresholdPercentage": PlannedSetting(value="60", origin="runtime")
                },
            ),
            f"lifts {B2} to 70.0%",
        ),
        (make_plan([split_step()], predicted=predicting({B3: 0.5}, {B3: 0.5}).predicted), None),
    ],
)
def test_what_counts_as_worse(plan: Plan, because: str | None) -> None:
    assert (worse_because(plan) or "") == (because or "") or str(because) in str(worse_because(plan))


def test_a_worse_outcome_has_to_be_accepted(ledger: Ledger) -> None:
    plan = predicting({B1: 0.5}, {B1: 0.6})
    propose(ledger, plan, ALICE)
    with pytest.raises(Refused, match="Approve with --accept-worse"):
        approve(ledger, plan, digest=digest_of(plan), approver=BOB, policy=FOUR_EYES)
    approve(ledger, plan, digest=digest_of(plan), approver=BOB, policy=FOUR_EYES, accepts_worse=True)
    assert standing_approval(ledger, plan, FOUR_EYES).accepts_worse


TIE = Doubt(confidence="low", sentence="A near-tie decided.")
NO_LIMIT = Doubt(confidence="medium", sentence="brokers.bandwidth_in_limit failed: its speed is not known")


def test_steps_of_low_confidence_have_to_be_accepted(ledger: Ledger) -> None:
    plan = make_plan([unload_step(1), unload_step(2, UPPER, confidence="low", doubts=(TIE, NO_LIMIT))])
    propose(ledger, plan, ALICE)
    with pytest.raises(Refused, match=r"confidence\. step-002: A near-tie decided\. Remove"):
        approve(ledger, plan, digest=digest_of(plan), approver=BOB, policy=FOUR_EYES)
    approve(ledger, plan, digest=digest_of(plan), approver=BOB, policy=FOUR_EYES, accepts_low_confidence=True)
    assert standing_approval(ledger, plan, FOUR_EYES).accepts_low_confidence


def test_an_approval_that_does_not_accept_low_confidence_does_not_carry_it(ledger: Ledger) -> None:
    plan = make_plan([unload_step(confidence="low", doubts=(TIE,))])
    propose(ledger, plan, ALICE)
    record = {"expires_at_ms": ledger.now_ms() + 1000, "comment": "", "allows_splits": True, "accepts_worse": True}
    ledger.record_approval(plan, BOB, accepts_low_confidence=False, **record)
    with pytest.raises(Refused, match="does not accept steps of low confidence"):
        standing_approval(ledger, plan, FOUR_EYES)


@pytest.mark.parametrize(
    "steps",
    [
        [unload_step(confidence="medium", doubts=(NO_LIMIT,))],
        [unload_step(), unload_step(2, confidence="low", executable=False, not_executable_because="unowned")],
    ],
)
def test_medium_confidence_and_steps_that_are_not_sent_ask_for_nothing(steps: list[Step]) -> None:
    assert unsure_because(make_plan(steps)) is None


def test_many_steps_of_low_confidence_are_counted() -> None:
    unsure = unsure_because(make_plan([unload_step(number, confidence="low") for number in range(1, 6)]))
    why = "The plan does not say why."
    assert unsure == f"step-001: {why} step-002: {why} step-003: {why} And 2 more."


def test_an_expired_approval_does_not_stand(ledger: Ledger, time: FakeTime) -> None:
    approved(ledger, PLAN)
    time.pass_s(4 * 3600 + 120)
    with pytest.raises(Refused, match="the approval of bob expired 2 min ago"):
        standing_approval(ledger, PLAN, FOUR_EYES)


def test_a_withdrawn_approval_does_not_stand(ledger: Ledger) -> None:
    approved(ledger, PLAN)
    assert withdraw(ledger, DIGEST, ALICE, "wrong cluster") == 1
    with pytest.raises(Refused, match="the approval of bob was withdrawn"):
        standing_approval(ledger, PLAN, FOUR_EYES)


def test_there_must_be_something_to_withdraw(ledger: Ledger) -> None:
    with pytest.raises(Refused, match="there is nothing to withdraw"):
        withdraw(ledger, DIGEST, ALICE)


def test_a_new_approval_stands_after_an_old_one_was_withdrawn(ledger: Ledger) -> None:
    approved(ledger, PLAN)
    withdraw(ledger, DIGEST, ALICE)
    approved(ledger, PLAN)
    assert standing_approval(ledger, PLAN, FOUR_EYES).id == 2


def test_a_name_on_the_command_line_is_vouched_for_by_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "oncall")
    assert person_on_command_line(" Carol ") == Person("Carol", "unauthenticated:oncall")


def test_a_name_on_the_command_line_can_not_be_empty() -> None:
    with pytest.raises(UsageError, match="--as requires a name"):
        person_on_command_line("  ")
