"""Who may approve a plan, and which approval allows it to be applied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from pulsar_advisor.documents.runs import RunState
from pulsar_advisor.execution.consent.policy import POLICY, ApprovalPolicy
from pulsar_advisor.execution.ledger.approvals import Terms, add_approval, approvals_of_plan, withdraw_approvals
from pulsar_advisor.execution.ledger.audit import why_unproven
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.lists import undone
from pulsar_advisor.execution.ledger.plans import summary_of_plan
from pulsar_advisor.execution.ledger.proposals import add_proposal, proposals_of_plan
from pulsar_advisor.execution.ledger.rolls import recorded_roll, runs_of_roll
from pulsar_advisor.execution.ledger.runs import runs_of_plan
from pulsar_advisor.execution.ledger.steps import steps_of_run
from pulsar_advisor.execution.ledger.tables import Approval
from pulsar_advisor.execution.person import Person, account, is_authenticated, same_person
from pulsar_advisor.execution.run.preconditions import NEW_PLAN
from pulsar_advisor.execution.throttle import ApplyThrottle
from pulsar_advisor.model.bounds import EXPIRES, VALID_FOR_S
from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.plans.goal import ROLL
from pulsar_advisor.model.plans.names import short
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import digest_of, seal
from pulsar_advisor.model.text.reader import reader
from pulsar_advisor.model.text.some_of import lasting
from pulsar_advisor.planning.plans.consent import ALONE, NeededConsent, approve_words, needed_consents

ROLL_VALID_FOR_S: Final = 24 * 3600
"""The same for a roll, which waits for a restart after each of its turns."""

_NOT_ANOTHER_RUN: Final[Mapping[RunState, str]] = {
    "done": f"was already carried out, in run {{run}}: {NEW_PLAN}",
    "aborted": f"was ended for good, in run {{run}}: {NEW_PLAN}",
    "active": "is being carried out, in run {run}: wait for it, or {end_run}",
}
"""State of a plan's run -> why the plan can't be approved again."""


@dataclass(frozen=True, kw_only=True)
class Approved:
    """What `approve` prints of an approval: the approver, the limits, and when it expires."""

    digest: str
    approver: str
    throttle: ApplyThrottle
    expires_at_ms: int
    not_computed_here: str | None
    """Why the plan couldn't be computed again from its snapshot; null if it was."""


@dataclass(frozen=True)
class Before:
    """What the ledger had recorded about a plan before it is approved."""

    runs: tuple[int, ...] = ()
    """Runs that ended with steps or turns left."""
    ended: frozenset[str] = frozenset()
    """The ids of finished steps, and of brokers that a roll has restarted."""


NOTHING_BEFORE: Final = Before()


def carried_out_before(ledger: Ledger, digest: str) -> Before:
    """What was carried out of a plan that may go on; for a roll, in all its turns."""
    runs = [run.id for run in runs_of_roll(ledger, digest) if run.state in ("active", "stopped", "done")]
    records = (record for run in runs for record in steps_of_run(ledger, run).values())
    ended = {record.step_id for record in records if record.is_confirmed or record.is_left_out}
    return Before(tuple(runs), frozenset(ended | {*recorded_roll(ledger, digest).restarted}))


def default_validity_s(plan: Plan) -> int:
    """How long an approval of a plan is valid, unless its approver says otherwise."""
    return ROLL_VALID_FOR_S if plan.shedder == ROLL else VALID_FOR_S


def propose(ledger: Ledger, plan: Plan, proposer: Person, not_computed_here: str | None = None) -> None:
    """Record who proposes a plan, and why it can't be computed here, if it can't (`stages.derive`).

    Raises `Refused` as `require_may_run` does.
    """
    require_may_run(ledger, digest_of(plan))
    with ledger.writing() as session:
        add_proposal(ledger, session, seal(plan), proposer, not_computed_here)


def require_may_run(ledger: Ledger, digest: str, *, again: bool = False) -> None:
    """Raise `Refused` if a plan can't have another run, as `why_not_again` says, with what to do."""
    if (why := why_not_again(ledger, digest, again=again)) is not None:
        raise Refused(f"{digest} {why}")


