"""A cluster that evolves: its leader acts on what it sees, bundles move, brokers report, and the leader acts again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

import numpy as np

from pulsar_advisor.model.base_load import base_load
from pulsar_advisor.model.cluster_state import (
    Booleans,
    ClusterState,
    Floats,
    Indices,
    Integers,
    rate_per_s,
    throughput_bytes_per_s,
)
from pulsar_advisor.model.resource_usage import weighted_maximum
from pulsar_advisor.model.settings import LoadBalancerSettings
from pulsar_advisor.placement.filters import placement_facts
from pulsar_advisor.planning.deciding import require_inputs
from pulsar_advisor.planning.replay import replay
from pulsar_advisor.shedding import registry as shedders
from pulsar_advisor.shedding.cycle import MAX_CYCLES
from pulsar_advisor.simulation.cluster import SimulatedCluster
from pulsar_advisor.simulation.intervals import Intervals
from pulsar_advisor.simulation.leader import Leader
from pulsar_advisor.simulation.reports import Reports, advanced, after_change, first_reports, state_seen
from pulsar_advisor.simulation.request import DEFAULT_CYCLES

QUIET_CYCLES: Final = MAX_CYCLES
"""A cluster has settled once this many cycles have passed without an unload and no grace period is running."""

Ended = Literal["settled", "repeats", "unfinished"]
"""Nothing happens any more · every bundle is back where it was, under equal circumstances · the last cycle came before
either."""

_NO_BUNDLES: Final = np.empty(0, dtype=np.int32)

_SEEN_DIGITS: Final = 3
"""Digits of the usage (ratio) up to which a leader sees the same as before."""


@dataclass(frozen=True, eq=False)
class Load:
    """The load during a simulation, relative to that of the snapshot."""

    scale: float = 1.0
    noise: float = 0.0
    """Standard deviation of the natural logarithm of each bundle's load, drawn anew in every cycle."""
    replayed: tuple[tuple[int, Floats], ...] = ()
    """From how many milliseconds after the start on, and by how much the load of each bundle is multiplied then; in
    the order of time."""

    def factors(self, bundles: int, draw: np.random.Generator, elapsed_ms: int) -> Floats | float:
        """By how much the load of each bundle is multiplied in one cycle; the noise leaves the mean as it is."""
        begun = [factors for from_ms, factors in self.replayed if from_ms <= elapsed_ms]
        factor = self.scale * begun[-1] if begun else self.scale
        if not self.noise:
            return factor
        drawn: Floats = factor * draw.lognormal(-(self.noise**2) / 2, self.noise, bundles)
        return drawn


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


@dataclass(frozen=True, eq=False)
class Cycle:
    """One cycle: what the leader did, and the cluster right afterwards, as it is. Rows as in the snapshot's state."""

    number: int
    """From 1; 0 is the snapshot itself."""
    at_ms: int
    bundle: Indices
    """Bundles unloaded, in the leader's order."""
    source: Indices
    destination: Indices
    traffic: Floats
    """(unloads, 4), order of FIGURES: of the unloaded bundles."""
    usage: Floats
    """Weighted maximum usage of each broker (ratio)."""
    broker_traffic: Floats
    """(n, 4), order of FIGURES."""
    seen_usage: Floats
    """Weighted maximum usage of each broker as the leader saw it when it decided."""


@dataclass(frozen=True, eq=False)
class Simulation:
    """All cycles of one shedder with one placement strategy, and how it ended."""

    state: ClusterState
    cycles: tuple[Cycle, ...]
    """The snapshot first."""
    ended: Ended
    repeats_cycle: int | None
    """The cycle after which everything was as it is at the end."""
    interval_ms: int
    """Between two cycles."""


