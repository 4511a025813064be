"""Whether a strategy's thresholds and minimums can be reached on this cluster, and leave no imbalance unseen."""

from __future__ import annotations

import math

import numpy as np

from pulsar_advisor.lint.rule import MIB, Case, Violation, info, warning
from pulsar_advisor.model.cluster.cluster_state import BANDWIDTH_IN, BANDWIDTH_OUT, CPU
from pulsar_advisor.model.configuration.class_names import PACKAGE
from pulsar_advisor.model.load.resource_usage import deciding_resources, overload_usage
from pulsar_advisor.planning.advice.capacity import only_more_brokers
from pulsar_advisor.planning.questions.smallest_change import at_most
from pulsar_advisor.shedding.threshold_shedder import LOWER_BOUNDARY_FACTOR, MARGIN
from pulsar_advisor.shedding.uniform_load_shedder import NO_MINIMUM, SEPARATE_DIMENSIONS, not_zero


@warning(
    source="PIP-220; ThresholdShedder.tryLowerBoundaryShedding (2.11.0)",
    remedy="set lowerBoundarySheddingEnabled=true and restart the brokers, or move bundles there: `fill`",
    shedder="ThresholdShedder",
    brokers=2,
)
def idle_broker_is_noticed(case: Case) -> Violation | None:
    """An idle broker makes ThresholdShedder act.

    Without the lower boundary it compares busy brokers with the mean only: ten brokers at 80% and one at 0% have a
    mean of 72.7%, and none of them is 10 points above it.
    """
    if case.settings.lower_boundary_shedding_enabled:
        return None
    threshold = case.settings.load_balancer_broker_threshold_shedder_percentage / 100
    mean, idlest = float(case.usage.mean()), int(case.usage.argmin())
    if (case.usage >= mean + threshold).any() or case.usage[idlest] >= mean - threshold:
        return None
    return Violation(
        f"{case.broker(idlest)} is at {case.usage[idlest]:.1%}, the mean is {mean:.1%}, and no broker is "
        f"{threshold:.0%} above the mean",
        {"lowerBoundarySheddingEnabled": "true", **_least_for_idle(case, threshold)},
    )


def _least_for_idle(case: Case, threshold: float) -> dict[str, str]:
    """The least throughput worth shedding with which the busiest broker gives to an idle one; nothing if it does."""
    wanted = float(case.throughput[case.usage.argmax()]) * threshold * LOWER_BOUNDARY_FACTOR / MIB
    if not 0 < wanted < case.settings.load_balancer_bundle_unload_min_throughput_threshold:
        return {}
    return {"loadBalancerBundleUnloadMinThroughputThreshold": f"{at_most(wanted):.15g}"}


@warning(
    source="ThresholdShedder.findBundlesForUnloading (2.11.0 to 5.0.1)",
    remedy="lower the percentage, or add brokers",
    shedder="ThresholdShedder",
    brokers=1,
)
def threshold_can_be_exceeded(case: Case) -> Violation | None:
    """A broker can be as far above the mean as ThresholdShedder requires.

    Where the mean plus the percentage is 100% or more, a broker would have to be overloaded beyond its capacity. If
    only more brokers help, no percentage does.
    """
    percentage = case.settings.load_balancer_broker_threshold_shedder_percentage
    mean = float(case.usage.mean())
    # With a network faster than it is said to be, usage is above 100 %.
    highest = max(1.0, float(case.usage.max()))
    if mean + percentage / 100 < highest or only_more_brokers(case.usage, case.settings):
        return None
    possible = math.floor((1 - mean) * 100 / 2)
    change = {"loadBalancerBrokerThresholdShedderPercentage": str(possible)} if possible > 0 else {}
    return Violation(f"the mean is {mean:.1%}: only a broker above {mean + percentage / 100:.1%} sheds", change)


