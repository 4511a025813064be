"""Predicts brokers after bundles have moved, by the `proportional` model.

The shares are those of the snapshot, so the order of moves does not matter.

Infinite and NaN figures make infinite or NaN sums. They are computed without a warning and left out of the plan
(`finite`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pulsar_advisor.model.cluster_state import (
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


@dataclass(frozen=True, eq=False)
class BrokerLoads:
    """Usage, limits, traffic and bundle counts of all brokers at one point of a plan; columns as in `Brokers`."""

    usage: Floats
    limit: Floats
    traffic: Floats
    bundles: Indices


def loads_of(state: ClusterState) -> BrokerLoads:
    """The loads of a snapshot as taken; bundle counts are of owned bundles."""
    owned = state.bundles.owner[state.bundles.owner != NO_ROW]
    counts = np.bincount(owned, minlength=len(state.brokers)).astype(np.int32)
    return BrokerLoads(state.brokers.usage, state.brokers.limit, state.brokers.traffic, counts)


@np.errstate(over="ignore", invalid="ignore")
def after_move(
    loads: BrokerLoads, origin: BrokerLoads, bundles: Bundles, bundle: int, source: int, to: int
) -> BrokerLoads:
    """Loads after one bundle moved from `source` to `to`; the snapshot's loads, `origin`, determine the shares."""
    figures = bundles.traffic[bundle]
    (moved,) = usage_of(bundles.traffic[[bundle]], origin.traffic[[source]], origin.usage[[source]])
    usage, traffic, counts = loads.usage.copy(), loads.traffic.copy(), loads.bundles.copy()
    usage[source] -= moved
    usage[to] += moved
    traffic[source] -= figures
    traffic[to] += figures
    counts[source] -= 1
    counts[to] += 1
    return replace(loads, usage=usage, traffic=traffic, bundles=counts)


def usage_ratios(loads: BrokerLoads, settings: LoadBalancerSettings) -> Floats:
    """Weighted maximum usage of each broker, 0..1, by Pulsar's own arithmetic."""
    return weighted_maximum(loads.usage, loads.limit, settings)


def finite(value: float) -> float | None:
    """A figure for a plan: canonical JSON has no NaN and no infinity."""
    return float(value) if np.isfinite(value) else None


@np.errstate(over="ignore", invalid="ignore")
def forecast(state: ClusterState, loads: BrokerLoads, settings: LoadBalancerSettings) -> Forecast:
    """All brokers at one point of a plan, with the spread over the available ones."""
    ratios = usage_ratios(loads, settings)
    counted = ratios[state.brokers.available]
    rates, throughputs = rate_per_s(loads.traffic), throughput_bytes_per_s(loads.traffic)
    brokers = {
        broker: BrokerForecast(
            usage_ratio=finite(ratios[i]),
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
