"""The guard: keeps the cluster's own balancer from moving and splitting bundles during a run.

It switches off two dynamic settings before the first step and restores their overrides, or the absence of one, at the
end. It records each switch in the ledger before it changes the setting. So after a crash the ledger shows what is still
off, and the next command that reaches the cluster restores it. What someone else has set meanwhile stays.
Source: Pulsar `ServiceConfiguration` (both settings are dynamic since 2.8 at the latest); `BrokersBase`,
`/admin/v2/brokers/configuration`; `FieldParser`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from pulsar_advisor.execution.clock import SYSTEM_CLOCK, Clock
from pulsar_advisor.execution.cluster.cluster_port import ClusterPort, Override, Reply
from pulsar_advisor.execution.ledger.held_run import HeldRun
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.plans import summary_of_plan
from pulsar_advisor.execution.ledger.rolls import give_up, goes_on, recorded_roll, roll_of_plan, runs_of_roll
from pulsar_advisor.execution.ledger.runs import is_held, run_by_id
from pulsar_advisor.execution.ledger.switches import (
    MAY_ACT_MS,
    SwitchedOff,
    may_still_act,
    record_switched_back,
    record_switching_off,
    switched_off,
)
from pulsar_advisor.execution.person import Person
from pulsar_advisor.execution.run.options import Interruption, Progress, undisturbed
from pulsar_advisor.model.errors import ClusterUnreachable, Refused
from pulsar_advisor.model.text.reader import reader
from pulsar_advisor.model.text.some_of import some_of

GUARDED: Final = ("loadBalancerSheddingEnabled", "loadBalancerAutoBundleSplitEnabled")

OFF: Final = "fALSE"
"""How the guard spells `false`. Pulsar ignores case (`Boolean.valueOf`) and stores the text as sent, so this spelling
identifies the guard's value, and any other `false` was set by somebody else."""

_EARLIER_OFF: Final = "false"
"""How releases up to 0.1 spelled it (`SwitchedOff.written` is None), indistinguishable from anyone else's."""

NOT_RESTORED: Final = "ATTENTION: the cluster's own balancer could not be switched on again"
TAKES_EFFECT_S: Final = 5
"""How long brokers get to apply a changed setting; real ones took under a second."""
_POLL_S: Final = 0.5
_SETTLING_POLL_S: Final = 1.0