@warning(
    source="apache/pulsar#21299, apache/pulsar#17860; ThresholdShedder (2.11.0 to 5.0.1)",
    remedy="lower loadBalancerBundleUnloadMinThroughputThreshold (MiB/s)",
    shedder="ThresholdShedder",
    brokers=2,
)
def small_throughput_is_shed(case: Case) -> Violation | None:
    """The least throughput worth shedding doesn't stop ThresholdShedder.

    It sheds nothing from a broker, however busy, if the part to be shed is below
    loadBalancerBundleUnloadMinThroughputThreshold. Small messages cost processor time, not bytes.
    """
    settings, mean = case.settings, float(case.usage.mean())
    threshold = settings.load_balancer_broker_threshold_shedder_percentage / 100
    decides = deciding_resources(case.state.brokers, settings)[case.rows]
    # No bundle takes memory along, so shedding from a broker that it makes busy would gain nothing.
    busy = np.flatnonzero((case.usage >= mean + threshold) & np.isin(decides, (CPU, BANDWIDTH_IN, BANDWIDTH_OUT)))
    if not len(busy):
        return None
    wanted = case.throughput[busy] * (case.usage[busy] - mean - threshold + MARGIN) / MIB
    least = settings.load_balancer_bundle_unload_min_throughput_threshold
    if (wanted >= least).any():
        return None
    most = int(wanted.argmax())
    broker = int(busy[most])
    return Violation(
        f"{case.broker(broker)} is at {case.usage[broker]:.1%}, {threshold:.0%} or more above the mean of {mean:.1%}, "
        f"but would shed {wanted[most]:.2f} MiB/s, below the minimum of {least:g} MiB/s",
        # The greatest value with which it acts, as `explain` finds it.
        {"loadBalancerBundleUnloadMinThroughputThreshold": f"{at_most(wanted[most]):.15g}"} if wanted[most] > 0 else {},
    )


@warning(
    source="ThresholdShedder, historicalUsage (2.11.0 to 5.0.1)",
    remedy="lower loadBalancerHistoryResourcePercentage",
    shedder="ThresholdShedder",
)
def history_follows_the_load(case: Case) -> Violation | None:
    """Smoothed usage follows the load before a moved bundle may move again.

    ThresholdShedder compares smoothed usage. If half of a change shows only after the grace period, bundles that were
    just moved are moved again because their old broker still looks busy.
    """
    kept = case.settings.load_balancer_history_resource_percentage
    interval = case.settings.load_balancer_shedding_interval_minutes
    grace = case.settings.load_balancer_shedding_grace_period_minutes
    most = math.floor(100 * 0.5 ** (interval / grace)) / 100 if grace > 0 else 0
    change = {"loadBalancerHistoryResourcePercentage": f"{min(most, 0.9):g}"}
    if kept >= 1:
        return Violation("smoothed usage never changes: only the first sample counts", change)
    minutes = math.log(0.5) / math.log(kept) * interval if kept > 0 else 0
    if minutes <= grace:
        return None
    return Violation(f"half of a change shows after {minutes:.0f} min, and the grace period is {grace} min", change)


@info(
    source="OverloadShedder (2.11.0 to 5.0.1); Pulsar's documentation, 'Shed load automatically'",
    remedy="choose a shedder that compares brokers with each other, or lower the threshold",
    shedder="OverloadShedder",
    brokers=2,
)
def imbalance_below_overload_is_seen(case: Case) -> Violation | None:
    """The shedder sees an imbalance before a broker is overloaded.

    OverloadShedder looks at each broker alone: below the threshold no imbalance makes it act.
    """
    settings, mean = case.settings, float(case.usage.mean())
    threshold = settings.overloaded_ratio
    busiest, brokers = int(case.usage.argmax()), case.state.brokers
    apart = settings.load_balancer_broker_threshold_shedder_percentage / 100
    compared = overload_usage(brokers.usage[case.rows], brokers.limit[case.rows], settings)
    if (compared >= threshold).any() or case.usage[busiest] < mean + apart:
        return None
    return Violation(
        f"{case.broker(busiest)} is at {case.usage[busiest]:.1%} and the mean is {mean:.1%}, but nothing is shed below "
        f"{threshold:.0%}",
        {"loadBalancerLoadSheddingStrategy": f"{PACKAGE}impl.ThresholdShedder"},
    )


@warning(
    source="OverloadShedder, LeastLongTermMessageRate, SimpleLoadManagerImpl.doLoadShedding (2.11.0 to 5.0.1)",
    remedy="add brokers: moving bundles can't help",
    brokers=2,
)
def some_broker_has_room(case: Case) -> Violation | None:
    """Some broker is below the overload threshold.

    Where all are above it, whatever is unloaded lands on an overloaded broker, chosen at random.
    """
    reason = only_more_brokers(case.usage, case.settings)
    return None if reason is None else Violation(reason)


