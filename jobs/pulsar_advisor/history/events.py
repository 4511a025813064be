"""What happened between two snapshots, such as moves and changed settings, and why, as far as that can be known."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise, takewhile
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pulsar_advisor.history.moment import Moment
from pulsar_advisor.history.policies import changes_by_hand
from pulsar_advisor.model.cluster.bundle_range import FULL_UPPER_BOUND, parse_range

OWN: Final = "own"
"""The leader's own cycle: it counted at least as many unloads as there are unexplained moves."""
OPERATOR: Final = "operator"
"""Somebody did it by hand: the leader counted no unload, or its own balancing is off. The only cause of changed
policies."""
RESTART: Final = "restart"
"""The previous owner went or restarted, or was already gone, its bundles not yet looked up again."""
UNKNOWN: Final = "unknown"
PLAN: Final = "plan:"
"""A step of a plan, whose digest's first digits follow."""

SEEN_LATE_MS: Final = 5 * 60 * 1000
"""A snapshot may show what happened this long after its capture began."""


@dataclass(frozen=True)
class ConfirmedStep:
    """A step of a plan that was confirmed."""

    at_ms: int
    """When it was sent."""
    bundle: str
    plan: str
    """The first digits of its digest."""


@dataclass(frozen=True)
class Event:
    """One thing that happened between two snapshots."""

    kind: str
    """`move`, `split`, `namespace_born`, `namespace_gone`, `broker_joined`, `broker_lost`, `broker_restarted`,
    `leader`, `setting`, `isolation_policy`, `replication` or `anti_affinity`."""
    subject: str
    before: str | None = None
    after: str | None = None
    cause: str | None = None
    """Of a move, split or policy."""


@dataclass(frozen=True)
class _Host:
    available: bool
    started_at_ms: int | None


class Waiting(NamedTuple):
    """A bundle that no broker has: how it lost its owner."""

    at_ms: int
    """When that one was last seen to have it."""
    by_restart: bool
    """Whether that one had gone or restarted when it was first seen without."""


@dataclass(frozen=True)
class LastSeen:
    """A moment as the next one is compared with it, with what was last known of all that it doesn't know.

    That is the owner of a bundle that no broker has, the leader, the settings and the policies.
    """

    moment: Moment
    waiting: Mapping[str, Waiting]
    """The bundles without an owner now, whose last owner is known."""

    @classmethod
    def of(cls, moment: Moment, before: LastSeen | None) -> LastSeen:
        """Combine a moment with what was last seen before it."""
        if before is None:
            return cls(moment, {})
        then = before.moment
        known = replace(
            moment,
            leader=moment.leader or then.leader,
            settings=moment.settings or then.settings,
            policies=moment.policies if len(moment.policies) else then.policies,
        )
        unowned = moment.owners.is_null()
        if not pc.any(unowned).as_py():
            return cls(known, {})
        owners = then.owners.take(pc.index_in(moment.bundles, value_set=then.bundles))
        stopped = _stopped(then, moment)
        columns = (column.filter(pc.and_(unowned, owners.is_valid())) for column in (moment.bundles, owners))
        waiting = {
            bundle: before.waiting.get(bundle) or Waiting(then.at_ms, owner in stopped)
            for bundle, owner in zip(*(column.to_pylist() for column in columns), strict=True)
        }
        return cls(replace(known, owners=pc.if_else(unowned, owners, moment.owners)), waiting)


