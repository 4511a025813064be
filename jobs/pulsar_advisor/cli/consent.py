"""The verbs that give and take back a person's consent: approve, withdraw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pulsar_advisor.cli.opened_plans import mind_the_guard, opened_plan
from pulsar_advisor.cli.options import Comment, Flag, Json, PlanName, Throttle, YourName
from pulsar_advisor.cli.output import print_json, result_of, say, say_lines
from pulsar_advisor.cli.places import RESTORE, LedgerPlace, PolicyFile, command
from pulsar_advisor.cli.rendering import plan_lines
from pulsar_advisor.cli.usage import refuse_together
from pulsar_advisor.execution.person import person_on_command_line
from pulsar_advisor.execution.throttle import DEFAULT_THROTTLE, ApplyThrottle
from pulsar_advisor.model.bounds import duration, seconds
from pulsar_advisor.model.errors import BalancerStillOff, UsageError
from pulsar_advisor.model.plans.goal import ROLL
from pulsar_advisor.model.text.some_of import count
from pulsar_advisor.reporting.figures import moment

if TYPE_CHECKING:
    from pulsar_advisor.planning.plans.consent import ConsentName


def approve(
    plan: PlanName,
    /,
    *,
    as_: YourName | None = None,
    automatic: Annotated[bool, Flag] = False,
    digest: str | None = None,
    place: LedgerPlace = LedgerPlace(),
    splits: Annotated[bool, Flag] = False,
    accept_worse: Annotated[bool, Flag] = False,
    accept_low_confidence: Annotated[bool, Flag] = False,
    expires: str | None = None,
    comment: Comment = "",
    throttle: Throttle = Throttle(),
    policy: PolicyFile = PolicyFile(),
    json: Json = False,
) -> None:
    """Approve exactly one plan, and how carefully it is carried out: shows both, and records the plan's whole digest.

    Parameters
    ----------
    digest
        The plan's whole digest, to be sure: any other plan is refused.
    automatic
        Approve it in the policy's name if it meets every criterion of the policy; if not, say which ones it fails.
    splits
        Approve its splits too: they can't be undone.
    accept_worse
        Approve it although it is predicted to make things worse.
    accept_low_confidence
        Approve its steps of low confidence too.
    expires
        How long the approval holds: 90s, 30m, 4h, 1d. By default 4h, for a roll 1d.
    """
    refuse_together({"--as": as_ is not None, "--automatic": automatic})
    if as_ is None and not automatic:
        raise UsageError("who approves? Give --as NAME, or --automatic for the approval policy to decide")
    asked: dict[ConsentName, bool] = {"splits": splits, "worse": accept_worse, "low_confidence": accept_low_confidence}
    with opened_plan(plan, place) as (document, root, book):
        from pulsar_advisor.execution.consent.approval import carried_out_before, default_validity_s
        from pulsar_advisor.execution.ledger.approvals import Terms
        from pulsar_advisor.execution.run.preconditions import stale
        from pulsar_advisor.model.plans.names import short
        from pulsar_advisor.model.plans.sealed import digest_of
        from pulsar_advisor.stages.approve import run as record

        mind_the_guard(document, book, command(RESTORE, place))
        outdated = stale(document, throttle.changes().get("max_age_s", DEFAULT_THROTTLE.max_age_s), book.now_ms())
        before = carried_out_before(book, digest_of(document))
        terms = Terms(
            consents=[name for name, is_given in asked.items() if is_given],
            throttle=ApplyThrottle(**throttle.changes()),
            valid_for_s=default_validity_s(document) if expires is None else seconds(expires),
            comment=comment,
        )
        approval, not_computed_here = record(
            root,
            book,
            document,
            digest=digest or digest_of(document),
            approver=None if as_ is None else person_on_command_line(as_),
            policy=policy.read(),
            terms=terms,
        )
    if json:
        from pulsar_advisor.execution.consent.approval import Approved

        print_json(
            Approved(
                digest=approval.digest,
                approver=approval.approver,
                throttle=approval.throttle,
                expires_at_ms=approval.expires_at_ms,
                not_computed_here=not_computed_here,
            )
        )
    else:
        say_lines(plan_lines(document, approval.throttle, before))
        if not_computed_here:
            say(f"- not computed here: {not_computed_here}")
        say_lines(f"- {limit}" for limit in approval.throttle.sentences())
        lasts = f"for {duration(terms.valid_for_s)}, until {moment(approval.expires_at_ms)}"
        say(f"approved by {approval.approver} {lasts}: {approval.digest}")
        digits = short(approval.digest)
        then = ("roll", "continue", digits) if document.shedder == ROLL else ("apply", digits, "--dry-run")
        if outdated and document.shedder != ROLL:  # the turns of a roll are planned anew
            say(f"it can't be applied: {outdated}")
        else:
            say(f"next: {command(then, place, policy)}")


def withdraw(
    plan: PlanName,
    /,
    *,
    as_: YourName,
    place: LedgerPlace = LedgerPlace(),
    comment: Comment = "",
    json: Json = False,
) -> None:
    """Withdraw the approval of a plan; a run that is under way stops before its next call."""
    with opened_plan(plan, place) as (document, _, book):
        from pulsar_advisor.execution.consent.approval import withdraw as take_back
        from pulsar_advisor.model.plans.sealed import digest_of

        digest = digest_of(document)
        number = take_back(book, digest, person_on_command_line(as_), comment)
        # A roll that goes on no more has left the balancer off.
        is_off = mind_the_guard(document, book, command(RESTORE, place))
    with result_of(BalancerStillOff.exit_code if is_off else 0):
        if json:
            from pulsar_advisor.documents.receipts import Withdrawn

            print_json(Withdrawn(digest=digest, withdrawn=number))
        else:
            say(f"withdrawn: {count(number, 'approval')} of {digest}")
