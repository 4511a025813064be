"""`MostTopicsShedder`, an example: relieve brokers that serve many more topics than the mean.

A broker whose bundles hold more loaded topics than mean × (1 + T), T = `loadBalancerBrokerThresholdShedderPercentage` /
100, gives up bundles, those with most topics first and at least one, until the rest is no more than the mean. One that
lists a single bundle keeps it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, Floats
from pulsar_advisor.model.cluster.inputs import Input
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.load_data import LoadData, load_data
from pulsar_advisor.model.strategy.decision import SheddingDecision
from pulsar_advisor.model.strategy.memory import NoMemory
from pulsar_advisor.model.strategy.outcomes import Outcome, about_brokers, no, yes
from pulsar_advisor.shedding.candidates import bundle_outcomes, greedy_take, in_result_order, rank

READS: Final[frozenset[Input]] = frozenset({"broker_counts", "bundle_counts", "recent_unloads"})
SETTING_KEYS: Final = ("loadBalancerBrokerThresholdShedderPercentage",)

observe: Final = load_data


class BrokerOutcome(Outcome):
    """What is answered about a broker."""

    NEAR_MEAN = no("{left:,.0f} topics are not above mean plus threshold, {right:,.1f}", "<=")
    ONE_BUNDLE = no("has many topics, but lists {left:.0f} bundle(s): a broker keeps its last one", "<=")
    NOTHING_TO_MOVE = no("has many topics, but none of its bundles is movable")
    MANY_TOPICS = yes("{left:,.0f} topics are above mean plus threshold, {right:,.1f}", ">")


class BundleOutcome(Outcome):
    """What is answered about a bundle."""

    ENOUGH_MOVED = no("{left:,.0f} topics move without it; {right:,.1f} are enough", ">=")
    MOST_TOPICS = yes("has most topics of those left: {left:,.0f} move without it, {right:,.1f} should", "<")


Memory = NoMemory


def decide(load: LoadData, settings: LoadBalancerSettings, memory: NoMemory) -> tuple[SheddingDecision, NoMemory]:
    """One cycle of the shedder: what to unload from which broker, and why not from the others."""
    brokers, order = load.brokers, load.brokers.order
    held = _topics_of_brokers(load)
    mean = float(held[order].mean()) if len(order) else 0.0
    most = mean * (1 + settings.load_balancer_broker_threshold_shedder_percentage / 100)
    several = brokers.published_bundles > 1
    sources = order[(held > most)[order] & several[order]]
    ranked = rank(load, sources, load.bundles.topics.astype(np.float64))
    take = greedy_take(ranked, held[sources] - mean)
    source, bundle = in_result_order(load, ranked, take.taken, settings)

    code = np.where(held > most, BrokerOutcome.MANY_TOPICS, BrokerOutcome.NEAR_MEAN)
    code[(held > most) & ~several] = BrokerOutcome.ONE_BUNDLE
    code[sources[np.diff(ranked.starts) == 0]] = BrokerOutcome.NOTHING_TO_MOVE
    one_bundle = code == BrokerOutcome.ONE_BUNDLE
    left, right = np.where(one_bundle, brokers.published_bundles, held), np.where(one_bundle, 1.0, most)
    answers = np.where(take.taken, BundleOutcome.MOST_TOPICS, BundleOutcome.ENOUGH_MOVED).astype(np.uint8)
    enough = (held[sources] - mean)[ranked.source_position()]
    decision = SheddingDecision(
        source=source,
        bundle=bundle,
        destination=np.full(len(bundle), NO_ROW, dtype=np.int32),
        brokers=about_brokers(order, BrokerOutcome, code[order], left[order], right[order]),
        bundles=bundle_outcomes(load, ranked, BundleOutcome, answers, take.taken_before, enough),
        figures={"mean_topics": mean},
    )
    return decision, memory


def _topics_of_brokers(load: LoadData) -> Floats:
    """Loaded topics in the bundles that each broker lists."""
    held = np.zeros(len(load.brokers.ids))
    for members in (load.candidates, load.excluded):
        broker = np.repeat(np.arange(len(held)), np.diff(members.offsets))
        np.add.at(held, broker, load.bundles.topics[members.bundle])
    return held
