"""What runs left switched off: which settings, on which cluster, and whether the call that did so may still act."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.plans import summary_of_plan
from pulsar_advisor.execution.ledger.rolls import goes_on, roll_of_plan, runs_of_roll
from pulsar_advisor.execution.ledger.runs import is_held, run_by_id
from pulsar_advisor.execution.ledger.switches import (
    LEFT_AS_IT_IS,
    MAY_ACT_MS,
    SwitchedOff,
    record_switched_back,
    switched_off,
)
from pulsar_advisor.execution.person import Person
from pulsar_advisor.execution.run.guard.settings import in_words
from pulsar_advisor.execution.run.options import Work
from pulsar_advisor.model.text.reader import reader

_SETTLING_POLL_S: Final = 1.0


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


def is_left_off(switch: SwitchedOff, ledger: Ledger, cluster_name: str) -> bool:
    """Whether a setting still is, by what the ledger holds now."""
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


def leave_as_it_is(ledger: Ledger, cluster_name: str, decided_by: Person) -> None:
    """Record that a person wants the settings that runs left off to stay off."""
    for switch in left_off(ledger, cluster_name):
        record_switched_back(ledger, switch, f"{LEFT_AS_IT_IS}, by {decided_by}")


def warning(switch: SwitchedOff, cluster_name: str) -> str:
    """A warning for a person: which setting is off, since which run, and its previous value."""
    how = "was found off by" if switch.was_found else "was switched off by"
    return (
        f"ATTENTION: {switch.setting} of cluster '{cluster_name}' {how} run {switch.run} and not restored (it was "
        f"{in_words(switch.before)})"
    )


def wait_until_settled(may_act: Callable[[], bool], said: str, work: Work) -> str | None:
    """Wait while a call without a known answer may still act; returns why this process is to end meanwhile, if it is.

    `said` is reported once if there is anything to wait for.
    """
    deadline_s, is_said = work.clock.monotonic_s() + MAY_ACT_MS / 1000, False
    while work.clock.monotonic_s() < deadline_s and may_act():
        if not is_said:
            work.progress(said)
            is_said = True
        if reason := work.interruption():
            return reason
        work.clock.sleep(_SETTLING_POLL_S)
    return None


def open_call(switch: SwitchedOff) -> str:
    """A call without an answer, for a person."""
    return f"the call that switches {switch.setting} off got no answer, and may still take effect"


def look_later(switch: SwitchedOff) -> str:
    """What a person can do about it."""
    return f"ATTENTION: {open_call(switch)}: look again in two minutes, with {reader().restore_balancer}"
