"""`RoundRobinBrokerSelector`: one broker after another; also used for namespaces excluded from shedding.

What Pulsar does: a counter selects from a list of brokers that is copied from the candidates only when their number
changes or the selected one is no longer a candidate, so the order of an earlier set persists.

Source: `org.apache.pulsar.broker.loadbalance.impl.RoundRobinBrokerSelector`, 3.0.7 to 5.0.1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import Indices
from pulsar_advisor.model.cluster.inputs import Input
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.load_data import LoadData, load_data
from pulsar_advisor.model.strategy.decision import PlacementDecision
from pulsar_advisor.model.strategy.outcomes import Outcome, about_brokers, no, yes

READS: Final[frozenset[Input]] = frozenset()
SETTING_KEYS: Final[tuple[str, ...]] = ()

observe: Final = load_data

_WRAPS_AFTER: Final = 2**31 - 1


class BrokerOutcome(Outcome):
    """The answers about a candidate."""

    NOT_ITS_TURN = no("is at position {left:.0f}; the next position is {right:.0f}", "!=")
    ITS_TURN = yes("is at position {left:.0f}, the next in turn ({right:.0f})", "==")


@dataclass(frozen=True, eq=False)
class Memory:
    """How many choices were made, and the list of brokers that the counter cycles through."""

    counter: int = 0
    """Modulo 2**31."""
    brokers: tuple[str, ...] = ()
    """Ids that `walked` refers to: those of the latest load data, then those that have left but are still listed."""
    walked: Indices = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    """Rows of `brokers`."""

    def beside(self, brokers: tuple[str, ...]) -> Memory:
        """The same memory, referring to rows of `brokers`."""
        if brokers is self.brokers:
            return self
        walked = [self.brokers[row] for row in self.walked.tolist()]
        everyone = tuple(dict.fromkeys((*brokers, *walked)))
        row_of = {broker: row for row, broker in enumerate(everyone)}
        rows = np.array([row_of[broker] for broker in walked], dtype=np.int32)
        return Memory(self.counter, brokers if len(everyone) == len(brokers) else everyone, rows)


def choose(
    load: LoadData, candidates: Indices, _bundle: int, _settings: LoadBalancerSettings, memory: Memory
) -> tuple[PlacementDecision, Memory]:
    """The next broker out of `candidates` (rows, in iteration order); none without candidates."""
    if not len(candidates):
        return PlacementDecision(candidates, about_brokers(candidates, BrokerOutcome, np.empty(0, np.uint8))), memory
    memory = memory.beside(load.brokers.ids)
    turn = memory.counter % len(candidates)
    walked = memory.walked
    if len(walked) != len(candidates) or walked[turn] not in candidates:
        walked = candidates
    counter = 0 if memory.counter == _WRAPS_AFTER else memory.counter + 1
    chosen = walked[turn : turn + 1]
    place_of = np.full(len(memory.brokers), np.nan)
    place_of[walked] = np.arange(len(walked))
    outcomes = about_brokers(candidates, BrokerOutcome, candidates == chosen, place_of[candidates], turn)
    return PlacementDecision(chosen, outcomes), Memory(counter, memory.brokers, walked)
