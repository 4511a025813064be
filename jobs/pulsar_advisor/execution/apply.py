"""`apply`: refuses plans that must not be applied, previews the calls, and starts, resumes and ends runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Final

from pulsar_advisor.documents.apply_result import AppliedStep, ApplyResult, Outcome
from pulsar_advisor.documents.runs import StepState
from pulsar_advisor.execution import telemetry
from pulsar_advisor.execution.clock import SYSTEM_CLOCK, Clock
from pulsar_advisor.execution.cluster.cluster_port import ClusterPort
from pulsar_advisor.execution.consent.approval import standing_approval
from pulsar_advisor.execution.consent.policy import ApprovalPolicy
from pulsar_advisor.execution.ledger.approvals import record_refusal
from pulsar_advisor.execution.ledger.held_run import LeaseLost, start_run, take_over
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.lists import undone
from pulsar_advisor.execution.ledger.pauses import lift_pause, pause_requested, request_pause
from pulsar_advisor.execution.ledger.rolls import recorded_roll, roll_of_plan, roll_under_way
from pulsar_advisor.execution.ledger.runs import (
    LEASE_MS,
    abort_runs,
    end_unheld_run,
    is_held,
    is_parked,
    record_drained,
    runs_of_plan,
)
from pulsar_advisor.execution.ledger.steps import steps_of_run, unresolved_bundles
from pulsar_advisor.execution.ledger.tables import Run, StepRecord
from pulsar_advisor.execution.person import Person
from pulsar_advisor.execution.run.emptied import left_on
from pulsar_advisor.execution.run.executor import carry_out
from pulsar_advisor.execution.run.guard import Guard, left_off, restore_what_was_left
from pulsar_advisor.execution.run.health import check_guard
from pulsar_advisor.execution.run.observe import foresee
from pulsar_advisor.execution.run.ongoing_run import Drift, OngoingRun, Stop
from pulsar_advisor.execution.run.options import ApplyOptions, Interruption, Progress, undisturbed
from pulsar_advisor.execution.run.pace import sent_in_order
from pulsar_advisor.execution.run.parking import Parked, ParkedRun, Parking
from pulsar_advisor.execution.run.preconditions import (
    NEW_PLAN,
    boundaries_after,
    call_of,
    differences,
    expected_boundaries,
    foreign,
    from_the_future,
    malformed,
    no_destination,
    overload,
    stale,
)
from pulsar_advisor.execution.throttle import DEFAULT_THROTTLE, ApplyThrottle
from pulsar_advisor.model.errors import AdvisorError, BalancerStillOff, Refused
from pulsar_advisor.model.plans.goal import ROLL
from pulsar_advisor.model.plans.plan import Plan, Step, digest_of, short
from pulsar_advisor.model.text.reader import reader
from pulsar_advisor.model.text.some_of import count, some_of
from pulsar_advisor.planning.kinds.goal_outcome import FALLS_SHORT, goal_outcome
from pulsar_advisor.planning.plans.consent import ConsentName

HOLDER_POLL_S: Final = 5.0
SETTLE_MARGIN_S: Final = 30
"""Extra time beyond `namespaceBundleUnloadingTimeoutMs` that a broker gets for a call it never answered."""
_AFTER_A_DRIFT: Final = "make a new plan, or have this one approved with --on-drift skip to leave such steps out"


@dataclass(frozen=True)
class _End:
    """How a run ended: the part of the result that neither the plan nor, afterwards, the ledger holds."""

    outcome: Outcome
    run: int | None
    sentence: str
    steps: tuple[AppliedStep, ...]
    refusals: tuple[str, ...] = ()
    parking: Parking | None = None


def apply_plan(
    plan: Plan,
    ledger: Ledger,
    cluster: ClusterPort,
    options: ApplyOptions,
    progress: Progress,
    clock: Clock = SYSTEM_CLOCK,
    interruption: Interruption = undisturbed,
) -> ApplyResult:
    """Apply an approved plan, preview it (`dry_run`), or resume a run that ended early (`resume`).

    Raises `Refused` if a safety rule forbids it and nothing was sent, and `ClusterUnreachable` if the cluster can't be
    read before the run starts. If a run ends with some steps sent and others left, the result has exit code 5. The same
    goes for a run that an `interruption` ends early, after the steps in flight. A parked run that may not go on ends.
    If the cluster's own balancer could not be restored, the result has exit code 8; `BalancerStillOff` is raised if
    nothing else was sent.
    """
    ended = _applied(plan, ledger, cluster, options, progress, clock, interruption)
    reached, left_there = goal_outcome(plan), ""
    if ended.outcome in ("done", "nothing_to_do") and reached not in FALLS_SHORT:
        left_there = _not_drained(plan, cluster, progress, clock, interruption)
        if ended.run is not None:
            record_drained(ledger, digest_of(plan), ended.run, left_there)
    has_ended = not options.dry_run and ended.parking is None
    left = left_off(ledger, plan.identity.cluster_name) if has_ended else ()
    undoable = (one.id for one in ended.steps if one.action == "unload" and one.state == "confirmed")
    result = ApplyResult(
        outcome=ended.outcome,
        digest=digest_of(plan),
        run=ended.run,
        sentence="; ".join(filter(None, (ended.sentence, left_there))),
        steps=ended.steps,
        undoable_steps=() if no_destination(plan) else tuple(undoable),
        refusals=ended.refusals,
        still_off=tuple(switch.setting for switch in left),
        ledger_head=str(ledger.head()),
        goal_outcome="in part" if left_there else reached,
    )
    return result if ended.parking is None else ParkedRun(**vars(result), parking=ended.parking)


def _applied(
    plan: Plan,
    ledger: Ledger,
    cluster: ClusterPort,
    options: ApplyOptions,
    progress: Progress,
    clock: Clock,
    interruption: Interruption,
) -> _End:
    digest = digest_of(plan)
    paused = _pause_of(ledger, digest)
    if options.wait_for_holder:
        _await_holder(ledger, digest, progress, clock, interruption)
        # The run that was to be resumed may have ended meanwhile, before its first call.
        is_to_resume = options.resume and _unfinished(runs_of_plan(ledger, digest)) is not None
        options = replace(options, resume=is_to_resume)
    # On another cluster these settings were never off, so they would count as restored. A roll has already checked
    # this.
    may_restore = not options.dry_run and options.turns_before is None
    is_left_off = may_restore and left_off(ledger, plan.identity.cluster_name)
    if is_left_off and foreign(plan, cluster.cluster_name(), cluster.active_brokers()) is None:
        restore_what_was_left(ledger, plan.identity.cluster_name, cluster, progress, clock)
    runs = runs_of_plan(ledger, digest)
    finished = next((run for run in runs if run.state == "done"), None)
    if finished and _fits_options(plan, options) and digest not in undone(ledger, plan.cluster):
        sentence = f"{digest} was already carried out, in run {finished.id}: nothing to do"
        return _end("nothing_to_do", plan, finished.id, sentence, steps_of_run(ledger, finished.id))
    refusals = _refusals(plan, ledger, cluster, options, clock, runs)
    if options.dry_run:
        return _dry_run(plan, ledger, cluster, options, tuple(refusals), _unfinished(runs))
    try:
        if reason := next(refusals, None):
            raise Refused(reason)
        approval = standing_approval(ledger, plan, options.policy)
        settle_s = cluster.unloading_timeout_s() + SETTLE_MARGIN_S
        throttle = approval.throttle.with_changes(options.throttle_changes)
        unfinished = _unfinished(runs)
        if unfinished:
            lifts_pause = options.lifts_pause and options.waited is None
            held = take_over(ledger, unfinished, approval, lifts_pause=lifts_pause, pause=paused)
        else:
            held = start_run(ledger, plan, approval)
    except Refused as refused:
        record_refusal(ledger, digest, str(refused))
        if options.waited is not None:
            end_unheld_run(ledger, digest, str(refused))
        telemetry.refused()
        raise
    if unfinished is None or not is_parked(unfinished):  # another process went on meanwhile, and may have sent calls
        options = replace(options, waited=None)
    before = options.turns_before or frozenset()
    guard = Guard(held, ledger, cluster, progress, clock, before, interruption) if throttle.guard else None
    run = OngoingRun(
        plan, ledger, held, approval, throttle, cluster, options, settle_s, progress, clock, interruption, guard
    )
    return _carried_out(run)


def _not_drained(plan: Plan, cluster: ClusterPort, progress: Progress, clock: Clock, interruption: Interruption) -> str:
    """Why brokers that the plan drains may not be stopped, though its steps are done; empty if they may be."""
    if plan.goal is None or plan.goal.kind != "drain":
        return ""
    progress(f"checking whether clients use anything on {some_of(plan.goal.brokers)}")
    try:
        # A finished plan is not refused, so this may be another cluster, on which those brokers own nothing.
        unknown = foreign(plan, cluster.cluster_name(), cluster.active_brokers())
        if unknown is None:
            return left_on(cluster, plan.goal.brokers, clock, interruption).sentence
    except AdvisorError as error:  # the steps are done, whatever fails here
        unknown = str(error)
    return f"can't tell whether clients use anything there: {unknown}"


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
    for record in (record for run in ended for record in steps_of_run(ledger, run.id).values()):
        if record.is_open:
            yield (
                f"ATTENTION: {record.step_id}, {record.bundle}: the outcome of its call is unknown, and no run "
                "blocks its range any more: check who owns it before unloading any bundle of that range"
            )


def before_resuming(plan: Plan, ledger: Ledger, policy: ApprovalPolicy) -> str:
    """What has to come before a run that ended early can send its next call, in words that follow `to resume`."""
    try:
        approval = standing_approval(ledger, plan, policy)
    except Refused:
        return ", once it is approved again"
    next_call_at_ms = ledger.now_ms() + round(1000 * approval.throttle.pause_s)
    if next_call_at_ms >= approval.expires_at_ms:
        return ", once it is approved again"
    is_too_old = stale(plan, approval.throttle.max_age_s, next_call_at_ms) is not None
    return ", once it is approved again with a longer --max-age" if is_too_old else ""


def pause(ledger: Ledger, plan: Plan, person: Person) -> Sequence[Run]:
    """Request that the active run of a plan end after the steps in flight. It can be resumed later.

    Raises `Refused` if the plan has no active run.
    """
    paused = request_pause(ledger, digest_of(plan), person)
    if not paused:
        raise Refused(f"no run of {digest_of(plan)} is active: {_instead(ledger, plan, 'pause')}")
    return paused


def _instead(ledger: Ledger, plan: Plan, verb: str) -> str:
    """What to do where a plan has no run to end: a roll's own plan is only its first turn, and may have had its run."""
    recorded = recorded_roll(ledger, digest_of(plan))
    if recorded.turns and recorded.ended is None:
        return f"it is a roll, and its later turns have other plans; {reader().stop_roll}"
    return f"there is nothing to {verb}"


