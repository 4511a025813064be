"""The load of an evolving cluster, relative to its snapshot's: scaled, with noise, or that of earlier snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import ClusterState, Floats, rate_per_s, throughput_bytes_per_s


@dataclass(frozen=True, eq=False)
class Load:
    """The load during a simulation, relative to that of the snapshot."""

    scale: float = 1.0
    noise: float = 0.0
    """Standard deviation of the natural logarithm of each bundle's load, drawn anew in every cycle."""
    replayed: tuple[tuple[int, Floats], ...] = ()
    """From how many milliseconds after the start on, and by how much the load of each bundle is multiplied then; in
    the order of time."""

    @property
    def lasts_ms(self) -> int:
        """How long after the start the load changes for another reason than noise."""
        return self.replayed[-1][0] if self.replayed else 0

    def factors(self, bundles: int, draw: np.random.Generator, elapsed_ms: int) -> Floats:
        """By how much the load of each bundle is multiplied in one cycle; the noise leaves the mean as it is."""
        factor = np.full(bundles, self.scale)
        begun = [factors for from_ms, factors in self.replayed if from_ms <= elapsed_ms]
        if begun:
            factor = factor * begun[-1]
        if self.noise:
            factor = factor * draw.lognormal(-(self.noise**2) / 2, self.noise, bundles)
        return factor


AS_IN_THE_SNAPSHOT: Final = Load()


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def replayed(state: ClusterState, earlier: Sequence[ClusterState]) -> tuple[tuple[int, Floats], ...]:
    """The load of earlier states, oldest first, relative to that of `state`, at their own distances in time.

    A bundle's load is its throughput, else its message rate. One that an earlier state doesn't have, or that is idle
    now, keeps the load it has.
    """
    if not earlier:
        return ()
    rows = {state.bundle_name(row): row for row in range(len(state.bundles))}
    now = _load(state)
    changes = []
    for moment in earlier:
        factors = np.ones(len(state.bundles))
        pairs = [(rows[name], row) for row in range(len(moment.bundles)) if (name := moment.bundle_name(row)) in rows]
        here, there = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
        factors[here] = _load(moment)[there] / now[here]
        changes.append(
            (moment.captured_at_ms - earlier[0].captured_at_ms, np.where(np.isfinite(factors), factors, 1.0))
        )
    return (*changes, (state.captured_at_ms - earlier[0].captured_at_ms, np.ones(len(state.bundles))))


def _load(state: ClusterState) -> Floats:
    bundles = state.bundles
    flow = throughput_bytes_per_s(bundles.traffic)
    return np.where(bundles.reported, np.where(flow > 0, flow, rate_per_s(bundles.traffic)), np.nan)
