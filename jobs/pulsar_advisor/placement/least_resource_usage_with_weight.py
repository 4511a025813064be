"""`LeastResourceUsageWithWeight` of the Modular manager: a broker far enough below the candidates' mean usage.

What Pulsar does: every choice advances a smoothed weighted usage of each candidate, history × h + (1 - h) × usage;
a broker without bundles or messages starts afresh. The draw is among candidates whose smoothed usage plus
`loadBalancerAverageResourceUsageDifferenceThresholdPercentage` / 100 is at most the candidates' mean;
failing that, among all candidates, the busiest included.

Releases: up to 2.11 an idle broker keeps its history, and the heap counts.
Source: `org.apache.pulsar.broker.loadbalance.impl.LeastResourceUsageWithWeight`, 2.11.0 to 5.0.1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import RATE_IN, RATE_OUT, Booleans, Floats, Indices
from pulsar_advisor.model.cluster.inputs import Input
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.load_data import LoadData, load_data
from pulsar_advisor.model.load.resource_usage import WEIGHT_KEYS
from pulsar_advisor.model.strategy.decision import PlacementDecision
from pulsar_advisor.model.strategy.outcomes import Outcome, about_brokers, no, yes

READS: Final[frozenset[Input]] = frozenset({"broker_usage", "broker_traffic", "broker_counts"})
SETTING_KEYS: Final = (
    "loadBalancerAverageResourceUsageDifferenceThresholdPercentage",
    "loadBalancerHistoryResourcePercentage",
    *WEIGHT_KEYS,
)

observe: Final = load_data

_IDLE_STARTS_AFRESH: Final = (3, 0, 0)


class BrokerOutcome(Outcome):
    """The answers about a candidate."""

    NEAR_MEAN = no("smoothed usage plus the required distance, {left:.2%}, is above the mean {right:.2%}", ">")
    BELOW_MEAN = yes("smoothed usage plus the required distance, {left:.2%}, is within the mean {right:.2%}", "<=")
    NONE_BELOW = yes("{left:.2%} is above the mean {right:.2%}, but so is every candidate's", ">")


@dataclass(frozen=True, eq=False)
class Memory:
    """Smoothed usage of each broker; advances with every choice, not with time."""

    brokers: tuple[str, ...] = ()
    usage: Floats = field(default_factory=lambda: np.empty(0))
    """Ratio, parallel to `brokers`."""
    known: Booleans = field(default_factory=lambda: np.empty(0, dtype=np.bool_))
    """Whether there is any history, parallel to `brokers`."""

    @property
    def history(self) -> dict[str, float]:
        """Smoothed usage by broker id."""
        rows = np.flatnonzero(self.known)
        return {self.brokers[row]: float(self.usage[row]) for row in rows}

    def beside(self, brokers: tuple[str, ...]) -> Memory:
        """The same memory with a row for each of `brokers`; others are forgotten, as the leader does since 3.0."""
        if brokers is self.brokers:
            return self
        history = self.history
        known = np.array([broker in history for broker in brokers], dtype=np.bool_)
        return Memory(brokers, np.array([history.get(broker, 0.0) for broker in brokers]), known)


@np.errstate(all="ignore")
def choose(
    load: LoadData, candidates: Indices, _bundle: int, settings: LoadBalancerSettings, memory: Memory
) -> tuple[PlacementDecision, Memory]:
    """Brokers from which Pulsar draws for one bundle out of `candidates` (rows, in iteration order)."""
    brokers = load.brokers
    keep = settings.load_balancer_history_resource_percentage
    required = settings.load_balancer_average_resource_usage_difference_threshold_percentage / 100.0
    usage = brokers.weighted_usage[candidates]
    memory = memory.beside(brokers.ids)
    remembered = memory.known[candidates]
    if settings.behaviour >= _IDLE_STARTS_AFRESH:
        remembered = remembered & ~_idle(load, candidates)
    smoothed = np.where(remembered, memory.usage[candidates] * keep + (1 - keep) * usage, usage)
    mean = np.add.accumulate(smoothed)[-1] / len(smoothed) if len(smoothed) else 0.0
    code = np.where(smoothed + required <= mean, BrokerOutcome.BELOW_MEAN.value, BrokerOutcome.NEAR_MEAN.value)
    if not (code == BrokerOutcome.BELOW_MEAN.value).any():
        code[:] = BrokerOutcome.NONE_BELOW.value
    outcomes = about_brokers(candidates, BrokerOutcome, code, smoothed + required, mean)
    advanced, known = memory.usage.copy(), memory.known.copy()
    advanced[candidates], known[candidates] = smoothed, True
    return PlacementDecision(candidates[outcomes.chosen()], outcomes), Memory(brokers.ids, advanced, known)


def _idle(load: LoadData, candidates: Indices) -> Booleans:
    rates = load.brokers.traffic[candidates][:, (RATE_IN, RATE_OUT)]
    idle: Booleans = (load.brokers.published_bundles[candidates] == 0) | (rates == 0).all(axis=1)
    return idle
