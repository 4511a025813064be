from __future__ import annotations

from contextlib import nullcontext
from functools import partial

import pytest
from sqlalchemy import text

from pulsar_advisor.documents.runs import RunState
from pulsar_advisor.execution.consent.approval import (
    approve,
    approve_automatically,
    propose,
    standing_approval,
    withdraw,
)
from pulsar_advisor.execution.consent.policy import ApprovalPolicy
from pulsar_advisor.execution.ledger.approvals import Terms, add_approval, approvals_of_plan, record_refusal
from pulsar_advisor.execution.ledger.held_run import start_run, take_over
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.proposals import proposals_of_plan
from pulsar_advisor.execution.ledger.runs import runs_of_plan
from pulsar_advisor.execution.person import Person
from pulsar_advisor.model.errors import Refused, UsageError
from pulsar_advisor.model.plans.plan import Plan, Prediction
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.planning.plans.consent import ConsentName
from unit.execution.actors import ALICE, BOB, EVERY_CONSENT, FOUR_EYES, approved
from unit.execution.doubles import B1, FakeTime, forecast, make_plan, split_step, unload_step

PLAN = make_plan([unload_step()])
DIGEST = digest_of(PLAN)


def test_an_approval_says_who_for_how_long_and_who_vouches_for_the_name(ledger: Ledger, time: FakeTime) -> None:
    propose(ledger, PLAN, ALICE)
    approve(ledger, PLAN, digest=DIGEST, approver=BOB, policy=FOUR_EYES, terms=Terms(comment="after the match"))
    (approval,) = approvals_of_plan(ledger, DIGEST)
    assert (approval.approver, approval.source, approval.comment) == ("bob", "airflow", "after the match")
    assert approval.expires_at_ms == time.ms + 4 * 3600 * 1000


@pytest.mark.parametrize("digest", [DIGEST[:-1] + ("0" if DIGEST[-1] != "0" else "1"), DIGEST[:12], DIGEST.upper(), ""])
def test_the_digest_must_be_typed_exactly(ledger: Ledger, digest: str) -> None:
    propose(ledger, PLAN, ALICE)
    with pytest.raises(Refused, match="is not the plan's digest"):
        approve(ledger, PLAN, digest=digest, approver=BOB, policy=FOUR_EYES)
    assert approvals_of_plan(ledger, DIGEST) == []


@pytest.mark.parametrize("name", ["alice", "Alice"])
def test_a_proposer_can_not_approve(ledger: Ledger, name: str) -> None:
    propose(ledger, PLAN, ALICE)
    with pytest.raises(Refused, match="another person has to approve it"):
        approve(ledger, PLAN, digest=DIGEST, approver=Person(name, "airflow"), policy=FOUR_EYES)


def test_a_plan_nobody_proposed_can_not_be_approved(ledger: Ledger) -> None:
    with pytest.raises(Refused, match=r"sha256:\w+ was never proposed"):
        approve(ledger, PLAN, digest=DIGEST, approver=BOB, policy=FOUR_EYES)


@pytest.mark.parametrize(
    ("state", "why", "approvable"),
    [
        ("done", "was already carried out, in run 1", False),
        ("aborted", "was ended for good, in run 1", False),
        ("active", "is being carried out, in run 1", True),
        ("stopped", None, True),
    ],
)
def test_a_plan_that_had_its_run_is_proposed_and_approved_no_more(
    ledger: Ledger, state: RunState, why: str | None, approvable: bool
) -> None:
    held = start_run(ledger, approved(ledger, PLAN), standing_approval(ledger, PLAN, FOUR_EYES))
    if state != "active":
        held.end(state, "")
    terms = Terms(consents=EVERY_CONSENT)
    again = partial(approve, ledger, PLAN, digest=DIGEST, approver=BOB, policy=FOUR_EYES, terms=terms)
    with nullcontext() if why is None else pytest.raises(Refused, match=why):
        propose(ledger, PLAN, ALICE)
    with nullcontext() if approvable else pytest.raises(Refused, match=why):
        again()
    assert (len(proposals_of_plan(ledger, DIGEST)), len(approvals_of_plan(ledger, DIGEST))) == (
        1 + (why is None),
        1 + approvable,
    )