def go_on(ledger: Ledger, plan: Plan, person: Person) -> Sequence[Run]:
    """Lift the pause of a plan's active run; one that is parked goes on.

    Raises `Refused` if no run of the plan is paused.
    """
    lifted = lift_pause(ledger, digest_of(plan), person)
    if not lifted:
        raise Refused(f"no run of {digest_of(plan)} is paused: there is nothing to continue")
    return lifted


def _await_holder(ledger: Ledger, digest: str, progress: Progress, clock: Clock, interruption: Interruption) -> None:
    """Wait while another process holds the run of a plan: until the run ends or the process's lease expires.

    If its heartbeats are in the future, this machine's monotonic clock measures the lease. Raises `Refused` if this
    process is to end meanwhile.
    """
    heard_at_s, heartbeat_at_ms = clock.monotonic_s(), None
    while (run := _unfinished(runs_of_plan(ledger, digest))) and is_held(ledger, run):
        if heartbeat_at_ms is None:
            progress(f"run {run.id} is held by process {run.pid} on {run.host}: waiting until it ends")
        if run.heartbeat_at_ms != heartbeat_at_ms:
            heard_at_s, heartbeat_at_ms = clock.monotonic_s(), run.heartbeat_at_ms
        if clock.monotonic_s() - heard_at_s > LEASE_MS / 1000:
            return
        if reason := interruption():
            raise Refused(f"nothing was sent: {reason}")
        clock.sleep(HOLDER_POLL_S)


