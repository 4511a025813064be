"""`OverloadShedder`: relieve every broker whose usage reaches a fixed threshold.

What Pulsar does: a broker whose usage u reaches T = `loadBalancerBrokerOverloadedThresholdPercentage` / 100 gives up
bundles worth (u - T + 0.05) of its throughput, largest first, at least one, provided it has more than one bundle.
Nothing checks whether another broker has room.

Releases: u is the weighted maximum from 4.0 on (PIP-358), the unweighted one before.
Source: `org.apache.pulsar.broker.loadbalance.impl.OverloadShedder`, 2.11.0 to 5.0.1.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import NO_ROW
from pulsar_advisor.model.cluster.inputs import Input
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.load_data import LoadData, load_data
from pulsar_advisor.model.load.resource_usage import WEIGHT_KEYS
from pulsar_advisor.model.strategy.decision import SheddingDecision
from pulsar_advisor.model.strategy.memory import NoMemory
from pulsar_advisor.model.strategy.outcomes import Outcome, about_brokers, no, yes
from pulsar_advisor.shedding.candidates import greedy_take, in_result_order, rank, take_outcomes

READS: Final[frozenset[Input]] = frozenset(
    {"broker_usage", "broker_traffic", "broker_counts", "short_term_averages", "recent_unloads"}
)
SETTING_KEYS: Final = ("loadBalancerBrokerOverloadedThresholdPercentage", *WEIGHT_KEYS)

observe: Final = load_data

MARGIN: Final = 0.05
"""Added to the excess so that the broker ends a little below the threshold."""


class BrokerOutcome(Outcome):
    """The answers about a broker."""

    BELOW_THRESHOLD = no("usage {left:.2%} is below the overload threshold {right:.2%}", "<")
    ONE_BUNDLE = no("is overloaded, but lists {left:.0f} bundle(s): a broker keeps its last one", "<=")
    NOTHING_TO_MOVE = no("is overloaded, but none of its bundles is movable")
    OVERLOADED = yes("usage {left:.2%} has reached the overload threshold {right:.2%}", ">=")


Memory = NoMemory


@np.errstate(all="ignore")
def decide(load: LoadData, settings: LoadBalancerSettings, memory: Memory) -> tuple[SheddingDecision, Memory]:
    """One cycle of the shedder: what to unload from which broker, and why nothing from the others."""
    brokers = load.brokers
    threshold = settings.overloaded_ratio
    usage = brokers.overload_usage
    overloaded = ~(usage < threshold)
    several = brokers.published_bundles > 1

    sources = brokers.order[(overloaded & several)[brokers.order]]
    share = usage[sources] - threshold + MARGIN
    minimum = brokers.throughput_bytes_per_s()[sources] * share
    ranked = rank(load, sources, load.bundles.throughput_bytes_per_s())
    take = greedy_take(ranked, minimum)
    source, bundle = in_result_order(load, ranked, take.taken, settings)

    has_candidates = np.zeros(len(brokers.ids), dtype=np.bool_)
    has_candidates[sources[np.diff(ranked.starts) > 0]] = True
    code = np.where(has_candidates, BrokerOutcome.OVERLOADED.value, BrokerOutcome.NOTHING_TO_MOVE.value)
    code[~several] = BrokerOutcome.ONE_BUNDLE.value
    code[~overloaded] = BrokerOutcome.BELOW_THRESHOLD.value
    one_bundle, order = code == BrokerOutcome.ONE_BUNDLE.value, brokers.order
    decision = SheddingDecision(
        source=source,
        bundle=bundle,
        destination=np.full(len(bundle), NO_ROW, dtype=np.int32),
        brokers=about_brokers(
            order,
            BrokerOutcome,
            code[order],
            np.where(one_bundle, brokers.published_bundles, usage)[order],
            np.where(one_bundle, 1.0, threshold)[order],
        ),
        bundles=take_outcomes(load, ranked, take, minimum[ranked.source_position()]),
        figures={"threshold_ratio": threshold},
    )
    return decision, memory
