"""How many brokers a load needs at a target usage, and how sure that is.

A verdict like Cruise Control's provision status, but stricter: `over` only if a broker could go whatever the base load
is, its bundles find room, one more broker could still fail, and the speed of each network is known. Every figure is a
range between the two ends of the `base_load` model: if all CPU goes with the messages, fewer brokers have to carry all
of it; if all of it is base, more brokers take none of it away.

Brokers with the same limits are one machine type. One more of a type is taken for the median one, or for the one with
the most base where all CPU may be base; of fewer, the most used remain. The load that moves is work (points of a core),
poured over all brokers like water: with bundles of any size the busiest broker is above that level, and a single bundle
may need more than a whole broker has left. Isolation policies aren't considered in it; they are where bundles are
packed: for the broker that could go, and for the loss of each.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf
from operator import itemgetter
from typing import ClassVar, Final, Literal

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import CPU, Floats
from pulsar_advisor.model.load.resource_usage import weighted_maximum
from pulsar_advisor.model.plans.plan import Confidence
from pulsar_advisor.model.text.some_of import count, some_of
from pulsar_advisor.planning.advice.capacity import unknown_network
from pulsar_advisor.planning.kinds.answers import movable
from pulsar_advisor.planning.kinds.headroom import mean_if_one_more_fails
from pulsar_advisor.planning.kinds.packing import packed, staying
from pulsar_advisor.planning.kinds.room import Room, Rows
from pulsar_advisor.planning.usage.lower_bound import level
from pulsar_advisor.shedding.fewest_moves import PPM, ppm_per_unit

SizeVerdict = Literal["under", "right", "over", "unknown"]
"""Surely too few · enough, and one fewer isn't or may not be · enough, and a broker could go · enough at one
end of the range only, or if figures that validation doubts are right."""

_CERTAIN_WITHIN: Final = 0.01
"""Ends of a range that are nearer than this are one figure."""
_ROUNDING: Final = 1e-9
"""By how much sums that reach a target exactly may come out above it."""
_LARGE_BASE: Final = 1 / 3
"""Share of the CPU usage above which a base says that CPU may not follow messages."""


@dataclass(frozen=True)
class Machine:
    """Brokers with the same limits."""

    title: str
    """`4 cores`, or that their number isn't reported; `4 cores like broker-1:8080` where others have as many."""
    brokers: int
    """Those that are fit now."""
    needed: int | None
    """The fewest of them, beside all other brokers, that are surely enough by these figures; None if no number is."""
    needed_if_messages: int | None
    """The fewest that are enough if all CPU goes with the messages."""


@dataclass(frozen=True)
class Size:
    """The cluster with more or fewer brokers of one machine type; usage (ratio) of the busiest, divided evenly."""

    machine: str
    """Its title; empty for the cluster as it is."""
    change: int
    """Brokers of that type more than now; below 0, less."""
    brokers: int
    """All of them then."""
    lowest_ratio: float
    likely_ratio: float
    highest_ratio: float


@dataclass(frozen=True)
class Scale:
    """What the load needs; ratios 0..1."""

    SCHEMA: ClassVar = "pulsar-advisor/scale/2"

    brokers: int
    """Those that are fit now."""
    target_ratio: float
    verdict: SizeVerdict
    confidence: Confidence
    sentence: str
    """The verdict, for an operator."""
    machines: tuple[Machine, ...]
    sizes: tuple[Size, ...]
    """As it is, and with up to two brokers less and one more of each machine type: the least used go, and one more has
    their median base, or where all CPU may be base the greatest."""
    base_ratio: float
    """The most of the CPU usage that may not follow the messages."""
    largest_bundle: str
    largest_bundle_ratio: float
    """The most that it needs, alone, of a machine of the type on which it weighs most."""
    losses_that_do_not_fit: tuple[str, ...]
    """Brokers whose bundles find no room on the others under the ceiling, should they fail."""


@dataclass(frozen=True, eq=False)
class _End:
    """The load at one end of the model, by resource."""

    stays: Floats
    """(n, 5): what no bundle takes along from each broker."""
    typical: Floats
    """(t, 5): the same of one more broker of each type."""
    moves: Floats
    """(5,): all that bundles take along."""