def _carried_out(run: OngoingRun) -> _End:
    """Carry the run out; return how it ended, even if another process took it over before its last write."""
    try:
        return _ended(run)
    except LeaseLost as lost:
        records = steps_of_run(run.ledger, run.held.id)
        if all(record.attempts == 0 for record in records.values()):
            raise _refused(run, f"nothing was sent: {lost}") from lost
        return _end("partial", run.plan, run.held.id, str(lost), records)


def _ended(run: OngoingRun) -> _End:
    plan, ledger, held, guard = run.plan, run.ledger, run.held, run.guard
    why = ""
    cause: Exception | None = None
    try:
        with held.kept(), guard.kept() if guard else nullcontext():
            carry_out(run)
            if guard is not None and run.options.turns_before is not None:
                check_guard(run)  # also where nothing was sent since somebody switched the balancer on again
                guard.is_handed_on = all(record.is_confirmed for record in held.steps().values())
    except LeaseLost:
        raise
    except Parked as parked:
        held.park(parked.parking.sentence)
        run.progress(f"parked: {parked.parking.sentence}")
        ended = _end("parked", plan, held.id, parked.parking.sentence, steps_of_run(ledger, held.id))
        return replace(ended, parking=parked.parking)
    except (Stop, AdvisorError) as stop:
        why, cause = f": {stop}", stop
    except Exception as error:
        # Whatever the error, the run ends in a state that records it, and can be resumed once the cause is fixed.
        why, cause = f": unexpected failure, {type(error).__name__}: {error}", error
    records = steps_of_run(ledger, held.id)
    confirmed = sum(record.is_confirmed for record in records.values())
    noted = "".join(f"; {note}" for note in guard.notes) if guard else ""
    nothing_left = "" if confirmed == len(records) or is_left(records) else ", and none is left to send"
    is_turn = run.options.turns_before is not None
    to_do = f"; {_AFTER_A_DRIFT}" if isinstance(cause, Drift) and not is_turn else ""
    counted = f"{confirmed} of {len(records)} steps confirmed{nothing_left}{why}{to_do}{noted}"
    # A turn that was cut short has given the balancer back, even if that was after its last move: the roll stops.
    if confirmed == len(records) and (cause is None or (records and not is_turn)):
        held.end("done", counted)
        return _end("done", plan, held.id, counted, records)
    if all(record.attempts == 0 for record in records.values()):
        reasons = why or "".join(f"; {record.step_id}: {record.observation}" for record in records.values())
        sentence = f"nothing was sent{reasons}{noted}"
        held.end("refused", sentence)
        telemetry.refused()
        raise _refused(run, sentence, to_do) from cause
    held.end("stopped", counted)
    return _end("partial", plan, held.id, counted, records)