@dataclass
class Guard:
    """The guard of one run."""

    run: HeldRun
    ledger: Ledger
    cluster: ClusterPort
    progress: Progress
    clock: Clock
    turns_before: frozenset[int]
    """For a turn of a roll: the runs of earlier turns, which hand over what they switched off."""
    interruption: Interruption = undisturbed
    switched: set[str] = field(default_factory=set)
    """Settings that this process has switched off."""
    settled: set[str] = field(default_factory=set)
    """Settings of which this process knows that no call may still act; of all others the ledger decides."""
    notes: list[str] = field(default_factory=list)
    """Remarks about the cluster from the end of the guard, for the run's sentence."""
    is_handed_on: bool = False
    """Whether the roll goes on after this turn, so that everything stays off."""

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Keep the cluster's own balancer off until the block ends, normally or by an exception.

        Raises `Refused` if it can't be switched off; then all settings are as before.
        """
        try:
            for setting in GUARDED:
                self._switch_off(setting)
            yield
        finally:
            try:
                self._end()
            except Exception as error:  # must not hide why the run ended; the ledger records what is still off
                self._note(f"{NOT_RESTORED}: {error}")

    def gone(self) -> str | None:
        """Why the cluster's own balancer isn't kept off any more, or None."""
        why = why_not_off(self.cluster, self.clock)
        return None if why is None else f"the guard is gone: {why}"

    def _switch_off(self, setting: str) -> None:
        open_ones = switched_off(self.ledger, self.run.cluster_name)
        earlier = next((switch for switch in open_ones if switch.setting == setting), None)
        if earlier is not None:
            self._settle(earlier)
        # What that switch left in the brokers' memory isn't what was there before.
        effective = {**self.cluster.effective(setting), **(earlier.effective if earlier else {})}
        # Read last: what someone sets between this read and the call is lost.
        first = self.cluster.override(setting)
        before = _seen(self.cluster, setting, lambda again: again == first, self.clock)
        if _is_off(before):
            if earlier and earlier.written == before and earlier.run not in {self.run.id, *self.turns_before}:
                # Answer for what that run left off, or whoever restores that switches it on during this one.
                record_switching_off(self.run, setting, earlier.before, OFF, effective)
                self.switched.add(setting)
            self.settled.add(setting)
            return
        record_switching_off(self.run, setting, before, OFF, effective)
        self.settled.add(setting)  # nothing is sent yet
        with self.run.writing():  # raises if the run was aborted or taken over, as its switches may be given back then
            pass
        self.settled.remove(setting)
        # One without an answer may still act, after all is restored.
        reply, now = _set(self.cluster, setting, before, OFF, self.clock, lambda last: not last.leaves_open)
        if not reply.leaves_open or now == OFF:
            self.settled.add(setting)
        if now != OFF:
            raise Refused(
                f"{setting} can't be switched off: {reply.in_words}; switch it off by hand, and try again: what is "
                "off already is left as it is"
            )
        self.switched.add(setting)
        self.progress(f"{setting} is off while the plan is carried out; it was {_value(before)}")

    def _settle(self, earlier: SwitchedOff) -> None:
        """Wait until an earlier call that switches a setting off has acted, or can't any more.

        If it acted during this run, or after it, nothing would show that: it writes what this run does. Raises
        `Refused` if the run is to end meanwhile.
        """

        def may_act() -> bool:
            return may_still_act(self.ledger, earlier) and not _is_off(
                _seen(self.cluster, earlier.setting, lambda now: not _is_off(now), self.clock)
            )

        said = f"{_may_act(earlier)}; waiting until it can't"
        if reason := wait_until_settled(may_act, said, self.interruption, self.progress, self.clock):
            raise Refused(reason)

    def _end(self) -> None:
        if self.run.is_overtaken() or self.is_handed_on:
            return  # the run continues elsewhere, under our guard, or the roll goes on under it
        runs = {self.run.id, *self.turns_before}
        ours = [switch for switch in switched_off(self.ledger, self.run.cluster_name) if switch.run in runs]
        for setting in sorted(self.switched.difference(switch.setting for switch in ours)):
            self._note(f"{setting} was restored by another process before the run ended: `runs` shows when")
        for switch in ours:
            try:
                self._put_back(switch)
            except ClusterUnreachable as error:
                self._note(f"ATTENTION: {switch.setting} could not be switched on again: {error}")

    def _put_back(self, switch: SwitchedOff) -> None:
        """Restore a setting, unless the call that switches it off may still act."""
        is_open = switch.setting not in self.settled and may_still_act(self.ledger, switch)
        if is_open and not _is_off(self.cluster.override(switch.setting)):
            self._note(_look_later(switch))
            return

        def is_ours() -> bool:
            return not self.run.is_overtaken() and switch in switched_off(self.ledger, self.run.cluster_name)

        what = _restore(switch, self.ledger, self.cluster, self.progress, self.clock, is_ours)
        self.notes += [what] if what else []

    def _note(self, what: str) -> None:
        self.notes.append(what)
        self.progress(what)


def restore_what_was_left(
    ledger: Ledger,
    cluster_name: str,
    cluster: ClusterPort,
    progress: Progress,
    clock: Clock = SYSTEM_CLOCK,
    decided_by: Person | None = None,
    *,
    is_expected: bool = False,
) -> None:
    """Restore settings left off by runs that have ended or whose process is gone, with a prominent message.

    The message is omitted if it `is_expected`, as at the end of a roll. Unless a person decides, a `false` that may be
    someone else's stays (`SwitchedOff.written`). One that isn't off stays recorded while the call that switches it off
    may still act. Raises `ClusterUnreachable` once each setting was tried.
    """
    failed: ClusterUnreachable | None = None
    for switch in left_off(ledger, cluster_name):
        # To restore one takes seconds: meanwhile another process may have done it, and a run switched it off again.
        is_ours = partial(_is_left_off, switch, ledger, cluster_name)
        if not is_ours():
            continue
        if not is_expected:
            progress(warning(switch, cluster_name))
        # From now on, also if this process dies, a broker drained by its roll gets bundles again, even if the roll is
        # approved anew. Lifting a pause checks the broker anyway.
        roll = roll_of_plan(ledger, switch.digest)
        if roll is not None and recorded_roll(ledger, roll).pause is None:
            give_up(ledger, roll)
        try:
            if may_still_act(ledger, switch) and not _is_off(_seen(cluster, switch.setting, _is_off, clock)):
                progress(_look_later(switch))
            else:
                _restore(switch, ledger, cluster, progress, clock, is_ours, decided_by)
        except ClusterUnreachable as error:
            failed = error
    if failed is not None:
        raise failed


def leave_as_it_is(ledger: Ledger, cluster_name: str, decided_by: Person) -> None:
    """Record that a person wants the settings that runs left off to stay off."""
    for switch in left_off(ledger, cluster_name):
        record_switched_back(ledger, switch, f"left as it is, by {decided_by}")


@dataclass(frozen=True, kw_only=True)
class LeftOff(SwitchedOff):
    """A setting that is left off, and on which cluster: Pulsar's own name."""

    cluster_name: str


