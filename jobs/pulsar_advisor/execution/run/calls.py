"""Sends one call: writes it to the ledger, sends it once, and says how long its effect may take to show.

The answer is recorded but never trusted: a 204 proves nothing, and a call whose answer was lost may have been carried
out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from pulsar_advisor.execution import telemetry
from pulsar_advisor.execution.cluster.cluster_port import Reply, Split, Unload
from pulsar_advisor.execution.ledger.runs import LEASE_MS
from pulsar_advisor.execution.run.health import check_approval
from pulsar_advisor.execution.run.ongoing_run import OngoingRun, Stop, in_words
from pulsar_advisor.execution.run.waiting import check_interruption
from pulsar_advisor.model.plans.plan import Step

T = TypeVar("T")

ATTEMPTS: Final = 3
"""Maximum calls per step and process: under Modular, about one in ten unloads misses its destination."""
OBSERVE_S: Final = 30
"""How long the effect of an answered call may take to show; on real brokers, it took under 0.4 s."""
_AT_LEAST_S: Final = 10


@dataclass(frozen=True)
class Unread:
    """The brokers could not be read; the state is unknown."""

    why: str


def send(run: OngoingRun, step: Step, call: Unload | Split, topic: str | None) -> Reply:
    """Write a call to the ledger, then send it once. Whatever fails after that, it may have been carried out.

    Raises `Stop` or `Parked` first if it may not be sent any more: checks and waits may have taken minutes.
    """
    check_interruption(run)
    check_approval(run)
    is_first = run.held.steps()[step.id].state == "pending"
    run.held.sent(step.id, str(call.request), topic)
    run.progress(f"{step.id}: {call.request}")
    run.held.renew()  # raises if this process was suspended and another one has taken over
    if (ago_ms := abs(run.ledger.now_ms() - run.looked_at_ms[step.id])) > LEASE_MS:  # suspended, but not replaced
        why = f"the cluster was looked at {ago_ms // 1000} s ago, and may have changed"
        if is_first:  # nothing is open, so that neither this run nor another one has to settle it
            run.held.conclude(step.id, "pending", f"was not sent: {why}")
        raise Stop(f"{step.id} was not sent: {why}")
    sent_at_s = run.clock.monotonic_s()
    reply = reply_of(lambda: run.cluster.send(call))
    took_s = run.clock.monotonic_s() - sent_at_s
    telemetry.answered(run.plan.cluster, step.action, reply.status, took_s)
    run.held.note(step.id, "reply", str(reply))
    if reply.is_trouble:
        run.signs.troubles.append(f"{step.id} got {reply.in_words}")
    return reply


def deadline_of(run: OngoingRun, sent_at_s: float, reply: Reply) -> float:
    """Deadline (monotonic) for the effect of a call."""
    patience_s = run.settle_s if reply.leaves_open else OBSERVE_S
    return max(sent_at_s + patience_s, run.clock.monotonic_s() + _AT_LEAST_S)


def reply_of(call: Callable[[], Reply]) -> Reply:
    """What is known of a sent call: an answer that can't be interpreted counts as none."""
    try:
        return call()
    except Exception as error:
        return Reply(None, in_words(error))


def seen_by(look: Callable[[], T]) -> T | Unread:
    """What the cluster shows after a call. Even a malformed answer must not end the run without a record."""
    try:
        return look()
    except Exception as error:
        return Unread(in_words(error))
