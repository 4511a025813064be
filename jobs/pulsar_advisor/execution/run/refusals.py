"""Every reason not to start a plan's run, or not to resume one; those that need the cluster come last."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from pulsar_advisor.execution.consent.approval import standing_approval
from pulsar_advisor.execution.ledger.lists import undone
from pulsar_advisor.execution.ledger.rolls import recorded_roll, roll_of_plan, roll_under_way, wait_for_roll
from pulsar_advisor.execution.ledger.runs import is_parked, unfinished_run
from pulsar_advisor.execution.ledger.steps import has_open_call, is_left, steps_of_run
from pulsar_advisor.execution.ledger.tables import Hold, Run
from pulsar_advisor.execution.ledger.unfinished import way_on, way_to_end
from pulsar_advisor.execution.run.options import ApplyOptions, Attempt
from pulsar_advisor.execution.run.preconditions import NEW_PLAN, foreign, from_the_future, malformed, stale
from pulsar_advisor.execution.throttle import DEFAULT_THROTTLE, ApplyThrottle
from pulsar_advisor.execution.undo import why_outdated
from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.plans.goal import ROLL
from pulsar_advisor.model.plans.names import short
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.model.text.reader import reader
from pulsar_advisor.planning.plans.consent import ConsentName


def reasons_to_refuse(attempt: Attempt, runs: Sequence[Run]) -> Iterator[str]:
    """Every reason to refuse the plan as a whole; checks that need the cluster come last."""
    plan, ledger, cluster, options = attempt.plan, attempt.ledger, attempt.cluster, attempt.options
    digest = digest_of(plan)
    yield from malformed(plan)
    if not fits_options(plan, options):
        of = roll_of_plan(ledger, digest) or digest
        what = "a roll, whose turns wait for restarts" if of == digest else f"a turn of the roll {of}"
        ended = recorded_roll(ledger, of).ended
        go_on = f": {reader().go_on_with_roll.format(digest=short(of))}"
        yield f"the plan is {what}" + (f", which is over, {ended}: {NEW_PLAN}" if ended else go_on)
    if not options.is_turn and (roll := roll_under_way(ledger, plan.identity.cluster_name)) is not None:
        yield wait_for_roll(roll)
    if not plan.executable_steps and not options.is_turn:
        yield "the plan has no step that can be carried out"
    unfinished = unfinished_run(runs)
    steps = {} if unfinished is None else steps_of_run(ledger, unfinished.id)
    yield from overtaken(attempt)
    if any(run.state == "aborted" for run in runs):
        yield f"a run of {digest} was aborted: {NEW_PLAN}"
    if unfinished and not (options.resume and _is_for_us(unfinished, options.last_held)):
        what = f"{unfinished.state}: {unfinished.sentence}" if unfinished.sentence else unfinished.state
        can_go_on = unfinished.state == "active" or is_left(steps)
        to_do = (way_on(ledger, unfinished) if can_go_on else None) or NEW_PLAN
        yield f"run {unfinished.id} of {digest} is {what}: {to_do}, or {way_to_end(ledger, unfinished)}"
    if unfinished and steps.keys() != {step.id for step in plan.executable_steps}:
        yield f"the ledger holds other steps for run {unfinished.id} than its plan has: {reader().audit}"
    if not unfinished and options.resume:
        yield f"no run of {digest} is active or stopped: there is nothing to resume"
    allowed, clock = approved(attempt), attempt.clock
    if allowed.refusal:
        yield allowed.refusal
    # A turn's open call is looked at whatever the plan's age: no other call is sent then, see `check_approval`.
    is_to_settle = options.is_turn and has_open_call(steps)
    if not is_to_settle and (reason := stale(plan, allowed.throttle.max_age_s, clock.now_ms(), ledger.now_ms())):
        yield f"{reason}; {_plan_turn_again(attempt)}" if options.is_turn else reason
    if unfinished and (reason := from_the_future(unfinished, steps.values(), ledger.now_ms())):
        yield reason
    if reason := foreign(plan, cluster.cluster_name(), cluster.active_brokers()):
        yield reason
    elif (running := cluster.load_manager()) != plan.load_manager:
        yield f"the plan was made for the {plan.load_manager} load manager, and the cluster runs the {running} one"
    if phase := cluster.migrating():
        yield f"the cluster's metadata store is being migrated ({phase}): apply when that is over"


def overtaken(attempt: Attempt) -> Iterator[str]:
    """What other plans' runs have changed: the plan was undone, or what it undoes has gone on. Certain only in a run,
    which keeps others from the cluster.
    """
    plan, ledger, digest = attempt.plan, attempt.ledger, digest_of(attempt.plan)
    if digest in undone(ledger, plan.cluster):
        yield f"{digest} has been undone since: {_plan_turn_again(attempt) if attempt.options.is_turn else NEW_PLAN}"
    if (outdated := why_outdated(plan, ledger)) is not None:
        yield outdated


def _plan_turn_again(attempt: Attempt) -> str:
    digest = digest_of(attempt.plan)
    return reader().plan_turn_again.format(digest=short(roll_of_plan(attempt.ledger, digest) or digest))


def _is_for_us(run: Run, last_held: Hold | None) -> bool:
    """Whether an unfinished run is for whoever held this last, such as an earlier try, to go on with.

    Not if another process has gone on with it since, and then stopped it or parked it again; if that one died, it is.
    """
    return last_held in (None, run.hold) or not (run.state == "stopped" or is_parked(run))


class Allowed(NamedTuple):
    """The limits and consents of a run."""

    throttle: ApplyThrottle
    consents: Collection[ConsentName]
    refusal: str | None = None
    """Why there is no approval for it; then the limits are those that were asked for."""


def approved(attempt: Attempt) -> Allowed:
    """What the approval that holds now allows a run."""
    changes = attempt.options.throttle_changes
    try:
        approval = standing_approval(attempt.ledger, attempt.plan, attempt.options.policy)
        return Allowed(approval.throttle.with_changes(changes), approval.consents)
    except Refused as refused:
        return Allowed(replace(DEFAULT_THROTTLE, **changes), (), str(refused))


def fits_options(plan: Plan, options: ApplyOptions) -> bool:
    """Whether a roll is applied turn by turn, and any other plan as a whole: a roll's plan is only its first turn."""
    return (plan.shedder == ROLL) == options.is_turn
