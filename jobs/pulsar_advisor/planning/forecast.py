"""What brokers would look like after bundles move: the `proportional` model.

Moving a bundle moves CPU by its share of its broker's message rate (in + out) and bandwidth by its share of the
broker's throughput in that direction; heap and direct memory stay where they are. The shares are those of the
snapshot, so the order of moves does not matter. The model is an assumption, named wherever its figures appear.

Figures that are infinite or no number make sums that are none either: computed on without a warning, and left out of
the plan (`finite`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pulsar_advisor.model.cluster_state import NOBODY, RESOURCES, Bundles, ClusterState, Floats, Indices
from pulsar_advisor.model.plan import BrokerForecast, Forecast
from pulsar_advisor.model.resource_usage import weighted_maximum
from pulsar_advisor.model.settings import LoadBalancerSettings

_CPU = RESOURCES.index("cpu")
_BANDWIDTH = (RESOURCES.index("bandwidthIn"), RESOURCES.index("bandwidthOut"))


@dataclass(frozen=True, eq=False)
class BrokerLoads:
    """Usage, limits, traffic and bundle counts of all brokers at one point of a plan; columns as in `Brokers`."""

    usage: Floats
    limit: Floats
    traffic: Floats
    bundles: Indices


def loads_of(state: ClusterState) -> BrokerLoads:
    """The loads of a snapshot as it was taken; bundle counts are of owned bundles."""
    owned = state.bundles.owner[state.bundles.owner != NOBODY]
    counts = np.bincount(owned, minlength=len(state.brokers)).astype(np.int32)
    return BrokerLoads(state.brokers.usage, state.brokers.limit, state.brokers.traffic, counts)


def _share(part: float, whole: float) -> float:
    """Share of a broker's figure that a bundle causes, at most all of it; nothing where the broker reports none."""
    return min(part / whole, 1.0) if whole > 0.0 and part > 0.0 else 0.0


@np.errstate(over="ignore", invalid="ignore")
def after_move(
    loads: BrokerLoads, origin: BrokerLoads, bundles: Bundles, bundle: int, source: int, to: int
) -> BrokerLoads:
    """Loads after one bundle went from `source` to `to`; `origin` are the snapshot's loads, which give the shares."""
    figures = bundles.traffic[bundle]
    moved = np.zeros(len(RESOURCES))
    whole = origin.traffic[source]
    moved[_CPU] = origin.usage[source, _CPU] * _share(figures[0] + figures[1], whole[0] + whole[1])
    for direction, resource in enumerate(_BANDWIDTH):
        moved[resource] = origin.usage[source, resource] * _share(figures[2 + direction], whole[2 + direction])
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
    """A figure for a plan: canonical JSON knows no NaN and no infinity."""
    return float(value) if np.isfinite(value) else None


@np.errstate(over="ignore", invalid="ignore")
def forecast(state: ClusterState, loads: BrokerLoads, settings: LoadBalancerSettings) -> Forecast:
    """All brokers at one point of a plan, with the spread over the available ones."""
    ratios = usage_ratios(loads, settings)
    counted = ratios[state.brokers.available]
    brokers = {
        broker: BrokerForecast(
            usage_ratio=finite(ratios[i]),
            msg_rate_per_s=finite(loads.traffic[i, 0] + loads.traffic[i, 1]),
            throughput_bytes_per_s=finite(loads.traffic[i, 2] + loads.traffic[i, 3]),
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