def test_the_policy_can_let_one_person_do_both(ledger: Ledger) -> None:
    alone = ApprovalPolicy(separate_approver=False)
    propose(ledger, PLAN, ALICE)
    approve(ledger, PLAN, digest=DIGEST, approver=ALICE, policy=alone)
    assert standing_approval(ledger, PLAN, alone).approver == "alice"


def test_a_plan_without_executable_steps_can_not_be_approved(ledger: Ledger) -> None:
    plan = make_plan([unload_step(executable=False, not_executable_because="the bundle has no owner")])
    propose(ledger, plan, ALICE)
    with pytest.raises(Refused, match="nothing to approve"):
        approve(ledger, plan, digest=digest_of(plan), approver=BOB, policy=FOUR_EYES)


def test_an_approval_needs_a_positive_time(ledger: Ledger) -> None:
    with pytest.raises(UsageError, match="--expires 0s is out of bounds: give a duration from 1s to 3d"):
        approve(ledger, PLAN, digest=DIGEST, approver=BOB, policy=FOUR_EYES, terms=Terms(valid_for_s=0))


UNSURE = make_plan([unload_step(confidence="low")])
WORSE = make_plan(
    [unload_step()],
    predicted=Prediction(model="proportional", before=forecast({B1: 0.5}), after=forecast({B1: 0.6})),
)


@pytest.mark.parametrize(
    ("plan", "flag", "name"),
    [
        (make_plan([split_step()]), "--splits", "splits"),
        (WORSE, "--accept-worse", "worse"),
        (UNSURE, "--accept-low-confidence", "low_confidence"),
    ],
)
def test_what_needs_consent_is_approved_only_with_it(ledger: Ledger, plan: Plan, flag: str, name: ConsentName) -> None:
    propose(ledger, plan, ALICE)
    others = EVERY_CONSENT - {name}
    with pytest.raises(Refused, match=f"Approve with {flag} if you mean it"):
        approve(ledger, plan, digest=digest_of(plan), approver=BOB, policy=FOUR_EYES, terms=Terms(consents=others))
    approve(ledger, plan, digest=digest_of(plan), approver=BOB, policy=FOUR_EYES, terms=Terms(consents=[name]))
    assert standing_approval(ledger, plan, FOUR_EYES).consents == {name}


def test_an_approval_without_the_consent_a_plan_needs_does_not_carry_it(ledger: Ledger) -> None:
    propose(ledger, UNSURE, ALICE)
    with ledger.writing() as session:
        add_approval(ledger, session, UNSURE, BOB, Terms(consents=["splits", "worse"]), ledger.now_ms() + 1000)
    with pytest.raises(Refused, match="the approval of bob lacks --accept-low-confidence"):
        standing_approval(ledger, UNSURE, FOUR_EYES)


def test_an_expired_approval_does_not_stand(ledger: Ledger, time: FakeTime) -> None:
    approved(ledger, PLAN)
    time.pass_s(4 * 3600 + 120)
    with pytest.raises(Refused, match="the approval of bob expired 120 s ago"):
        standing_approval(ledger, PLAN, FOUR_EYES)


def test_a_withdrawn_approval_does_not_stand(ledger: Ledger) -> None:
    approved(ledger, PLAN)
    assert withdraw(ledger, DIGEST, ALICE, "wrong cluster") == 1
    with pytest.raises(Refused, match="the approval of bob was withdrawn"):
        standing_approval(ledger, PLAN, FOUR_EYES)


def test_there_must_be_something_to_withdraw(ledger: Ledger) -> None:
    with pytest.raises(Refused, match="there is nothing to withdraw"):
        withdraw(ledger, DIGEST, ALICE)