def simulate(
    shedder: str,
    placement: str,
    state: ClusterState,
    settings: LoadBalancerSettings,
    *,
    cycles: int = DEFAULT_CYCLES,
    load: Load = Load(),
    seed: int = 0,
    history: Sequence[ClusterState] = (),
    after: Mapping[int, int] = MappingProxyType({}),
) -> Simulation:
    """Let a cluster evolve from a snapshot until nothing happens any more, a state repeats, or `cycles` have passed.

    The first cycle is at the moment of the snapshot. Switches are taken as on: whether Pulsar itself would act is
    another question. `history` are earlier states, oldest first, for the shedder's memory and the brokers' base load.
    `after` are unloads that someone else carries out first, bundle -> destination (rows): the leader hears of them from
    reports only, so no grace period protects these bundles.

    Raises `AdvisorError` if a strategy can't judge the cluster.
    """
    require_inputs(shedder, placement, state)
    intervals = Intervals.of(settings)
    leader = Leader(shedder, placement, settings, placement_facts(state, settings), seed)
    memories = leader.first_memories(replay(shedders.load(shedder), history, state, settings))
    steady = SimulatedCluster.of(state, base_load(state, history).likely)
    draw = np.random.default_rng(seed)
    reports = first_reports(state, steady, settings, intervals, seed)
    if after:
        touched = np.union1d(steady.owner[list(after)], list(after.values()))
        steady = steady.moved(list(after), list(after.values()))
        reports = after_change(reports, touched[touched >= 0])
        reports = advanced(reports, state, steady, settings, intervals, reports.now_ms + intervals.shedding)
    unloaded_at_ms = state.bundles.last_unloaded_at_ms
    passed = [_cycle(0, state, steady, reports, settings)]
    met: dict[bytes, int] = {}
    quiet = 0
    factors: Floats | float = 1.0
    for number in range(1, cycles + 1):
        before, factors = factors, load.factors(len(state.bundles), draw, reports.now_ms - state.captured_at_ms)
        load_changes = not np.array_equal(before, factors)
        cluster = steady.under(factors)
        seen = state_seen(reports, state, steady, unloaded_at_ms)
        unloads, memories = leader.lead(seen, number, memories)
        as_it_was, cluster = cluster, cluster.moved(*unloads)
        steady = steady.moved(*unloads)
        passed.append(_cycle(number, state, cluster, reports, settings, unloads.bundle, as_it_was))
        quiet = 0 if len(unloads.bundle) else quiet + 1
        if len(unloads.bundle):
            unloaded_at_ms = unloaded_at_ms.copy()
            unloaded_at_ms[unloads.bundle] = reports.now_ms
        if len(unloads.bundle) or load_changes:
            touched = np.union1d(as_it_was.owner[unloads.bundle], unloads.destination)
            reports = after_change(reports, touched[touched >= 0])
        is_over = not load.replayed or reports.now_ms - state.captured_at_ms >= load.replayed[-1][0]
        if is_over and quiet >= QUIET_CYCLES and not _in_grace(unloaded_at_ms, reports.now_ms, intervals).any():
            return Simulation(state, tuple(passed), "settled", None, intervals.shedding)
        if len(unloads.bundle):
            circumstances = _circumstances(steady, unloaded_at_ms, seen, settings, reports, intervals)
            if is_over and circumstances in met:
                return Simulation(state, tuple(passed), "repeats", met[circumstances], intervals.shedding)
            met[circumstances] = number
        until_ms = reports.now_ms + intervals.shedding
        reports = advanced(reports, state, cluster, settings, intervals, until_ms)
    return Simulation(state, tuple(passed), "unfinished", None, intervals.shedding)


def _cycle(
    number: int,
    state: ClusterState,
    cluster: SimulatedCluster,
    reports: Reports,
    settings: LoadBalancerSettings,
    bundle: Indices = _NO_BUNDLES,
    before: SimulatedCluster | None = None,
) -> Cycle:
    limit = state.brokers.limit
    return Cycle(
        number=number,
        at_ms=reports.now_ms,
        bundle=bundle,
        source=(before or cluster).owner[bundle],
        destination=cluster.owner[bundle],
        traffic=cluster.traffic[bundle],
        usage=weighted_maximum(cluster.broker_usage(), limit, settings),
        broker_traffic=cluster.broker_traffic(),
        seen_usage=weighted_maximum(reports.published.usage, limit, settings),
    )


def _in_grace(unloaded_at_ms: Integers, now_ms: int, intervals: Intervals) -> Booleans:
    in_grace: Booleans = (unloaded_at_ms > 0) & (unloaded_at_ms >= now_ms - intervals.grace)
    return in_grace


def _circumstances(
    cluster: SimulatedCluster,
    unloaded_at_ms: Integers,
    seen: ClusterState,
    settings: LoadBalancerSettings,
    reports: Reports,
    intervals: Intervals,
) -> bytes:
    """What a leader's next decisions depend on but for its memory: owners, running grace periods, the usage it sees."""
    in_grace = _in_grace(unloaded_at_ms, reports.now_ms, intervals)
    ages = np.where(in_grace, reports.now_ms - unloaded_at_ms, -1)
    usage = weighted_maximum(seen.brokers.usage, seen.brokers.limit, settings).round(_SEEN_DIGITS)
    return cluster.owner.tobytes() + ages.tobytes() + usage.tobytes()
