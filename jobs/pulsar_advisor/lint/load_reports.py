"""Whether brokers measure what they should, and publish it in time."""

from __future__ import annotations

from typing import Final

import numpy as np

from pulsar_advisor.lint.rule import Case, Violation, info, warning
from pulsar_advisor.model.cluster.cluster_state import (
    BANDWIDTH_IN,
    BANDWIDTH_OUT,
    CPU,
    DIRECT_MEMORY,
    MEMORY,
    RESOURCE_NAMES,
    RESOURCES,
)
from pulsar_advisor.model.load.resource_usage import HEAP_WEIGHT, counts_heap
from pulsar_advisor.planning.requests.what_if import NIC_SPEED

_BANDWIDTH: Final = (BANDWIDTH_IN, BANDWIDTH_OUT)
_CORRECT_SPELLING: Final = (4, 0, 0)


@warning(
    source="apache/pulsar#14820, apache/pulsar#14906; LinuxBrokerHostUsageImpl",
    remedy=f"set {NIC_SPEED} to the speed of one network card in Gbit/s",
)
def network_speed_is_known(case: Case) -> Violation | None:
    """Every broker with traffic knows the speed of its network.

    A virtual card often reports no speed. Then bandwidth counts as idle, however much is sent.
    """
    limits = case.state.brokers.limit[case.rows][:, _BANDWIDTH]
    unknown = np.flatnonzero(~(limits > 0).all(axis=1) & (case.throughput > 0))
    if not len(unknown):
        return None
    return Violation(f"no network speed on {case.share_of_brokers(unknown)}")


@warning(
    source="apache/pulsar#14820, apache/pulsar#18598; LinuxBrokerHostUsageImpl",
    remedy=f"correct {NIC_SPEED}: it is the speed of one card in Gbit/s",
)
def network_speed_is_plausible(case: Case) -> Violation | None:
    """No broker uses more bandwidth than its network has.

    A speed that is too low makes a broker look overloaded, and every shedder that judges by usage relieves it.
    """
    shares = case.percent[:, _BANDWIDTH].max(axis=1, initial=0)
    if not (shares > 100).any():
        return None
    broker = int(shares.argmax())
    how = "is overridden" if case.settings.load_balancer_override_broker_nic_speed_gbps else "was detected"
    return Violation(f"{case.broker(broker)} uses {shares[broker]:.0f}% of its bandwidth, whose speed {how}")


@warning(
    source="LocalBrokerData.getMaxResourceUsageWithWeight (2.11.0 to 5.0.1)",
    remedy="give at least one of processor and bandwidth a weight",
    load_managers=("modular", "extensible"),
    brokers=1,
)
def some_resource_counts(case: Case) -> Violation | None:
    """Some resource has a weight.

    The usage of a broker is the greatest weighted share of a resource; without a weight every broker looks idle.
    """
    if (case.usage > 0).any() or not (case.percent[:, CPU] > 0).any():
        return None
    return Violation("every broker counts as idle: the weights of the resources in use are 0")


@warning(
    source="apache/pulsar#21168, PIP-358 (apache/pulsar#22889)",
    remedy="set loadBalancerDirectMemoryResourceWeight=0, the default from 3.3.6 on",
    load_managers=("modular", "extensible"),
    brokers=1,
)
def direct_memory_does_not_decide(case: Case) -> Violation | None:
    """Direct memory doesn't decide how busy a broker is.

    A broker keeps the direct memory it once needed, so its use says little about the load, and unloading frees none.
    """
    return _decided_by(case, DIRECT_MEMORY, "loadBalancerDirectMemoryResourceWeight")


@warning(
    source="apache/pulsar#21168; BrokerLoadData.updateWeightedMaxEMA (3.0.7 to 5.0.1), LocalBrokerData (2.11.0)",
    remedy="set loadBalancerMemoryResourceWeight=0, the default from 4.0 on",
    load_managers=("modular", "extensible"),
    brokers=1,
)
def heap_does_not_decide(case: Case) -> Violation | None:
    """The heap doesn't decide how busy a broker is.

    It fills up and empties with every garbage collection, whatever the load. The Extensible manager counts it in every
    release, the Modular one up to 2.11.
    """
    is_read = counts_heap(case.state.load_manager, case.settings)
    return _decided_by(case, MEMORY, HEAP_WEIGHT) if is_read else None


def _decided_by(case: Case, resource: int, key: str) -> Violation | None:
    """The brokers whose usage is the share of one resource, which `key` gives its weight."""
    share = case.percent[:, resource] * case.settings.value(key) / 100
    decided = np.flatnonzero((share > 0) & np.isclose(share, case.usage, rtol=1e-6))
    if not len(decided):
        return None
    return Violation(f"{RESOURCE_NAMES[resource]} decides the usage of {case.share_of_brokers(decided)}", {key: "0"})


@info(
    source="LocalBrokerData (3.0.0): the heap is no longer read",
    remedy="remove loadBalancerMemoryResourceWeight",
    load_managers=("modular",),
)
def heap_weight_has_effect(case: Case) -> Violation | None:
    """The weight of the heap has an effect.

    From 3.0 on the Modular manager's strategies don't read it.
    """
    weight = case.settings.load_balancer_memory_resource_weight
    if not weight or counts_heap(case.state.load_manager, case.settings) or not case.is_set(HEAP_WEIGHT):
        return None
    return Violation(f"{HEAP_WEIGHT}={weight:g} changes nothing under the Modular manager")