@warning(
    source="UniformLoadShedder (2.11.0 to 5.0.1); apache/pulsar#21905",
    remedy="lower minUnloadMessage or minUnloadMessageThroughput, or raise maxUnloadPercentage to 0.5 at most",
    shedder="UniformLoadShedder",
    brokers=2,
)
def uniform_minimum_is_reached(case: Case) -> Violation | None:
    """UniformLoadShedder's minimum doesn't stop it once brokers are far apart.

    It moves maxUnloadPercentage of the difference between two brokers, and nothing if that is below its minimum.
    """
    settings = case.settings
    gaps = rate, throughput = _apart(case.rate), _apart(case.throughput)
    by_rate = 0 < settings.load_balancer_msg_rate_difference_shedder_threshold < (rate[0] - rate[1]) * 100 / rate[1]
    multiplier = settings.load_balancer_msg_throughput_multiplier_difference_shedder_threshold
    by_throughput = 0 < multiplier < throughput[0] / throughput[1]
    if not (by_rate or by_throughput):
        return None
    moved = [int((most - least) * settings.max_unload_percentage) for most, least in gaps]
    minimums = settings.min_unload_message, settings.min_unload_message_throughput
    enough = [would >= minimum for would, minimum in zip(moved, minimums, strict=True)]
    dimension = 0 if by_rate else 1
    if enough[dimension] or (settings.behaviour < SEPARATE_DIMENSIONS and any(enough)):
        return None
    most, least = gaps[dimension]
    key, unit = ("minUnloadMessage", "msg/s") if by_rate else ("minUnloadMessageThroughput", "bytes/s")
    return Violation(
        f"two brokers are {most - least:,.0f} {unit} apart; {settings.max_unload_percentage:.0%} of that is "
        f"{moved[dimension]:,} {unit}, below {key}={minimums[dimension]:,}",
        {key: str(moved[dimension])} if moved[dimension] else {},
    )


def _apart(figures: np.ndarray) -> tuple[float, float]:
    """Greatest and least figure, as UniformLoadShedder finds them."""
    return float(figures.max()), not_zero(min(float(figures.min()), NO_MINIMUM))


@warning(
    source="AvgShedder (3.0.7 to 5.0.1)",
    remedy="lower minUnloadMessage and minUnloadMessageThroughput, or raise maxUnloadPercentage to 0.5 at most",
    shedder="AvgShedder",
    brokers=2,
)
def avg_minimum_is_reached(case: Case) -> Violation | None:
    """AvgShedder's minimum doesn't stop it once brokers are far apart.

    It pairs the busiest with the idlest broker and moves maxUnloadPercentage of the difference, and nothing if that is
    below both minimums.
    """
    settings = case.settings
    high, low = int(case.usage.argmax()), int(case.usage.argmin())
    points = 100 * float(case.usage[high] - case.usage[low])
    if points < settings.load_balancer_avg_shedder_low_threshold:
        return None
    messages = float(case.rate[high] - case.rate[low]) * settings.max_unload_percentage
    size = float(case.throughput[high] - case.throughput[low]) * settings.max_unload_percentage
    if messages > settings.min_unload_message or size > settings.min_unload_message_throughput:
        return None
    return Violation(
        f"{case.broker(high)} and {case.broker(low)} are {points:.0f} points apart, but what would move, "
        f"{max(messages, 0):,.0f} msg/s and {max(size, 0):,.0f} bytes/s, is not above "
        f"minUnloadMessage={settings.min_unload_message:,} and "
        f"minUnloadMessageThroughput={settings.min_unload_message_throughput:,}",
        # What moves must be more than the minimum.
        {"minUnloadMessage": str(math.ceil(messages) - 1)} if messages > 0 else {},
    )


@info(
    source="Pulsar's documentation of AvgShedder: 0.5 recommended",
    remedy="set maxUnloadPercentage=0.5",
    shedder="AvgShedder",
)
def avg_shedder_moves_half(case: Case) -> Violation | None:
    """AvgShedder moves half of the difference between two brokers.

    Half evens a pair out in one cycle; the default, made for UniformLoadShedder, takes many cycles.
    """
    moved = case.settings.max_unload_percentage
    if moved >= 0.5:
        return None
    return Violation(f"maxUnloadPercentage is {moved:g}", {"maxUnloadPercentage": "0.5"})


@warning(
    source="AvgShedder (3.0.7 to 5.0.1)",
    remedy="the high threshold needs more points and fewer cycles than the low one",
    shedder="AvgShedder",
)
def avg_thresholds_are_ordered(case: Case) -> Violation | None:
    """AvgShedder acts sooner on a large difference than on a small one.

    The high threshold exists to act after fewer cycles.
    """
    settings = case.settings
    low, high = settings.load_balancer_avg_shedder_low_threshold, settings.load_balancer_avg_shedder_high_threshold
    if low >= high:
        return Violation(f"the high threshold, {high}, is not above the low one, {low}")
    early, late = (
        settings.load_balancer_avg_shedder_hit_count_high_threshold,
        settings.load_balancer_avg_shedder_hit_count_low_threshold,
    )
    if early < late:
        return None
    return Violation(f"a difference of {high} points must last {early} cycles, one of only {low} points {late}")


