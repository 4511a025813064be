"""Which settings a what-if may change, and what brokers would have reported under them.

A key counts if an answer here depends on it. Strategies, filters and plans read most of them. The speed of the network
cards, the weights and the history percentage are read by the brokers themselves, and their reports follow from them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import BANDWIDTH_IN, BANDWIDTH_OUT, ClusterState
from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings
from pulsar_advisor.model.configuration.setting_texts import what_if_value
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.errors import DataNotFit, UsageError
from pulsar_advisor.model.load.resource_usage import WEIGHT_KEYS, overridden_bandwidth_limit_kbit_per_s
from pulsar_advisor.placement import filters
from pulsar_advisor.placement.registry import PLACEMENTS
from pulsar_advisor.shedding.registry import SHEDDERS
from pulsar_advisor.splitting.registry import SPLIT_ALGORITHMS, SPLIT_DECIDERS

Resolve = Callable[[Mapping[str, str]], ResolvedSettings]
"""A cluster's settings with some of Pulsar's keys replaced by texts."""

NIC_SPEED: Final = "loadBalancerOverrideBrokerNicSpeedGbps"
_HISTORY_PERCENTAGE: Final = "loadBalancerHistoryResourcePercentage"

OF_ITS_OWN_BALANCER: Final = frozenset(
    {
        "loadBalancerEnabled",
        "loadBalancerSheddingEnabled",
        "loadBalancerAutoBundleSplitEnabled",
        "loadBalancerLoadSheddingStrategy",
        "loadBalancerLoadPlacementStrategy",
        "loadBalancerSheddingIntervalMinutes",
        "loadBalancerSheddingGracePeriodMinutes",
        "loadBalancerSheddingExcludedNamespaces",
    }
)
"""Whether Pulsar itself would act, with which strategies, how often, and on what."""

_LOAD_MANAGER: Final = "loadManagerClassName"
_OF_THE_LEADER: Final = frozenset({_LOAD_MANAGER, "loadBalanceSheddingDelayInSeconds"})
"""Read by filters and TransferShedder, yet without effect: the load manager is captured, not assumed, and no snapshot
records when the leader itself last unloaded from a broker."""

_PERCENT: Final = 100.0
"""Limit of a usage that is known only in percent, as in metrics."""


@cache
def keys_that_count() -> frozenset[str]:
    """Pulsar's keys that can change an answer."""
    strategies = (*SHEDDERS, *PLACEMENTS, *SPLIT_DECIDERS, *SPLIT_ALGORITHMS)
    read = frozenset().union(filters.SETTING_KEYS, *(strategy.setting_keys for strategy in strategies))
    return (read | OF_ITS_OWN_BALANCER | {NIC_SPEED}) - _OF_THE_LEADER


def check_what_if(key: str, text: str, also: frozenset[str] = frozenset()) -> None:
    """Raise `UsageError` for a key that is unknown or changes nothing, or an unusable value.

    `also`: keys that count here besides those that can change an answer.
    """
    if what_if_value(key, text) is None:
        raise UsageError(f"{key} needs a value: what brokers would find without one is not known")
    if key == _LOAD_MANAGER:
        raise UsageError(
            f"{key} is the snapshot's; for a strategy of another one name it: `recommend --shedder TransferShedder`"
        )
    if key not in (counting := keys_that_count() | also):
        raise UsageError(f"{key} changes no answer here; the keys that do are: {', '.join(sorted(counting))}")


def with_what_if(
    state: ClusterState, own: LoadBalancerSettings, settings: LoadBalancerSettings, keys: Iterable[str]
) -> ClusterState:
    """What brokers would have reported with `keys` as in `settings`, where the cluster's `own` settings differ.

    Raises `DataNotFit` if the reports don't contain enough.
    """
    changed = frozenset(keys)
    if NIC_SPEED in changed:
        state = _with_nic_speed(state, own, settings)
    if state.published_load is None or not changed & {NIC_SPEED, _HISTORY_PERCENTAGE, *WEIGHT_KEYS}:
        return state
    # Brokers smooth what they publish under their own settings; from here on, this snapshot is the only sample.
    unknown = np.full(len(state.brokers), np.nan)
    published = replace(state.published_load, weighted_max_ema=unknown)
    if _HISTORY_PERCENTAGE in changed:
        published = replace(published, msg_throughput_ema=unknown)
    return replace(state, published_load=published)


def _with_nic_speed(state: ClusterState, own: LoadBalancerSettings, settings: LoadBalancerSettings) -> ClusterState:
    """Bandwidth limits are the new ones; the traffic over the cards stays the same."""
    usage, limit = state.brokers.usage.copy(), state.brokers.limit.copy()
    reported = state.brokers.report_updated_at_ms > 0
    for column in (BANDWIDTH_IN, BANDWIDTH_OUT):
        in_percent = reported & (limit[:, column] == _PERCENT)
        in_kbit = reported & ~in_percent
        if in_percent.any():
            usage[in_percent, column] *= _slowdown(own, settings)
        limit[in_kbit, column] = [
            overridden_bandwidth_limit_kbit_per_s(settings, _cards(one, own)) for one in limit[in_kbit, column].tolist()
        ]
    return replace(state, brokers=replace(state.brokers, usage=usage, limit=limit))


def _slowdown(own: LoadBalancerSettings, settings: LoadBalancerSettings) -> float:
    """The factor for a usage in percent."""
    before = own.load_balancer_override_broker_nic_speed_gbps
    after = settings.load_balancer_override_broker_nic_speed_gbps
    if not before:
        raise DataNotFit(
            f"the brokers report bandwidth in percent of a speed that no setting names, so what {NIC_SPEED} would "
            "change can't be computed: capture with --service-url, and ask about the published view"
        )
    return before / after if after else 0.0


def _cards(limit: float, own: LoadBalancerSettings) -> int:
    """How many network cards a broker has: its limit is the sum of their speeds, known only if configured.

    One, if the limit isn't a number: a what-if is applied before what validation found unfit is left out.
    """
    speed_gbps = own.load_balancer_override_broker_nic_speed_gbps
    return max(round(limit / (speed_gbps * 1_000_000)), 1) if speed_gbps and math.isfinite(limit) else 1


def assumptions(own: LoadBalancerSettings, keys: Iterable[str]) -> tuple[str, ...]:
    """What `with_what_if` assumes, for a reader."""
    known = own.load_balancer_override_broker_nic_speed_gbps or own.load_balancer_override_broker_nics
    if NIC_SPEED not in keys or known:
        return ()
    return (f"Brokers don't report how many network cards they have: {NIC_SPEED} is taken for one card each.",)