def left_off(ledger: Ledger, cluster_name: str | None = None) -> Sequence[SwitchedOff]:
    """Settings of a cluster (default: all) left off by runs that have ended or whose process is gone.

    What a roll's turn hands over to the next doesn't count, as long as the roll goes on, or a process moves bundles for
    it: that one restores it.
    """
    return [switch for switch in switched_off(ledger, cluster_name) if not _is_kept(ledger, switch)]


def _is_left_off(switch: SwitchedOff, ledger: Ledger, cluster_name: str) -> bool:
    return switch in left_off(ledger, cluster_name)


def left_off_by_cluster(ledger: Ledger) -> Mapping[str, Sequence[SwitchedOff]]:
    """The same of all clusters, by their names in paths."""
    found: defaultdict[str, list[SwitchedOff]] = defaultdict(list)
    for switch in left_off(ledger):
        if (plan := summary_of_plan(ledger, switch.digest)) is not None:
            found[plan.cluster].append(switch)
    return found


def _is_kept(ledger: Ledger, switch: SwitchedOff) -> bool:
    roll = roll_of_plan(ledger, switch.digest)
    if roll is None:
        return is_held(ledger, run_by_id(ledger, switch.run))
    return goes_on(ledger, roll) or any(is_held(ledger, run) for run in runs_of_roll(ledger, roll))


def warning(switch: SwitchedOff, cluster_name: str) -> str:
    """A warning for a person: which setting is off, since which run, and its previous value."""
    return (
        f"ATTENTION: {switch.setting} of cluster '{cluster_name}' was switched off by run {switch.run} and not "
        f"restored (it was {_value(switch.before)})"
    )


def wait_until_settled(
    may_act: Callable[[], bool], said: str, interruption: Interruption, progress: Progress, clock: Clock
) -> str | None:
    """Wait while a call without a known answer may still act; returns why this process is to end meanwhile, if it is.

    `said` is reported once if there is anything to wait for.
    """
    deadline_s, is_said = clock.monotonic_s() + MAY_ACT_MS / 1000, False
    while clock.monotonic_s() < deadline_s and may_act():
        if not is_said:
            progress(said)
            is_said = True
        if reason := interruption():
            return reason
        clock.sleep(_SETTLING_POLL_S)
    return None


def why_not_off(cluster: ClusterPort, clock: Clock) -> str | None:
    """Why the cluster's own balancer isn't off; None if it is. Raises `ClusterUnreachable`."""
    for setting in GUARDED:
        if not _is_off(now := _seen(cluster, setting, _is_off, clock)):
            return (
                f"{setting} is {_value(now)}, as somebody, or another process, switched the cluster's own balancer on "
                "again"
            )
    return None


def _may_act(switch: SwitchedOff) -> str:
    return f"the call that switches {switch.setting} off got no answer, and may still take effect"


def _look_later(switch: SwitchedOff) -> str:
    return f"ATTENTION: {_may_act(switch)}: look again in two minutes, with {reader().restore_balancer}"


def _restore(
    switch: SwitchedOff,
    ledger: Ledger,
    cluster: ClusterPort,
    progress: Progress,
    clock: Clock,
    is_ours: Callable[[], bool],
    decided_by: Person | None = None,
) -> str | None:
    """As `_restore_once`; once more if the cluster can't be read, as one bad answer must not leave a setting off.

    But only while it `is_ours` to restore: a run may have begun meanwhile that needs it off.
    """
    try:
        return _restore_once(switch, ledger, cluster, progress, clock, is_ours, decided_by)
    except ClusterUnreachable:
        clock.sleep(_POLL_S)
        return _restore_once(switch, ledger, cluster, progress, clock, is_ours, decided_by) if is_ours() else None


