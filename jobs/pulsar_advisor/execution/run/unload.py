"""One unload: sent, repeatedly if need be, until the cluster shows its bundle where it should go."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NoReturn, TypeGuard

from pulsar_advisor.execution import telemetry
from pulsar_advisor.execution.cluster.cluster_port import LOOK_AGAIN_S, NO_CONTENT, OK, Reply
from pulsar_advisor.execution.ledger.tables import StepRecord
from pulsar_advisor.execution.run.calls import ATTEMPTS, Unread, deadline_of, reply_of, seen_by, send
from pulsar_advisor.execution.run.health import check_approval, check_guard
from pulsar_advisor.execution.run.observe import find_owner
from pulsar_advisor.execution.run.ongoing_run import DeadEnd, OngoingRun
from pulsar_advisor.execution.run.outcomes import confirmed, failed, unresolved
from pulsar_advisor.execution.run.pace import Pace, after_wave
from pulsar_advisor.execution.run.parking import Parked, Parking
from pulsar_advisor.execution.run.preconditions import call_of, differences, has_bundle, leaves_destination
from pulsar_advisor.execution.run.turns import Waits
from pulsar_advisor.execution.run.waiting import (
    check_interruption,
    first_hold_s,
    has_held,
    hold_left_s,
    interrupted,
    note_cut_short,
    parks,
    wait,
)
from pulsar_advisor.model.plans.plan import Step

POLL_S: Final = 0.5
ELSEWHERE_S: Final = 3
"""How long an unloaded bundle must stay on a broker other than its destination before that counts as its owner."""
LOOK_UP_AFTER_S: Final = 3
"""How long clients have to bring back an unloaded bundle before the executor looks up one of its topics."""

_NOT_PERMITTED: Final = 401
_NOTHING_HAPPENED: Final = frozenset({_NOT_PERMITTED, 409})
"""Answers that reject an unload before the leader stores its destination: no permission, broker not active. But the
first may also come from the owner, after the leader has redirected the call."""

Owner = str | None | Unread
"""Owner of a bundle: a broker, none, or currently unknown."""


def unload(
    run: OngoingRun, step: Step, record: StepRecord, boundaries: tuple[str, ...], topic: str | None
) -> Waits[None]:
    """Send an unload, several times if need be, and record what became of it; `topic` is one to look up, if any."""
    call = call_of(step, run.plan.pulsar_version)
    at = step.source
    reply = Reply(None, "")
    before = record.attempts
    is_open = record.state != "pending"  # whether a call may still act, or its destination wait on the leader
    for attempt in range(1, ATTEMPTS + 1):
        if attempt > 1:
            pause_s = max(run.throttle.pause_s, run.room_in_s([step]), reply.retry_after_s)
            check_approval(run, pause_s)
            run.count_unload(step, before + attempt, pause_s)  # so that others in flight leave it this room
            yield from wait(run, pause_s)
            check_interruption(run)
            found = run.look(step)
            if _arrived(found.owner, step):
                return (yield from _confirm_unload(run, step, found.owner))
            # A broker that has just taken over the bundle reports its topics only after the next statistics pass.
            found = replace(found, topics=1)
            if changed := list(differences(step, boundaries, at, found)):
                why = f"and before another attempt: {'; '.join(changed)}"
                return _missed(run, step, reply, found.owner, why, is_open=is_open and found.owner in (at, None))
            check_guard(run)
        sent_at_s = run.clock.monotonic_s()
        run.count_unload(step, before + attempt)
        reply = send(run, step, call, topic)
        if _is_clean_rejection(reply, step) and _is_still(run, step, at):
            why = f"refused by the cluster: {reply}"
            if is_open:
                unresolved(run, step, f"{why}; the outcome of the call before is unknown")
            return failed(run, step, why)
        deadline_s = deadline_of(run, sent_at_s, reply)
        owner = yield from _await_owner(run, step, topic, deadline_s, answered=reply.status == NO_CONTENT)
        run.count_unload(step, before + attempt)  # it may have acted late
        if not isinstance(owner, str):
            _unowned(run, step, owner, f"{reply.in_words}; ")
        if _arrived(owner, step):
            took_s = run.clock.monotonic_s() - sent_at_s
            telemetry.owned_after(run.plan.cluster, took_s)
            run.signs.latencies_s.append(took_s)
            return (yield from _confirm_unload(run, step, owner))
        # The next assignment of the bundle consumes its destination on the leader, wherever the bundle then goes.
        is_assigned = owner != at or reply.status == NO_CONTENT
        is_open = not is_assigned and (is_open or reply.leaves_open or leaves_destination(run.plan, step))
        at = owner
        if step.destination is None:
            why = "which is usual without a destination" if reply.status == NO_CONTENT else "as before"
            return _missed(run, step, reply, at, why, is_open=is_open)
        missed = f"{reply.in_words}, the bundle is on {at}"
        run.held.note(step.id, "missed", f"attempt {attempt}: {missed}")
        run.progress(f"{step.id}: missed, {missed}")
    return _missed(run, step, reply, at, f"after {ATTEMPTS} attempts", is_open=is_open)


def settle_unload(run: OngoingRun, step: Step, record: StepRecord, until_s: float) -> Waits[bool]:
    """Determine the outcome of an unload that another process sent; False if it had no effect."""
    owner = yield from _await_owner(run, step, record.topic, until_s, answered=False)
    if has_held(run) and isinstance(owner, str) and not _arrived(owner, step):
        failed(run, step, f"the bundle reached its destination, but did not stay: it is on {owner}")
    elif not isinstance(owner, str):
        _unowned(run, step, owner)
    elif step.destination is None and owner == step.source:
        failed(run, step, f"it is on {owner}; whether it was unloaded can't be seen, so it is not repeated")
    elif owner == step.source:
        return False
    elif _arrived(owner, step):
        yield from _confirm_unload(run, step, owner)
    else:
        why = f"the bundle is on {owner}, neither where it was nor where it should go"
        if record.attempts > 1 and leaves_destination(run.plan, step):
            unresolved(run, step, f"{why}; which of {record.attempts} calls brought it there is unknown")
        failed(run, step, why)
    return True


def _missed(run: OngoingRun, step: Step, reply: Reply, owner: str | None, why: str, *, is_open: bool) -> None:
    """Handle an unload that did not bring the bundle to its destination."""
    where = f"the bundle is on {owner or 'no broker'}, {why}"
    answered = f"{reply.in_words}; {where}"
    if is_open:
        unresolved(run, step, answered)
    failed(run, step, where if reply.status == NO_CONTENT else answered)


def _confirm_unload(run: OngoingRun, step: Step, owner: str) -> Waits[None]:
    """Confirm that a bundle reached its destination; for a run's first step, check that it stays there."""
    hold_s = first_hold_s(run)
    if parks(run, hold_s) and sum(record.state == "sent" for record in run.held.steps().values()) == 1:
        pace, _ = after_wave(Pace(), run.signs, run.throttle.in_flight)  # the step was the first wave
        raise Parked(Parking("hold", hold_s, pace))
    end_s = run.clock.monotonic_s() + hold_s
    if gone := (yield from _watch(run, step, owner, end_s)):
        return failed(run, step, gone)
    note_cut_short(run, step, end_s)
    return confirmed(run, step, f"{owner} owns the bundle")