def _refused(run: OngoingRun, sentence: str, to_do: str = "") -> AdvisorError:
    """Why nothing was sent; that the run has left the cluster's own balancer off matters more."""
    if any(switch.run == run.held.id for switch in left_off(run.ledger, run.held.cluster_name)):
        return BalancerStillOff(sentence)
    return Refused(f"{sentence}{to_do}")


def _pause_of(ledger: Ledger, digest: str) -> str | None:
    """Who asked for the pause of a plan's unfinished run, in words; None without one."""
    run = _unfinished(runs_of_plan(ledger, digest))
    return None if run is None else pause_requested(ledger, run.id)


def _unfinished(runs: Sequence[Run]) -> Run | None:
    return next((run for run in reversed(runs) if run.is_unfinished), None)


def is_left(records: Mapping[str, StepRecord]) -> bool:
    """Whether a run has a step left to send, or a call to look at."""
    return has_open_call(records) or any(record.state == "pending" for record in records.values())


def has_open_call(records: Mapping[str, StepRecord]) -> bool:
    """Whether a run has a call to look at, as its outcome isn't known."""
    return any(record.is_open for record in records.values())


def _fits_options(plan: Plan, options: ApplyOptions) -> bool:
    """Whether a roll is applied turn by turn, and any other plan as a whole: a roll's plan is only its first turn."""
    return (plan.shedder == ROLL) == (options.turns_before is not None)


