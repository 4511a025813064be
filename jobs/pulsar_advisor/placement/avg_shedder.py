"""`AvgShedder` as placement: the broker it remembered when it chose the bundle, else any.

What Pulsar does: shedder and placement share a memory of destinations. A bundle whose destination is a candidate goes
there; otherwise a candidate is drawn at random. At first a destination is forgotten as soon as a report of any broker
reaches the leader, which may be before the bundle is placed.

Releases: from 4.0.14, 4.2.5 and 5.0.1 on, a remembered destination that is no candidate leads to a draw among the
candidates without the source. One whose score (weighted usage × 100) is above
`loadBalancerBrokerOverloadedThresholdPercentage` leads to a draw among those that are not, without source and
destination; failing that, the destination is used after all.
Source: `org.apache.pulsar.broker.loadbalance.impl.AvgShedder`, 3.0.7 to 5.0.1.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, Indices
from pulsar_advisor.model.cluster.inputs import Input
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.load_data import LoadData, load_data
from pulsar_advisor.model.load.resource_usage import WEIGHT_KEYS
from pulsar_advisor.model.strategy.avg_memory import AvgMemory, keeps_by_name, key_of
from pulsar_advisor.model.strategy.decision import PlacementDecision
from pulsar_advisor.model.strategy.outcomes import Outcome, about_brokers, no, yes

READS: Final[frozenset[Input]] = frozenset({"broker_usage"})
SETTING_KEYS: Final = ("loadBalancerBrokerOverloadedThresholdPercentage", *WEIGHT_KEYS)

observe: Final = load_data


class BrokerOutcome(Outcome):
    """The answers about a candidate."""

    DRAWN_AMONG = yes("no destination is remembered for the bundle, so the choice is random among all candidates")
    REMEMBERED = yes("is the destination the shedder intended (score {left:,.1f})")
    ANOTHER_REMEMBERED = no("the shedder intended another broker")
    INSTEAD_OF_OVERLOADED = yes(
        "score {left:,.1f} is not above {right:,.1f}, but the remembered destination's is", "<="
    )
    OVERLOADED = no("score {left:,.1f} is above the overload threshold {right:,.1f}", ">")
    IS_SOURCE = no("is the bundle's source")
    INSTEAD_OF_MISSING = yes("the remembered destination is not a candidate, so the choice is random among the others")
    ALL_OVERLOADED = yes("score {left:,.1f} is above {right:,.1f}, but no other candidate's is lower", ">")


Memory = AvgMemory
"""The shedder's memory, if it is AvgShedder too; a new one has no destinations, so every candidate is eligible."""


@np.errstate(all="ignore")
def choose(
    load: LoadData, candidates: Indices, bundle: int, settings: LoadBalancerSettings, memory: AvgMemory
) -> tuple[PlacementDecision, AvgMemory]:
    """Brokers from which Pulsar draws for one bundle (a row) out of `candidates` (rows, in iteration order)."""
    brokers = load.brokers
    threshold = float(settings.load_balancer_broker_overloaded_threshold_percentage)
    scores = brokers.weighted_usage[candidates] * 100
    remembered = memory.destinations.get(key_of(load, bundle, settings), ())
    rows = [brokers.ids.index(broker) if broker in brokers.ids else NO_ROW for broker in remembered]
    is_source, is_destination = (candidates == row for row in rows or (NO_ROW, NO_ROW))

    code = np.full(len(candidates), BrokerOutcome.DRAWN_AMONG.value, dtype=np.uint8)
    if is_destination.any():
        code = np.where(is_destination, BrokerOutcome.REMEMBERED.value, BrokerOutcome.ANOTHER_REMEMBERED.value)
        if keeps_by_name(settings) and scores[is_destination][0] > threshold:
            code = np.where(
                scores > threshold, BrokerOutcome.OVERLOADED.value, BrokerOutcome.INSTEAD_OF_OVERLOADED.value
            )
            code[is_source] = BrokerOutcome.IS_SOURCE.value
            code[is_destination] = (
                BrokerOutcome.OVERLOADED.value
                if (code == BrokerOutcome.INSTEAD_OF_OVERLOADED.value).any()
                else BrokerOutcome.ALL_OVERLOADED.value
            )
    elif remembered and keeps_by_name(settings):
        code = np.where(is_source, BrokerOutcome.IS_SOURCE.value, BrokerOutcome.INSTEAD_OF_MISSING.value)
    outcomes = about_brokers(candidates, BrokerOutcome, code, scores, threshold)
    forgets = bool(is_destination.any()) and not keeps_by_name(settings)
    return PlacementDecision(candidates[outcomes.chosen()], outcomes, candidates if forgets else None), memory