@dataclass(frozen=True, eq=False)
class _Load:
    """The cluster's load over its brokers, the most used of each machine type first, and over more of these types."""

    of_type: Rows
    """(n,)"""
    share: Floats
    """(t, 5): the share, weights applied, that one unit takes at a broker of the type."""
    ends: tuple[_End, _End, _End]
    """With the least, the likely and the greatest base."""

    def busiest(self, end: _End, numbers: Sequence[int]) -> float:
        """The usage (ratio) of the busiest broker with this many of each type, if the load were divided evenly."""
        kept = [end.stays[self.of_type == machine][:number] for machine, number in enumerate(numbers)]
        more = [number - len(rows) for number, rows in zip(numbers, kept, strict=True)]
        stays = np.concatenate([*kept, end.typical.repeat(more, axis=0)])
        types = np.repeat(np.tile(np.arange(len(numbers)), 2), [*map(len, kept), *more])
        levels = [
            level(stays[:, resource] * self.share[types, resource], self.share[types, resource], amount)
            for resource, amount in enumerate(end.moves.tolist())
            if (self.share[types, resource] > 0).all()
        ]
        return max(levels, default=0.0)

    def needed(self, ends: Sequence[_End], machine: int, target: float) -> int | None:
        """The fewest brokers of one type, beside all others, that keep all within a usage at each of these ends; None
        if no number does."""
        is_own = self.of_type == machine
        enough = np.ones(is_own.sum() + 1, dtype=np.bool_)
        enough[0] = not is_own.all()
        more = 1.0
        for end in ends:
            for resource in np.flatnonzero((self.share > 0).all(axis=0)).tolist():
                limit = target / self.share[:, resource]
                room = limit[self.of_type] - end.stays[:, resource]
                of_one_more = float(limit[machine] - end.typical[machine, resource])
                lacks = end.moves[resource] - room[~is_own].sum() - np.cumsum([0.0, *room[is_own]])
                lacks[np.minimum.accumulate([room[~is_own].min(initial=0.0), *room[is_own]]) < 0] = inf
                enough &= lacks <= 0
                if of_one_more > 0 and lacks[-1] < inf:
                    more = max(more, ceil(lacks[-1] / of_one_more))
                elif of_one_more < 0 or lacks[-1] > 0:
                    more = inf
        if enough.any():
            return int(enough.argmax())
        return None if more == inf else len(enough) - 1 + int(more)


def scale(room: Room, target_ratio: float) -> Scale:
    """What a cluster's load needs at a target usage; `room` is as the snapshot found its brokers."""
    rows = np.flatnonzero(room.fit)
    limits, first, of_type = np.unique(room.state.brokers.limit[rows], axis=0, return_index=True, return_inverse=True)
    of_type = of_type.reshape(-1)
    numbers = [int(number) for number in np.bincount(of_type)]
    titles = _titles(limits, [room.state.brokers.ids[row] for row in rows[first].tolist()])
    load = _load(room, rows, limits, of_type)
    target = target_ratio * (1 + _ROUNDING)
    sizes = [
        _size(load, numbers, titles, machine, change)
        for machine in range(len(numbers))
        for change in (-2, -1, 0, 1)
        if numbers[machine] + change >= 0 and sum(numbers) + change > 0 and (change or machine == 0)
    ]
    now = next(size for size in sizes if not size.change)
    machines = tuple(
        Machine(
            title=titles[machine],
            brokers=numbers[machine],
            needed=load.needed(load.ends, machine, target),
            needed_if_messages=load.needed(load.ends[:1], machine, target),
        )
        for machine in range(len(numbers))
    )
    unknown = next(unknown_network(room.state), None)
    lacks_room = {
        size.machine: _lacks_room(room, rows[of_type == titles.index(size.machine)], target)
        for size in sizes
        if unknown is None and size.change == -1 and size.highest_ratio <= target
    }
    may_go = [machine for machine, lacks in lacks_room.items() if lacks is None]
    doubtful = [room.state.brokers.ids[row] for row in rows.tolist() if room.state.brokers.doubtful[row]]
    verdict = _verdict(now, target, may_go, is_doubted=bool(doubtful))
    base_ratio = _base_ratio(room, rows)
    fewer = [size for size in sizes if size.change == -1]
    sentence = _sentence(verdict, now, fewer, machines, target, lacks_room, doubtful, is_known=unknown is None)
    largest, largest_ratio = _largest_bundle(room, limits)
    return Scale(
        brokers=len(rows),
        target_ratio=target_ratio,
        verdict=verdict,
        confidence="low" if doubtful or unknown else _confidence(room, rows, sizes, base_ratio),
        sentence=" ".join(filter(None, (sentence, unknown))),
        machines=machines,
        sizes=tuple(sizes),
        base_ratio=base_ratio,
        largest_bundle=largest,
        largest_bundle_ratio=largest_ratio,
        losses_that_do_not_fit=tuple(
            room.state.brokers.ids[broker] for broker in rows.tolist() if _after_loss(room, broker) is None
        ),
    )


