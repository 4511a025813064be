"""How Pulsar turns resource figures into one number per broker: percentages in binary32, their maximum, with weights.

Sources: `ResourceUsage.percentUsage`, `LocalBrokerData.getMaxResourceUsage` and `getMaxResourceUsageWithWeight`,
`BrokerLoadData`; PIP-357 for the spelling of the weights, PIP-358 for where the weights apply.
"""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from pulsar_advisor.model.cluster.cluster_state import CPU, MEMORY, RESOURCES, Booleans, Floats, LoadManagerKind
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings

WEIGHT_KEYS: Final = (
    "loadBalancerCPUResourceWeight",
    "loadBalancerMemoryResourceWeight",
    "loadBalancerDirectMemoryResourceWeight",
    "loadBalancerBandwidthInResourceWeight",
    "loadBalancerBandwidthOutResourceWeight",
    "loadBalancerBandwithInResourceWeight",
    "loadBalancerBandwithOutResourceWeight",
)
"""Setting keys that a weighted maximum reads."""

HEAP_WEIGHT: Final = "loadBalancerMemoryResourceWeight"

ROUNDING_RATIO: Final = 1e-6
"""Usages in binary32 are off by less, so that 30 of 100 is more than 30 %."""

_WITHOUTMEMORY: Final = tuple(column for column in range(len(RESOURCES)) if column != MEMORY)
_MEMORY_RETIRED: Final = (3, 0, 0)
_WEIGHTED_OVERLOAD: Final = (4, 0, 0)


def percent(usage: Floats, limit: Floats) -> npt.NDArray[np.float32]:
    """Percentages, 0 to 100 and above, not clamped; 0 if the limit is not positive. Both steps in binary32, as in Java.

    So 30 of 100 is 30.000001907348633 and 53 of 100 is 52.999996185302734.
    """
    with np.errstate(all="ignore"):
        share = usage.astype(np.float32) / limit.astype(np.float32) * np.float32(100)
        return np.where(limit > 0, share, np.float32(0))


def maximum(usage: Floats, limit: Floats) -> Floats:
    """Maximum share (ratio, binary32 value) of a broker's resources, without the heap; rows of RESOURCES columns."""
    shares = percent(usage[:, _WITHOUTMEMORY], limit[:, _WITHOUTMEMORY])
    greatest = np.fmax.reduce(shares, axis=1, initial=np.float32(-np.inf))
    return np.asarray(greatest / np.float32(100), dtype=np.float64)


def weighted_maximum(usage: Floats, limit: Floats, settings: LoadBalancerSettings) -> Floats:
    """Maximum weighted share (ratio) of each broker, the usage that every Modular strategy works with.

    The heap counts up to 2.11 only. A NaN share is ignored.
    """
    return _greatest(_weighted_shares(usage, limit, settings))


def mean_by_cpu_limit(usage: npt.NDArray[np.number], limit: Floats, counted: Booleans) -> float:
    """The mean of the usages of these brokers, 0 of none; that of one without a CPU limit isn't known.

    A broker counts by its CPU limit: what moves is work, so that the mean stays where it is when bundles move.
    """
    cpu = np.where(counted & np.isfinite(limit[:, CPU]), np.maximum(limit[:, CPU], 0.0), 0.0)
    if not cpu.any():
        return float(usage[counted].mean()) if counted.any() else 0.0
    return float(np.average(usage[counted], weights=cpu[counted] / cpu.max()))


def weighted_maximum_with_heap(usage: Floats, limit: Floats, settings: LoadBalancerSettings) -> Floats:
    """The Extensible manager's weighted maximum (ratio): the heap counts in every release, up to 3.3 by default."""
    with np.errstate(all="ignore"):
        return _greatest(percent(usage, limit).astype(np.float64) * _weights(settings))


def counts_heap(load_manager: LoadManagerKind, settings: LoadBalancerSettings) -> bool:
    """Whether brokers' usage may be that of the heap: under the Extensible manager, and up to 2.11."""
    return load_manager == "extensible" or settings.behaviour < _MEMORY_RETIRED


