"""Predicts brokers after bundles have moved, by the `base_load` model: a likely usage, and the range it is in.

The shares are those of the snapshot, so the order of moves does not matter. A broker's base CPU usage stays where it
is; the range comes from what that base may be.

Infinite and NaN figures make infinite or NaN sums. They are computed without a warning and left out of the plan
(`finite`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from pulsar_advisor.model.base_load import BaseLoad
from pulsar_advisor.model.cluster_state import (
    CPU,
    NO_ROW,
    Bundles,
    ClusterState,
    Floats,
    Indices,
    rate_per_s,
    throughput_bytes_per_s,
)
from pulsar_advisor.model.plan import BrokerForecast, Forecast
from pulsar_advisor.model.proportional import usage_of
from pulsar_advisor.model.resource_usage import weighted_maximum
from pulsar_advisor.model.settings import LoadBalancerSettings

Rows = slice | list[int]
EVERY: Final = slice(None)


@dataclass(frozen=True, eq=False)
class BrokerLoads:
    """Usage, limits, traffic and bundle counts of all brokers at one point of a plan; columns as in `Brokers`."""

    usage: Floats
    limit: Floats
    traffic: Floats
    bundles: Indices
    base_cpu: Floats
    """Per broker, the part of its CPU usage that no bundle takes along."""


def loads_of(state: ClusterState, base_cpu: Floats | None = None) -> BrokerLoads:
    """The loads of a snapshot as taken, with no base unless it is given; bundle counts are of owned bundles."""
    owned = state.bundles.owner[state.bundles.owner != NO_ROW]
    counts = np.bincount(owned, minlength=len(state.brokers)).astype(np.int32)
    base = np.zeros(len(state.brokers)) if base_cpu is None else base_cpu
    return BrokerLoads(state.brokers.usage, state.brokers.limit, state.brokers.traffic, counts, base)


def after_move(
    loads: BrokerLoads, origin: BrokerLoads, bundles: Bundles, bundle: int, source: int, to: int
) -> BrokerLoads:
    """Loads after one bundle moved from `source` to `to`; the snapshot's loads, `origin`, determine the shares."""
    return _after_move([loads], [origin], bundles, bundle, source, to)[0]


@np.errstate(over="ignore", invalid="ignore")
def _after_move(
    loads: Sequence[BrokerLoads], origins: Sequence[BrokerLoads], bundles: Bundles, bundle: int, source: int, to: int
) -> list[BrokerLoads]:
    """The same for loads that differ in their usage only: most of a large plan's time is spent here."""
    figures = bundles.traffic[bundle]
    movable = np.array([origin.usage[source] for origin in origins])
    movable[:, CPU] -= [origin.base_cpu[source] for origin in origins]
    taken = usage_of(bundles.traffic[[bundle]], origins[0].traffic[[source]], movable)
    traffic, counts = loads[0].traffic.copy(), loads[0].bundles.copy()
    traffic[source] -= figures
    traffic[to] += figures
    counts[source] -= 1
    counts[to] += 1
    after = []
    for before, moved in zip(loads, taken, strict=True):
        usage = before.usage.copy()
        usage[source] -= moved
        usage[to] += moved
        after.append(BrokerLoads(usage, before.limit, traffic, counts, before.base_cpu))
    return after


@dataclass(frozen=True, eq=False)
class Outlook:
    """The loads at one point of a plan, for the least, the likely and the greatest base of every broker."""

    least: BrokerLoads
    likely: BrokerLoads
    greatest: BrokerLoads

    @classmethod
    def of(cls, state: ClusterState, base: BaseLoad, settled: ClusterState | None = None) -> Outlook:
        """The loads of a snapshot as taken; the likely ones are those of `settled`, if that is given.

        Then the range holds both what brokers report and what their message rates let expect.
        """
        likely = loads_of(settled or state, base.likely)
        return cls(loads_of(state, base.least), likely, loads_of(state, base.greatest))

    def after_move(self, origin: Outlook, bundles: Bundles, bundle: int, source: int, to: int) -> Outlook:
        """After one bundle moved; `origin` is the outlook of the snapshot."""
        return Outlook(*_after_move(self._all(), origin._all(), bundles, bundle, source, to))

    def after_split(self, owner: int, added: int) -> Outlook:
        """After one bundle of `owner` was split, which adds this many: load stays where it is."""
        more = np.zeros_like(self.likely.bundles)
        more[owner] = added
        return Outlook(*(replace(loads, bundles=loads.bundles + more) for loads in self._all()))

    def bounds(self, settings: LoadBalancerSettings, rows: Rows = EVERY) -> tuple[Floats, Floats]:
        """The lowest and the highest usage ratio of each broker, or of those at these rows."""
        usage = np.concatenate([loads.usage[rows] for loads in self._all()])
        limit = np.concatenate([loads.limit[rows] for loads in self._all()])
        ratios = weighted_maximum(usage, limit, settings).reshape(len(self._all()), -1)
        return np.fmin.reduce(ratios), np.fmax.reduce(ratios)

    def _all(self) -> tuple[BrokerLoads, BrokerLoads, BrokerLoads]:
        return self.least, self.likely, self.greatest


def usage_ratios(loads: BrokerLoads, settings: LoadBalancerSettings, rows: Rows = EVERY) -> Floats:
    """Weighted maximum usage of each broker, or of those at these rows, 0..1, by Pulsar's own arithmetic."""
    return weighted_maximum(loads.usage[rows], loads.limit[rows], settings)


def finite(value: float) -> float | None:
    """A figure for a plan: canonical JSON has no NaN and no infinity."""
    return float(value) if np.isfinite(value) else None


@np.errstate(over="ignore", invalid="ignore")
def forecast(state: ClusterState, outlook: Outlook, settings: LoadBalancerSettings) -> Forecast:
    """All brokers at one point of a plan, with the spread over the available ones."""
    loads = outlook.likely
    lowest, highest = outlook.bounds(settings)
    ratios = usage_ratios(loads, settings)
    counted = ratios[state.brokers.available]
    rates, throughputs = rate_per_s(loads.traffic), throughput_bytes_per_s(loads.traffic)
    brokers = {
        broker: BrokerForecast(
            usage_ratio=finite(ratios[i]),
            lowest_usage_ratio=finite(lowest[i]),
            highest_usage_ratio=finite(highest[i]),
            msg_rate_per_s=finite(rates[i]),
            throughput_bytes_per_s=finite(throughputs[i]),
            bundles=int(loads.bundles[i]),
        )
        for i, broker in enumerate(state.brokers.ids)
    }
    return Forecast(
        brokers=brokers,
        maximum_ratio=finite(counted.max()) if len(counted) else None,
        mean_ratio=finite(counted.mean()) if len(counted) else None,
        standard_deviation_ratio=finite(counted.std()) if len(counted) else None,
    )
