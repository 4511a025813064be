"""`LeastResourceUsageWithWeight` of the Modular manager: a broker far enough below the candidates' mean usage.

What Pulsar does: every choice advances a smoothed weighted usage of each candidate, history × h + (1 - h) × usage;
a broker without bundles or messages starts afresh. Candidates whose smoothed usage plus
`loadBalancerAverageResourceUsageDifferenceThresholdPercentage` / 100 is at most the candidates' mean are drawn among;
if there is none, all candidates are, the busiest included.

Releases: up to 2.11 an idle broker keeps its history, and the heap counts.
Source: `org.apache.pulsar.broker.loadbalance.impl.LeastResourceUsageWithWeight`, 2.11.0 to 5.0.1.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from pulsar_advisor.model.cluster_state import Indices
from pulsar_advisor.model.decision import PlacementDecision
from pulsar_advisor.model.load_data import RATE_IN, RATE_OUT, LoadData, load_data
from pulsar_advisor.model.outcomes import Outcome, Outcomes
from pulsar_advisor.model.resource_usage import WEIGHT_KEYS, weighted_maximum
from pulsar_advisor.model.settings import LoadBalancerSettings

SETTING_KEYS: Final = (
    "loadBalancerAverageResourceUsageDifferenceThresholdPercentage",
    "loadBalancerHistoryResourcePercentage",
    *WEIGHT_KEYS,
)

observe: Final = load_data
"""How the input of `choose` is made from a cluster state."""

_IDLE_STARTS_AFRESH: Final = (3, 0, 0)

OUTCOMES: Final = (
    Outcome(
        "near_mean", False, ">", "smoothed usage plus the required distance, {left:.2%}, is above the mean {right:.2%}"
    ),
    Outcome(
        "below_mean",
        True,
        "<=",
        "smoothed usage plus the required distance, {left:.2%}, is within the mean {right:.2%}",
    ),
    Outcome("none_below", True, ">", "{left:.2%} is above the mean {right:.2%}, but so is every candidate's"),
)
NEAR_MEAN, BELOW_MEAN, NONE_BELOW = range(3)


@dataclass(frozen=True)
class Memory:
    """Smoothed usage (ratio) by broker id; advances with every choice, not with time."""

    history: Mapping[str, float] = field(default_factory=dict)


def forget_departed(memory: Memory, active: Collection[str]) -> Memory:
    """What the leader does when brokers come or go (since 3.0): only active brokers keep their history."""
    return Memory({broker: usage for broker, usage in memory.history.items() if broker in active})


def choose(
    load: LoadData, candidates: Indices, _bundle: int, settings: LoadBalancerSettings, memory: Memory
) -> tuple[PlacementDecision, Memory]:
    """Brokers among which Pulsar draws for one bundle out of `candidates` (rows, in iteration order)."""
    brokers = load.brokers
    keep = settings.load_balancer_history_resource_percentage
    required = settings.load_balancer_average_resource_usage_difference_threshold_percentage / 100.0
    usage = weighted_maximum(brokers.usage[candidates], brokers.limit[candidates], settings)
    history = dict(memory.history)
    smoothed = usage.copy()
    for place, row in enumerate(candidates.tolist()):
        broker = brokers.ids[row]
        if settings.behaviour >= _IDLE_STARTS_AFRESH and _idle(load, row):
            history.pop(broker, None)
        if broker in history:
            smoothed[place] = history[broker] * keep + (1 - keep) * usage[place]
        history[broker] = float(smoothed[place])
    with np.errstate(invalid="ignore"):
        mean = np.add.accumulate(smoothed)[-1] / len(smoothed) if len(smoothed) else 0.0
        code = np.where(smoothed + required <= mean, BELOW_MEAN, NEAR_MEAN).astype(np.uint8)
    if not (code == BELOW_MEAN).any():
        code[:] = NONE_BELOW
    outcomes = Outcomes("broker", OUTCOMES, candidates, code, smoothed + required, np.full(len(candidates), mean))
    return PlacementDecision(candidates[code != NEAR_MEAN], outcomes), Memory(history)


def _idle(load: LoadData, row: int) -> bool:
    rate_in, rate_out = load.brokers.traffic[row, RATE_IN], load.brokers.traffic[row, RATE_OUT]
    return bool(load.brokers.published_bundles[row] == 0 or (rate_in == 0 and rate_out == 0))
