"""Extends a roll's approval to the plan of each turn, if that plan stays within what was approved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sqlalchemy.orm import Session

from pulsar_advisor.execution.consent.approval import moves_of_a_bundle, standing_approval
from pulsar_advisor.execution.consent.policy import ApprovalPolicy
from pulsar_advisor.execution.ledger.approvals import Terms, add_approval, approvals_of_plan
from pulsar_advisor.execution.ledger.held_run import require_not_withdrawn
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.proposals import add_proposal, proposals_of_plan
from pulsar_advisor.execution.ledger.rolls import (
    RecordedRoll,
    RollTurn,
    active_run_of_roll,
    add_turn,
    has_gone_on,
    require_no_other_roll,
)
from pulsar_advisor.execution.ledger.tables import Approval
from pulsar_advisor.execution.person import Person
from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.plans.goal import ROLL
from pulsar_advisor.model.plans.names import short
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import digest_of, seal
from pulsar_advisor.model.text.reader import reader
from pulsar_advisor.planning.kinds.goal_outcome import goal_outcome
from pulsar_advisor.planning.plans.consent import needed_consents
from pulsar_advisor.planning.requests.request import Request


class CarriedOnElsewhere(Refused):
    """Another process carries the roll on, or the roll was carried on or paused since it was looked at."""


def begin_turn(
    ledger: Ledger,
    roll: Plan,
    plan: Plan,
    turn: RollTurn,
    *,
    seen: RecordedRoll,
    left: Sequence[str],
    moved: Mapping[str, int],
    policy: ApprovalPolicy,
    not_computed_here: str | None,
) -> None:
    """Record that a turn begins, and that its plan is approved as the roll is: with the same expiry and limits.

    `seen` is the roll as it was when the turn was planned; `left` are the brokers (ids) that were left, in order, the
    turn's first; `moved` says how often it had moved each bundle. Raises `Refused` if the plan goes beyond what was
    approved, if the roll's approval doesn't hold, or if another roll has begun on the cluster, and
    `CarriedOnElsewhere`.
    """
    base = standing_approval(ledger, roll, policy)
    digest, first = digest_of(plan), digest_of(roll)
    if reasons := "; ".join(_beyond(roll, plan, base, left, moved)):
        raise Refused(f"the plan of this turn, {digest}, goes beyond what was approved: {reasons}")
    if digest != first and not_computed_here:
        raise Refused(f"the plan of this turn, {digest}, was not computed here: {not_computed_here}")
    proposals, now_ms = proposals_of_plan(ledger, first), ledger.latest_ms()
    with ledger.writing() as session:
        require_not_withdrawn(session, base.id)
        if (run := active_run_of_roll(session, first)) is not None:
            raise CarriedOnElsewhere(f"another process carries out a turn of the roll, run {run}: wait until it ends")
        require_no_other_roll(ledger, session, roll.identity.cluster_name, first, now_ms)
        if has_gone_on(session, first, seen):
            to_do = reader().go_on_with_roll.format(digest=short(first))
            raise CarriedOnElsewhere(f"another process has carried the roll on since this turn was planned: {to_do}")
        if digest != first:
            for proposal in proposals:
                add_proposal(ledger, session, seal(plan), Person(proposal.proposer, proposal.source), "")
            _add_approval_of_turn(ledger, session, plan, base)
        add_turn(ledger, session, first, turn)


def approve_as_roll(ledger: Ledger, roll: Plan, plan: Plan, policy: ApprovalPolicy) -> None:
    """Approve the plan of a turn that is to be resumed as its roll is, if the roll was approved anew since.

    Raises `Refused` if the roll's approval doesn't hold.
    """
    base = standing_approval(ledger, roll, policy)
    if base.id > approvals_of_plan(ledger, digest_of(plan))[-1].id:
        with ledger.writing() as session:
            require_not_withdrawn(session, base.id)
            _add_approval_of_turn(ledger, session, plan, base)


def _add_approval_of_turn(ledger: Ledger, session: Session, plan: Plan, base: Approval) -> None:
    terms = Terms(consents=base.consents, throttle=base.throttle, comment=f"a turn of the roll {base.digest}")
    add_approval(ledger, session, plan, Person(base.approver, base.source), terms, base.expires_at_ms)


def _beyond(roll: Plan, plan: Plan, base: Approval, left: Sequence[str], moved: Mapping[str, int]) -> Iterator[str]:
    """Why the roll's approval doesn't cover a turn's plan."""
    if (plan.cluster, plan.identity.cluster_name) != (roll.cluster, roll.identity.cluster_name):
        yield "it is for another cluster"
    if plan.shedder != ROLL or plan.goal is None or roll.goal is None:
        yield "it is not a roll"
        return
    if _asked(plan) != _asked(roll) or replace(plan.goal, brokers=()) != replace(roll.goal, brokers=()):
        yield "its ceiling, limits or settings are not those of the roll"
    if plan.goal.brokers != tuple(left):
        yield f"its order is {', '.join(plan.goal.brokers)}, but the brokers left are {', '.join(left)}"
    if plan.snapshot < roll.snapshot or (plan.snapshot == roll.snapshot and plan != roll):
        yield f"its snapshot {plan.snapshot} is not later than the roll's"
    if other := [step.id for step in plan.steps if step.action != "unload" or step.source != left[0]]:
        yield f"{other[0]} is not an unload from {left[0]}"
    for needed in needed_consents(plan):
        if needed.consent.name not in base.consents:
            yield f"it needs consent ({needed.consent.flag}): {needed.sentence}"
    if goal_outcome(plan) not in ("reached", "perhaps"):
        caveats = plan.decision.caveats or (plan.decision.why_nothing or "steps are missing",)
        yield f"it doesn't empty {left[0]}: {caveats[0]}"
    yield from _moved_too_often(roll, plan, moved)


def _moved_too_often(roll: Plan, plan: Plan, moved: Mapping[str, int]) -> Iterator[str]:
    most = moves_of_a_bundle(roll)
    times = Counter(moved)
    times.update(step.bundle_name for step in plan.steps if step.executable)
    if often := sorted(step.bundle_name for step in plan.steps if times[step.bundle_name] > most):
        yield f"{often[0]} would move {times[often[0]]} times, more often than the approved {most}"


def _asked(plan: Plan) -> Request:
    return replace(Request.of_plan(plan), goal=None)
