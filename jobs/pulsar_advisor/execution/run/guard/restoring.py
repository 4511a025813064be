"""Restoring what a run switched off, unless somebody has set it since; whoever reaches the cluster may do it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from pulsar_advisor.admin.no_answer import LISTED_S
from pulsar_advisor.execution.ledger.rolls import give_up, recorded_roll, roll_of_plan
from pulsar_advisor.execution.ledger.switches import SwitchedOff, may_still_act, record_switched_back
from pulsar_advisor.execution.person import Person
from pulsar_advisor.execution.run.guard.left_off import is_left_off, left_off, look_later, warning
from pulsar_advisor.execution.run.guard.settings import (
    GUARDED,
    LOOK_AGAIN_S,
    common_value,
    has_acted,
    in_words,
    is_off,
    lagging_brokers,
    seen_override,
    set_override,
    why_elsewhere,
)
from pulsar_advisor.execution.run.options import Work
from pulsar_advisor.model.errors import ClusterUnreachable
from pulsar_advisor.model.text.reader import reader
from pulsar_advisor.model.text.some_of import some_of

NOT_RESTORED: Final = "ATTENTION: the cluster's own balancer could not be switched on again"
_EARLIER_OFF: Final = "false"
"""How releases up to 0.1 spelled it (`SwitchedOff.written` is None), indistinguishable from anyone else's."""


def restore_what_was_left(
    work: Work, cluster_name: str, decided_by: Person | None = None, *, is_expected: bool = False
) -> None:
    """Restore settings left off by runs that have ended or whose process is gone, with a prominent message.

    The message is omitted if it `is_expected`, as at the end of a roll. Unless a person decides, a `false` that may be
    someone else's stays (`SwitchedOff.written`). One that isn't off stays recorded while the call that switches it off
    may still act. Raises `ClusterUnreachable` once each setting was tried.
    """
    ledger, cluster, clock = work.ledger, work.cluster, work.clock
    tried: set[int] = set()

    def put_back(switch: SwitchedOff) -> ClusterUnreachable | None:
        # To restore one takes seconds: meanwhile another process may have done it, and a run switched it off again.
        is_ours = partial(is_left_off, switch, ledger, cluster_name)
        if not is_ours():
            return None
        if not is_expected and switch.event not in tried:
            work.progress(warning(switch, cluster_name))
        tried.add(switch.event)
        # From now on, also if this process dies, a broker drained by its roll gets bundles again, even if the roll is
        # approved anew. Lifting a pause checks the broker anyway.
        roll = roll_of_plan(ledger, switch.digest)
        if roll is not None and recorded_roll(ledger, roll).pause is None:
            give_up(ledger, roll)
        try:
            if may_still_act(ledger, switch) and not has_acted(cluster, switch.setting, clock):
                work.progress(look_later(switch))
            else:
                restore(switch, work, is_ours, decided_by)
        except ClusterUnreachable as error:
            return error
        return None

    for _, error in put_back_each(left_off(ledger, cluster_name), put_back, work):
        raise error


def put_back_each(
    switches: Sequence[SwitchedOff], put_back: Callable[[SwitchedOff], ClusterUnreachable | None], work: Work
) -> Sequence[tuple[SwitchedOff, ClusterUnreachable]]:
    """Restore each, and again what can't be seen, for as long as a broker that has died is listed; what is left then.

    All of them before any wait: a broker that starts meanwhile would miss the deletion of an override.
    """
    progress, clock = work.progress, work.clock
    deadline_s, is_said, is_last = clock.monotonic_s() + LISTED_S, False, False
    while failed := [(switch, error) for switch in switches if (error := put_back(switch))]:
        if work.interruption() or is_last:
            return failed
        if not is_said:
            progress(f"{failed[0][1]}; trying again for {LISTED_S} s: a broker that has died may be listed that long")
            is_said = True
        clock.sleep(LOOK_AGAIN_S)
        is_last = clock.monotonic_s() >= deadline_s  # before it begins: it may wait for time-outs that long
        switches = [switch for switch, _ in failed]
    return ()


