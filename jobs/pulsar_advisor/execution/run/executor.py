"""Carries out the steps of a run in waves, trusting only what the cluster shows.

The executor writes a step to the ledger before it sends the call, and again after the cluster shows the effect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from pulsar_advisor.execution.cluster.cluster_port import LOOK_AGAIN_S
from pulsar_advisor.execution.ledger.plans import recorded_plan
from pulsar_advisor.execution.ledger.runs import STEP_SENT, runs_since
from pulsar_advisor.execution.ledger.tables import StepRecord
from pulsar_advisor.execution.run import pace
from pulsar_advisor.execution.run.health import check_approval, check_guard, check_health
from pulsar_advisor.execution.run.observe import reported_late
from pulsar_advisor.execution.run.ongoing_run import OngoingRun
from pulsar_advisor.execution.run.outcomes import check_error_budget, drifted, had_no_effect, leave_out
from pulsar_advisor.execution.run.pace import Pace
from pulsar_advisor.execution.run.parking import Parked, Parking
from pulsar_advisor.execution.run.preconditions import Found, differences, overload
from pulsar_advisor.execution.run.split import settle_split, split
from pulsar_advisor.execution.run.turns import Waits, take_turns
from pulsar_advisor.execution.run.unload import hold_again, settle_unload, unload
from pulsar_advisor.execution.run.waiting import HOLD_CUT_SHORT, check_interruption, hold_left_s, parks, wait
from pulsar_advisor.model.plans.plan import Step
from pulsar_advisor.model.text.some_of import count

LATE_POLL_S: Final = 3.0
OTHERS_COUNT_FOR_MS: Final = 600_000
"""For how long after its end a run's unloads count for the topics per minute of the next one."""


def carry_out(run: OngoingRun) -> None:
    """Perform every executable step that remains. Raises `Stop`, `ClusterUnreachable`, `LeaseLost`."""
    brokers = run.cluster.active_brokers()
    steps = run.plan.executable_steps
    needed = pace.prerequisites(steps)
    without_effect = _settle_all(run, steps)
    check_error_budget(run)
    waited = run.options.waited
    _await_canary_hold(run, steps)
    _count_unloads_before(run)
    speed = waited.pace if waited else Pace()
    is_rested = waited is not None and waited.why == "pause"
    while True:
        _leave_out_dependents(run, steps)
        records = run.held.steps()
        left = {name for name, record in records.items() if record.state == "pending" or name in without_effect}
        if any(record.is_confirmed for record in records.values()):
            wave = pace.next_wave(steps, needed, left, run.throttle, speed.width)
        else:
            wave = pace.canary(steps, needed, left)
        if not wave:
            return
        is_first = not any(record.attempts for record in records.values())
        pause_s = 0.0 if is_rested or is_first else run.throttle.pause_s * speed.stretch
        if pause_s := max(pause_s, run.room_in_s(wave)):
            check_approval(run, pause_s)
            if parks(run, pause_s):
                raise Parked(Parking("pause", pause_s, speed))
            take_turns(run, [wait(run, pause_s)])
        is_rested = False
        check_interruption(run)
        check_health(run, brokers)
        without_effect -= {step.id for step in wave}
        run.signs.troubles.clear()
        run.signs.latencies_s.clear()
        for step in wave:
            run.count_unload(step, records[step.id].attempts + 1)
        take_turns(run, [_perform(run, step) for step in wave])
        speed, why_slower = pace.after_wave(speed, run.signs, run.throttle.in_flight)
        if why_slower is not None:
            _say_slower(run, wave[-1], speed, why_slower)


def _await_canary_hold(run: OngoingRun, steps: Iterable[Step]) -> None:
    """Wait until the first step that was confirmed has held for the approved time, even if the run ended meanwhile."""
    records = run.held.steps()
    confirmed = [step for step in steps if records[step.id].is_confirmed]
    if len(confirmed) != 1:
        return
    [step] = confirmed
    record = records[step.id]
    events = run.ledger.events(run.held.digest, run.held.id)
    if any(event.kind == HOLD_CUT_SHORT and event.step_id == step.id for event in events):
        # The boundaries of a split are checked before each later step of its namespace.
        again = hold_again(run, step, record) if step.action == "unload" else wait(run, hold_left_s(run, record))
        take_turns(run, [again])


def _count_unloads_before(run: OngoingRun) -> None:
    """Count the topics of each attempt by earlier processes, and by other runs on the cluster within the last minutes.

    Each as of the last thing that the ledger knows of it.
    """
    if run.throttle.topics_per_minute is None:
        return
    now_ms = run.ledger.now_ms()
    for each in runs_since(run.ledger, run.held.cluster_name, now_ms - OTHERS_COUNT_FOR_MS):
        apart = "" if each.id == run.held.id else f" of run {each.id}"
        steps = {
            step.id: step.model_copy(update={"id": f"{step.id}{apart}"})
            for step in recorded_plan(run.ledger, each.digest).executable_steps
        }
        attempts = Counter[str]()
        for event in run.ledger.events(each.digest, each.id):
            if event.step_id is None or event.step_id not in steps:
                continue
            attempts[event.step_id] += event.kind == STEP_SENT
            if attempt := attempts[event.step_id]:
                run.count_unload(steps[event.step_id], attempt, min(0, event.at_ms - now_ms) / 1000)