def overload_usage(usage: Floats, limit: Floats, settings: LoadBalancerSettings) -> Floats:
    """The usage (ratio) that is compared with the overload threshold, and whose change a Modular broker publishes.

    Weighted from 4.0 on, unweighted before.
    """
    if settings.behaviour < _WEIGHTED_OVERLOAD:
        return maximum(usage, limit)
    return weighted_maximum(usage, limit, settings)


def overridden_bandwidth_limit_kbit_per_s(settings: LoadBalancerSettings, detected_nics: int) -> float | None:
    """Limit per bandwidth direction set by `loadBalancerOverrideBrokerNicSpeedGbps`; None where it is not set.

    It replaces the speed of every network interface in `loadBalancerOverrideBrokerNics`, or of all detected ones.
    """
    speed_gbps = settings.load_balancer_override_broker_nic_speed_gbps
    if speed_gbps is None:
        return None
    return speed_gbps * 1_000_000 * (len(settings.load_balancer_override_broker_nics) or detected_nics)


class Used(Protocol):
    """Brokers with what they use and what they have, (n, 5) each, order of RESOURCES."""

    @property
    def usage(self) -> Floats:
        """In the unit of each resource."""

    @property
    def limit(self) -> Floats:
        """In the same units."""


def usage_ratios(brokers: Used, settings: LoadBalancerSettings) -> Floats:
    """Weighted maximum usage of each broker, 0..1, by Pulsar's own arithmetic."""
    return weighted_maximum(brokers.usage, brokers.limit, settings)


def busiest_first(ratios: Floats, msg_rates_per_s: Floats) -> npt.NDArray[np.intp]:
    """Rows of brokers by usage, equally used ones by message rate; what is no number counts as 0."""
    return np.lexsort((-np.nan_to_num(msg_rates_per_s, posinf=0.0), -np.nan_to_num(ratios)))


def deciding_resources(brokers: Used, settings: LoadBalancerSettings) -> npt.NDArray[np.intp]:
    """The column of RESOURCES whose weighted share is each broker's weighted maximum; the first of equal ones."""
    shares = _weighted_shares(brokers.usage, brokers.limit, settings)
    columns: npt.NDArray[np.intp] = np.argmax(np.where(np.isnan(shares), -np.inf, shares), axis=1)
    return columns


def weights_of_resources(settings: LoadBalancerSettings) -> dict[str, float]:
    """The weight of each resource that the weighted maximum counts, in the order of RESOURCES."""
    counted = range(len(RESOURCES)) if settings.behaviour < _MEMORY_RETIRED else _WITHOUTMEMORY
    weights = _weights(settings)
    return {RESOURCES[column]: float(weights[column]) for column in counted}


def _weighted_shares(usage: Floats, limit: Floats, settings: LoadBalancerSettings) -> Floats:
    """(n, 5): percent, weighted; the heap is NaN where it doesn't count."""
    with np.errstate(all="ignore"):
        shares: Floats = percent(usage, limit).astype(np.float64) * _weights(settings)
    if settings.behaviour >= _MEMORY_RETIRED:
        shares[:, MEMORY] = np.nan
    return shares


def _greatest(shares: Floats) -> Floats:
    """The ratio of the greatest share (percent) of each row; a NaN is ignored."""
    with np.errstate(all="ignore"):
        greatest: Floats = np.fmax.reduce(shares, axis=1, initial=-np.inf) / 100
    return greatest


def _weights(settings: LoadBalancerSettings) -> Floats:
    return np.array(
        (
            settings.load_balancer_cpu_resource_weight,
            settings.load_balancer_memory_resource_weight,
            settings.load_balancer_direct_memory_resource_weight,
            _bandwidth_weight(
                settings.load_balancer_bandwidth_in_resource_weight, settings.load_balancer_bandwith_in_resource_weight
            ),
            _bandwidth_weight(
                settings.load_balancer_bandwidth_out_resource_weight,
                settings.load_balancer_bandwith_out_resource_weight,
            ),
        )
    )


def _bandwidth_weight(spelt_correctly: float, misspelt: float) -> float:
    """The correctly spelt key counts only where it differs from 1.0, so 1.0 can't override a misspelt key."""
    return spelt_correctly if spelt_correctly != 1.0 else misspelt