def _load(room: Room, rows: Rows, limits: Floats, of_type: Rows) -> _Load:
    most_used_first = np.argsort(-room.usage_of(rows), kind="stable")
    rows, of_type = rows[most_used_first], of_type[most_used_first]

    def end(base_cpu: Floats, of_brokers: Callable[..., Floats]) -> _End:
        usage, stays = room.staying(rows, base_cpu)
        typical = [of_brokers(stays[of_type == machine], axis=0) for machine in range(len(limits))]
        return _End(stays, np.stack(typical), (usage - stays).sum(axis=0))

    base, share = room.base, ppm_per_unit(limits, room.settings) / PPM
    ends = end(base.least, np.median), end(base.likely, np.median), end(base.greatest, np.max)
    return _Load(of_type, share, ends)


def _titles(limits: Floats, brokers: Sequence[str]) -> list[str]:
    """A name for each machine type: its cores, and one of its brokers (ids) where another type has as many."""
    cores = [f"{limit[CPU] / 100:g} cores" if limit[CPU] != 100 else "cores not reported" for limit in limits]
    return [
        title if cores.count(title) == 1 else f"{title} like {broker}"
        for title, broker in zip(cores, brokers, strict=True)
    ]


def _size(load: _Load, numbers: Sequence[int], titles: Sequence[str], machine: int, change: int) -> Size:
    changed = [number + change if row == machine else number for row, number in enumerate(numbers)]
    ratios = [load.busiest(end, changed) for end in load.ends]
    return Size(titles[machine] if change else "", change, sum(changed), min(ratios), ratios[1], max(ratios))


def _lacks_room(room: Room, brokers: Rows, target: float) -> str | None:
    """What there is no room for without the least used of these brokers (rows); None if it could go."""
    left = _after_loss(room.up_to(target), int(brokers[np.argmin(room.usage_of(brokers))]))
    if left is None:
        return "its bundles"
    mean = mean_if_one_more_fails(left)
    return None if mean is not None and mean <= float(room.ceiling.max()) else "a failure"


def _after_loss(room: Room, broker: int) -> Room | None:
    """The room once a broker (a row) is gone and the others have its bundles with clients; None if they don't fit."""
    answers, left = packed(room.emptying([broker]), movable(room, [broker]))
    return None if staying(answers) else left


def _verdict(now: Size, target: float, may_go: Sequence[str], *, is_doubted: bool) -> SizeVerdict:
    if now.lowest_ratio > target:
        return "under"
    if now.highest_ratio > target or is_doubted:
        return "unknown"
    return "over" if may_go else "right"


def _base_ratio(room: Room, rows: Rows) -> float:
    usage = np.nan_to_num(room.usage[rows, CPU]).sum()
    return float(room.base.greatest[rows].sum() / usage) if usage > 0 else 0.0


def _confidence(room: Room, rows: Rows, sizes: Sequence[Size], base_ratio: float) -> Confidence:
    if base_ratio > _LARGE_BASE:
        return "low"
    is_certain = all(size.highest_ratio - size.lowest_ratio <= _CERTAIN_WITHIN for size in sizes)
    return "high" if is_certain or all(room.base.origin[row] == "history" for row in rows) else "medium"


