"""Who may say yes to a plan, and which approval lets it be carried out."""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pulsar_advisor.execution.ledger import Ledger, Person
from pulsar_advisor.execution.ledger_tables import Approval
from pulsar_advisor.execution.preconditions import OVERLOADED_KEY, overloaded_ratio
from pulsar_advisor.model.bounds import EXPIRES
from pulsar_advisor.model.errors import Refused, UsageError
from pulsar_advisor.model.plan import Plan, digest_of

_UNSURE_NAMED: Final = 3

VALID_FOR_S: Final = 4 * 3600
"""How long an approval stands unless said otherwise."""


@dataclass(frozen=True)
class ApprovalPolicy:
    """What an organisation demands of an approval."""

    separate_approver: bool = True
    """Nobody who proposed a plan may approve it; a plan that nobody is recorded to have proposed can't be approved."""


def person_on_command_line(name: str) -> Person:
    """A name somebody typed: nobody vouches for it, so the user of the machine is recorded with it.

    Raises `UsageError` if the name is empty.
    """
    if not name.strip():
        raise UsageError("--as requires a name: the ledger records it with your action")
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # containers may run under a number that has no name
        user = f"uid {os.getuid()}"
    return Person(name.strip(), f"unauthenticated:{user}")


def propose(ledger: Ledger, plan: Plan, proposer: Person) -> None:
    """Record that somebody proposes to carry out a plan."""
    ledger.record_proposal(plan, proposer)


def approve(
    ledger: Ledger,
    plan: Plan,
    *,
    digest: str,
    approver: Person,
    policy: ApprovalPolicy,
    allows_splits: bool = False,
    accepts_worse: bool = False,
    accepts_low_confidence: bool = False,
    valid_for_s: int = VALID_FOR_S,
    comment: str = "",
) -> Approval:
    """Record an approval of exactly this plan.

    `digest` is what the approver typed. Raises `Refused` if it isn't the plan's, if the policy forbids this approver,
    or if the plan splits bundles, makes things worse or has steps of low confidence and that was not allowed;
    `UsageError` for a time out of bounds.
    """
    EXPIRES.check(valid_for_s)
    if digest != digest_of(plan):
        raise Refused(
            f"the digest given, {digest}, is not that of the plan, {digest_of(plan)}: read the plan you mean to "
            "approve, and give its whole digest"
        )
    if not any(step.executable for step in plan.steps):
        raise Refused("the plan has no step that could be carried out: there is nothing to approve")
    if reason := _forbidden(ledger, digest, approver.name, policy):
        raise Refused(reason)
    if plan_splits(plan) and not allows_splits:
        raise Refused(
            f"the plan has {plan_splits(plan)} split(s), which can't be undone: approve with --splits if you mean it"
        )
    if (worse := worse_because(plan)) and not accepts_worse:
        raise Refused(f"the plan makes things worse: {worse}. Approve with --accept-worse if you mean it")
    if (unsure := unsure_because(plan)) and not accepts_low_confidence:
        raise Refused(
            f"the plan has steps of low confidence. {unsure} Remove the doubt and recommend again, or approve with "
            "--accept-low-confidence if you mean it"
        )
    return ledger.record_approval(
        plan,
        approver,
        expires_at_ms=ledger.now_ms() + valid_for_s * 1000,
        comment=comment,
        allows_splits=allows_splits,
        accepts_worse=accepts_worse,
        accepts_low_confidence=accepts_low_confidence,
    )


def withdraw(ledger: Ledger, digest: str, person: Person, comment: str = "") -> int:
    """Take back the approvals of a plan that still stand; a run that is under way stops before its next call.

    Gives back how many there were. Raises `Refused` if there was none.
    """
    withdrawn = ledger.withdraw_approvals(digest, person, comment)
    if not withdrawn:
        raise Refused(f"no approval of {digest} is in force: there is nothing to withdraw")
    return withdrawn


