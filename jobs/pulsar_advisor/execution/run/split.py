"""One split: sent once, and confirmed by the namespace's boundaries."""

from __future__ import annotations

from typing import Final

from pulsar_advisor.execution.cluster.cluster_port import Reply
from pulsar_advisor.execution.run.calls import Unread, deadline_of, seen_by, send
from pulsar_advisor.execution.run.observe import find_owner
from pulsar_advisor.execution.run.ongoing_run import OngoingRun
from pulsar_advisor.execution.run.outcomes import confirmed, failed, unresolved
from pulsar_advisor.execution.run.preconditions import boundaries_after, call_of
from pulsar_advisor.execution.run.turns import Waits
from pulsar_advisor.execution.run.waiting import first_hold_s, wait
from pulsar_advisor.model.plans.plan import Step

POLL_S: Final = 0.5


def split(run: OngoingRun, step: Step, boundaries: tuple[str, ...]) -> Waits[None]:
    """Send a split and record what became of it; `boundaries` are those of the namespace before."""
    call = call_of(step, run.plan.pulsar_version)
    sent_at_s = run.clock.monotonic_s()
    reply = send(run, step, call, None)
    deadline_s = deadline_of(run, sent_at_s, reply)
    seen = yield from _await_boundaries(run, step, boundaries_after(boundaries, step), deadline_s)
    yield from _conclude_split(run, step, boundaries, seen, reply)


def settle_split(run: OngoingRun, step: Step, until_s: float) -> Waits[bool]:
    """Determine the outcome of a split that another process sent. False: it had no effect."""
    before = run.expected_boundaries(step)
    seen = yield from _await_boundaries(run, step, boundaries_after(before, step), until_s)
    if seen == before:
        return False
    yield from _conclude_split(run, step, before, seen, None)
    return True


def _conclude_split(
    run: OngoingRun, step: Step, before: tuple[str, ...], seen: tuple[str, ...] | Unread, reply: Reply | None
) -> Waits[None]:
    answered = "" if reply is None else f"; answer {reply}"
    if seen == boundaries_after(before, step):
        return (yield from _confirm_split(run, step, seen))
    if isinstance(seen, Unread):
        unresolved(run, step, f"the boundaries can't be read, {seen.why}{answered}")
    if seen == before and (reply is None or reply.leaves_open):
        unresolved(run, step, f"the new boundaries did not show{answered}")
    if seen == before:
        return failed(run, step, f"the boundaries have not changed{answered}")
    return failed(run, step, f"the boundaries are {', '.join(seen)}, not what the split should give{answered}")


def _confirm_split(run: OngoingRun, step: Step, boundaries: tuple[str, ...]) -> Waits[None]:
    yield from wait(run, first_hold_s(run))
    if run.cluster.boundaries(step.namespace) != boundaries:
        return failed(run, step, "the new boundaries showed, but did not stay")
    owners = [find_owner(run.cluster, step.namespace, child, [step.source]) for child in step.children]
    at = ", ".join(f"{child} on {owner}" for child, owner in zip(step.children, owners, strict=True))
    return confirmed(run, step, f"the namespace has the new boundaries; {at}")


def _await_boundaries(
    run: OngoingRun, step: Step, wanted: tuple[str, ...], deadline_s: float
) -> Waits[tuple[str, ...] | Unread]:
    """Poll until the namespace has these boundaries; return the last ones seen."""
    while True:
        seen = seen_by(lambda: run.cluster.boundaries(step.namespace))
        if seen == wanted or run.clock.monotonic_s() >= deadline_s:
            return seen
        yield POLL_S
