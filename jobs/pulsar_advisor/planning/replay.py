"""A shedder's memory when it reaches a snapshot, after it has seen the earlier ones.

Each earlier snapshot is fed for as many cycles as separate it from the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Any, Final

from pulsar_advisor.model.cluster_state import ClusterState
from pulsar_advisor.model.memory import ShedderMemory
from pulsar_advisor.model.settings import LoadBalancerSettings
from pulsar_advisor.shedding.cycle import advance
from pulsar_advisor.shedding.registry import Shedder

RESTART_AFTER_INTERVALS: Final = 3
"""A gap of more than this many usual intervals resets the memory: too much happened unseen."""

MOST_CYCLES_OF_A_GAP: Final = 1000
"""Smoothing has long settled by then: 0.9 to the power of 1000 is 1e-46."""


def replay(
    shedder: Shedder, history: Sequence[ClusterState], state: ClusterState, settings: LoadBalancerSettings
) -> Any:
    """The shedder's memory when it reaches `state`, after the earlier snapshots in `history`, oldest first."""
    memory: ShedderMemory = shedder.Memory()
    gaps_ms = [later.captured_at_ms - earlier.captured_at_ms for earlier, later in pairwise([*history, state])]
    interval_ms = max(settings.load_balancer_shedding_interval_minutes, 1) * 60_000
    for earlier, gap_ms in zip(history, gaps_ms, strict=True):
        if gap_ms > RESTART_AFTER_INTERVALS * median(gaps_ms):
            memory = shedder.Memory()
            continue
        view = shedder.observe(earlier, settings, earlier.captured_at_ms)
        cycles = max(1, min(MOST_CYCLES_OF_A_GAP, round(gap_ms / interval_ms)))
        memory = advance(shedder, view, settings, memory.forget_departed(earlier.brokers.ids), cycles)
    return memory.forget_departed(state.brokers.ids)