@info(source="PIP-357 (4.0.0)", remedy="set the correctly spelt key, and the misspelt one to 1.0")
def bandwidth_weights_are_spelt_correctly(case: Case) -> Violation | None:
    """Bandwidth weights are set by the correctly spelt key.

    The misspelt key still counts as long as the other one is 1.0, so 1.0 can't override it.
    """
    settings = case.settings
    if settings.behaviour < _CORRECT_SPELLING:
        return None
    pairs = {
        "loadBalancerBandwithInResourceWeight": (
            settings.load_balancer_bandwith_in_resource_weight,
            settings.load_balancer_bandwidth_in_resource_weight,
        ),
        "loadBalancerBandwithOutResourceWeight": (
            settings.load_balancer_bandwith_out_resource_weight,
            settings.load_balancer_bandwidth_out_resource_weight,
        ),
    }
    counting = {key: wrong for key, (wrong, right) in pairs.items() if wrong != 1.0 and right == 1.0}
    if not counting:
        return None
    return Violation(f"in force: {', '.join(f'{key}={value:g}' for key, value in counting.items())}")


@warning(
    source="PulsarStats, ModularLoadManagerImpl, UnloadScheduler (2.11.0 to 5.0.1)",
    remedy="shorten statsUpdateFrequencyInSecs, or lengthen loadBalancerSheddingIntervalMinutes",
)
def statistics_keep_up_with_cycles(case: Case) -> Violation | None:
    """Bundle statistics are updated at least once per cycle.

    Otherwise the leader decides again on the figures of the cycle before.
    """
    statistics_s = case.settings.stats_update_frequency_in_secs
    interval = case.settings.load_balancer_shedding_interval_minutes
    if statistics_s <= max(interval, 1) * 60:
        return None
    return Violation(f"statistics are updated every {statistics_s} s, and a cycle takes {interval} min")


@warning(
    source="LinuxBrokerHostUsageImpl, LoadReportUpdaterTask (2.11.0 to 5.0.1)",
    remedy="set loadBalancerHostUsageCheckIntervalMinutes to the shedding interval or less",
)
def usage_keeps_up_with_cycles(case: Case) -> Violation | None:
    """Brokers measure their usage at least once per cycle.

    Otherwise the leader decides again on the figures of the cycle before.
    """
    measured = case.settings.load_balancer_host_usage_check_interval_minutes
    interval = case.settings.load_balancer_shedding_interval_minutes
    if measured <= max(interval, 1):
        return None
    return Violation(f"brokers measure every {measured} min, and a cycle takes {interval} min")


@warning(
    source="ModularLoadManagerImpl.needBrokerDataUpdate, BrokerLoadDataReporter (2.11.0 to 5.0.1)",
    remedy="lower loadBalancerReportUpdateThresholdPercentage",
    shedder="ThresholdShedder",
)
def reports_show_what_the_shedder_compares(case: Case) -> Violation | None:
    """A broker reports a change before the shedder would act on it.

    Smaller changes are published only every loadBalancerReportUpdateMaxIntervalMinutes.
    """
    settings = case.settings
    reported, acted_on = (
        settings.load_balancer_report_update_threshold_percentage,
        settings.load_balancer_broker_threshold_shedder_percentage,
    )
    if reported <= acted_on:
        return None
    return Violation(
        f"ThresholdShedder acts on {acted_on} points, brokers report changes of more than {reported} points at once, "
        f"smaller ones after up to {settings.load_balancer_report_update_max_interval_minutes} min"
    )


@warning(
    source="LoadReportUpdaterTask, recentlyUnloadedBundles (2.11.0 to 5.0.1)",
    remedy="lower loadBalancerReportUpdateMaxIntervalMinutes, or lengthen the grace period",
)
def reports_arrive_within_the_grace_period(case: Case) -> Violation | None:
    """Every broker reports at least once within the grace period.

    Otherwise a moved bundle may move again before the leader has seen what the move did.
    """
    longest = case.settings.load_balancer_report_update_max_interval_minutes
    grace = case.settings.load_balancer_shedding_grace_period_minutes
    if longest <= grace:
        return None
    return Violation(f"an unchanged broker reports every {longest} min, and the grace period is {grace} min")


@warning(
    source="TransferShedder (3.0.7 to 5.0.1)",
    remedy="set loadBalancerBrokerLoadDataTTLInSeconds to at least twice the maximum interval of reports",
    load_managers=("extensible",),
)
def load_data_outlives_reports(case: Case) -> Violation | None:
    """Load data stays valid until the next report is due.

    TransferShedder leaves older load data out of the mean and the deviation: it judges the balance without its steady
    brokers, and does nothing if all data are older.
    """
    valid_s = case.settings.load_balancer_broker_load_data_ttl_in_seconds
    longest = case.settings.load_balancer_report_update_max_interval_minutes
    if valid_s >= longest * 60:
        return None
    return Violation(
        f"load data is valid for {valid_s} s, and an unchanged broker reports every {longest} min",
        {"loadBalancerBrokerLoadDataTTLInSeconds": str(2 * longest * 60)},
    )


@info(
    source="LocalBrokerData.getMaxResourceUsageWithWeight (2.11.0 to 5.0.1)",
    remedy="compare brokers by the limits in `pulsar-advisor brokers`; give brokers of one cluster one size if you can",
)
def brokers_are_of_one_size(case: Case) -> Violation | None:
    """All brokers have the same limits.

    Shedders compare shares, placement by message rate compares totals: on brokers of several sizes they disagree.
    """
    limits = case.state.brokers.limit[case.rows][:, (CPU, *_BANDWIDTH)]
    differing = [
        RESOURCES[column]
        for position, column in enumerate((CPU, *_BANDWIDTH))
        if len(np.unique(limits[:, position][np.isfinite(limits[:, position])])) > 1
    ]
    return Violation(f"limits differ: {', '.join(differing)}") if differing else None