def _say_slower(run: OngoingRun, last: Step, speed: Pace, why: str) -> None:
    pause_s = run.throttle.pause_s * speed.stretch
    slower = f"{count(speed.width, 'step')} in flight, {pause_s:g} s between two waves: {why}"
    run.held.note(last.id, "slowed down", slower)
    run.progress(f"slowing down to {slower}")


def _leave_out_dependents(run: OngoingRun, steps: Iterable[Step]) -> None:
    """Skip the steps that depend on one that ended unconfirmed."""
    records = run.held.steps()
    for step in steps:
        ended = [name for name in step.after if records[name].is_left_out]
        if ended and records[step.id].state == "pending":
            leave_out(run, step, f"it comes after {', '.join(ended)}, which was not confirmed")
            records = run.held.steps()


def _perform(run: OngoingRun, step: Step) -> Waits[None]:
    """Check a step against the current cluster and send it."""
    if run.failures:
        return
    check_interruption(run)
    records = run.held.steps()
    boundaries = run.expected_boundaries(step)
    found = run.look(step)
    if step.action == "unload" and found.topics == 0 and reported_late(run.cluster, run.ledger, run.plan, step):
        deadline_s = run.clock.monotonic_s() + run.cluster.reports_within_s()
        while found.topics == 0 and run.clock.monotonic_s() < deadline_s:
            yield LATE_POLL_S
            if run.failures:
                return
            check_interruption(run)
            run.count_unload(step, records[step.id].attempts + 1)
            found = run.look(step)
    if _changes(run, step, boundaries, found):  # one answer may be wrong, and a bundle on its way has no owner
        yield LOOK_AGAIN_S
        if run.failures:
            return
        check_interruption(run)
        found = run.look(step)
    if changed := _changes(run, step, boundaries, found):
        drifted(run, step, records[step.id], "; ".join(changed))
        return run.count_no_unload(step, records[step.id].attempts + 1)
    check_guard(run)
    if step.action == "split":
        return (yield from split(run, step, boundaries))
    return (yield from unload(run, step, records[step.id], boundaries, _topic_to_look_up(found.topic_names)))


def _changes(run: OngoingRun, step: Step, boundaries: tuple[str, ...], found: Found) -> Sequence[str]:
    """How the cluster differs from what a step requires, and why the step would overload its destination."""
    changed = list(differences(step, boundaries, step.source, found))
    if "worse" not in run.approval.consents:
        moved = {name for name, record in run.held.steps().items() if record.state in ("sent", "confirmed")}
        changed += overload(run.plan, step, found.destination_usage_ratio, moved)
    return changed


def _settle_all(run: OngoingRun, steps: Iterable[Step]) -> set[str]:
    """Determine the outcome of every call that was sent, or about to be sent, when the run ended.

    Returns the ids of the steps that had no effect.
    """
    without_effect: set[str] = set()

    def settle(step: Step, record: StepRecord) -> Waits[None]:
        if not (yield from _settle(run, step, record)):
            without_effect.add(step.id)
            had_no_effect(run, step)

    records = run.held.steps()
    sent = [step for step in steps if records[step.id].is_open]
    take_turns(run, [settle(step, records[step.id]) for step in sent])
    return without_effect


def _settle(run: OngoingRun, step: Step, record: StepRecord) -> Waits[bool]:
    """Determine the outcome of one such call; False if it had no effect.

    Only another process's clock recorded when the call was sent, so it gets its full time again.
    """
    run.progress(f"{step.id}: was sent before this process began; checking its outcome")
    now_s = run.clock.monotonic_s()
    if step.action == "split":
        return (yield from settle_split(run, step, now_s + run.settle_s))
    return (yield from settle_unload(run, step, record, now_s + run.settle_s))


def _topic_to_look_up(topics: tuple[str, ...]) -> str | None:
    """Any topic of the bundle, preferably one of usual characters, and a user's rather than a system topic.

    None if there is none that PostgreSQL can record, which knows no null character, and that a path can name.
    """
    usable = (topic for topic in topics if "\0" not in topic and not topic.endswith(("/.", "/..")))

    def rank(topic: str) -> tuple[bool, bool, str]:
        of_system = any(part.startswith("__") for part in topic.split("/")[4:])
        return not topic.isprintable(), of_system, topic

    return min(usable, key=rank, default=None)