def hold_again(run: OngoingRun, step: Step, record: StepRecord) -> Waits[None]:
    """Watch the bundle of a run's first step for the rest of its hold, which an interruption cut short.

    Raises `Stop` if it did not stay.
    """
    left_s = hold_left_s(run, record)
    owner = _owner(run, step)
    if not isinstance(owner, Unread) and not _arrived(owner, step):
        yield POLL_S
        owner = _owner(run, step)
    if isinstance(owner, Unread):
        return (yield from wait(run, left_s))
    if not _arrived(owner, step):
        where = owner or "no broker"
        raise DeadEnd(f"{step.id}: the bundle did not stay where it was confirmed to be: it is on {where}")
    if gone := (yield from _watch(run, step, owner, run.clock.monotonic_s() + left_s)):
        raise DeadEnd(f"{step.id}: {gone}")


def _watch(run: OngoingRun, step: Step, owner: str, end_s: float) -> Waits[str]:
    """Where the bundle went, in words, if it leaves its owner before then; empty if it stays, or the run is to end.

    A single look may be wrong, so it takes two in a row.
    """
    is_away = False
    while is_away or (end_s > run.clock.monotonic_s() and interrupted(run) is None):
        yield POLL_S if is_away else min(POLL_S, end_s - run.clock.monotonic_s())
        seen, was_away = _owner(run, step), is_away
        is_away = seen != owner and not isinstance(seen, Unread)
        if is_away and was_away:
            return f"the bundle reached {owner}, but did not stay: it is on {seen or 'no broker'}"
    return ""