def why_not_again(ledger: Ledger, digest: str, *, again: bool = False) -> str | None:
    """Why a plan can't have another run, and so no further approval, in words that follow its digest; None if it can.

    Because it was carried out, aborted, undone or (unless `again`) is under way, or is a roll that is over. A stopped
    run may be resumed. A roll that isn't over may go on even though its first turn was carried out.
    """
    roll = recorded_roll(ledger, digest)
    if roll.ended is not None:
        return f"is a roll that is over, {roll.ended}: {NEW_PLAN}"
    if roll.turns:
        return None
    for run in runs_of_plan(ledger, digest):
        if run.state in _NOT_ANOTHER_RUN and not (again and run.state == "active"):
            end_run = reader().end_run.format(digest=short(digest))
            return _NOT_ANOTHER_RUN[run.state].format(run=run.id, end_run=end_run)
    plan = summary_of_plan(ledger, digest)
    # A turn of a roll that was undone is planned again.
    if plan is not None and plan.shedder != ROLL and digest in undone(ledger, plan.cluster):
        return f"has been undone since: {NEW_PLAN}"
    return None


def approve(
    ledger: Ledger,
    plan: Plan,
    *,
    digest: str,
    approver: Person,
    policy: ApprovalPolicy,
    terms: Terms = Terms(),
    not_computed_here: str | None = None,
) -> Approval:
    """Record an approval of exactly this plan.

    `digest` is what the approver typed. Where one person may do both, approving a plan that was never proposed proposes
    it, with `not_computed_here`. A roll always gets a guard. Raises `Refused` if the digest isn't the plan's, if the
    plan had its run or was undone, if the policy forbids this approver, or if the plan needs a consent that isn't in
    the terms; `UsageError` if the validity is out of bounds.
    """
    EXPIRES.check(terms.valid_for_s)
    require_digest(plan, digest)
    if not plan.executable_steps:
        raise Refused("the plan has no step that can be carried out: there is nothing to approve")
    require_may_run(ledger, digest, again=True)  # taking over a lost run may need another approval
    if reason := _forbidden(ledger, digest, approver.name, approver.source, policy):
        raise Refused(reason)
    if missing := [each for each in needed_consents(plan) if each.consent.name not in terms.consents]:
        why = ". ".join(f"{each.sentence} ({each.consent.flag})" for each in missing)
        flags = " ".join(each.consent.flag for each in missing)
        raise Refused(f"the plan needs consent: {why}. Approve with {flags} if you mean it")
    if not proposals_of_plan(ledger, digest):
        propose(ledger, plan, approver, not_computed_here)
    if plan.shedder == ROLL:
        moves_of_a_bundle(plan)  # later turns are held to it
        terms = replace(terms, throttle=replace(terms.throttle, guard=True))
    with ledger.writing() as session:
        return add_approval(ledger, session, plan, approver, terms, ledger.now_ms() + terms.valid_for_s * 1000)


def moves_of_a_bundle(roll: Plan) -> int:
    """How often the approved plan lets a roll move each bundle. Raises `Refused` if it doesn't say."""
    most = roll.decision.figures.get("moves_of_a_bundle")
    if not isinstance(most, int):
        raise Refused(f"the roll {digest_of(roll)} doesn't say how often it moves a bundle: make it again with `roll`")
    return most


def approve_automatically(
    ledger: Ledger, plan: Plan, *, policy: ApprovalPolicy, not_computed_here: str | None, terms: Terms = Terms()
) -> Approval:
    """Record the approval of a plan that meets every criterion of the policy, which consents to nothing else.

    The criteria read the plan's own figures, so they mean something only if the plan was computed here: see
    `stages.derive`. Raises `Refused`, naming each criterion that isn't met; then a person must decide.
    """
    if policy.automatic is None:
        raise Refused("the approval policy has no criteria for automatic approval: a person has to approve the plan")
    if reason := _forbidden(ledger, digest_of(plan), POLICY, policy.source, policy):
        raise Refused(reason)
    now = datetime.fromtimestamp(ledger.now_ms() / 1000, UTC)
    origin = (f"it was not computed here: {not_computed_here}",) if not_computed_here else ()
    if unmet := "; ".join((*origin, *policy.automatic.unmet(plan, now))):
        raise Refused(f"a person has to approve the plan: {unmet}")
    return approve(
        ledger,
        plan,
        digest=digest_of(plan),
        approver=Person("approval policy", policy.source),
        policy=policy,
        terms=replace(terms, consents=(), comment=policy.automatic.sentence),
    )


