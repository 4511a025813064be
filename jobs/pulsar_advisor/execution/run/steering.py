"""What people ask of an unfinished run: to pause, to go on, or to end for good; and what they need to know then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pulsar_advisor.execution.consent.approval import standing_approval
from pulsar_advisor.execution.consent.policy import ApprovalPolicy
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.pauses import lift_pause, request_pause
from pulsar_advisor.execution.ledger.plans import readable_plan
from pulsar_advisor.execution.ledger.rolls import recorded_roll
from pulsar_advisor.execution.ledger.runs import abort_runs
from pulsar_advisor.execution.ledger.steps import steps_of_run
from pulsar_advisor.execution.ledger.tables import Run
from pulsar_advisor.execution.person import Person
from pulsar_advisor.execution.run.end_of_run import AttemptResult
from pulsar_advisor.execution.run.observe import may_leave_destination
from pulsar_advisor.execution.run.preconditions import stale
from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.model.text.reader import reader


def abort(ledger: Ledger, plan: Plan, person: Person) -> Sequence[Run]:
    """End the active or stopped run of a plan permanently; a process that still holds it stops before its next call.

    Raises `Refused` if the plan has no such run.
    """
    ended = abort_runs(ledger, digest_of(plan), person)
    if not ended:
        raise Refused(f"no run of {digest_of(plan)} is active or stopped: {_instead(ledger, plan, 'abort')}")
    return ended


def left_open(ledger: Ledger, ended: Iterable[Run]) -> Iterator[str]:
    """What to check after runs have ended: each call whose outcome is unknown and which no run will settle."""
    for run in ended:
        plan = readable_plan(ledger, run.digest)
        for record in (record for record in steps_of_run(ledger, run.id).values() if record.is_open):
            what = f"ATTENTION: {record.step_id}, {record.bundle}: the outcome of its call is unknown"
            if may_leave_destination(plan, record.step_id):
                yield (
                    f"{what}, and no run blocks its range any more: check who owns it before unloading any bundle of "
                    "that range"
                )
            else:
                yield f"{what}: check who owns it, and whether it was split, before unloading or splitting it"


def before_resuming(plan: Plan, ledger: Ledger, policy: ApprovalPolicy, ended: AttemptResult) -> str:
    """What has to come before a run that ended early can send its next call, in words that follow `to resume`."""
    try:
        approval = standing_approval(ledger, plan, policy)
    except Refused:
        return ", once it is approved again"
    next_call_at_ms = ledger.now_ms() + round(1000 * approval.throttle.pause_s)
    if next_call_at_ms >= approval.expires_at_ms:
        return ", once it is approved again"
    is_too_old = stale(plan, approval.throttle.max_age_s, next_call_at_ms) is not None
    if is_too_old:
        return ", once it is approved again with a longer --max-age"
    return ended.first or ""


def pause(ledger: Ledger, plan: Plan, person: Person) -> Sequence[Run]:
    """Request that the active run of a plan end after the steps in flight. It can be resumed later.

    Raises `Refused` if the plan has no active run.
    """
    paused = request_pause(ledger, digest_of(plan), person)
    if not paused:
        raise Refused(f"no run of {digest_of(plan)} is active: {_instead(ledger, plan, 'pause')}")
    return paused


def go_on(ledger: Ledger, plan: Plan, person: Person) -> Sequence[Run]:
    """Lift the pause of a plan's active run; one that is parked goes on.

    Raises `Refused` if no run of the plan is paused.
    """
    lifted = lift_pause(ledger, digest_of(plan), person)
    if not lifted:
        raise Refused(f"no run of {digest_of(plan)} is paused: there is nothing to continue")
    return lifted


def _instead(ledger: Ledger, plan: Plan, verb: str) -> str:
    """What to do where a plan has no run to end: a roll's own plan is only its first turn, and may have had its run."""
    recorded = recorded_roll(ledger, digest_of(plan))
    if recorded.turns and recorded.ended is None:
        return f"it is a roll, and its later turns have other plans; {reader().stop_roll}"
    return f"there is nothing to {verb}"
