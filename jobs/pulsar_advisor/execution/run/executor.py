"""Carries out the steps of a run in waves, trusting only what the cluster shows.

The executor writes a step to the ledger before it sends the call, and again after the cluster shows the effect. It
records the answer to a call but never trusts it: a 204 proves nothing, and a call whose answer was lost may have been
carried out.

Each step is a procedure that yields whenever it has to wait. Those of a wave take turns in one thread, so everything
that happens has one order, that of the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from heapq import heappop, heappush
from math import inf
from typing import Any, Final, NoReturn, TypeGuard, TypeVar

from pulsar_advisor.execution import telemetry
from pulsar_advisor.execution.clock import Clock
from pulsar_advisor.execution.cluster.cluster_port import NO_CONTENT, ClusterPort, Reply, Split, Unload
from pulsar_advisor.execution.cluster.probe import Probe, unprobed
from pulsar_advisor.execution.consent.policy import ApprovalPolicy
from pulsar_advisor.execution.ledger.approvals import approvals_of_plan
from pulsar_advisor.execution.ledger.held_run import HeldRun, LeaseLost
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.pauses import pause_requested
from pulsar_advisor.execution.ledger.steps import last_confirmed_at_ms
from pulsar_advisor.execution.ledger.tables import Approval, StepRecord, StepState
from pulsar_advisor.execution.run import pace
from pulsar_advisor.execution.run.guard import Guard
from pulsar_advisor.execution.run.observe import find_owner, look
from pulsar_advisor.execution.run.pace import Pace, Signs
from pulsar_advisor.execution.run.parking import Parked, Parking
from pulsar_advisor.execution.run.preconditions import (
    Found,
    boundaries_after,
    call_of,
    destinations_after,
    differences,
    executable_steps,
    expected_boundaries,
    overload,
)
from pulsar_advisor.execution.throttle import ApplyThrottle
from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.model.plans.plan import Plan, Step
from pulsar_advisor.model.text.some_of import count

T = TypeVar("T")

Waits = Generator[float, None, T]
"""A procedure that yields the seconds it wants to wait, so that others can go on meanwhile."""

ATTEMPTS: Final = 3
"""Maximum unloads per step and process: under Modular, about one in ten misses its destination."""
POLL_S: Final = 0.5
OBSERVE_S: Final = 30
"""How long the effect of an answered call may take to show; on real brokers, it took under 0.4 s."""
SETTLE_MARGIN_S: Final = 30
"""Extra time beyond `namespaceBundleUnloadingTimeoutMs` that a broker gets for a call it never answered."""
ELSEWHERE_S: Final = 3
"""How long an unloaded bundle must stay on a broker other than its destination before that counts as its owner."""
LOOK_UP_AFTER_S: Final = 3
"""How long clients have to bring back an unloaded bundle before the executor looks up one of its topics."""
STATISTICS_S: Final = 75
"""How long a new owner may report no topics of a bundle: until its next statistics pass (60 s by default)."""
LATE_POLL_S: Final = 3.0
_AT_LEAST_S: Final = 10
_LONGEST_NAP_S: Final = 20.0
_WAIT_POLL_S: Final = 1.0
"""How quickly an interruption ends a wait with nothing in flight."""

_OVERLOADED: Final = (429, 500)
"""Too many requests; an error of the broker's own, and everything above."""

_NOTHING_HAPPENED: Final = frozenset({401, 409})
"""Answers that reject an unload before the leader stores its destination: no permission, broker not active."""


@dataclass(frozen=True)
class ApplyOptions:
    """The options of one `apply`."""

    throttle_changes: Mapping[str, Any] = field(default_factory=dict)
    """Limits of `ApplyThrottle` that replace the approved ones; each may only be stricter."""
    policy: ApprovalPolicy = field(default_factory=ApprovalPolicy)
    dry_run: bool = False
    resume: bool = False
    until: datetime | None = None
    """Nothing is sent from this moment on; the run ends once its steps in flight are done."""
    probe: Probe = unprobed
    """Publishes before each wave; a reason ends the run."""
    wait_for_holder: bool = False
    """Wait while another process holds the run instead of refusing: for a caller that is not retried."""
    park_from_s: float | None = None
    """Park the run instead of waiting this long or longer, and when a pause is requested. None: never."""
    waited: Parking | None = None
    """The wait that is over, for a parked run that is to go on."""