def events_between(
    earlier: Moment, later: Moment, steps: Iterable[ConfirmedStep] = (), waiting: Mapping[str, Waiting] | None = None
) -> list[Event]:
    """What changed in the later of two snapshots of a cluster; `steps` may be of any time and bundle.

    `waiting`: the bundles whose owner in the earlier snapshot is taken from a moment before it, see `LastSeen`.
    """
    waiting = waiting or {}
    since_ms = {bundle: one.at_ms for bundle, one in waiting.items()}
    until_ms = later.at_ms + SEEN_LATE_MS
    plans = {
        step.bundle: step.plan for step in steps if since_ms.get(step.bundle, earlier.at_ms) <= step.at_ms < until_ms
    }
    events = [*_of_brokers(earlier, later), *_of_moves(earlier, later, plans, waiting)]
    if not (earlier.imported or later.imported):
        events += _of_bundles(earlier, later, plans)
    if earlier.leader and later.leader and earlier.leader != later.leader:
        events.append(Event("leader", "leader", earlier.leader, later.leader))
    settings = ((key, earlier.settings[key], later.settings[key]) for key in earlier.settings.keys() & later.settings)
    events += (Event("setting", key, was, is_) for key, was, is_ in settings if was != is_)
    events += (Event(*change, cause=OPERATOR) for change in changes_by_hand(earlier.policies, later.policies))
    return sorted(events, key=lambda event: (event.kind, event.subject))


def _hosts(moment: Moment) -> dict[str, _Host]:
    columns = (moment.hosts[name].to_pylist() for name in ("id", "available", "started_at_ms"))
    return {id: _Host(available, started) for id, available, started in zip(*columns, strict=True)}


def _stopped(earlier: Moment, later: Moment) -> set[str]:
    """The brokers that went or restarted, or were already gone while still owning bundles."""
    kinds = ("broker_lost", "broker_restarted")
    stopped = {event.subject for event in _of_brokers(earlier, later) if event.kind in kinds}
    if not earlier.imported:  # in an import, a broker that exports topics but no usage isn't gone
        available = {id for id, host in _hosts(earlier).items() if host.available}
        stopped |= {*earlier.owners.unique().drop_null().to_pylist()} - available
    return stopped


def _of_brokers(earlier: Moment, later: Moment) -> Iterable[Event]:
    before, after = _hosts(earlier), _hosts(later)
    none = _Host(available=False, started_at_ms=None)
    is_same_clock = earlier.imported == later.imported
    for id in before.keys() | after.keys():
        was, is_ = before.get(id, none), after.get(id, none)
        if was.available != is_.available:
            yield Event("broker_joined" if is_.available else "broker_lost", id)
        elif is_.available and is_same_clock and _has_restarted(was, is_):
            yield Event("broker_restarted", id)


def _has_restarted(was: _Host, is_: _Host) -> bool:
    return bool(was.started_at_ms and is_.started_at_ms) and was.started_at_ms != is_.started_at_ms


def _of_moves(
    earlier: Moment, later: Moment, plans: Mapping[str, str], waiting: Mapping[str, Waiting]
) -> Iterable[Event]:
    at = pc.index_in(later.bundles, value_set=earlier.bundles)
    owners_then = earlier.owners.take(at)
    moved = pc.fill_null(pc.not_equal(later.owners, owners_then), False)
    columns = (column.filter(moved).to_pylist() for column in (later.bundles, owners_then, later.owners))
    stopped, found = _stopped(earlier, later), []
    for move in (Event("move", *one) for one in zip(*columns, strict=True)):
        cause = _plan(move.subject, plans)
        if cause is None and (waited := waiting.get(move.subject)) is not None:
            cause = RESTART if waited.by_restart else UNKNOWN  # the leader may have counted its unload before
        elif cause is None and move.before in stopped:
            cause = RESTART
        found.append(replace(move, cause=cause))
    who = _cause(earlier, later, sum(move.cause is None for move in found), stopped)
    return [replace(move, cause=move.cause or who) for move in found]


def _plan(bundle: str, plans: Mapping[str, str]) -> str | None:
    return f"{PLAN}{plans[bundle]}" if bundle in plans else None


def _of_bundles(earlier: Moment, later: Moment, plans: Mapping[str, str]) -> Iterable[Event]:
    at = pc.index_in(later.bundles, value_set=earlier.bundles)
    if at.null_count or len(later.bundles) != len(earlier.bundles):
        new = later.namespaces.filter(at.is_null())
        gone = earlier.namespaces.filter(pc.invert(pc.is_in(earlier.bundles, value_set=later.bundles)))
        changed = {*new.unique().to_pylist(), *gone.unique().to_pylist()}
        yield from _of_boundaries(_by_namespace(earlier, changed), _by_namespace(later, changed), earlier, later, plans)