def test_an_approval_that_has_expired_stays_so_when_the_clock_is_set_back(ledger: Ledger, time: FakeTime) -> None:
    approved(ledger, PLAN)
    time.pass_s(4 * 3600 + 120)
    record_refusal(ledger, DIGEST, "it has expired")
    time.set_ahead_s = -3600
    with pytest.raises(Refused, match="the approval of bob expired 120 s ago"):
        standing_approval(ledger, PLAN, FOUR_EYES)


def test_an_expired_approval_that_an_active_run_rests_on_can_be_withdrawn(ledger: Ledger, time: FakeTime) -> None:
    approved(ledger, PLAN)
    start_run(ledger, PLAN, standing_approval(ledger, PLAN, FOUR_EYES))
    time.pass_s(5 * 3600)
    assert withdraw(ledger, DIGEST, ALICE, "enough") == 1


def test_an_expired_approval_without_an_active_run_is_not_withdrawn(ledger: Ledger, time: FakeTime) -> None:
    approved(ledger, PLAN)
    time.pass_s(5 * 3600)
    with pytest.raises(Refused, match="there is nothing to withdraw"):
        withdraw(ledger, DIGEST, ALICE)


def test_a_resumed_run_rests_on_the_approval_it_was_resumed_with(ledger: Ledger, time: FakeTime) -> None:
    approved(ledger, PLAN)
    start_run(ledger, PLAN, standing_approval(ledger, PLAN, FOUR_EYES)).end("stopped", "drifted")
    time.pass_s(5 * 3600)
    approved(ledger, PLAN)
    take_over(ledger, runs_of_plan(ledger, DIGEST)[0], standing_approval(ledger, PLAN, FOUR_EYES))
    time.pass_s(5 * 3600)
    assert withdraw(ledger, DIGEST, ALICE) == 1
    assert [row.withdrawn_at_ms is None for row in approvals_of_plan(ledger, DIGEST)] == [True, False]


def test_a_new_approval_stands_after_an_old_one_was_withdrawn(ledger: Ledger) -> None:
    approved(ledger, PLAN)
    withdraw(ledger, DIGEST, ALICE)
    approved(ledger, PLAN)
    assert standing_approval(ledger, PLAN, FOUR_EYES).id == 2


OPS, OTHER_OPS = Person("olive", "unauthenticated:ops"), Person("oscar", "unauthenticated:ops")
ROOT = Person("oscar", "unauthenticated:root")


@pytest.mark.parametrize("name", ["alice\u200b", "ａｌｉｃｅ", "ALICE "])
def test_another_spelling_of_the_proposer_can_not_approve(ledger: Ledger, name: str) -> None:
    approved(ledger, PLAN)
    with ledger.writing() as session:  # as an earlier release recorded it
        session.execute(text("DROP TRIGGER approvals_fixed"))
        session.execute(text("UPDATE approvals SET approver = :name"), {"name": name})
    with pytest.raises(Refused, match="another person has to approve it"):
        standing_approval(ledger, PLAN, FOUR_EYES)


def test_one_system_user_can_not_propose_and_approve_under_two_names(ledger: Ledger) -> None:
    propose(ledger, PLAN, OPS)
    with pytest.raises(Refused, match="the user ops proposed"):
        approve(ledger, PLAN, digest=DIGEST, approver=OTHER_OPS, policy=FOUR_EYES)
    approve(ledger, PLAN, digest=DIGEST, approver=ROOT, policy=FOUR_EYES)


@pytest.mark.parametrize(
    ("proposer", "approver"),
    [(ALICE, Person("bob", "unauthenticated:alice")), (Person("bob", "unauthenticated:alice"), ALICE)],
    ids=["in Airflow, then at a shell", "at a shell, then in Airflow"],
)
def test_one_user_can_not_propose_and_approve_in_airflow_and_at_a_shell(
    ledger: Ledger, proposer: Person, approver: Person
) -> None:
    propose(ledger, PLAN, proposer)
    with pytest.raises(Refused, match="the user alice proposed"):
        approve(ledger, PLAN, digest=DIGEST, approver=approver, policy=FOUR_EYES)