def _refusals(
    plan: Plan, ledger: Ledger, cluster: ClusterPort, options: ApplyOptions, clock: Clock, runs: Sequence[Run]
) -> Iterator[str]:
    """Every reason to refuse the plan as a whole; checks that need the cluster come last."""
    digest = digest_of(plan)
    yield from malformed(plan)
    if not _fits_options(plan, options):
        of = roll_of_plan(ledger, digest) or digest
        what = "a roll, whose turns wait for restarts" if of == digest else f"a turn of the roll {of}"
        ended = recorded_roll(ledger, of).ended
        over = f"which is over, {ended}: {NEW_PLAN}"
        yield f"the plan is {what}{f', {over}' if ended else f': {reader().go_on_with_roll.format(digest=short(of))}'}"
    if options.turns_before is None and (roll := roll_under_way(ledger, plan.identity.cluster_name)) is not None:
        yield f"the roll {roll} is under way on this cluster: wait for its end, or {reader().end_roll}"
    if not plan.executable_steps and options.turns_before is None:
        yield "the plan has no step that could be carried out"
    unfinished = _unfinished(runs)
    is_turn = options.turns_before is not None
    turn_again = ""
    if is_turn:
        turn_again = reader().plan_turn_again.format(digest=short(roll_of_plan(ledger, digest) or digest))
    if digest in undone(ledger, plan.cluster):
        yield f"{digest} has been undone since: {turn_again or NEW_PLAN}"
    if any(run.state == "aborted" for run in runs):
        yield f"a run of {digest} was aborted: {NEW_PLAN}"
    if unfinished and not options.resume:
        what = f"{unfinished.state}: {unfinished.sentence}" if unfinished.sentence else unfinished.state
        can_go_on = unfinished.state == "active" or is_left(steps_of_run(ledger, unfinished.id))
        to_do = reader().resume_run if can_go_on else NEW_PLAN
        instead = f"{to_do}, or {reader().end_run}".format(digest=short(digest))
        yield f"run {unfinished.id} of {digest} is {what}: {instead}"
    if not unfinished and options.resume:
        yield f"no run of {digest} is active or stopped: there is nothing to resume"
    throttle, _, not_approved = _approved(plan, ledger, options)
    if not_approved:
        yield not_approved
    # A turn's open call is looked at whatever the plan's age: no other call is sent then, see `check_approval`.
    is_to_settle = is_turn and unfinished is not None and has_open_call(steps_of_run(ledger, unfinished.id))
    if not is_to_settle and (reason := stale(plan, throttle.max_age_s, clock.now_ms(), ledger.now_ms())):
        yield f"{reason}; {turn_again}" if is_turn else reason
    if unfinished and (
        reason := from_the_future(unfinished, steps_of_run(ledger, unfinished.id).values(), ledger.now_ms())
    ):
        yield reason
    if reason := foreign(plan, cluster.cluster_name(), cluster.active_brokers()):
        yield reason
    elif (running := cluster.load_manager()) != plan.load_manager:
        yield f"the plan was made for the {plan.load_manager} load manager, and the cluster runs the {running} one"
    if phase := cluster.migrating():
        yield f"the cluster's metadata store is being migrated ({phase}): apply when that is over"


