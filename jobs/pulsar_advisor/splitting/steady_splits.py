"""What the cluster's own manager would split, given one snapshot as a steady state."""

from __future__ import annotations

from dataclasses import dataclass

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.strategy.decision import SplittingDecision
from pulsar_advisor.model.strategy.memory import MOST_CYCLES, SplitMemory
from pulsar_advisor.splitting.registry import split_decider


@dataclass(frozen=True, eq=False)
class SteadySplits:
    """The outcome of figures that stay constant."""

    decision: SplittingDecision
    """The decision of the cycle that acts, or of the last one if none does."""
    acts_in_cycle: int | None
    """Counted from 1; None if no cycle splits anything."""


def steady_splits(state: ClusterState, settings: LoadBalancerSettings) -> SteadySplits:
    """Feeds the same figures cycle after cycle until something is split, at most `MOST_CYCLES` times."""
    decide, memory = split_decider(state.load_manager).decide, SplitMemory()
    for cycle in range(1, MOST_CYCLES + 1):
        before = memory
        decision, memory = decide(state, settings, before)
        if decision.splits:
            return SteadySplits(decision, cycle)
        if memory == before:
            break
    return SteadySplits(decision, None)
