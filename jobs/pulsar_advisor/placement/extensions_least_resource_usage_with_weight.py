"""`LeastResourceUsageWithWeight` of the Extensible manager: a broker far enough below the candidates' mean load.

What Pulsar does: it draws among the candidates with load data whose load (smoothed weighted maximum) plus
`loadBalancerAverageResourceUsageDifferenceThresholdPercentage` / 100 is at most their mean; failing that, among all
candidates, with data or without.

Source: `org.apache.pulsar.broker.loadbalance.extensions.strategy.LeastResourceUsageWithWeight`, 3.0.7 to 5.0.1.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import Indices
from pulsar_advisor.model.cluster.inputs import Input
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.extensible_load import ExtensibleLoad, extensible_load
from pulsar_advisor.model.load.resource_usage import WEIGHT_KEYS
from pulsar_advisor.model.strategy.decision import PlacementDecision
from pulsar_advisor.model.strategy.memory import NoMemory
from pulsar_advisor.model.strategy.outcomes import Outcome, about_brokers, no, yes

READS: Final[frozenset[Input]] = frozenset({"broker_usage"})
SETTING_KEYS: Final = (
    "loadBalancerAverageResourceUsageDifferenceThresholdPercentage",
    "loadBalancerHistoryResourcePercentage",
    *WEIGHT_KEYS,
)

observe: Final = extensible_load


class BrokerOutcome(Outcome):
    """The answers about a candidate."""

    NO_LOAD_DATA = no("has no load data")
    NEAR_MEAN = no("load plus the required distance, {left:.2%}, is above the mean {right:.2%}", ">")
    BELOW_MEAN = yes("load plus the required distance, {left:.2%}, is within the mean {right:.2%}", "<=")
    NONE_BELOW = yes("no candidate is far enough below the mean {right:.2%}, so the choice is random among all")


Memory = NoMemory


@np.errstate(all="ignore")
def choose(
    load: ExtensibleLoad, candidates: Indices, _bundle: int, settings: LoadBalancerSettings, memory: Memory
) -> tuple[PlacementDecision, Memory]:
    """Brokers from which Pulsar draws for one bundle out of `candidates` (rows, in iteration order)."""
    required = settings.load_balancer_average_resource_usage_difference_threshold_percentage / 100.0
    is_stored = np.zeros(len(load.broker_ids), dtype=np.bool_)
    is_stored[load.stored] = True
    known = is_stored[candidates]
    usage = np.where(known, load.load[candidates], np.nan)
    in_order = usage[known]
    mean = np.add.accumulate(in_order)[-1] / len(in_order) if len(in_order) else np.nan
    code = np.where(
        ~known,
        BrokerOutcome.NO_LOAD_DATA.value,
        np.where(usage + required <= mean, BrokerOutcome.BELOW_MEAN.value, BrokerOutcome.NEAR_MEAN.value),
    )
    if not (code == BrokerOutcome.BELOW_MEAN.value).any():
        code[:] = BrokerOutcome.NONE_BELOW.value
    outcomes = about_brokers(candidates, BrokerOutcome, code, usage + required, mean)
    return PlacementDecision(candidates[outcomes.chosen()], outcomes), memory