def withdraw(ledger: Ledger, digest: str, person: Person, comment: str = "") -> int:
    """Withdraw a plan's valid approvals and those that an active run relies on, even if expired.

    A run in progress stops before its next call. Returns the number withdrawn. Raises `Refused` if it is 0.
    """
    withdrawn = withdraw_approvals(ledger, digest, person, comment)
    if not withdrawn:
        raise Refused(f"{digest} has no valid approval, and no active run relies on one: there is nothing to withdraw")
    return withdrawn


def standing_approval(ledger: Ledger, plan: Plan, policy: ApprovalPolicy) -> Approval:
    """The newest approval that allows this plan to be applied now. Raises `Refused`, with the reason, without one."""
    digest = digest_of(plan)
    approvals = approvals_of_plan(ledger, digest)
    if not approvals:
        how = reader().approve.format(words=" ".join(approve_words(plan)))
        raise Refused(f"{digest} has no approval: have it approved by somebody else: {how}")
    objections = [_objection(ledger, plan, approval, policy) for approval in approvals]
    for approval, objection in zip(reversed(approvals), reversed(objections), strict=True):
        if objection is None:
            if reason := why_unproven(ledger, approval):
                raise Refused(
                    f"{digest} may not be applied: the ledger doesn't prove the approval of {approval.approver}: "
                    f"{reason}; {reader().audit}, and find out who wrote to the ledger"
                )
            return approval
    raise Refused(f"{digest} may not be applied: {objections[-1]}; have it approved again")


def _objection(ledger: Ledger, plan: Plan, approval: Approval, policy: ApprovalPolicy) -> str | None:
    if approval.withdrawn_at_ms is not None:
        return f"the approval of {approval.approver} was withdrawn"
    late_ms = ledger.latest_ms() - approval.expires_at_ms  # an expired approval stays expired if the clock is set back
    if late_ms >= 0:
        return f"the approval of {approval.approver} expired {lasting(late_ms / 1000)} ago"
    if missing := [each for each in needed_consents(plan) if each.consent.name not in approval.consents]:
        return f"the approval of {approval.approver} lacks {_named(missing)}: {missing[0].sentence}"
    return _forbidden(ledger, approval.digest, approval.approver, approval.source, policy)


def _named(needed: Sequence[NeededConsent]) -> str:
    """The consents by the names that the reader knows: flags or form fields."""
    return ", ".join(each.consent.known_as for each in needed)


def require_digest(plan: Plan, digest: str) -> None:
    """Raise `Refused` unless this is the plan's full digest."""
    if digest != digest_of(plan):
        raise Refused(
            f"{digest} is not the plan's digest, {digest_of(plan)}: read the plan you mean to "
            "approve, and give its full digest"
        )


def _forbidden(ledger: Ledger, digest: str, approver: str, source: str, policy: ApprovalPolicy) -> str | None:
    """Why the policy forbids this approver to approve this plan, or None."""
    if source.startswith(POLICY) and (policy.automatic is None or source != policy.source):
        return f"the approval policy that approved it ({source}) is not the one in force"
    if policy.require_authenticated and not is_authenticated(source):
        return f"the approval policy requires an authenticated name, and no system authenticated {approver} ({source})"
    proposals = proposals_of_plan(ledger, digest)
    alone = not policy.separate_approver and (is_authenticated(source) or not policy.separate_system_user)
    if not proposals and (source.startswith(POLICY) or not alone):
        return f"{digest} was never proposed: `recommend` proposes its plans, pulsar_rebalance the one that it is given"
    if policy.separate_approver and any(same_person(approver, proposal.proposer) for proposal in proposals):
        return f"{approver} proposed {digest}: another person has to approve it"
    user = account(approver, source)
    others = (one for one in proposals if not (is_authenticated(source) and is_authenticated(one.source)))
    if policy.separate_system_user and any(same_person(user, account(one.proposer, one.source)) for one in others):
        return (
            f"the user {user} proposed {digest}: somebody else has to approve it from an account of their own. "
            f"Alone, on a cluster to play with, an approval policy allows it: {' '.join(ALONE)}"
        )
    return None