@warning(
    source="TransferShedder (3.0.7 to 5.0.1)",
    remedy="lower loadBalancerBrokerLoadTargetStd",
    load_managers=("extensible",),
    brokers=1,
)
def target_deviation_can_be_exceeded(case: Case) -> Violation | None:
    """The brokers' usage can deviate by more than TransferShedder's target.

    Usage between 0 and 100% with mean m deviates by at most the root of m(1 - m). A target above that leaves only its
    two special cases: an almost idle broker, or an overloaded one.
    """
    mean, target = float(case.usage.mean().clip(0, 1)), case.settings.load_balancer_broker_load_target_std
    greatest = math.sqrt(mean * (1 - mean))
    if target < max(greatest, float(case.usage.std())):
        return None
    return Violation(
        f"at a mean of {mean:.1%} usage can't deviate by more than {greatest:.2f}, and the target is {target:g}",
        {"loadBalancerBrokerLoadTargetStd": f"{greatest / 4:.2g}"} if greatest > 0 else {},
    )


@warning(
    source="TransferShedder, TopKBundles (3.0.7 to 5.0.1)",
    remedy="raise loadBalancerMaxNumberOfBundlesInBundleLoadReport",
    load_managers=("extensible",),
    brokers=2,
)
def top_bundles_are_enough(case: Case) -> Violation | None:
    """The top bundles that brokers publish suffice to close the gap between two brokers.

    TransferShedder moves only bundles among the few that a broker publishes, and keeps one of them.
    """
    high, low = int(case.usage.argmax()), int(case.usage.argmin())
    if not case.usage[high] > max(case.usage[low], 0.0):
        return None
    published = case.settings.load_balancer_max_number_of_bundles_in_bundle_load_report
    sizes = np.sort(case.bundle_throughput[case.bundles_of(high)])[::-1]
    sizes = sizes[sizes > 0]
    goal = float(sizes.sum() * (case.usage[high] - case.usage[low]) / 2 / case.usage[high])
    # The lightest published bundles go first, and the heaviest stays.
    movable = float(sizes[1:published].sum())
    if len(sizes) <= published or movable >= goal:
        return None
    needed = int(np.searchsorted(np.cumsum(sizes[1:]), goal)) + 2
    return Violation(
        f"the {published} bundles that {case.broker(high)} publishes have at most {movable / sizes.sum():.0%} of its "
        f"throughput to move; closing the gap to {case.broker(low)} takes {goal / sizes.sum():.0%}",
        {"loadBalancerMaxNumberOfBundlesInBundleLoadReport": str(min(needed, len(sizes)))},
    )


@warning(
    source="UniformLoadShedder, AvgShedder, TransferShedder (2.11.0 to 5.0.1)", remedy="set the key to more than 0"
)
def shedder_may_move_something(case: Case) -> Violation | None:
    """The limits of the shedder allow at least one unload per cycle.

    A limit of 0 means none, not unlimited.
    """
    settings = case.settings
    limits: dict[str, dict[str, float]] = {
        "UniformLoadShedder": {
            "maxUnloadBundleNumPerShedding": settings.max_unload_bundle_num_per_shedding,
            "maxUnloadPercentage": settings.max_unload_percentage,
        },
        "AvgShedder": {"maxUnloadPercentage": settings.max_unload_percentage},
        "TransferShedder": {
            "loadBalancerMaxNumberOfBrokerSheddingPerCycle": (
                settings.load_balancer_max_number_of_broker_shedding_per_cycle
            ),
            "loadBalancerMaxNumberOfBundlesInBundleLoadReport": (
                settings.load_balancer_max_number_of_bundles_in_bundle_load_report
            ),
        },
    }
    unset = [f"{key}=0" for key, value in limits.get(case.own.shedder, {}).items() if value == 0]
    return Violation(f"{case.own.shedder} moves nothing with {' and '.join(unset)}") if unset else None


@warning(
    source="ModularLoadManagerImpl.doLoadShedding, UnloadScheduler (2.11.0 to 5.0.1)",
    remedy="set a grace period of several shedding intervals",
)
def grace_period_covers_cycles(case: Case) -> Violation | None:
    """A moved bundle is left alone for longer than one cycle.

    Reports and averages lag behind a move, so without a grace period the same bundle is moved again.
    """
    settings = case.settings
    grace, interval = (
        settings.load_balancer_shedding_grace_period_minutes,
        settings.load_balancer_shedding_interval_minutes,
    )
    if grace > interval:
        return None
    return Violation(
        f"the grace period is {grace} min, and a cycle takes {interval} min",
        {"loadBalancerSheddingGracePeriodMinutes": str(max(30, 2 * interval))},
    )
