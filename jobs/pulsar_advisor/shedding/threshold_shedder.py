"""`ThresholdShedder`, Pulsar's default: relieve brokers whose smoothed usage is well above the mean.

What Pulsar does: usage is smoothed per broker (history × h + (1 - h) × sample). A broker at or above mean + T, with
T = `loadBalancerBrokerThresholdShedderPercentage` / 100, gives up bundles worth (usage - mean - T + 0.05) of its
throughput, largest first and at least one, if that is worth `loadBalancerBundleUnloadMinThroughputThreshold` MiB/s and
the broker has more than one bundle. If nothing was selected and `lowerBoundarySheddingEnabled`: where some broker is
below mean - T, the busiest broker gives up half of T of its throughput. That second pass smooths the usage once more.

Releases: the heap counts in the usage up to 2.11.
Source: `org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder`, 2.11.0 to 5.0.1.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, Floats, Indices
from pulsar_advisor.model.cluster.inputs import Input
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.load_data import BrokerLoad, LoadData, load_data
from pulsar_advisor.model.load.resource_usage import WEIGHT_KEYS
from pulsar_advisor.model.strategy.decision import SheddingDecision
from pulsar_advisor.model.strategy.memory import ShedderMemory
from pulsar_advisor.model.strategy.outcomes import Outcome, Record, no, yes
from pulsar_advisor.shedding.candidates import RankedBundles, Take, greedy_take, in_result_order, rank, take_outcomes

READS: Final[frozenset[Input]] = frozenset(
    {"broker_usage", "broker_traffic", "broker_counts", "short_term_averages", "recent_unloads"}
)
SETTING_KEYS: Final = (
    "loadBalancerBrokerThresholdShedderPercentage",
    "loadBalancerHistoryResourcePercentage",
    "loadBalancerBundleUnloadMinThroughputThreshold",
    "lowerBoundarySheddingEnabled",
    *WEIGHT_KEYS,
)

observe: Final = load_data

MARGIN: Final = 0.05
"""Added to the excess so that the broker ends below mean + T."""

LOWER_BOUNDARY_FACTOR: Final = 0.5
MIB: Final = 1024 * 1024


class BrokerOutcome(Outcome):
    """The answers about a broker."""

    NEAR_MEAN = no("smoothed usage {left:.2%} is below mean plus threshold {right:.2%}", "<")
    TOO_LITTLE_TO_MOVE = no(
        "is above mean plus threshold, but only {left:,.0f} B/s would move; the minimum is {right:,.0f}", "<"
    )
    ONE_BUNDLE = no("is above mean plus threshold, but lists {left:.0f} bundle(s): a broker keeps its last one", "<=")
    NOTHING_TO_MOVE = no("is above mean plus threshold, but none of its bundles is movable")
    ABOVE_MEAN = yes("smoothed usage {left:.2%} has reached mean plus threshold {right:.2%}", ">=")
    NO_LOAD = no("the mean usage of all brokers is {left:.2%}: nothing to balance", "==")
    TOO_LITTLE_FOR_IDLE = no(
        "is the busiest while another is idle, but only {left:,.0f} B/s would move; the minimum is {right:,.0f}", "<"
    )
    NOTHING_FOR_IDLE = no("is the busiest while another is idle, but none of its bundles is movable")
    GIVES_TO_IDLE = yes("busiest broker ({left:.2%}) while another is below mean minus threshold {right:.2%}", ">")


@dataclass(frozen=True)
class Memory(ShedderMemory):
    """Smoothed usage (ratio) by broker id; empty after a change of leader."""

    history: Mapping[str, float] = field(default_factory=dict)

    def forget_departed(self, active: Collection[str], /) -> Memory:
        """Only active brokers keep their history."""
        return Memory({broker: usage for broker, usage in self.history.items() if broker in active})


@np.errstate(all="ignore")
def decide(load: LoadData, settings: LoadBalancerSettings, memory: Memory) -> tuple[SheddingDecision, Memory]:
    """One cycle of the shedder: what to unload from which broker, and why nothing from the others."""
    brokers = load.brokers
    threshold = settings.load_balancer_broker_threshold_shedder_percentage / 100.0
    worth_moving = settings.load_balancer_bundle_unload_min_throughput_threshold * MIB
    sample = brokers.weighted_usage
    memory, usage, mean = _smooth(brokers, sample, settings, memory)

    if mean == 0:
        answers = Record.of(len(brokers.ids), BrokerOutcome.NO_LOAD, 0.0, 0.0)
        nothing = _take(load, np.empty(0, dtype=np.int32), np.empty(0))
        return _decision(load, answers, nothing, mean, settings), memory

    share = usage - mean - threshold + MARGIN
    minimum = brokers.throughput_bytes_per_s() * share
    code = np.full(len(brokers.ids), BrokerOutcome.ABOVE_MEAN.value, dtype=np.uint8)
    code[brokers.published_bundles <= 1] = BrokerOutcome.ONE_BUNDLE.value
    code[minimum < worth_moving] = BrokerOutcome.TOO_LITTLE_TO_MOVE.value
    code[usage < mean + threshold] = BrokerOutcome.NEAR_MEAN.value
    selection = _take(load, brokers.order[code[brokers.order] == BrokerOutcome.ABOVE_MEAN.value], minimum)
    ranked = selection[0]
    code[ranked.sources[np.diff(ranked.starts) == 0]] = BrokerOutcome.NOTHING_TO_MOVE.value
    left: Floats = np.choose(code, (usage, minimum, brokers.published_bundles, usage, usage))
    right: Floats = np.choose(code, (mean + threshold, worth_moving, 1.0, mean + threshold, mean + threshold))
    answers = Record(code, left, right)

    if settings.lower_boundary_shedding_enabled and not selection[1].taken.any():
        memory, usage, mean = _smooth(brokers, sample, settings, memory)
        lower = mean - threshold
        giver = _busiest_above(brokers, usage, lower)
        if giver != NO_ROW and (usage[brokers.order] < lower).any():
            minimum = brokers.throughput_bytes_per_s() * threshold * LOWER_BOUNDARY_FACTOR
            if worth_moving > minimum[giver]:
                answers.record(giver, BrokerOutcome.TOO_LITTLE_FOR_IDLE, minimum[giver], worth_moving)
            else:
                selection = _take(load, np.array([giver], dtype=np.int32), minimum)
                found = selection[1].taken.any()
                answer = BrokerOutcome.GIVES_TO_IDLE if found else BrokerOutcome.NOTHING_FOR_IDLE
                answers.record(giver, answer, usage[giver], lower)
    return _decision(load, answers, selection, mean, settings), memory


def _smooth(
    brokers: BrokerLoad, sample: Floats, settings: LoadBalancerSettings, memory: Memory
) -> tuple[Memory, Floats, float]:
    """Advance the history by one sample; returns smoothed usage by broker row, and its mean, added in Java's order."""
    keep = settings.load_balancer_history_resource_percentage
    usage = sample.copy()
    for row in brokers.order.tolist():
        past = memory.history.get(brokers.ids[row])
        if past is not None:
            usage[row] = past * keep + (1 - keep) * sample[row]
    in_order = usage[brokers.order]
    mean = float(np.add.accumulate(in_order)[-1] / len(in_order)) if len(in_order) else 0.0
    advanced = {brokers.ids[row]: value for row, value in zip(brokers.order.tolist(), in_order.tolist(), strict=True)}
    return Memory({**memory.history, **advanced}), usage, mean


