"""`SimpleLoadManagerImpl`'s own shedding: one bundle from every overloaded broker if another broker is comfortable.

What Pulsar does: a broker is overloaded when its percentage of bandwidth out, bandwidth in, CPU or direct memory is
above `loadBalancerBrokerOverloadedThresholdPercentage`. The greatest of CPU, memory, bandwidth in and out determines
how its bundles are sorted (message rate, connections, bandwidth), and the first bundle goes, provided the broker has
others and some broker it may go to has each of the first four below `loadBalancerBrokerComfortLoadLevelPercentage`.
Memory can be the bottleneck but never makes a broker overloaded; for direct memory it is the reverse.

Releases: how bundles compare changed in 4.0 (see `model.load.top_bundles`); before, which one is first depends on the
order in which a tree compares them.
Source: `org.apache.pulsar.broker.loadbalance.impl.SimpleLoadManagerImpl.doLoadShedding`, 2.11.0 to 5.0.1.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import (
    BANDWIDTH_IN,
    BANDWIDTH_OUT,
    CPU,
    DIRECT_MEMORY,
    MEMORY,
    NO_ROW,
    THROUGHPUT_IN,
    THROUGHPUT_OUT,
    Booleans,
    Floats,
    Integers,
    rate_per_s,
)
from pulsar_advisor.model.cluster.inputs import Input
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.java.maps import hash_map_order
from pulsar_advisor.model.load.resource_usage import percent
from pulsar_advisor.model.load.simple_load import SimpleLoad, simple_load
from pulsar_advisor.model.load.top_bundles import greatest
from pulsar_advisor.model.strategy.decision import SheddingDecision
from pulsar_advisor.model.strategy.memory import NoMemory
from pulsar_advisor.model.strategy.outcomes import Outcome, Outcomes, Record, no, vocabulary, yes

READS: Final[frozenset[Input]] = frozenset({"broker_usage", "bundle_traffic", "bundle_counts", "recent_unloads"})
SETTING_KEYS: Final = (
    "loadBalancerBrokerOverloadedThresholdPercentage",
    "loadBalancerBrokerComfortLoadLevelPercentage",
    "loadBalancerSheddingGracePeriodMinutes",
)

observe: Final = simple_load

WATCHED: Final = (BANDWIDTH_OUT, BANDWIDTH_IN, CPU, DIRECT_MEMORY)
BOTTLENECKS: Final = (CPU, MEMORY, BANDWIDTH_IN, BANDWIDTH_OUT)
SORTED_BY: Final = ("byMsgRate", "byTopicConnections", "byBandwidthIn", "byBandwidthOut")
"""Criterion of the bundles for each of BOTTLENECKS."""


class BrokerOutcome(Outcome):
    """The answers about a broker."""

    NOT_OVERLOADED = no("busiest resource {left:.1f}% is not above the overload threshold {right:.0f}%", "<=")
    ONE_BUNDLE = no("is overloaded, but reports {left:.0f} bundle(s): a broker keeps its last one", "<=")
    NOBODY_COMFORTABLE = no("is overloaded; the idlest broker has {left:.1f}%, the comfort level is {right:.0f}%", ">=")
    RECENTLY_UNLOADED = no("is overloaded, but its first bundle was unloaded within the grace period")
    OVERLOADED = yes("busiest resource {left:.1f}% is above the overload threshold {right:.0f}%", ">")


class BundleOutcome(Outcome):
    """The answers about a bundle."""

    FIRST = yes("is the first by its broker's bottleneck resource")
    NOBODY_COMFORTABLE = no("is the first of its broker, but no broker is comfortable enough to take it")
    RECENTLY_UNLOADED = no("is the first of its broker, but was unloaded within the grace period")
    NOT_FIRST = no("is not the first of its broker, and only that one is considered")


Memory = NoMemory


@np.errstate(all="ignore")
def decide(load: SimpleLoad, settings: LoadBalancerSettings, memory: Memory) -> tuple[SheddingDecision, Memory]:
    """One cycle: what to unload from which broker, and why nothing from the others."""
    overload = settings.load_balancer_broker_overloaded_threshold_percentage
    comfort = settings.load_balancer_broker_comfort_load_level_percentage
    shares = percent(load.usage, load.limit)
    busiest = np.fmax.reduce(shares[:, WATCHED], axis=1, initial=np.float32(-np.inf)).astype(np.float64)
    rows = load.reporting
    code = np.where(busiest > overload, BrokerOutcome.OVERLOADED, BrokerOutcome.NOT_OVERLOADED).astype(np.uint8)
    of_brokers = Record(code, busiest.copy(), np.full(len(busiest), float(overload)))

    answers: list[tuple[int, int]] = []
    marked: list[tuple[int, int]] = []
    for broker in rows[code[rows] == BrokerOutcome.OVERLOADED].tolist():
        reported = load.reports.of(broker)
        if len(reported) <= 1:
            of_brokers.record(broker, BrokerOutcome.ONE_BUNDLE, len(reported), 1)
            continue
        first = _first(load, broker, SORTED_BY[_bottleneck(shares[broker])], settings)
        idlest = _idlest(load, load.allowed(first), shares)
        answer = BundleOutcome.FIRST if idlest < comfort else BundleOutcome.NOBODY_COMFORTABLE
        if answer == BundleOutcome.NOBODY_COMFORTABLE:
            of_brokers.record(broker, BrokerOutcome.NOBODY_COMFORTABLE, idlest, comfort)
        else:
            marked.append((broker, first))
            if load.recently_unloaded[first]:
                code[broker], answer = BrokerOutcome.RECENTLY_UNLOADED, BundleOutcome.RECENTLY_UNLOADED
        # numpy reads plain integers several times faster than enumeration members.
        of_first, of_others = int(answer), int(BundleOutcome.NOT_FIRST)
        answers += [(row, of_first if row == first else of_others) for row in reported.tolist()]

    moves = [
        marked[position]
        for position in hash_map_order(load.broker_hashes[[broker for broker, _ in marked]])
        if not load.recently_unloaded[marked[position][1]]
    ]
    moved = np.array(moves, dtype=np.int32).reshape(-1, 2)
    judged = np.array(answers, dtype=np.int32).reshape(-1, 2)
    nothing = np.full(len(judged), np.nan)
    decision = SheddingDecision(
        source=moved[:, 0],
        bundle=moved[:, 1],
        destination=np.full(len(moved), NO_ROW, dtype=np.int32),
        brokers=of_brokers.about_brokers(rows, BrokerOutcome),
        bundles=Outcomes(
            "bundle", vocabulary(BundleOutcome), judged[:, 0], judged[:, 1].astype(np.uint8), nothing, nothing
        ),
        figures={"overload_percent": overload, "comfort_percent": comfort},
    )
    return decision, memory


def _bottleneck(shares: np.ndarray[tuple[int], np.dtype[np.float32]]) -> int:
    """Position in BOTTLENECKS of the greatest share; CPU if its share isn't a number, because nothing is above that."""
    return 0 if np.isnan(shares[CPU]) else int(np.nanargmax(shares[list(BOTTLENECKS)]))


def _first(load: SimpleLoad, broker: int, criterion: str, settings: LoadBalancerSettings) -> int:
    """The broker's greatest bundle; among equals, the first in its report."""
    rows, bundles = load.reports.of(broker), load.bundles
    traffic = bundles.traffic[rows]
    figures: Floats | Integers
    match criterion:
        case "byMsgRate":
            figures = rate_per_s(traffic)
        case "byTopicConnections":
            figures = bundles.topics[rows] + bundles.producers[rows] + bundles.consumers[rows]
        case "byBandwidthIn":
            figures = traffic[:, THROUGHPUT_IN]
        case _:
            figures = traffic[:, THROUGHPUT_OUT]
    return int(rows[greatest(criterion, figures, settings)])


def _idlest(load: SimpleLoad, allowed: Booleans, shares: np.ndarray[tuple[int, int], np.dtype[np.float32]]) -> float:
    """The lowest maximum usage (percent) among the brokers a bundle may go to, its own included, as in Pulsar."""
    candidates = load.reporting[allowed[load.reporting]]
    # A usage that isn't a number isn't below the comfort level either.
    return float(np.fmin.reduce(shares[candidates][:, WATCHED].max(axis=1), initial=np.float32(np.inf)))