def _approved(
    plan: Plan, ledger: Ledger, options: ApplyOptions
) -> tuple[ApplyThrottle, Collection[ConsentName], str | None]:
    """The throttle and consents of a run. Without an approval for it: the requested throttle, and the refusal."""
    try:
        approval = standing_approval(ledger, plan, options.policy)
        return approval.throttle.with_changes(options.throttle_changes), approval.consents, None
    except Refused as refused:
        return replace(DEFAULT_THROTTLE, **options.throttle_changes), (), str(refused)


def _dry_run(
    plan: Plan,
    ledger: Ledger,
    cluster: ClusterPort,
    options: ApplyOptions,
    refusals: tuple[str, ...],
    unfinished: Run | None,
) -> _End:
    """The calls a run would send, in order, with objections; each is checked as if the ones before it were done.

    Steps of an `unfinished` run that have ended are left out.
    """
    results: list[AppliedStep] = []
    changes: list[str] = []
    done: list[Step] = []
    owners: dict[str, str | None] = {}
    unresolved = unresolved_bundles(ledger, plan.identity.cluster_name, except_of=digest_of(plan))
    throttle, consents, _ = _approved(plan, ledger, options)
    records = {} if unfinished is None else steps_of_run(ledger, unfinished.id)
    left_out = {name for name, record in records.items() if record.is_left_out}
    for step in () if any(malformed(plan)) else sent_in_order(plan.executable_steps, throttle):
        state = records[step.id].state if step.id in records else "pending"
        if state == "confirmed":
            done.append(step)
        if state in ("confirmed", "failed", "skipped"):
            continue
        found = foresee(cluster, ledger, plan, step, owners, unresolved)
        found = replace(found, boundaries=boundaries_after(found.boundaries, step.namespace, done))
        reasons: list[str] = []
        if lost := [name for name in step.after if name in left_out]:
            reasons.append(f"it comes after {', '.join(lost)}, which was not confirmed")
        elif state == "pending":
            reasons += differences(step, expected_boundaries(step, done), step.source, found)
            if "worse" not in consents:
                moved = [earlier.id for earlier in done]
                foreseen = [name for name in moved if name not in records or records[name].state == "pending"]
                reasons += overload(plan, step, found.destination_usage_ratio, moved, foreseen)
        changed = "; ".join(reasons)
        if changed and (lost or throttle.on_drift == "skip"):
            left_out.add(step.id)
        elif changed:
            changes.append(f"{step.id}, {step.bundle_name}: {changed}")
        detail = changed or ("would be sent" if state == "pending" else f"{state}: would be looked at first")
        results.append(_applied_step(plan, step, "skipped" if changed else "pending", detail))
        if step.id in left_out:
            continue
        done.append(step)
        if step.action == "unload":
            owners[step.bundle_name] = step.destination or found.owner
        else:
            owners.update({f"{step.namespace}/{child}": found.owner for child in step.children})
    against = (*refusals, *changes)
    calls = sum(one.state == "pending" for one in results)
    summary = f"{count(calls, 'call')}, {count(len(against), 'reason')} to refuse"
    sentence = f"dry run: {summary}; nothing was sent"
    return _End("dry_run", None, sentence, tuple(results), against)


def _end(
    outcome: Outcome,
    plan: Plan,
    run: int,
    sentence: str,
    records: Mapping[str, StepRecord],
) -> _End:
    steps = tuple(
        _applied_step(plan, step, records[step.id].state, records[step.id].observation)
        for step in plan.executable_steps
    )
    return _End(outcome, run, sentence, steps)


def _applied_step(plan: Plan, step: Step, state: StepState, detail: str) -> AppliedStep:
    return AppliedStep(
        id=step.id,
        action=step.action,
        bundle=step.bundle_name,
        state=state,
        detail=detail,
        request=call_of(step, plan.pulsar_version).request,
    )
