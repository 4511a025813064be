"""`apply`: refuses plans that must not be applied, previews the calls, and starts, resumes and ends runs."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Final

from pulsar_advisor.execution import telemetry
from pulsar_advisor.execution.consent.approval import standing_approval
from pulsar_advisor.execution.ledger.approvals import record_refusal
from pulsar_advisor.execution.ledger.held_run import LeaseLost, start_run, take_over
from pulsar_advisor.execution.ledger.lists import undone
from pulsar_advisor.execution.ledger.pauses import request_in_force
from pulsar_advisor.execution.ledger.runs import (
    LEASE_MS,
    end_unheld_run,
    is_held,
    is_parked,
    record_drained,
    runs_of_plan,
    unfinished_run,
)
from pulsar_advisor.execution.ledger.steps import is_left, steps_of_run
from pulsar_advisor.execution.ledger.tables import Run
from pulsar_advisor.execution.run.dry_run import dry_run
from pulsar_advisor.execution.run.emptied import left_on
from pulsar_advisor.execution.run.end_of_run import AttemptResult, EndOfRun, end_of_run
from pulsar_advisor.execution.run.executor import carry_out
from pulsar_advisor.execution.run.guard.guard import Guard
from pulsar_advisor.execution.run.guard.left_off import left_off
from pulsar_advisor.execution.run.guard.restoring import restore_what_was_left
from pulsar_advisor.execution.run.health import check_guard
from pulsar_advisor.execution.run.ongoing_run import OngoingRun, Stop
from pulsar_advisor.execution.run.options import ApplyOptions, Attempt, Work
from pulsar_advisor.execution.run.parking import Parked
from pulsar_advisor.execution.run.preconditions import LEDGER_CLOCK_TOLERANCE_S, foreign, no_destination
from pulsar_advisor.execution.run.refusals import fits_options, overtaken, reasons_to_refuse
from pulsar_advisor.model.errors import AdvisorError, BalancerStillOff, Refused
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.model.text.some_of import some_of
from pulsar_advisor.planning.kinds.goal_outcome import FALLS_SHORT, goal_outcome

HOLDER_POLL_S: Final = 5.0
SETTLE_MARGIN_S: Final = 30
"""Extra time beyond `namespaceBundleUnloadingTimeoutMs` that a broker gets for a call it never answered."""


def apply_plan(plan: Plan, options: ApplyOptions, work: Work) -> AttemptResult:
    """Apply an approved plan, preview it (`dry_run`), or resume a run that ended early (`resume`).

    Raises `Refused` if a safety rule forbids it and nothing was sent, and `ClusterUnreachable` if the cluster can't be
    read before the run starts. If a run ends with some steps sent and others left, the result has exit code 5. The same
    goes for a run that an `interruption` ends early, after the steps in flight. A parked run that may not go on ends.
    If the cluster's own balancer could not be restored, the result has exit code 8; `BalancerStillOff` is raised if
    nothing else was sent.
    """
    try:
        return _result(Attempt(**vars(work), plan=plan, options=options))
    finally:
        telemetry.flush()


def _result(attempt: Attempt) -> AttemptResult:
    plan, ledger, options = attempt.plan, attempt.ledger, attempt.options
    ended = _applied(attempt)
    reached, left_there = goal_outcome(plan), ""
    if ended.outcome in ("done", "nothing_to_do") and reached not in FALLS_SHORT:
        left_there = _not_drained(attempt)
        if ended.run is not None:
            record_drained(ledger, digest_of(plan), ended.run, left_there)
    has_ended = not options.dry_run and ended.parking is None
    left = left_off(ledger, plan.identity.cluster_name) if has_ended else ()
    undoable = (one.id for one in ended.steps if one.action == "unload" and one.state == "confirmed")
    return AttemptResult(
        **vars(replace(ended, sentence="; ".join(filter(None, (ended.sentence, left_there))))),
        digest=digest_of(plan),
        undoable_steps=() if no_destination(plan) else tuple(undoable),
        still_off=tuple(switch.setting for switch in left),
        ledger_head=str(ledger.head()),
        goal_outcome="in part" if left_there else reached,
    )


def _applied(attempt: Attempt) -> EndOfRun:
    plan, ledger, cluster = attempt.plan, attempt.ledger, attempt.cluster
    digest = digest_of(plan)
    unfinished = unfinished_run(runs_of_plan(ledger, digest))
    paused = None if unfinished is None else request_in_force(ledger, unfinished.id)
    if attempt.options.wait_for_holder:
        _await_holder(attempt)
        # The run that was to be resumed may have ended meanwhile, before its first call.
        is_to_resume = attempt.options.resume and unfinished_run(runs_of_plan(ledger, digest)) is not None
        attempt = replace(attempt, options=replace(attempt.options, resume=is_to_resume))
    options = attempt.options
    # On another cluster these settings were never off, so they would count as restored. A roll has already checked
    # this.
    may_restore = not options.dry_run and not options.is_turn
    is_left_off = may_restore and left_off(ledger, plan.identity.cluster_name)
    if is_left_off and foreign(plan, cluster.cluster_name(), cluster.active_brokers()) is None:
        restore_what_was_left(attempt, plan.identity.cluster_name)
    runs = runs_of_plan(ledger, digest)
    finished = next((run for run in runs if run.state == "done"), None)
    if finished and fits_options(plan, options) and digest not in undone(ledger, plan.cluster):
        sentence = f"{digest} was already carried out, in run {finished.id}: nothing to do"
        return end_of_run("nothing_to_do", plan, finished.id, sentence, steps_of_run(ledger, finished.id))
    refusals = reasons_to_refuse(attempt, runs)
    if options.dry_run:
        return dry_run(attempt, tuple(refusals), unfinished_run(runs))
    try:
        if reason := next(refusals, None):
            raise Refused(reason)
        run = _begun(attempt, unfinished_run(runs), paused)
    except Refused as refused:
        record_refusal(ledger, digest, str(refused))
        if options.waited is not None:
            end_unheld_run(ledger, digest, str(refused), options.last_held)
        telemetry.refused(plan.cluster)
        raise
    options.on_held(run.held.hold)
    return _carried_out(run)


def _begun(attempt: Attempt, unfinished: Run | None, paused: int | None) -> OngoingRun:
    """Take the unfinished run over, or start one. Raises `Refused` without an approval that holds, or a free cluster.

    Going on lifts the pause that somebody had asked for by then (`paused`: by which event), and no later one.
    """
    plan, ledger, options = attempt.plan, attempt.ledger, attempt.options
    approval = standing_approval(ledger, plan, options.policy)
    settle_s = attempt.cluster.unloading_timeout_s() + SETTLE_MARGIN_S
    throttle = approval.throttle.with_changes(options.throttle_changes)
    if unfinished:
        lifts_pause = options.lifts_pause and options.waited is None
        held = take_over(ledger, unfinished, approval, lifts_pause=lifts_pause, pause=paused)
    else:
        held = start_run(ledger, plan, approval)
    if options.waited and not (unfinished and is_parked(unfinished)):
        # Another process went on meanwhile, and may have sent calls.
        attempt = replace(attempt, options=replace(options, waited=None))
    guard = Guard(held, attempt) if throttle.guard else None
    return OngoingRun(**vars(attempt), held=held, approval=approval, throttle=throttle, settle_s=settle_s, guard=guard)


def _not_drained(attempt: Attempt) -> str:
    """Why brokers that the plan drains may not be stopped, though its steps are done; empty if they may be."""
    plan, cluster = attempt.plan, attempt.cluster
    if plan.goal is None or plan.goal.kind != "drain":
        return ""
    attempt.progress(f"checking whether clients use anything on {some_of(plan.goal.brokers)}")
    try:
        # A finished plan is not refused, so this may be another cluster, on which those brokers own nothing.
        unknown = foreign(plan, cluster.cluster_name(), cluster.active_brokers())
        if unknown is None:
            return left_on(cluster, plan.goal.brokers, attempt.clock, attempt.interruption).sentence
    except AdvisorError as error:  # the steps are done, whatever fails here
        unknown = str(error)
    return f"can't determine whether clients use anything there: {unknown}"


def _await_holder(attempt: Attempt) -> None:
    """Wait while another process holds the run of a plan: until the run ends or the process's lease expires.

    If its heartbeats are in the future, this machine's monotonic clock ends the wait. Raises `Refused` if this process
    is to end meanwhile.
    """
    ledger, digest, clock = attempt.ledger, digest_of(attempt.plan), attempt.clock
    longest_s = LEASE_MS / 1000 + LEDGER_CLOCK_TOLERANCE_S
    heard_at_s, heartbeat_at_ms = clock.monotonic_s(), None
    while (run := unfinished_run(runs_of_plan(ledger, digest))) and is_held(ledger, run):
        if heartbeat_at_ms is None:
            attempt.progress(f"run {run.id} is held by process {run.pid} on {run.host}: waiting until it ends")
        if run.heartbeat_at_ms != heartbeat_at_ms:
            heard_at_s, heartbeat_at_ms = clock.monotonic_s(), run.heartbeat_at_ms
        if clock.monotonic_s() - heard_at_s > longest_s:
            return
        if reason := attempt.interruption():
            raise Refused(f"nothing was sent: {reason}")
        clock.sleep(HOLDER_POLL_S)


def _carried_out(run: OngoingRun) -> EndOfRun:
    """Carry the run out; return how it ended, even if another process took it over before its last write."""
    try:
        return _ended(run)
    except LeaseLost as lost:
        records = steps_of_run(run.ledger, run.held.id)
        if all(record.attempts == 0 for record in records.values()):
            raise _refused(run, f"nothing was sent: {lost}") from lost
        return end_of_run("partial", run.plan, run.held.id, str(lost), records)


def _ended(run: OngoingRun) -> EndOfRun:
    plan, ledger, held, guard = run.plan, run.ledger, run.held, run.guard
    why = ""
    cause: Exception | None = None
    try:
        if reason := next(overtaken(run), None):  # since it was checked
            raise Refused(reason)
        with held.kept(), guard.kept() if guard else nullcontext():
            carry_out(run)
            if guard is not None and run.options.is_turn:
                check_guard(run)  # also where nothing was sent since somebody switched the balancer on again
                guard.is_handed_on = all(record.is_confirmed for record in held.steps().values())
    except LeaseLost:
        raise
    except Parked as parked:
        held.park(parked.parking.sentence)
        run.progress(f"parked: {parked.parking.sentence}")
        ended = end_of_run("parked", plan, held.id, parked.parking.sentence, steps_of_run(ledger, held.id))
        return replace(ended, parking=replace(parked.parking, hold=held.hold))
    except (Stop, AdvisorError) as stop:
        why, cause = f": {stop}", stop
    except Exception as error:
        # Whatever the error, the run ends in a state that records it, and can be resumed once the cause is fixed.
        why, cause = f": unexpected failure, {type(error).__name__}: {error}", error
    records = steps_of_run(ledger, held.id)
    confirmed = sum(record.is_confirmed for record in records.values())
    noted = "".join(f"; {note}" for note in guard.notes) if guard else ""
    nothing_left = "" if confirmed == len(records) or is_left(records) else ", and none is left to send"
    to_do = f"; {cause.to_do}" if isinstance(cause, Stop) and cause.to_do and not run.options.is_turn else ""
    counted = f"{confirmed} of {len(records)} steps confirmed{nothing_left}{why}{to_do}{noted}"
    # A turn that was cut short has given the balancer back, even if that was after its last move: the roll stops.
    if confirmed == len(records) and (cause is None or not run.options.is_turn):
        held.end("done", counted)
        return end_of_run("done", plan, held.id, counted, records)
    if all(record.attempts == 0 for record in records.values()):
        reasons = why or "".join(f"; {record.step_id}: {record.observation}" for record in records.values())
        sentence = f"nothing was sent{reasons}{noted}"
        held.end("refused", sentence)
        telemetry.refused(plan.cluster)
        raise _refused(run, sentence, to_do) from cause
    held.end("stopped", counted)
    ended = end_of_run("partial", plan, held.id, counted, records)
    return replace(ended, first=cause.first) if isinstance(cause, Stop) else ended


def _refused(run: OngoingRun, sentence: str, to_do: str = "") -> AdvisorError:
    """Why nothing was sent; that the run has left the cluster's own balancer off matters more."""
    if any(switch.run == run.held.id for switch in left_off(run.ledger, run.held.cluster_name)):
        return BalancerStillOff(sentence)
    return Refused(f"{sentence}{to_do}")
