"""`RoundRobinBrokerSelector`: one broker after the other; also used for namespaces excluded from shedding.

What Pulsar does: a counter selects from a list of brokers that is copied from the candidates only when their number
changes or the selected one is no longer a candidate, so the order of an earlier set persists.

Source: `org.apache.pulsar.broker.loadbalance.impl.RoundRobinBrokerSelector`, 3.0.7 to 5.0.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from pulsar_advisor.model.cluster_state import Indices
from pulsar_advisor.model.decision import PlacementDecision
from pulsar_advisor.model.load_data import LoadData, load_data
from pulsar_advisor.model.outcomes import Outcome, Outcomes
from pulsar_advisor.model.settings import LoadBalancerSettings

SETTING_KEYS: Final[tuple[str, ...]] = ()

observe: Final = load_data
"""How the input of `choose` is made from a cluster state."""

_WRAPS_AFTER: Final = 2**31 - 1

OUTCOMES: Final = (
    Outcome("not_its_turn", False, "!=", "is at place {left:.0f}; the turn is at place {right:.0f}"),
    Outcome("its_turn", True, "==", "is at place {left:.0f}, where the turn is ({right:.0f})"),
)


@dataclass(frozen=True)
class Memory:
    """How many choices were made (modulo 2**31), and the list of broker ids that the counter walks."""

    counter: int = 0
    brokers: tuple[str, ...] = ()


def choose(
    load: LoadData, candidates: Indices, _bundle: int, _settings: LoadBalancerSettings, memory: Memory
) -> tuple[PlacementDecision, Memory]:
    """The broker whose turn it is out of `candidates` (rows, in iteration order); none without candidates."""
    row_of = {load.brokers.ids[row]: row for row in candidates.tolist()}
    if not row_of:
        nothing = np.empty(0)
        return PlacementDecision(
            candidates, Outcomes("broker", OUTCOMES, candidates, nothing.astype(np.uint8), nothing, nothing)
        ), memory
    turn = memory.counter % len(row_of)
    walked = memory.brokers
    if len(walked) != len(row_of) or walked[turn] not in row_of:
        walked = tuple(row_of)
    counter = 0 if memory.counter == _WRAPS_AFTER else memory.counter + 1
    chosen = row_of[walked[turn]]
    place_of = {broker: place for place, broker in enumerate(walked)}
    places = np.array([place_of.get(load.brokers.ids[row], np.nan) for row in candidates.tolist()])
    outcomes = Outcomes(
        "broker",
        OUTCOMES,
        candidates,
        (candidates == chosen).astype(np.uint8),
        places,
        np.full(len(candidates), float(turn)),
    )
    return PlacementDecision(np.array([chosen], dtype=np.int32), outcomes), Memory(counter, walked)