def restore(
    switch: SwitchedOff, work: Work, is_ours: Callable[[], bool], decided_by: Person | None = None
) -> str | None:
    """As `_restore_once`; once more if the cluster can't be read, as one bad answer must not leave a setting off.

    But only while it `is_ours` to restore: a run may have begun meanwhile that needs it off. A setting that no guard
    switches is left alone: no approval covers that call.
    """
    if switch.setting not in GUARDED:
        forged = f"{switch.setting} is left alone: no run switches it, so event {switch.event} of the ledger is forged"
        work.progress(forged)
        return forged
    once = partial(_restore_once, switch, work, is_ours, decided_by)
    try:
        return once()
    except ClusterUnreachable:
        work.clock.sleep(LOOK_AGAIN_S)
        return once() if is_ours() else None


def _restore_once(
    switch: SwitchedOff, work: Work, is_ours: Callable[[], bool], decided_by: Person | None
) -> str | None:
    """Put back a setting that is still as the guard left it; returns in words what differs from before."""

    def say(what: str) -> str:
        work.progress(what)
        return what

    cluster, clock = work.cluster, work.clock
    setting, before, ours = switch.setting, switch.before, switch.written or _EARLIER_OFF
    now = seen_override(cluster, setting, lambda value: value == ours, clock)
    if switch.written is None and decided_by is None and now == _EARLIER_OFF:
        return say(
            f"ATTENTION: {setting} is '{now}', set by run {switch.run} or by someone since (earlier releases "
            f"left no mark of their own). To restore or leave it: {reader().decide_about_balancer}"
        )
    if switch.was_found:
        if now == ours and decided_by is None:
            return say(
                f"ATTENTION: {setting} is '{now}', as only the advisor leaves it, and this ledger lacks the run that "
                "did: it is an earlier copy, or a run of another ledger is under way. To restore or leave it: "
                f"{reader().decide_about_balancer}"
            )
        # Unless its file or an earlier override had another value, which only brokers show that follow the deletion.
        before, switch = None, replace(switch, effective=dict.fromkeys(switch.effective, "true"))
    # One that shows our value is the cluster that we switched.
    if now != ours and decided_by is None and (why := why_elsewhere(switch, cluster)):
        return say(f"ATTENTION: {setting} is {in_words(now)}, and {why}")
    if now == ours:
        if not is_ours():
            return None  # a run has switched it off again while it was looked at
        reply, now = set_override(cluster, setting, ours, before, clock, lambda _last: is_ours())
        if now == ours:
            return say(
                f"ATTENTION: {setting} is still {in_words(now)}: {reply.in_words}; it was {in_words(before)}: try "
                f"again with {reader().restore_balancer}"
            )
    how = f", as {decided_by} decided" if decided_by else ""
    is_theirs = now != before
    if not (is_theirs and is_off(now)):
        behind = lagging_brokers(switch, now, cluster, clock)
        instead = common_value(switch.effective)
        if switch.was_found and all(map(is_off, cluster.effective(setting).values())):
            instead = None
        # Read again: somebody may have set it while the brokers had their time.
        if behind and now is None and instead is not None and cluster.override(setting) is None:
            how += (
                f", set instead of deleted: {some_of(behind)} missed the deletion, as a broker does while it starts, "
                "and any of a release before apache/pulsar#22673"
            )
            _, now = set_override(cluster, setting, None, instead, clock, lambda _last: is_ours())
            behind = lagging_brokers(switch, now, cluster, clock)
        if behind:
            todo = f"restart them, then {reader().restore_balancer}"
            if switch.was_found:
                todo = f"restart them, unless their broker.conf has it off; then: {reader().decide_about_balancer}"
            return say(
                f"ATTENTION: {setting} is {in_words(now)} again, and still off in the memory of {some_of(behind)}: "
                f"{todo}"
            )
    if is_theirs:
        record_switched_back(work.ledger, switch, f"left at {in_words(now)}, which someone has set meanwhile")
        return say(f"{setting} is {in_words(now)}: someone has set it meanwhile, so it stays")
    record_switched_back(work.ledger, switch, f"restored: {in_words(now)}{how}")
    work.progress(f"{setting} is restored: {in_words(now)}{how}")
    return f"{setting} is {in_words(now)}{how}" if now != before else None
