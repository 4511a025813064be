"""`LeastLongTermMessageRate`, the Modular manager's default placement: the lowest long-term message rate wins.

What Pulsar does: a candidate's score is the long-term rate (in + out) of its bundles, plus that of bundles on their way
to it; +infinity if its usage is above `loadBalancerBrokerOverloadedThresholdPercentage`. The lowest score wins, equal
scores by a random draw; if every candidate is overloaded, the draw is among all.

Releases: usage is the weighted maximum from 4.0 on (PIP-358), the unweighted one before.
Source: `org.apache.pulsar.broker.loadbalance.impl.LeastLongTermMessageRate`, 2.11.0 to 5.0.1.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import Booleans, Floats, Indices
from pulsar_advisor.model.cluster.inputs import Input
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.load_data import BrokerLoad, LoadData, load_data
from pulsar_advisor.model.load.resource_usage import WEIGHT_KEYS
from pulsar_advisor.model.strategy.decision import PlacementDecision
from pulsar_advisor.model.strategy.memory import NoMemory
from pulsar_advisor.model.strategy.outcomes import Outcome, about_brokers, no, yes

READS: Final[frozenset[Input]] = frozenset({"broker_usage", "long_term_averages"})
SETTING_KEYS: Final = ("loadBalancerBrokerOverloadedThresholdPercentage", *WEIGHT_KEYS)

observe: Final = load_data


class BrokerOutcome(Outcome):
    """The answers about a candidate."""

    HIGHER_RATE = no("long-term rate {left:,.1f} msg/s is above the lowest, {right:,.1f} msg/s", ">")
    OVERLOADED = no("usage {left:.2%} is above the overload threshold {right:.2%}", ">")
    LOWEST_RATE = yes("long-term rate {left:,.1f} msg/s is the lowest, the next one is {right:,.1f} msg/s", "<=")
    ONLY_ONE = yes("long-term rate {left:,.1f} msg/s: no other candidate has one that counts")
    ALL_OVERLOADED = yes("usage {left:.2%} is above the threshold {right:.2%}, as every candidate's is", ">")
    NOTHING_COMPARABLE = yes("no candidate has a comparable rate, so the choice is random among all")


Memory = NoMemory


@np.errstate(all="ignore")
def choose(
    load: LoadData, candidates: Indices, _bundle: int, settings: LoadBalancerSettings, memory: Memory
) -> tuple[PlacementDecision, Memory]:
    """Brokers from which Pulsar draws for one bundle (a row) out of `candidates` (rows, in iteration order)."""
    brokers = load.brokers
    threshold = settings.overloaded_ratio
    usage = brokers.overload_usage[candidates]
    rate = brokers.preallocated_rate_per_s[candidates] + brokers.long_term_rate_per_s[candidates]
    overloaded = usage > threshold
    score = np.where(overloaded, np.inf, rate)
    lowest, next_lowest = np.sort(np.append(np.where(np.isnan(score), np.inf, score), (np.inf, np.inf)))[:2]
    best = score == lowest
    code = np.where(
        best,
        BrokerOutcome.LOWEST_RATE.value if np.isfinite(next_lowest) else BrokerOutcome.ONLY_ONE.value,
        np.where(overloaded, BrokerOutcome.OVERLOADED.value, BrokerOutcome.HIGHER_RATE.value),
    )
    code[best & overloaded] = BrokerOutcome.ALL_OVERLOADED.value
    if not best.any():
        best[:], code[:] = True, BrokerOutcome.NOTHING_COMPARABLE.value
    by_usage = overloaded & (code != BrokerOutcome.NOTHING_COMPARABLE.value)
    left = np.where(by_usage, usage, rate)
    right = np.where(by_usage, threshold, np.where(best, next_lowest, lowest))
    outcomes = about_brokers(candidates, BrokerOutcome, code, left, right)
    return PlacementDecision(candidates[best], outcomes, _perhaps_lowest(brokers, candidates, score, best)), memory


def _perhaps_lowest(brokers: BrokerLoad, candidates: Indices, score: Floats, best: Booleans) -> Indices | None:
    """Every candidate whose score may be the lowest, since only a sample is known of an average that isn't stored.

    The leader starts an average anew when the bundle moves. Clients are still arriving when it takes the first samples,
    so the average lies between zero and the present rate.
    """
    if brokers.unstored_rate_per_s is None:
        return None
    may_be = score - brokers.unstored_rate_per_s[candidates] <= np.fmin.reduce(score, initial=np.inf)
    return None if (may_be == best).all() else candidates[may_be | best]
