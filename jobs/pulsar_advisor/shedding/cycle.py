"""Run shedding cycles: until a shedder acts on a steady snapshot, and with its wrapper in Pulsar.

Source: `ModularLoadManagerImpl.doLoadShedding` and `UnloadScheduler.execute` (2.11.0 to 5.0.1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, Booleans
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.strategy.decision import SheddingDecision
from pulsar_advisor.model.strategy.memory import MOST_CYCLES
from pulsar_advisor.model.strategy.outcomes import Outcome, Outcomes, no, vocabulary, yes
from pulsar_advisor.shedding.registry import Shedder


@dataclass(frozen=True, eq=False)
class SteadyState:
    """What a shedder does when the same figures repeat cycle after cycle."""

    decision: SheddingDecision
    """The decision of the cycle in which it acts, else of the last one that came closest to acting."""
    acts_in_cycle: int | None
    """Counted from 1; None if it did not act."""
    memory: Any
    """After that cycle."""


def steady_state(shedder: Shedder, view: Any, settings: LoadBalancerSettings, memory: Any) -> SteadyState:
    """Feed one view until the shedder acts, at most `MOST_CYCLES` times; `memory` comes from earlier snapshots."""
    decisions = []
    for cycle in range(1, MOST_CYCLES + 1):
        decision, memory = shedder.decide(view, settings, memory)
        if len(decision.bundle):
            return SteadyState(decision, cycle, memory)
        decisions.append(decision)
    # Answers are in the order of the questions. AvgShedder drops its hits when it finds too little to move, and counts
    # again from zero: the reason is that answer, not the counting.
    furthest = max(reversed(decisions), key=lambda decision: decision.brokers.code.max(initial=0))
    return SteadyState(furthest, None, memory)


class LoadManagerOutcome(Outcome):
    """What the load manager does with a bundle that the shedder chose."""

    UNLOAD = yes("is unloaded")
    EXCLUDED_NAMESPACE = no("was chosen, but its namespace is in loadBalancerSheddingExcludedNamespaces")
    ONE_BROKER = no("was chosen, but {left:.0f} broker is registered: no other broker could take it", "<=")
    POLICIES = no("was chosen, but isolation policies allow no other broker")
    ANTI_AFFINITY = no("was chosen, but its anti-affinity group is already spread evenly")
    NO_DESTINATION = no("was chosen, but placement finds no broker for it")
    SAME_BROKER = no("was chosen, but placement would return it to its source")


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What the Modular manager checks for each bundle that a shedder chose. Rows are those of the cluster state."""

    available_brokers: int
    excluded_namespace: Booleans
    """Per bundle row, whether its namespace is in `loadBalancerSheddingExcludedNamespaces`."""
    obstacle: Callable[[int, int], LoadManagerOutcome | None]
    """(bundle, source): whether isolation policies or the bundle's anti-affinity group forbid the unload; None: no."""
    destination: Callable[[int, int], int]
    """(bundle, source): broker that placement selects; NO_ROW without one. Called once per bundle, in order."""
    places_first: bool = True
    """Whether the bundle is placed before it is unloaded, and stays if that selects its source.

    Other leaders, and the Modular one up to 3.0.0, unload the bundle, and the next look-up has it placed.
    """


def carry_out(decision: SheddingDecision, surroundings: Surroundings) -> tuple[SheddingDecision, Outcomes]:
    """What the Modular manager does with a shedder's choice: the remaining unloads with destinations, and refusals.

    A bundle refused here returns in the next cycle, and the shedder has spent its budget on it. Every choice sees the
    same loads: within a cycle nothing is added to a destination's load.
    """
    code = np.zeros(len(decision.bundle), dtype=np.uint8)
    destination = np.full(len(decision.bundle), NO_ROW, dtype=np.int32)
    pairs = zip(decision.bundle.tolist(), decision.source.tolist(), strict=True)
    for place, (bundle, source) in enumerate(pairs):
        code[place], destination[place] = _fate(bundle, source, surroundings)
    going = code == LoadManagerOutcome.UNLOAD.value
    outcomes = Outcomes(
        "bundle",
        vocabulary(LoadManagerOutcome),
        decision.bundle,
        code,
        np.where(code == LoadManagerOutcome.ONE_BROKER.value, float(surroundings.available_brokers), np.nan),
        np.where(code == LoadManagerOutcome.ONE_BROKER.value, 1.0, np.nan),
    )
    left = replace(
        decision, source=decision.source[going], bundle=decision.bundle[going], destination=destination[going]
    )
    return left, outcomes


def _fate(bundle: int, source: int, surroundings: Surroundings) -> tuple[int, int]:
    """Outcome and destination of one chosen bundle, checked in Pulsar's order."""
    if surroundings.available_brokers <= 1:
        return LoadManagerOutcome.ONE_BROKER.value, NO_ROW
    if surroundings.excluded_namespace[bundle]:
        return LoadManagerOutcome.EXCLUDED_NAMESPACE.value, NO_ROW
    if (obstacle := surroundings.obstacle(bundle, source)) is not None:
        return obstacle.value, NO_ROW
    destination = surroundings.destination(bundle, source)
    if destination == NO_ROW:
        return LoadManagerOutcome.NO_DESTINATION.value, NO_ROW
    if destination == source and surroundings.places_first:
        return LoadManagerOutcome.SAME_BROKER.value, NO_ROW
    return LoadManagerOutcome.UNLOAD.value, destination
