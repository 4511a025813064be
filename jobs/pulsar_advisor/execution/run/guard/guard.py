"""The guard: keeps the cluster's own balancer from moving and splitting bundles during a run.

It switches off two dynamic settings before the first step and restores their overrides, or the absence of one, at the
end. It records each switch in the ledger before it changes the setting. So after a crash the ledger shows what is still
off, and the next command that reaches the cluster restores it. What someone else has set meanwhile stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pulsar_advisor.execution.cluster.cluster_port import Reply
from pulsar_advisor.execution.ledger.held_run import HeldRun
from pulsar_advisor.execution.ledger.switches import (
    SwitchedOff,
    may_still_act,
    record_late,
    record_switching_off,
    stays_off,
    switched_off,
)
from pulsar_advisor.execution.run.guard.left_off import look_later, open_call, wait_until_settled
from pulsar_advisor.execution.run.guard.restoring import NOT_RESTORED, put_back_each, restore, restore_what_was_left
from pulsar_advisor.execution.run.guard.settings import (
    GUARDED,
    OFF,
    has_acted,
    in_words,
    is_off,
    seen_override,
    set_override,
    why_elsewhere,
    why_not_off,
)
from pulsar_advisor.execution.run.options import Attempt
from pulsar_advisor.model.errors import ClusterUnreachable, Refused


@dataclass
class Guard:
    """The guard of one run."""

    run: HeldRun
    attempt: Attempt
    switched: set[str] = field(default_factory=set)
    """Settings that this process has switched off, or has sent a call to."""
    settled: set[str] = field(default_factory=set)
    """Settings of which this process knows that no call may still act; of all others the ledger decides."""
    notes: list[str] = field(default_factory=list)
    """Remarks about the cluster from the end of the guard, for the run's sentence."""
    is_handed_on: bool = False
    """Whether the roll goes on after this turn, so that everything stays off."""

    @property
    def runs(self) -> set[int]:
        """The run and, for a turn of a roll, those of earlier turns, which hand over what they switched off."""
        return {self.run.id, *(self.attempt.options.turns_before or ())}

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
        why = why_not_off(self.attempt.cluster, self.attempt.clock)
        return None if why is None else f"the guard is gone: {why}"

    def _switch_off(self, setting: str) -> None:
        cluster, clock = self.attempt.cluster, self.attempt.clock
        open_ones = switched_off(self.attempt.ledger, self.run.cluster_name)
        earlier = next((switch for switch in open_ones if switch.setting == setting), None)
        if earlier is not None:
            if why := why_elsewhere(earlier, cluster):  # the ledger would forget what is off there
                raise Refused(why)
            self._settle(earlier)
        # What that switch left in the brokers' memory isn't what was there before.
        effective = {**cluster.effective(setting), **(earlier.effective if earlier else {})}
        # Read last: what someone sets between this read and the call is lost.
        first = cluster.override(setting)
        before = seen_override(cluster, setting, lambda again: again == first, clock)
        if is_off(before):
            if earlier and earlier.written == before and earlier.run not in self.runs:
                # Answer for what that run left off, or whoever restores that switches it on during this one.
                record_switching_off(self.run, setting, earlier.before, OFF, effective)
                self.switched.add(setting)
            elif before == OFF and not earlier and not stays_off(self.attempt.ledger, self.run.cluster_name, setting):
                # A run did this that the ledger has lost, as an earlier copy has: it stays a debt, for a person.
                record_switching_off(self.run, setting, before, OFF, effective)
                self.switched.add(setting)
            self.settled.add(setting)
            return
        record_switching_off(self.run, setting, before, OFF, effective)

        def require() -> None:
            self.settled.add(setting)  # nothing is on its way
            self.run.require()  # once the run was aborted or taken over, its switches may be given back
            if setting not in self._owed():  # also while this process was suspended, and taken for dead
                record_switching_off(self.run, setting, before, OFF, effective)
            self.settled.remove(setting)

        def may_repeat(last: Reply) -> bool:
            if last.leaves_open:
                return False  # it may still act, after all is restored
            require()
            return True

        require()
        self.switched.add(setting)  # before the call: it may be off whatever fails from here on
        reply, now = set_override(cluster, setting, before, OFF, clock, may_repeat)
        if not reply.leaves_open or now == OFF:
            self.settled.add(setting)
        if now != OFF:
            raise Refused(
                f"{setting} can't be switched off: {reply.in_words}; switch it off by hand, and try again: what is "
                "off already is left as it is"
            )
        self.attempt.progress(f"{setting} is off while the plan is carried out; it was {in_words(before)}")

    def _settle(self, earlier: SwitchedOff) -> None:
        """Wait until an earlier call that switches a setting off has acted, or can't any more.

        If it acted during this run, or after it, nothing would show that: it writes what this run does. Raises
        `Refused` if the run is to end meanwhile.
        """

        def may_act() -> bool:
            return may_still_act(self.attempt.ledger, earlier) and not has_acted(
                self.attempt.cluster, earlier.setting, self.attempt.clock
            )

        said = f"{open_call(earlier)}; waiting until it can't"
        if reason := wait_until_settled(may_act, said, self.attempt):
            raise Refused(reason)

    def _end(self) -> None:
        is_late = [self._is_late(setting) for setting in sorted(self.switched - self._owed())]
        if self.is_handed_on:
            return  # the roll goes on under it
        if self.run.is_overtaken():  # the run continues elsewhere, under our guard, unless that has ended
            if any(is_late):
                restore_what_was_left(self.attempt, self.run.cluster_name)
            return
        open_ones = switched_off(self.attempt.ledger, self.run.cluster_name)
        ours = [switch for switch in open_ones if switch.run in self.runs]
        for setting in sorted(self.switched.difference(switch.setting for switch in ours)):
            self._note(f"{setting} was restored by another process before the run ended: `runs` shows when")
        for switch, error in put_back_each(ours, self._put_back, self.attempt):
            self._note(f"ATTENTION: {switch.setting} may still be off: {error}")

    def _owed(self) -> set[str]:
        """The settings that the ledger knows to be off."""
        return {switch.setting for switch in switched_off(self.attempt.ledger, self.run.cluster_name)}

    def _is_late(self, setting: str) -> bool:
        """Whether our call acted after the setting was given back, as of a process that is suspended amid it, or may.

        Then it is recorded as off again, and restored as if it had never been given back.
        """
        # The ledger comes last: other runs write to it before they switch a setting off.
        return self._may_be_off(setting) and record_late(self.attempt.ledger, self.run, setting)

    def _may_be_off(self, setting: str) -> bool:
        """Whether a setting that we switched off is off, its call may still act, or it can't be read."""
        if setting not in self.settled:
            return True
        try:
            return seen_override(self.attempt.cluster, setting, lambda now: now == OFF, self.attempt.clock) == OFF
        except Exception:  # whatever is wrong with one answer, it must not keep the other setting off
            return True

    def _put_back(self, switch: SwitchedOff) -> ClusterUnreachable | None:
        """Restore a setting, unless the call that switches it off may still act; why that can't be seen, if so."""

        def is_ours() -> bool:
            return not self.run.is_overtaken() and switch in switched_off(self.attempt.ledger, self.run.cluster_name)

        if not is_ours():
            return None
        is_open = switch.setting not in self.settled and may_still_act(self.attempt.ledger, switch)
        try:
            if is_open and not has_acted(self.attempt.cluster, switch.setting, self.attempt.clock):
                self._note(look_later(switch))
            elif what := restore(switch, self.attempt, is_ours):
                self.notes.append(what)
        except ClusterUnreachable as error:
            return error
        return None

    def _note(self, what: str) -> None:
        self.notes.append(what)
        self.attempt.progress(what)