def _cause(earlier: Moment, later: Moment, moves: int, stopped: Collection[str]) -> str:
    """The cause of the moves that neither a plan nor a restart explains.

    The leader counts its unloads from its start, after the owners were read: a move that a snapshot shows is counted.
    """
    if not _is_on(earlier, later, "loadBalancerSheddingEnabled"):
        return OPERATOR
    if earlier.leader != later.leader or later.leader in stopped:
        return UNKNOWN
    if earlier.leader_unloads is None or later.leader_unloads is None:
        return UNKNOWN
    counted = later.leader_unloads - earlier.leader_unloads
    if counted >= moves:
        return OWN
    return OPERATOR if counted == 0 else UNKNOWN


def _is_on(earlier: Moment, later: Moment, switch: str) -> bool:
    """Whether the cluster itself may have acted: neither setting was off in at least one of the snapshots."""
    return any(
        all(moment.settings.get(key) != "false" for key in ("loadBalancerEnabled", switch))
        for moment in (earlier, later)
    )


def _of_boundaries(
    before: Mapping[str, set[str]],
    after: Mapping[str, set[str]],
    earlier: Moment,
    later: Moment,
    plans: Mapping[str, str],
) -> Iterable[Event]:
    """Splits, and namespaces born or gone. Bundles never merge, so if there are more now, the lost ones were split.

    A namespace that only lost some is ignored: its boundaries couldn't be read.
    """
    splits = _is_on(earlier, later, "loadBalancerAutoBundleSplitEnabled")
    for namespace in sorted(before.keys() | after.keys()):
        was, is_ = before.get(namespace, set()), after.get(namespace, set())
        gone, new = sorted(was - is_), sorted(is_ - was)
        if 0 < len(was) < len(is_):
            for parent in gone:
                children = ",".join(child.rpartition("/")[2] for child in _parts(parent, new))
                yield Event("split", parent, None, children, _plan(parent, plans) or (UNKNOWN if splits else OPERATOR))
        elif new or not is_:
            if was:
                yield Event("namespace_gone", namespace, str(len(was)))
            if is_:
                yield Event("namespace_born", namespace, None, str(len(is_)))


def _by_namespace(moment: Moment, wanted: Collection[str]) -> dict[str, set[str]]:
    """The bundles of some namespaces, without those just split, whose parts are there too."""
    of = moment.namespaces
    rows = pc.is_in(of, value_set=pa.array(wanted, pa.string()))
    found: dict[str, list[tuple[int, int, str]]] = {}
    for namespace, bundle in zip(of.filter(rows).to_pylist(), moment.bundles.filter(rows).to_pylist(), strict=True):
        lower, upper = _range(bundle)
        found.setdefault(namespace, []).append((lower, -upper, bundle))
    return {
        namespace: {bundle for (_, end, bundle), (_, next_end, _) in pairwise(bundles) if next_end < end}
        for namespace, bundles in ((of, [*sorted(bundles), _END]) for of, bundles in found.items())
    }


_END: Final = (FULL_UPPER_BOUND + 1, -FULL_UPPER_BOUND - 1, "")
"""Sorts after every bundle: a lower and a negative upper bound (so that a bundle sorts before its parts), without a
name."""


def _parts(parent: str, bundles: Sequence[str]) -> Iterable[str]:
    """Those of a namespace's sorted bundles that lie within a lost one."""
    lowest, highest = _range(parent)
    first = bisect_left(bundles, lowest, key=lambda bundle: _range(bundle)[0])
    return takewhile(lambda bundle: _range(bundle)[1] <= highest, islice(bundles, first, None))


def _range(bundle: str) -> tuple[int, int]:
    return parse_range(bundle.rpartition("/")[2])