Interruption = Callable[[], str | None]
"""Why a run should end after the steps in flight; None while it should continue."""


def undisturbed() -> None:
    """An interruption that never occurs."""


class Stop(Exception):
    """The run must end here; the message gives the reason."""


@dataclass(frozen=True)
class Unread:
    """The brokers could not be read; the state is unknown."""

    why: str


Owner = str | None | Unread
"""Owner of a bundle: a broker, none, or currently unknown."""


@dataclass(frozen=True)
class Executor:
    """One run of one plan in this process."""

    plan: Plan
    ledger: Ledger
    run: HeldRun
    approval: Approval
    throttle: ApplyThrottle
    cluster: ClusterPort
    options: ApplyOptions
    settle_s: float
    """How long a broker may work on a call whose answer never came."""
    progress: Callable[[str], None]
    clock: Clock
    interruption: Interruption
    guard: Guard | None = None
    """What keeps the cluster's own balancer off, if it is to be."""
    signs: Signs = field(default_factory=Signs)
    """What the current wave has shown so far."""
    failures: list[Exception] = field(default_factory=list)
    """Why the run must end; once there is a reason, only the steps in flight go on."""

    def carry_out(self) -> None:
        """Perform every executable step that remains. Raises `Stop`, `ClusterUnreachable`, `LeaseLost`."""
        brokers = self.cluster.active_brokers()
        steps = executable_steps(self.plan)
        needed = pace.prerequisites(steps)
        without_effect = self._settle_all(steps)
        waited = self.options.waited
        speed, pause_s = waited.pace if waited else Pace(), self.throttle.pause_s
        is_rested = waited is not None and waited.why == "pause"
        while True:
            self._leave_out_dependents(steps)
            records = self.run.steps()
            left = {name for name, record in records.items() if record.state == "pending" or name in without_effect}
            if any(record.state == "confirmed" for record in records.values()):
                wave = pace.next_wave(steps, needed, left, self.throttle, speed.width)
            else:
                wave = pace.canary(steps, needed, left)
            if not wave:
                return
            if any(record.attempts for record in records.values()) and not is_rested:
                if self._parks(pause_s):
                    raise Parked(Parking("pause", pause_s, speed))
                self._together([self._wait(pause_s)])
            is_rested = False
            self._check_interruption()
            self._check_health(brokers)
            without_effect -= {step.id for step in wave}
            self.signs.troubles.clear()
            self.signs.latencies_s.clear()
            self._together([self._perform(step) for step in wave])
            speed, why_slower = pace.after_wave(speed, self.signs, self.throttle.in_flight)
            pause_s = pace.pause_after(wave, self.throttle, speed)
            if why_slower is not None:
                self._say_slower(wave[-1], speed, pause_s, why_slower)

    def _together(self, procedures: Iterable[Waits[None]]) -> None:
        """Advance procedures in turn until each has ended; one that fails doesn't end the others, which are in flight.

        Raises the failure, or a `Stop` with all of them; `Parked` only if nothing else ends the run.
        """
        waiting = [(self.clock.monotonic_s(), number, each) for number, each in enumerate(procedures)]
        while waiting:
            due_s, number, procedure = heappop(waiting)
            self._sleep(due_s - self.clock.monotonic_s())
            try:
                wait_s = next(procedure)
            except StopIteration:
                continue
            except LeaseLost:
                raise
            except Exception as failure:
                self.failures.append(failure)
            else:
                heappush(waiting, (self.clock.monotonic_s() + wait_s, number, procedure))
        ends = [failure for failure in self.failures if not isinstance(failure, Parked)] or self.failures[:1]
        if len(ends) == 1:
            raise ends[0]
        if ends:
            reasons = dict.fromkeys(_in_words(failure) for failure in ends)
            raise Stop("; ".join(reasons)) from ends[0]

    def _say_slower(self, last: Step, speed: Pace, pause_s: float, why: str) -> None:
        slower = f"{count(speed.width, 'step')} in flight, {pause_s:g} s between two waves: {why}"
        self.run.note(last.id, "slowed down", slower)
        self.progress(f"slowing down to {slower}")

    def _leave_out_dependents(self, steps: Iterable[Step]) -> None:
        """Skip the steps that come after one that ended and was not confirmed."""
        records = self.run.steps()
        for step in steps:
            ended = [name for name in step.after if records[name].state in ("failed", "skipped")]
            if ended and records[step.id].state == "pending":
                self._leave_out(step, f"it comes after {', '.join(ended)}, which was not confirmed")
                records = self.run.steps()

    def _perform(self, step: Step) -> Waits[None]:
        """Check a step against the current cluster and send it."""
        if self.failures:
            return
        self._check_interruption()
        self._check_approval()
        records = self.run.steps()
        boundaries = self._expected_boundaries(step)
        found, topics = self._look(step)
        if step.action == "unload" and not topics and self._reported_late(step):
            deadline_s = self.clock.monotonic_s() + STATISTICS_S
            while not topics and self.clock.monotonic_s() < deadline_s:
                self._check_interruption()
                yield LATE_POLL_S
                found, topics = self._look(step)
        changed = list(differences(step, boundaries, step.source, found))
        if "worse" not in self.approval.consents:
            moved = {name for name, record in self.run.steps().items() if record.state in ("sent", "confirmed")}
            changed += overload(self.plan, step, found.destination_usage_ratio, moved)
        if changed:
            return self._drifted(step, records[step.id], "; ".join(changed))
        self._check_guard()
        if step.action == "split":
            return (yield from self._split(step, boundaries))
        return (yield from self._unload(step, boundaries, _topic_to_look_up(topics)))

    def _look(self, step: Step) -> tuple[Found, tuple[str, ...]]:
        """The facts about a step; bundles in flight count as arrived."""
        records = self.run.steps()
        in_flight = [other for other in executable_steps(self.plan) if records[other.id].state == "sent"]
        arriving = {other.namespace for other in in_flight if other.destination == step.destination}
        return look(self.cluster, self.ledger, self.plan, step, arriving)

    def _settle_all(self, steps: Iterable[Step]) -> set[str]:
        """Determine the outcome of every call that was sent, or about to be, when the run ended.

        Returns the ids of the steps that had no effect.
        """
        without_effect: set[str] = set()

        def settle(step: Step, record: StepRecord) -> Waits[None]:
            if not (yield from self._settle(step, record)):
                without_effect.add(step.id)

        records = self.run.steps()
        sent = [step for step in steps if records[step.id].state in ("sent", "unresolved")]
        self._together([settle(step, records[step.id]) for step in sent])
        return without_effect

    def _settle(self, step: Step, record: StepRecord) -> Waits[bool]:
        """Determine the outcome of one such call. False: it had no effect.

        Only another process's clock recorded when the call was sent, so it gets its full time again.
        """
        self.progress(f"{step.id}: was sent before this process began; looking what became of it")
        now_s = self.clock.monotonic_s()
        if step.action == "split":
            before = self._expected_boundaries(step)
            seen = yield from self._await_boundaries(step, boundaries_after(before, step), now_s + self.settle_s)
            if seen == before:
                return False
            yield from self._conclude_split(step, before, seen, None)
            return True
        owner = yield from self._await_owner(step, record.topic, now_s + self.settle_s, answered=False)
        if self._has_held() and isinstance(owner, str) and not _arrived(owner, step):
            self._failed(step, f"the bundle reached its destination, but did not stay: it is on {owner}")
        elif not isinstance(owner, str):
            self._unresolved(step, _unowned(owner))
        elif step.destination is None and owner == step.source:
            self._failed(step, f"it is on {owner}; whether it was unloaded can't be seen, so it is not repeated")
        elif owner == step.source:
            return False
        elif _arrived(owner, step):
            yield from self._confirm_unload(step, owner)
        else:
            self._failed(step, f"the bundle is on {owner}, neither where it was nor where it should go")
        return True

    def _unload(self, step: Step, boundaries: tuple[str, ...], topic: str) -> Waits[None]:
        call = call_of(step, self.plan.pulsar_version)
        at = step.source
        reply = Reply(None, "")
        for attempt in range(1, ATTEMPTS + 1):
            if attempt > 1:
                yield from self._wait(self.throttle.pause_s)
                self._check_interruption()
                self._check_approval()
                found, _ = self._look(step)
                # A broker that has just taken over the bundle reports its topics only after the next statistics pass.
                found = replace(found, topics=1)
                if changed := list(differences(step, boundaries, at, found)):
                    return self._missed(step, reply, at, f"and before another attempt: {'; '.join(changed)}")
                self._check_guard()
            sent_at_s = self.clock.monotonic_s()
            reply = self._send(step, call, topic)
            if _is_clean_rejection(reply, step):
                return self._failed(step, f"refused by the cluster: {reply}")
            deadline_s = self._deadline_s(sent_at_s, reply)
            owner = yield from self._await_owner(step, topic, deadline_s, answered=reply.status == NO_CONTENT)
            if not isinstance(owner, str):
                self._unresolved(step, f"answer {reply}; {_unowned(owner)}")
            if _arrived(owner, step):
                took_s = self.clock.monotonic_s() - sent_at_s
                telemetry.owned_after(took_s)
                self.signs.latencies_s.append(took_s)
                return (yield from self._confirm_unload(step, owner))
            at = owner
            if step.destination is None:
                return self._missed(step, reply, at, "which is usual without a destination")
            self.run.note(step.id, "missed", f"attempt {attempt}: answer {reply}, the bundle is on {at}")
        return self._missed(step, reply, at, f"after {ATTEMPTS} attempts")

    def _missed(self, step: Step, reply: Reply, owner: str, why: str) -> None:
        """Handle an unload that did not bring the bundle to its destination."""
        may_be_pending = reply.status is None or (
            self.plan.load_manager == "modular" and reply.status != NO_CONTENT and step.destination is not None
        )
        if may_be_pending and owner == step.source:
            self._unresolved(step, f"answer {reply}; the bundle is still on {owner}, {why}")
        self._failed(step, f"the bundle is on {owner}, {why}")

    def _confirm_unload(self, step: Step, owner: str) -> Waits[None]:
        """Confirm a bundle that reached its destination; for the first step of a run, check that it stays there."""
        hold_s = self._hold_s()
        if self._parks(hold_s) and sum(record.state == "sent" for record in self.run.steps().values()) == 1:
            raise Parked(Parking("hold", hold_s))
        end_s = self.clock.monotonic_s() + hold_s
        while (left_s := end_s - self.clock.monotonic_s()) > 0 and self._interrupted() is None:
            yield min(POLL_S, left_s)
            seen = self._owner(step)
            if seen != owner and not isinstance(seen, Unread):
                return self._failed(
                    step, f"the bundle reached {owner}, but did not stay: it is on {seen or 'no broker'}"
                )
        return self._confirmed(step, f"{owner} owns the bundle")

    def _split(self, step: Step, boundaries: tuple[str, ...]) -> Waits[None]:
        call = call_of(step, self.plan.pulsar_version)
        sent_at_s = self.clock.monotonic_s()
        reply = self._send(step, call, None)
        deadline_s = self._deadline_s(sent_at_s, reply)
        seen = yield from self._await_boundaries(step, boundaries_after(boundaries, step), deadline_s)
        yield from self._conclude_split(step, boundaries, seen, reply)

    def _send(self, step: Step, call: Unload | Split, topic: str | None) -> Reply:
        """Write a call to the ledger, then send it once. Whatever fails after that, it may have been carried out."""
        self.run.sent(step.id, str(call.request), topic)
        self.progress(f"{step.id}: {call.request}")
        self.run.renew()  # raises if this process was suspended and another one has taken over
        sent_at_s = self.clock.monotonic_s()
        reply = _reply(lambda: self.cluster.send(call))
        telemetry.answered(step.action, reply.status, self.clock.monotonic_s() - sent_at_s)
        self.run.note(step.id, "reply", str(reply))
        too_many, broken = _OVERLOADED
        if reply.status is None or reply.status == too_many or reply.status >= broken:
            self.signs.troubles.append(f"{step.id} was answered {reply}")
        return reply

    def _deadline_s(self, sent_at_s: float, reply: Reply) -> float:
        """Deadline (monotonic) for the effect of a call."""
        patience_s = self.settle_s if reply.status is None else OBSERVE_S
        return max(sent_at_s + patience_s, self.clock.monotonic_s() + _AT_LEAST_S)

    def _conclude_split(
        self, step: Step, before: tuple[str, ...], seen: tuple[str, ...] | Unread, reply: Reply | None
    ) -> Waits[None]:
        answered = "" if reply is None else f"; answer {reply}"
        if seen == boundaries_after(before, step):
            return (yield from self._confirm_split(step, seen))
        if isinstance(seen, Unread):
            self._unresolved(step, f"the boundaries can't be read, {seen.why}{answered}")
        if seen == before and (reply is None or reply.status is None):
            self._unresolved(step, f"the new boundaries did not show{answered}")
        if seen == before:
            return self._failed(step, f"the boundaries have not changed{answered}")
        return self._failed(step, f"the boundaries are {', '.join(seen)}, not what the split should give{answered}")

    def _confirm_split(self, step: Step, boundaries: tuple[str, ...]) -> Waits[None]:
        yield from self._wait(self._hold_s())
        if self.cluster.boundaries(step.namespace) != boundaries:
            return self._failed(step, "the new boundaries showed, but did not stay")
        owners = [find_owner(self.cluster, step.namespace, child, [step.source]) for child in step.children]
        at = ", ".join(f"{child} on {owner}" for child, owner in zip(step.children, owners, strict=True))
        return self._confirmed(step, f"the namespace has the new boundaries; {at}")

    def _await_owner(self, step: Step, topic: str | None, deadline_s: float, *, answered: bool) -> Waits[Owner]:
        """Poll until the bundle reaches its destination or clearly won't; return the last owner seen.

        If no client brings the bundle back, the executor looks up one of its topics, so that a destination left on the
        leader can't affect another namespace.
        """
        unowned_since_s = elsewhere_since_s = None
        looked_up = False
        while True:
            owner, now_s = self._owner(step), self.clock.monotonic_s()
            if _arrived(owner, step):
                return owner
            unowned_since_s = (unowned_since_s or now_s) if owner is None else None
            elsewhere_since_s = (elsewhere_since_s or now_s) if isinstance(owner, str) else None
            if answered and elsewhere_since_s and now_s - elsewhere_since_s >= ELSEWHERE_S:
                return owner
            if unowned_since_s and now_s - unowned_since_s >= LOOK_UP_AFTER_S and topic and not looked_up:
                self._look_up(step, topic)
                looked_up = True
            if now_s >= deadline_s:
                return owner
            yield POLL_S

    def _look_up(self, step: Step, topic: str) -> None:
        self.run.note(step.id, "look up", topic)
        self.progress(f"{step.id}: no client brings the bundle back; looking up {topic}")
        self.run.note(step.id, "reply", str(_reply(lambda: self.cluster.look_up(topic))))

    def _owner(self, step: Step) -> Owner:
        likely = [broker for broker in (step.destination, step.source) if broker]
        return _seen(lambda: find_owner(self.cluster, step.namespace, step.bundle, likely))

    def _await_boundaries(
        self, step: Step, wanted: tuple[str, ...], deadline_s: float
    ) -> Waits[tuple[str, ...] | Unread]:
        """Poll until the namespace has these boundaries; return the last ones seen."""
        while True:
            seen = _seen(lambda: self.cluster.boundaries(step.namespace))
            if seen == wanted or self.clock.monotonic_s() >= deadline_s:
                return seen
            yield POLL_S

    def _reported_late(self, step: Step) -> bool:
        """Whether we moved or split bundles of the namespace too recently for their owner to report topics."""
        touched_at_ms = last_confirmed_at_ms(self.ledger, self.plan.identity.cluster_name, step.namespace)
        return abs(self.ledger.now_ms() - touched_at_ms) < STATISTICS_S * 1000

    def _expected_boundaries(self, step: Step) -> tuple[str, ...]:
        records = self.run.steps()
        return expected_boundaries(
            step, (done for done in executable_steps(self.plan) if records[done.id].state == "confirmed")
        )

    def _check_health(self, brokers: frozenset[str]) -> None:
        self._check_approval()
        if self.ledger.now_ms() >= self.approval.expires_at_ms:
            raise Stop(f"the approval of {self.approval.approver} expired while the run was under way")
        if gone := brokers - self.cluster.active_brokers():
            raise Stop(f"{', '.join(sorted(gone))} went away while the run was under way")
        self._check_owners()
        if reason := self.options.probe():
            raise Stop(f"the publish probe: {reason}")

    def _check_owners(self) -> None:
        """Check that moved bundles are still in place: if others move bundles too, the plan's forecasts are void."""
        records = self.run.steps()
        done = [step for step in executable_steps(self.plan) if records[step.id].state == "confirmed"]
        for bundle, destination in destinations_after(done).items():
            if bundle not in self.cluster.owned_bundles(destination):
                namespace, _, text = bundle.rpartition("/")
                owner = find_owner(self.cluster, namespace, text, ())
                if owner not in (None, destination):
                    raise Stop(
                        f"{bundle} was moved to {destination} by this run and is on {owner} now: the cluster's own "
                        "balancer or someone else moves bundles too; apply with --guard, or make a new plan"
                    )

    def _check_approval(self) -> None:
        approvals = approvals_of_plan(self.ledger, self.run.digest)
        if any(row.id == self.approval.id and row.withdrawn_at_ms is not None for row in approvals):
            raise Stop(f"the approval of {self.approval.approver} was withdrawn")

    def _check_guard(self) -> None:
        if self.guard is not None and (reason := self.guard.gone()):
            raise Stop(reason)

    def _interrupted(self) -> str | None:
        return self._must_end() or pause_requested(self.ledger, self.run.id)

    def _must_end(self) -> str | None:
        """Why the run can't go on in a while either, as after a pause."""
        until = self.options.until
        if until is not None and self.clock.now_ms() >= 1000 * until.timestamp():
            return f"it may send nothing after {until:%H:%M %Z}"
        return self.interruption()

    def _check_interruption(self) -> None:
        if reason := self._interrupted():
            if self._must_end() is None and self._parks(inf):
                raise Parked(Parking("request", 0))
            began = any(record.attempts for record in self.run.steps().values())
            raise Stop(f"{reason}; go on with {'--resume' if began else 'another `apply`'}")

    def _parks(self, wait_s: float) -> bool:
        """Whether the run waits without this process. Under a guard it doesn't: a process must be there to restore."""
        return self.options.park_from_s is not None and wait_s >= self.options.park_from_s and not self.throttle.guard

    def _wait(self, seconds: float) -> Waits[None]:
        """Wait, unless the run is to end."""
        while seconds > 0 and self._interrupted() is None:
            yield min(seconds, _WAIT_POLL_S)
            seconds -= _WAIT_POLL_S

    def _hold_s(self) -> float:
        first = all(record.state != "confirmed" for record in self.run.steps().values())
        return self.throttle.canary_hold_s if first and not self._has_held() else 0.0

    def _has_held(self) -> bool:
        """Whether the first step's time was waited for while the run was parked; what counts now is where it is."""
        first = all(record.state != "confirmed" for record in self.run.steps().values())
        return first and self.options.waited is not None and self.options.waited.why == "hold"

    def _sleep(self, seconds: float) -> None:
        """Wait, renewing the lease from time to time, which also detects an abort."""
        while seconds > 0:
            self.clock.sleep(min(seconds, _LONGEST_NAP_S))
            self.run.renew()
            seconds -= _LONGEST_NAP_S

    def _drifted(self, step: Step, record: StepRecord, changed: str) -> None:
        if record.state != "pending":
            # The call may have left a destination on the leader, and can't be sent again to consume it.
            self._unresolved(step, changed)
        if self.throttle.on_drift == "stop":
            raise Stop(f"{step.id}, {step.bundle_name}, was not sent: {changed}")
        self._leave_out(step, changed)

    def _conclude(self, step: Step, state: StepState, observation: str) -> None:
        self.run.conclude(step.id, state, observation)
        telemetry.step_ended(step.action, state)

    def _leave_out(self, step: Step, why: str) -> None:
        self._conclude(step, "skipped", why)
        self.progress(f"{step.id}: skipped, {why}")

    def _confirmed(self, step: Step, seen: str) -> None:
        self._conclude(step, "confirmed", seen)
        self.progress(f"{step.id}: confirmed, {seen}")

    def _failed(self, step: Step, why: str) -> None:
        first = all(record.state != "confirmed" for record in self.run.steps().values())
        self._conclude(step, "failed", why)
        self.signs.troubles.append(f"{step.id} failed")
        self.progress(f"{step.id}: failed, {why}")
        failed = sum(record.state == "failed" for record in self.run.steps().values())
        if first:
            raise Stop(f"the first step, {step.id}, failed: {why}")
        if failed > self.throttle.error_budget:
            raise Stop(f"{failed} steps failed, and the error budget is {self.throttle.error_budget}; the last: {why}")

    def _unresolved(self, step: Step, why: str) -> NoReturn:
        self._conclude(step, "unresolved", why)
        raise Stop(
            f"{step.id} is unresolved: {why}. Until {step.bundle_name} is settled, do not unload any bundle of range "
            f"{step.bundle} in any namespace; look at it, then --resume or --abort"
        )


