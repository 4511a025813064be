"""Who decides to split in this cluster, and what one snapshot, taken as a steady state, leads to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pulsar_advisor.model.cluster_state import ClusterState
from pulsar_advisor.model.settings import LoadBalancerSettings
from pulsar_advisor.splitting import (
    bundle_splitter_task,
    default_namespace_bundle_split_strategy,
    simple_load_manager,
)
from pulsar_advisor.splitting.default_namespace_bundle_split_strategy import SplitMemory
from pulsar_advisor.splitting.vocabulary import SplittingDecision

MOST_CYCLES: Final = 10
"""How often the same figures are fed before the answer is that nothing will be split."""

DECIDERS: Final = {
    "modular": "BundleSplitterTask",
    "simple": "SimpleLoadManagerImpl",
    "extensible": "DefaultNamespaceBundleSplitStrategyImpl",
}
"""Pulsar's class that decides, by load manager."""


def decide_splits(
    state: ClusterState, settings: LoadBalancerSettings, memory: SplitMemory
) -> tuple[SplittingDecision, SplitMemory]:
    """One cycle of the cluster's own decider. Only the Extensible manager's has a memory.

    Raises `DataNotFit` when the default algorithm needs topics that are not completely known.
    """
    if state.load_manager == "extensible":
        return default_namespace_bundle_split_strategy.decide(state, settings, memory)
    decider = simple_load_manager if state.load_manager == "simple" else bundle_splitter_task
    return decider.decide(state, settings), memory


@dataclass(frozen=True, eq=False)
class SteadySplits:
    """What becomes of figures that stay as they are."""

    decision: SplittingDecision
    """Of the cycle that acts; of the last one, if none does."""
    memory: SplitMemory
    acts_in_cycle: int | None
    """Counted from 1; None where no cycle splits anything."""


def steady_splits(state: ClusterState, settings: LoadBalancerSettings, memory: SplitMemory) -> SteadySplits:
    """Feeds the same figures cycle after cycle until something is split, at most `MOST_CYCLES` times.

    Raises `DataNotFit` when the default algorithm needs topics that are not completely known.
    """
    cycles = MOST_CYCLES if state.load_manager == "extensible" else 1
    for cycle in range(1, cycles + 1):
        decision, memory = decide_splits(state, settings, memory)
        if decision.splits:
            return SteadySplits(decision, memory, cycle)
    return SteadySplits(decision, memory, None)