def _restore_once(
    switch: SwitchedOff,
    ledger: Ledger,
    cluster: ClusterPort,
    progress: Progress,
    clock: Clock,
    is_ours: Callable[[], bool],
    decided_by: Person | None,
) -> str | None:
    """Put back a setting that is still as the guard left it; returns in words what differs from before."""

    def say(what: str) -> str:
        progress(what)
        return what

    setting, before, ours = switch.setting, switch.before, switch.written or _EARLIER_OFF
    now = _seen(cluster, setting, lambda value: value == ours, clock)
    if switch.written is None and decided_by is None and now == _EARLIER_OFF:
        return say(
            f"ATTENTION: {setting} is '{now}', set by run {switch.run} or by someone since (earlier releases "
            f"left no mark of their own). To restore or leave it: {reader().decide_about_balancer}"
        )
    if now == ours:
        reply, now = _set(cluster, setting, ours, before, clock, lambda _last: is_ours())
        if now == ours:
            return say(
                f"ATTENTION: {setting} is still {_value(now)}: {reply.in_words}; it was {_value(before)}: try again "
                f"with {reader().restore_balancer}"
            )
    how = f", as {decided_by} decided" if decided_by else ""
    is_theirs = now != before
    if not (is_theirs and _is_off(now)):
        behind = _lagging(switch, now, cluster, clock)
        instead = _common_value(switch.effective)
        # Read again: somebody may have set it while the brokers had their time.
        if behind and now is None and instead is not None and cluster.override(setting) is None:
            _, now = _set(cluster, setting, None, instead, clock, lambda _last: is_ours())
            behind = _lagging(switch, now, cluster, clock)
            how += ", set instead of deleted, as brokers don't notice a deletion (apache/pulsar#22673)"
        if behind:
            return say(
                f"ATTENTION: {setting} is {_value(now)} again, and still off in the memory of {some_of(behind)}: "
                f"restart them, then {reader().restore_balancer}"
            )
    if is_theirs:
        record_switched_back(ledger, switch, f"left at {_value(now)}, which someone has set meanwhile")
        return say(f"{setting} is {_value(now)}: someone has set it meanwhile, so it stays")
    record_switched_back(ledger, switch, f"restored: {_value(now)}{how}")
    progress(f"{setting} is restored: {_value(now)}{how}")
    return f"{setting} is {_value(now)}{how}" if now != before else None


def _seen(cluster: ClusterPort, setting: str, expected: Callable[[str | None], bool], clock: Clock) -> str | None:
    """The override of a setting. One answer may be wrong, so where it isn't as expected a second look decides."""
    if expected(now := cluster.override(setting)):
        return now
    clock.sleep(_POLL_S)
    return cluster.override(setting)


def _set(
    cluster: ClusterPort,
    setting: str,
    before: str | None,
    value: str | None,
    clock: Clock,
    may_repeat: Callable[[Reply], bool],
) -> tuple[Reply, str | None]:
    """Override a setting, or delete its override (None); returns the last answer, and the override that shows then.

    A broker that has no time, or gave no answer, is asked again where the call `may_repeat` after that answer. As
    another broker may be read, from its cache, the effect gets some time.
    """
    reply, deadline_s = cluster.send(Override(setting, value)), clock.monotonic_s() + TAKES_EFFECT_S

    def seen() -> str | None:
        return _seen(cluster, setting, lambda now: now in (before, value), clock)

    while (now := seen()) == before != value and clock.monotonic_s() < deadline_s:
        clock.sleep(_POLL_S)
        if reply.is_trouble and may_repeat(reply):
            reply = cluster.send(Override(setting, value))
    return reply, now


def _lagging(switch: SwitchedOff, override: str | None, cluster: ClusterPort, clock: Clock) -> list[str]:
    """The brokers in whose memory a setting is off and shouldn't be; they get some time to follow."""
    deadline_s = clock.monotonic_s() + TAKES_EFFECT_S
    while True:
        now = cluster.effective(switch.setting)
        wanted = _values_before(switch, now) if override is None else dict.fromkeys(now, override)
        behind = sorted(broker for broker in now if _is_off(now[broker]) and not _is_off(wanted[broker]))
        if not behind or clock.monotonic_s() >= deadline_s:
            return behind
        clock.sleep(_POLL_S)


def _values_before(switch: SwitchedOff, now: Mapping[str, str]) -> Mapping[str, str]:
    """What each present broker had in memory before; if all brokers were replaced, what the earlier ones had."""
    common = _common_value(switch.effective)
    if common is not None and now.keys().isdisjoint(switch.effective):
        return dict.fromkeys(now, common)
    return {**now, **switch.effective}


def _common_value(effective: Mapping[str, str]) -> str | None:
    """The one value that all brokers had in memory; None if they differed, or it wasn't recorded."""
    values = set(effective.values())
    return values.pop() if len(values) == 1 else None


def _is_off(value: str | None) -> bool:
    """Whether Pulsar, which doesn't trim it, reads a setting as false; None: it has no override."""
    return value is not None and value.lower() != "true"


def _value(value: str | None) -> str:
    return "not overridden" if value is None else f"'{value}'"