def _largest_bundle(room: Room, limits: Floats) -> tuple[str, float]:
    """The bundle that takes the largest share of the machine type on which it weighs most, and that share."""
    if not len(room.arriving):
        return "", 0.0
    shares = [
        weighted_maximum(room.arriving, np.broadcast_to(limit, room.arriving.shape), room.settings) for limit in limits
    ]
    most = np.max(shares, axis=0)
    largest = int(np.argmax(most))
    return room.state.bundle_name(largest), float(most[largest])


def _sentence(
    verdict: SizeVerdict,
    now: Size,
    fewer: Sequence[Size],
    machines: Sequence[Machine],
    target: float,
    lacks_room: Mapping[str, str | None],
    doubtful: Collection[str],
    *,
    is_known: bool,
) -> str:
    """The verdict in words; `lacks_room`: of one less of a machine type; `is_known`: whether network speeds are."""
    brokers, is_are, wanted = count(now.brokers, "broker"), "is" if now.brokers == 1 else "are", f"{target:.0%}"
    if verdict == "over":
        may_go = [machine for machine, lacks in lacks_room.items() if lacks is None]
        least = min(machine.needed or 0 for machine in machines if machine.title in may_go)
        spare = f"one of the brokers with {may_go[0]} could go" if len(machines) > 1 else "one could go"
        bound = f"; divided evenly, {least} would do" if len(machines) == 1 and least < now.brokers - 1 else ""
        return f"{brokers} are more than {wanted} needs, whatever the base load is: {spare}{bound}."
    if verdict == "right":
        perhaps = [size for size in fewer if size.lowest_ratio <= target]
        if not perhaps:
            return f"{brokers} {is_are} enough for {wanted}, and one fewer would not be."
        first = min(perhaps, key=lambda size: size.highest_ratio)
        if first.highest_ratio <= target and not is_known:
            return f"{brokers} {is_are} enough for {wanted}, as far as is known; whether one fewer would be is unknown."
        if first.highest_ratio <= target:
            lacks = lacks_room[first.machine]
            return f"{brokers} {is_are} enough for {wanted}; one fewer would leave no room for {lacks}."
        return (
            f"{brokers} {is_are} enough for {wanted}. Whether {first.brokers} would be is unknown: "
            f"{usage_range(first)} each, depending on how much CPU follows messages. {MEASURE}"
        )
    if verdict == "under":
        needed = _brokers_in_all(now, [(machine, machine.needed) for machine in machines])
        if_messages = _brokers_in_all(now, [(machine, machine.needed_if_messages) for machine in machines])
        start = f"{brokers} {is_are} not enough for {wanted}, whatever the base load is"
        if doubtful:
            start = f"If the figures of {some_of(doubtful)}, which validation doubts, are right, {start}"
        if needed is not None:
            return f"{start}: {needed} would be."
        if if_messages is None:
            where = "each" if len(machines) == 1 else "some"
            return f"{start}, and no number of such brokers is: what stays on {where} is above {wanted}."
        return f"{start}: {if_messages} would be if CPU follows messages; if it doesn't, no number is. {MEASURE}"
    is_open = f"Whether {brokers} {is_are} enough for {wanted} is unknown"
    if doubtful:
        return (
            f"{is_open}: validation doubts the figures of {some_of(doubtful)}, by which the busiest would be at "
            f"{usage_range(now)}, divided evenly. `validate` says why."
        )
    return (
        f"{is_open}: divided evenly, the busiest would be at {usage_range(now)}, depending on how much CPU "
        f"follows messages. {MEASURE}"
    )


MEASURE: Final = "An earlier snapshot under another load, or moving one bundle, would show it."
"""What decides between the two ends of the model."""


def usage_range(size: Size) -> str:
    """The usage of the busiest broker, divided evenly, from the lower end of the model to the higher."""
    low, high = f"{size.lowest_ratio:.1%}", f"{size.highest_ratio:.1%}"
    return low if low == high else f"{low} to {high}"


def _brokers_in_all(now: Size, needed: Sequence[tuple[Machine, int | None]]) -> str | None:
    """How many brokers in all, by adding to the machine type of which fewest are lacking; None if no number does."""
    lacking = [(lack, machine.title) for machine, number in needed if number and (lack := number - machine.brokers) > 0]
    if not lacking:
        return None
    more, title = min(lacking, key=itemgetter(0))  # of several, the smallest machine
    return str(now.brokers + more) if len(needed) == 1 else f"{more} more with {title}"