def _await_owner(run: OngoingRun, step: Step, topic: str | None, deadline_s: float, *, answered: bool) -> Waits[Owner]:
    """Poll until the bundle reaches its destination or clearly won't; return the last owner seen.

    If no client brings the bundle back, the executor looks up one of its topics, so that a destination left on the
    leader can't affect another namespace.
    """
    unowned_since_s = elsewhere_since_s = None
    looked_up = is_over = False
    while True:
        owner = _owner(run, step)
        if _arrived(owner, step):
            first, owner = owner, _owner(run, step)  # a single answer may be another broker's
            if owner == first:
                return owner
        now_s = run.clock.monotonic_s()
        was_over, is_over = is_over, now_s >= deadline_s
        unowned_since_s = (unowned_since_s or now_s) if owner is None else None
        elsewhere_since_s = (elsewhere_since_s or now_s) if isinstance(owner, str) else None
        if answered and elsewhere_since_s and now_s - elsewhere_since_s >= ELSEWHERE_S:
            return owner
        if unowned_since_s and now_s - unowned_since_s >= LOOK_UP_AFTER_S and topic and not looked_up:
            looked_up = _look_up(run, step, topic)
            unowned_since_s = now_s  # if unanswered, look up again after the same time
        # One read that the brokers are slow to answer may take all the time: then another look decides.
        if is_over and (was_over or not isinstance(owner, Unread)):
            return owner
        yield POLL_S


def _look_up(run: OngoingRun, step: Step, topic: str) -> bool:
    """Look up a topic; whether that was answered, which means that the bundle was assigned."""
    run.held.note(step.id, "look up", topic)
    run.progress(f"{step.id}: no client brings the bundle back; looking up {topic}")
    reply = reply_of(lambda: run.cluster.look_up(topic))
    run.held.note(step.id, "reply", str(reply))
    return reply.status == OK


def _owner(run: OngoingRun, step: Step) -> Owner:
    likely = [broker for broker in (step.destination, step.source) if broker]
    return seen_by(lambda: find_owner(run.cluster, step.namespace, step.bundle, likely))


def _is_still(run: OngoingRun, step: Step, at: str) -> bool:
    """Whether two looks show a bundle on this broker. Meanwhile no other step is sent, as the run may have to end."""
    if _owner(run, step) != at:
        return False
    run.clock.sleep(LOOK_AGAIN_S)
    return _owner(run, step) == at


def _unowned(run: OngoingRun, step: Step, owner: Unread | None, answered: str = "") -> NoReturn:
    if owner is not None:
        unresolved(run, step, f"{answered}who owns the bundle can't be read, {owner.why}")
    boundaries = seen_by(lambda: run.cluster.boundaries(step.namespace))
    if isinstance(boundaries, Unread) or has_bundle(boundaries, step.bundle):
        unresolved(run, step, f"{answered}no broker has taken the bundle over")
    gone = "the bundle no longer exists: it was split, or its namespace was deleted"
    unresolved(run, step, f"{answered}{gone}", is_gone=True)


def _arrived(owner: Owner, step: Step) -> TypeGuard[str]:
    if not isinstance(owner, str):
        return False
    return owner == step.destination if step.destination else owner != step.source


def _is_clean_rejection(reply: Reply, step: Step) -> bool:
    """Whether an answer to an unload says that it had no effect; a proxy that sent it twice passes on the second."""
    if reply.status is None or reply.leaves_open:
        return False
    if step.destination is None:
        return 400 <= reply.status < 500
    return reply.status in _NOTHING_HAPPENED and not (reply.status == _NOT_PERMITTED and reply.is_redirected)
