"""Predicts brokers after bundles have moved, by the `base_load` model: a likely usage, and the range it is in.

The shares are those of the snapshot, so the order of moves does not matter. A broker's base CPU usage stays where it
is; the range comes from what that base may be, for each broker on its own. What moves is work (points of a core), not
percent: a broker with more cores feels it less. On another machine the same messages may cost more, or less: the range
holds what they cost at their source and what they would at their destination.

Infinite and NaN figures make infinite or NaN sums. They are computed without a warning and left out of the plan
(`finite`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from pulsar_advisor.model.cluster.cluster_state import (
    CPU,
    NO_ROW,
    RESOURCES,
    Bundles,
    ClusterState,
    Floats,
    Indices,
    rate_per_s,
    throughput_bytes_per_s,
)
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.base_load import BaseLoad
from pulsar_advisor.model.load.proportional import usage_of
from pulsar_advisor.model.load.resource_usage import deciding_resources, usage_ratios, weighted_maximum
from pulsar_advisor.model.plans.plan import BrokerForecast, Forecast

Rows = npt.NDArray[np.signedinteger]

_COMPARABLE: Final = 0.1
"""Share of the source's messages below which a broker's own figures don't show what a message costs there: it would be
mostly base."""


@dataclass(frozen=True, eq=False)
class BrokerLoads:
    """Usage, limits, traffic and bundle counts of all brokers at one point of a plan; columns as in `Brokers`."""

    usage: Floats
    limit: Floats
    traffic: Floats
    bundles: Indices
    base_cpu: Floats
    """Per broker, the part of its CPU usage that no bundle takes along."""

    @np.errstate(all="ignore")
    def relative_cost(self, source: Rows, to: Rows) -> Floats:
        """What a message costs at destinations, as a multiple of what it costs at its source (rows): CPU beyond base.

        1 between machines with the same CPU limit, which are assumed to be alike, and where figures don't show it.
        """
        rates, limit = rate_per_s(self.traffic), self.limit[:, CPU]
        cost = np.maximum(self.usage[:, CPU] - self.base_cpu, 0.0) / rates
        found = cost[to] / cost[source]
        is_shown = (limit[to] != limit[source]) & (rates[to] >= _COMPARABLE * rates[source]) & np.isfinite(found)
        return np.where(is_shown, found, 1.0)


def loads_of(state: ClusterState, base_cpu: Floats) -> BrokerLoads:
    """The loads of a snapshot as taken, with this base; bundle counts are of owned bundles."""
    owned = state.bundles.owner[state.bundles.owner != NO_ROW]
    counts = np.bincount(owned, minlength=len(state.brokers)).astype(np.int32)
    return BrokerLoads(state.brokers.usage, state.brokers.limit, state.brokers.traffic, counts, base_cpu)


@dataclass(frozen=True, eq=False)
class Outlook:
    """The loads at one point of a plan: the likely ones, and each broker's lowest and highest usage.

    A broker's usage is highest if its own base is the greatest, so that what leaves takes least along, and if the bases
    of the brokers whose bundles arrive are the least. What arrives then costs what it does at its source or, if that is
    more, what messages cost here.
    """

    lowest: BrokerLoads
    """With the base at which most leaves."""
    likely: BrokerLoads
    highest: BrokerLoads
    """With the base at which least leaves."""

    @classmethod
    def of(cls, state: ClusterState, base: BaseLoad, settled: ClusterState | None = None) -> Outlook:
        """The loads of a snapshot as taken; the likely ones are those of `settled`, if that is given.

        Then the range covers both what brokers report and what their message rates suggest.
        """
        likely = loads_of(settled or state, base.likely)
        return cls(loads_of(state, base.least), likely, loads_of(state, base.greatest))

    @np.errstate(over="ignore", invalid="ignore")
    def along(
        self, origin: Outlook, bundles: Bundles, moves: Sequence[tuple[int, int, int]], settings: LoadBalancerSettings
    ) -> tuple[Outlook, Floats]:
        """After these moves, and the usage ratios right after each of them.

        A move is the rows of a bundle, of its source and of its destination; if the bundle is NO_ROW, nothing moves.
        `origin` is the outlook of the snapshot, which determines the shares. The ratios are (2, 3, m): of the source
        and of the destination: the lowest, the likely and the highest.
        """
        bundle, source, to = rows = np.array(moves, dtype=np.int32).reshape(-1, 3).T
        moving = bundle != NO_ROW
        figures = np.where(moving[:, None], bundles.traffic[bundle], 0.0)
        movable = np.stack([loads.usage[source] for loads in origin._all()])
        base_cpu = np.stack([loads.base_cpu[source] for loads in origin._all()])
        movable[..., CPU] = np.maximum(movable[..., CPU] - base_cpu, 0.0)
        taken = usage_of(figures, origin.likely.traffic[source], movable)
        brought = taken[::-1].copy()
        brought[0, :, CPU] *= np.minimum(origin.highest.relative_cost(source, to), 1.0)
        brought[-1, :, CPU] *= np.maximum(origin.lowest.relative_cost(source, to), 1.0)
        usage = np.stack([loads.usage for loads in self._all()])
        traffic, counts = self.likely.traffic.copy(), self.likely.bundles.copy()
        reached = np.empty((2, *taken.shape))
        for number, (leaves, joins, is_moved) in enumerate(zip(source, to, moving, strict=True)):
            if is_moved:
                usage[:, leaves] -= taken[:, number]
                usage[:, joins] += brought[:, number]
                traffic[leaves] -= figures[number]
                traffic[joins] += figures[number]
                counts[leaves] -= 1
                counts[joins] += 1
            reached[0, :, number], reached[1, :, number] = usage[:, leaves], usage[:, joins]
        after = (
            replace(loads, usage=its_usage, traffic=traffic, bundles=counts)
            for loads, its_usage in zip(self._all(), usage, strict=True)
        )
        limit = np.broadcast_to(self.likely.limit[rows[1:]][:, None], reached.shape)
        ratios = weighted_maximum(reached.reshape(-1, len(RESOURCES)), limit.reshape(-1, len(RESOURCES)), settings)
        return Outlook(*after), ratios.reshape(reached.shape[:-1])

    def after_split(self, owner: int, added: int) -> Outlook:
        """After one bundle of `owner` was split, which adds this many: load stays where it is."""
        more = np.zeros_like(self.likely.bundles)
        more[owner] = added
        return Outlook(*(replace(loads, bundles=loads.bundles + more) for loads in self._all()))

    def bounds(self, settings: LoadBalancerSettings) -> tuple[Floats, Floats]:
        """The lowest and the highest usage ratio of each broker."""
        usage = np.concatenate([loads.usage for loads in self._all()])
        limit = np.concatenate([loads.limit for loads in self._all()])
        ratios = weighted_maximum(usage, limit, settings).reshape(len(self._all()), -1)
        return np.fmin.reduce(ratios), np.fmax.reduce(ratios)

    def _all(self) -> tuple[BrokerLoads, BrokerLoads, BrokerLoads]:
        return self.lowest, self.likely, self.highest


def finite(value: float) -> float | None:
    """A figure for a plan: canonical JSON has no NaN and no infinity."""
    return float(value) if np.isfinite(value) else None


@np.errstate(over="ignore", invalid="ignore")
def forecast(
    state: ClusterState, outlook: Outlook, settings: LoadBalancerSettings, noise_ratio: float = 0.0
) -> Forecast:
    """All brokers at one point of a plan, with the spread over the available ones.

    Each range covers at least `noise_ratio`, by which two snapshots differ although nothing was moved.
    """
    loads, available = outlook.likely, state.brokers.available
    ratios = usage_ratios(loads, settings)
    lowest, highest = outlook.bounds(settings)
    lowest = np.fmin(lowest, np.maximum(ratios - noise_ratio, 0.0))
    highest = np.fmax(highest, ratios + noise_ratio)
    counted = ratios[available]
    deciding = deciding_resources(loads, settings)
    rates, throughputs = rate_per_s(loads.traffic), throughput_bytes_per_s(loads.traffic)
    brokers = {
        broker: BrokerForecast(
            usage_ratio=finite(ratios[i]),
            lowest_usage_ratio=finite(lowest[i]),
            highest_usage_ratio=finite(highest[i]),
            resource=RESOURCES[deciding[i]],
            msg_rate_per_s=finite(rates[i]),
            throughput_bytes_per_s=finite(throughputs[i]),
            bundles=int(loads.bundles[i]),
        )
        for i, broker in enumerate(state.brokers.ids)
    }
    return Forecast(
        brokers=brokers,
        maximum_ratio=_greatest(counted),
        lowest_maximum_ratio=_greatest(lowest[available]),
        highest_maximum_ratio=_greatest(highest[available]),
        mean_ratio=finite(counted.mean()) if len(counted) else None,
        standard_deviation_ratio=finite(counted.std()) if len(counted) else None,
    )


def _greatest(ratios: Floats) -> float | None:
    return finite(ratios.max()) if len(ratios) else None