def _busiest_above(brokers: BrokerLoad, usage: Floats, lower: float) -> int:
    """First of the busiest brokers with more than one bundle and usage above `lower`; NO_ROW without one."""
    eligible = brokers.order[(brokers.published_bundles > 1)[brokers.order] & (usage[brokers.order] > lower)]
    return int(eligible[np.argmax(usage[eligible])]) if len(eligible) else NO_ROW


Selection = tuple[RankedBundles, Take, Floats]


def _take(load: LoadData, sources: Indices, minimum: Floats) -> Selection:
    """`minimum` is per broker row; the last part of the answer is parallel to the ranked bundles."""
    ranked = rank(load, sources, load.bundles.throughput_bytes_per_s())
    return ranked, greedy_take(ranked, minimum[sources]), minimum[sources][ranked.source_position()]


def _decision(
    load: LoadData, answers: Record, selection: Selection, mean: float, settings: LoadBalancerSettings
) -> SheddingDecision:
    ranked, take, planned = selection
    source, bundle = in_result_order(load, ranked, take.taken, settings)
    return SheddingDecision(
        source=source,
        bundle=bundle,
        destination=np.full(len(bundle), NO_ROW, dtype=np.int32),
        brokers=answers.about_brokers(load.brokers.order, BrokerOutcome),
        bundles=take_outcomes(load, ranked, take, planned),
        figures={"mean_usage_ratio": mean},
    )
