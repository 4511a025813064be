"""A shedder's memory when it reaches a snapshot, after it has seen the earlier ones.

Each earlier snapshot is fed for as many cycles as separate it from the next one: none, if several were taken in one
shedding interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Any, Final

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.recent_unloads import shedding_interval_ms
from pulsar_advisor.model.strategy.memory import ShedderMemory
from pulsar_advisor.shedding.registry import Shedder

RESTART_AFTER_INTERVALS: Final = 3
"""A gap of more than this many usual gaps (or shedding intervals, if longer) resets the memory: too much happened
unseen."""

MOST_CYCLES_OF_A_GAP: Final = 1000
"""Smoothing has long settled by then: 0.9 to the power of 1000 is 1e-46."""


def replay(
    shedder: Shedder, earlier: Sequence[ClusterState], state: ClusterState, settings: LoadBalancerSettings
) -> Any:
    """The shedder's memory when it reaches `state`, after the snapshots `earlier` than it, oldest first."""
    memory: ShedderMemory = shedder.Memory()
    moments = [*earlier, state]
    gaps_ms = [later.captured_at_ms - one.captured_at_ms for one, later in pairwise(moments)]
    interval_ms = shedding_interval_ms(settings)
    longest_gap_ms = RESTART_AFTER_INTERVALS * max(median(gaps_ms), interval_ms) if gaps_ms else 0
    # The cycle to come is that of `state`: cycles are counted backwards from it.
    until = [round((state.captured_at_ms - moment.captured_at_ms) / interval_ms) for moment in moments]
    for past, gap_ms, cycles in zip(earlier, gaps_ms, (a - b for a, b in pairwise(until)), strict=True):
        if gap_ms > longest_gap_ms:
            memory = shedder.Memory()
            continue
        if not cycles:
            continue
        view = shedder.observe(past, settings, past.captured_at_ms)
        memory = memory.forget_departed(past.brokers.ids)
        for _ in range(min(cycles, MOST_CYCLES_OF_A_GAP)):
            _, memory = shedder.decide(view, settings, memory)
    return memory.forget_departed(state.brokers.ids)