def test_the_policy_can_let_one_system_user_do_both(ledger: Ledger) -> None:
    shared = ApprovalPolicy(separate_system_user=False)
    propose(ledger, PLAN, OPS)
    approve(ledger, PLAN, digest=DIGEST, approver=OTHER_OPS, policy=shared)
    assert standing_approval(ledger, PLAN, shared).approver == "oscar"
    with pytest.raises(Refused, match="the user ops proposed"):
        standing_approval(ledger, PLAN, FOUR_EYES)


def test_the_policy_can_ask_for_an_authenticated_approver(ledger: Ledger) -> None:
    strict = ApprovalPolicy(require_authenticated=True)
    propose(ledger, PLAN, ALICE)
    approve(ledger, PLAN, digest=DIGEST, approver=ROOT, policy=FOUR_EYES)
    with pytest.raises(Refused, match=r"and no system authenticated oscar \(unauthenticated:root\)"):
        standing_approval(ledger, PLAN, strict)
    approve(ledger, PLAN, digest=DIGEST, approver=BOB, policy=strict)
    assert standing_approval(ledger, PLAN, strict).approver == "bob"


LENIENT = ApprovalPolicy.model_validate(
    {
        "schema": "pulsar-advisor/approval-policy/1",
        "require_authenticated": True,
        "automatic": {
            "max_moves": 1,
            "min_gain_ratio": 0.1,
            "namespaces": ["*"],
            "window": {"days": ["sat"], "from": "08:00", "to": "18:00"},
        },
    }
)


def test_a_plan_that_meets_the_criteria_is_approved_in_the_name_of_the_policy(ledger: Ledger) -> None:
    propose(ledger, PLAN, ALICE)
    approval = approve_automatically(ledger, PLAN, policy=LENIENT, not_computed_here=None)
    assert (approval.approver, approval.source, approval.consents) == ("approval policy", LENIENT.source, set())
    assert approval.comment.startswith("every criterion of the policy is met: ")
    assert standing_approval(ledger, PLAN, LENIENT).id == approval.id


def test_an_automatic_approval_stands_only_under_the_policy_that_gave_it(ledger: Ledger) -> None:
    propose(ledger, PLAN, ALICE)
    approve_automatically(ledger, PLAN, policy=LENIENT, not_computed_here=None)
    for other in (FOUR_EYES, LENIENT.model_copy(update={"separate_approver": False})):
        with pytest.raises(Refused, match="is not the one in force"):
            standing_approval(ledger, PLAN, other)


def test_what_does_not_meet_the_criteria_goes_to_a_person(ledger: Ledger, time: FakeTime) -> None:
    plan = make_plan([unload_step(1), unload_step(2), split_step(3)])
    propose(ledger, plan, ALICE)
    with pytest.raises(Refused, match=r"a person has to approve the plan: it moves 2 .*; it needs a person's consent"):
        approve_automatically(ledger, plan, policy=LENIENT, not_computed_here=None)
    time.pass_s(24 * 3600)
    propose(ledger, PLAN, ALICE)
    with pytest.raises(Refused, match="it is Sun 08:40, outside the window sat 08:00 to 18:00 UTC"):
        approve_automatically(ledger, PLAN, policy=LENIENT, not_computed_here=None)
    assert [*approvals_of_plan(ledger, digest_of(plan)), *approvals_of_plan(ledger, DIGEST)] == []


def test_no_plan_is_approved_automatically_without_criteria_or_proposer(ledger: Ledger) -> None:
    with pytest.raises(Refused, match="no criteria for automatic approval"):
        approve_automatically(ledger, PLAN, policy=FOUR_EYES, not_computed_here=None)
    with pytest.raises(Refused, match=r"sha256:\w+ was never proposed"):
        approve_automatically(ledger, PLAN, policy=LENIENT, not_computed_here=None)