def _reply(call: Callable[[], Reply]) -> Reply:
    """What is known of a sent call: an answer that can't be interpreted counts as none."""
    try:
        return call()
    except Exception as error:
        return Reply(None, _in_words(error))


def _seen(look: Callable[[], T]) -> T | Unread:
    """What the cluster shows after a call: no answer, however malformed, may end the run without a record."""
    try:
        return look()
    except Exception as error:
        return Unread(_in_words(error))


def _in_words(error: Exception) -> str:
    return str(error) if isinstance(error, AdvisorError | Stop) else f"{type(error).__name__}: {error}"[:300]


def _unowned(owner: Unread | None) -> str:
    if owner is None:
        return "no broker has taken the bundle over"
    return f"who owns the bundle can't be read, {owner.why}"


def _arrived(owner: Owner, step: Step) -> TypeGuard[str]:
    if not isinstance(owner, str):
        return False
    return owner == step.destination if step.destination else owner != step.source


def _is_clean_rejection(reply: Reply, step: Step) -> bool:
    """Whether an answer to an unload proves that it had no effect."""
    if reply.status is None:
        return False
    return reply.status in _NOTHING_HAPPENED or (step.destination is None and 400 <= reply.status < 500)


def _topic_to_look_up(topics: tuple[str, ...]) -> str:
    """Any topic of the bundle, preferably a user's rather than a system topic."""
    return min(topics, key=lambda topic: (any(part.startswith("__") for part in topic.split("/")[4:]), topic))
