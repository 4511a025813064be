"""One split: sent until a broker has time for it, and confirmed by the namespace's boundaries."""

from __future__ import annotations

from typing import Final

from pulsar_advisor.execution.run.calls import ATTEMPTS, Unread, deadline_of, seen_by, send
from pulsar_advisor.execution.run.health import check_approval, check_guard
from pulsar_advisor.execution.run.observe import find_owner
from pulsar_advisor.execution.run.ongoing_run import OngoingRun
from pulsar_advisor.execution.run.outcomes import confirmed, failed, unresolved
from pulsar_advisor.execution.run.preconditions import call_of, differences, has_bundle
from pulsar_advisor.execution.run.turns import Waits
from pulsar_advisor.execution.run.waiting import check_interruption, first_hold_s, note_cut_short, wait
from pulsar_advisor.model.plans.plan import Step

POLL_S: Final = 0.5


def split(run: OngoingRun, step: Step, boundaries: tuple[str, ...]) -> Waits[None]:
    """Send a split and record what became of it; `boundaries` are those of the namespace before.

    It is sent again after no answer, or a broker's in trouble. Two can't both act: the first leaves no such bundle.
    """
    call = call_of(step, run.plan.pulsar_version)
    is_open = False
    for attempt in range(1, ATTEMPTS + 1):
        sent_at_s = run.clock.monotonic_s()
        reply = send(run, step, call, None)
        is_open = is_open or reply.leaves_open
        seen = yield from _await_boundaries(run, step, deadline_of(run, sent_at_s, reply))
        if seen != boundaries or not reply.is_trouble or attempt == ATTEMPTS:
            break
        run.progress(f"{step.id}: {reply.in_words}, and the boundaries have not changed")
        pause_s = max(run.throttle.pause_s, reply.retry_after_s)
        check_approval(run, pause_s)
        yield from wait(run, pause_s)
        check_interruption(run)
        if any(differences(step, boundaries, step.source, run.look(step))):
            seen = yield from _await_boundaries(run, step, run.clock.monotonic_s())
            break
        check_guard(run)
    yield from _conclude_split(run, step, boundaries, seen, f"; {reply.in_words}", is_open=is_open)


def settle_split(run: OngoingRun, step: Step, until_s: float) -> Waits[bool]:
    """Determine the outcome of a split that another process sent; False if it had no effect."""
    before = run.expected_boundaries(step)
    seen = yield from _await_boundaries(run, step, until_s)
    if seen == before:
        return False
    yield from _conclude_split(run, step, before, seen)
    return True


def _conclude_split(
    run: OngoingRun,
    step: Step,
    before: tuple[str, ...],
    seen: tuple[str, ...] | Unread,
    answered: str = "",
    *,
    is_open: bool = False,
) -> Waits[None]:
    if isinstance(seen, Unread):
        unresolved(run, step, f"the boundaries can't be read, {seen.why}{answered}")
    if _is_split(step, seen):
        return (yield from _confirm_split(run, step))
    if is_open and has_bundle(seen, step.bundle):
        unresolved(run, step, f"the new boundaries did not appear{answered}")
    if seen == before:
        return failed(run, step, f"the boundaries have not changed{answered}")
    if not seen:
        return failed(run, step, f"the namespace does not exist any more{answered}")
    return failed(run, step, f"the boundaries are {', '.join(seen)}, not what the split should give{answered}")


def _confirm_split(run: OngoingRun, step: Step) -> Waits[None]:
    hold_s = first_hold_s(run)
    end_s = run.clock.monotonic_s() + hold_s
    yield from wait(run, hold_s)
    seen = yield from _await_boundaries(run, step, run.clock.monotonic_s())
    if isinstance(seen, Unread):
        unresolved(run, step, f"whether the new boundaries stayed can't be read, {seen.why}")
    if not _is_split(step, seen):
        return failed(run, step, "the new boundaries appeared, but did not stay")
    at = ", ".join(f"{child} on {_owner(run, step, child)}" for child in step.children)
    note_cut_short(run, step, end_s)
    return confirmed(run, step, f"the namespace has the new boundaries; {at}")


def _owner(run: OngoingRun, step: Step, child: str) -> str:
    owner = seen_by(lambda: find_owner(run.cluster, step.namespace, child, [step.source]))
    return "an unknown broker" if isinstance(owner, Unread) else owner or "no broker"


def _is_split(step: Step, boundaries: tuple[str, ...]) -> bool:
    """Whether a namespace has the boundaries of a split, whatever else was split in it meanwhile."""
    return {*step.boundaries} <= {*boundaries}


def _await_boundaries(run: OngoingRun, step: Step, deadline_s: float) -> Waits[tuple[str, ...] | Unread]:
    """Poll until the namespace has the boundaries of a split; return the last ones seen.

    The last look is one after the deadline, so that no conclusion rests on a single look.
    """
    is_over = False
    while True:
        was_over, is_over = is_over, run.clock.monotonic_s() >= deadline_s
        seen = seen_by(lambda: run.cluster.boundaries(step.namespace))
        if was_over or (not isinstance(seen, Unread) and _is_split(step, seen)):
            return seen
        yield POLL_S