def test_a_plan_that_was_never_proposed_can_not_be_approved_by_a_policy_that_lets_one_person_do_both(
    ledger: Ledger,
) -> None:
    alone = LENIENT.model_copy(update={"separate_approver": False, "separate_system_user": False})
    with pytest.raises(Refused, match="was never proposed"):
        approve_automatically(ledger, PLAN, policy=alone, not_computed_here=None)
    assert approvals_of_plan(ledger, DIGEST) == []


def test_no_plan_that_was_not_computed_here_is_approved_automatically(ledger: Ledger) -> None:
    propose(ledger, PLAN, ALICE)
    with pytest.raises(Refused, match="a person has to approve the plan: it was not computed here: it came by mail"):
        approve_automatically(ledger, PLAN, policy=LENIENT, not_computed_here="it came by mail")


def test_one_person_who_may_do_both_proposes_what_they_approve(ledger: Ledger) -> None:
    alone = ApprovalPolicy(separate_approver=False)
    approve(ledger, PLAN, digest=DIGEST, approver=ALICE, policy=alone, not_computed_here="it came by mail")
    [proposal] = proposals_of_plan(ledger, DIGEST)
    assert (proposal.proposer, proposal.not_computed_here) == ("alice", "it came by mail")
    assert ledger.events(DIGEST)[0].detail == "by alice (airflow); not computed here: it came by mail"


def behind_its_back(ledger: Ledger, *statements: str) -> None:
    """By somebody who can write to the database, and drop its triggers."""
    with ledger._engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement.replace(":digest", f"'{DIGEST}'")))


BY_HAND = """
    INSERT INTO approvals (id, digest, approver, source, at_ms, expires_at_ms, comment, allows_splits, accepts_worse,
        accepts_low_confidence)
    VALUES (9, :digest, 'bob', 'airflow', 0, 99999999999999, '', 1, 1, 1)
"""


def test_an_approval_put_in_by_hand_is_none(ledger: Ledger) -> None:
    propose(ledger, PLAN, ALICE)
    behind_its_back(ledger, BY_HAND)
    with pytest.raises(Refused, match="doesn't prove the approval of bob: approvals/9 was added by no event"):
        standing_approval(ledger, PLAN, FOUR_EYES)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (("DROP TRIGGER approvals_fixed", "UPDATE approvals SET comment = 'x'"), "approvals/1 is not as event 2 left"),
        (("DROP TRIGGER proposals_fixed", "UPDATE proposals SET proposer = 'x'"), "proposals/1 is not as event 1 left"),
        (
            ("DROP TRIGGER proposals_no_delete", "DELETE FROM proposals WHERE proposer = 'alice'"),
            "event 1 wrote, was rem",
        ),
        (("DROP TRIGGER events_fixed", "UPDATE events SET detail = 'x' WHERE id = 2"), r"event 2 \('approved'\) was"),
        (("DROP TRIGGER events_fixed", "UPDATE events SET rows = 'x' WHERE id = 1"), r"event 1 \('proposed'\) was"),
        (("DROP TRIGGER events_no_delete", "DELETE FROM events WHERE id = 3"), "event 3 is missing"),
    ],
)
def test_what_leads_to_an_approval_and_away_from_it_is_proven(
    ledger: Ledger, change: tuple[str, ...], where: str
) -> None:
    propose(ledger, PLAN, ALICE)
    approve(ledger, PLAN, digest=DIGEST, approver=BOB, policy=FOUR_EYES)
    propose(ledger, PLAN, Person("carol", "airflow"))
    for _ in range(2):
        record_refusal(ledger, DIGEST, "later")
    assert standing_approval(ledger, PLAN, FOUR_EYES).approver == "bob"
    behind_its_back(ledger, *change)
    with pytest.raises(Refused, match=where):
        standing_approval(ledger, PLAN, FOUR_EYES)