def standing_approval(ledger: Ledger, plan: Plan, policy: ApprovalPolicy) -> Approval:
    """The newest approval that lets this plan be carried out now. Raises `Refused` saying why there is none."""
    digest = digest_of(plan)
    approvals = ledger.approvals(digest)
    if not approvals:
        raise Refused(f"{digest} has no approval: have it approved with `approve PLAN --digest {digest} --as NAME`")
    objections = [_objection(ledger, plan, approval, policy) for approval in approvals]
    for approval, objection in zip(reversed(approvals), reversed(objections), strict=True):
        if objection is None:
            return approval
    raise Refused(f"{digest} may not be applied: {objections[-1]}; have it approved again")


def _objection(ledger: Ledger, plan: Plan, approval: Approval, policy: ApprovalPolicy) -> str | None:
    if approval.withdrawn_at_ms is not None:
        return f"the approval of {approval.approver} was withdrawn"
    late_ms = ledger.now_ms() - approval.expires_at_ms
    if late_ms >= 0:
        return f"the approval of {approval.approver} expired {late_ms // 60_000} min ago"
    if plan_splits(plan) and not approval.allows_splits:
        return f"the approval of {approval.approver} does not allow splits"
    if worse_because(plan) and not approval.accepts_worse:
        return f"the approval of {approval.approver} does not accept a worse outcome"
    if unsure_because(plan) and not approval.accepts_low_confidence:
        return f"the approval of {approval.approver} does not accept steps of low confidence"
    return _forbidden(ledger, approval.digest, approval.approver, policy)


def _forbidden(ledger: Ledger, digest: str, approver: str, policy: ApprovalPolicy) -> str | None:
    if not policy.separate_approver:
        return None
    proposers = [proposal.proposer for proposal in ledger.proposals(digest)]
    if not proposers:
        return f"{digest} has no recorded proposer, so the approver can't be shown to be another person"
    if approver.casefold() in (proposer.casefold() for proposer in proposers):
        return f"{approver} proposed {digest}: another person has to approve it"
    return None


def plan_splits(plan: Plan) -> int:
    """How many executable splits a plan has."""
    return sum(step.executable and step.action == "split" for step in plan.steps)


def unsure_because(plan: Plan) -> str | None:
    """Which executable steps are of low confidence and why, or None; many of them are counted."""
    unsure = [step for step in plan.steps if step.executable and step.confidence == "low"]
    if not unsure:
        return None
    named = []
    for step in unsure[:_UNSURE_NAMED]:
        why = " ".join(doubt.sentence for doubt in step.doubts if doubt.confidence == "low")
        named.append(f"{step.id}: {why or 'The plan does not say why.'}")
    more = len(unsure) - len(named)
    return " ".join(named) + (f" And {more} more." if more else "")


def worse_because(plan: Plan) -> str | None:
    """Why a plan needs somebody to accept a worse outcome, or None.

    A plan that moves nothing (splits only) can't make things worse. One that moves must lower the predicted maximum and
    must not lift a broker over the overload threshold; a prediction that is missing counts as worse.
    """
    if not any(step.executable and step.action == "unload" for step in plan.steps):
        return None
    return next(_worse(plan), None)


def _worse(plan: Plan) -> Iterator[str]:
    before, after = plan.predicted.before, plan.predicted.after
    if before.maximum_ratio is None or after.maximum_ratio is None:
        yield "the maximum usage before or after is not known"
    elif after.maximum_ratio >= before.maximum_ratio:
        yield f"the predicted maximum usage goes from {before.maximum_ratio:.1%} to {after.maximum_ratio:.1%}"
    threshold = overloaded_ratio(plan)
    for broker, forecast in after.brokers.items():
        was = before.brokers[broker].usage_ratio if broker in before.brokers else None
        if forecast.usage_ratio is not None and forecast.usage_ratio > threshold and (was is None or was <= threshold):
            yield f"it lifts {broker} to {forecast.usage_ratio:.1%}, over {OVERLOADED_KEY}={threshold:.0%}"
