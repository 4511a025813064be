"""A cluster that evolves: its leader acts on what it sees, bundles move, brokers report, and the leader acts again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Final, Literal

import numpy as np

from pulsar_advisor.model.bounds import DEFAULT_CYCLES
from pulsar_advisor.model.cluster.cluster_state import ClusterState, Floats, Indices
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.resource_usage import weighted_maximum
from pulsar_advisor.model.strategy.memory import MOST_CYCLES, SplitMemory
from pulsar_advisor.placement.filters import placement_facts
from pulsar_advisor.planning.plans.deciding import require_inputs
from pulsar_advisor.planning.proposals.replay import replay
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.shedding import registry as shedders
from pulsar_advisor.simulation.intervals import Intervals
from pulsar_advisor.simulation.leader import NO_UNLOADS, Leader, Memories, Unloads
from pulsar_advisor.simulation.load import AS_IN_THE_SNAPSHOT, Load
from pulsar_advisor.simulation.moment import Moment
from pulsar_advisor.simulation.splits import can_be_judged, passes_due, splits_due
from pulsar_advisor.splitting.division import Division, divided

_CYCLES_COUNTED: Final[Mapping[str, int]] = {
    "loadBalancerSheddingConditionHitCountThreshold": 1,
    "loadBalancerAvgShedderHitCountLowThreshold": 0,
    "loadBalancerAvgShedderHitCountHighThreshold": 0,
}
"""Keys that say how many cycles in a row a shedder counts before it acts -> how many more it takes."""

Ended = Literal["settled", "repeats", "unfinished"]
"""Nothing happens any more · every bundle is back where it was, under equal circumstances · the last cycle came before
either."""


@dataclass(frozen=True, eq=False)
class CarriedOut:
    """Splits and unloads that someone else than the leader carries out."""

    division: Division
    """What the splits make of the snapshot's state."""
    moves: Mapping[int, int]
    """Bundle -> destination (rows after the splits)."""


@dataclass(frozen=True, eq=False)
class Cycle:
    """One cycle: what was split and unloaded, and the cluster right afterwards, as it is."""

    number: int
    """From 1; 0 is the snapshot itself."""
    at_ms: int
    state: ClusterState
    """What the rows of bundles refer to: the snapshot's state, after all splits up to this cycle's."""
    division: Division | None
    """The splits of this cycle; None without any."""
    bundle: Indices
    """Bundles unloaded: the children of splits first, then those of the shedder, in the leader's order."""
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
    ends: tuple[Simulation, ...] = ()
    """The same with the least and with the greatest base loads; empty if only the likely ones were simulated."""


def simulate(
    shedder: str,
    placement: str,
    situation: Situation,
    *,
    cycles: int = DEFAULT_CYCLES,
    load: Load = AS_IN_THE_SNAPSHOT,
    seed: int = 0,
    after: CarriedOut | None = None,
    sheds: bool = True,
    both_ends: bool = False,
) -> Simulation:
    """Let the fit part of a cluster evolve from a snapshot until nothing happens any more, a state repeats, or `cycles`
    have passed.

    Where by then only grace periods have to run out, at most as many cycles more are waited for; those count if nothing
    happens in them.

    The first cycle is at the moment of the snapshot. The shedder's switches are taken as on: whether Pulsar itself
    would act is another question, asked by `sheds`; bundles are split if `loadBalancerAutoBundleSplitEnabled` is on.
    `after` is what someone else carries out first: the leader sees it in reports only, so no grace period protects
    these bundles.

    How much CPU usage moves with a bundle is known only as a range. With `both_ends` the cluster evolves at each end of
    it as well: the leader sees other figures there, and may decide otherwise.

    Raises `AdvisorError` if a strategy can't judge the cluster.
    """
    state, settings, base = situation.fit, situation.settings.values, situation.base
    require_inputs(shedder, placement, state)
    intervals, facts = Intervals.of(settings), placement_facts(state, settings)
    if after is not None and after.division.splits:
        facts = placement_facts(after.division.state, settings)
    leader = Leader(shedder, placement, facts, seed)
    memories = leader.first_memories(replay(shedders.load(shedder), situation.earlier, state, settings))

    def evolved(base_cpu: Floats) -> Simulation:
        now = Moment.of(state, base_cpu, settings, intervals, seed)
        if after is not None:
            now = now.divided(after.division) if after.division.splits else now
            now = now.moved(Unloads(np.array([*after.moves], np.int32), np.array([*after.moves.values()], np.int32)))
            now = now.advanced(settings, intervals)
        return _evolved(state, now, leader, memories, cycles, load, sheds)

    likely = evolved(base.likely)
    if not both_ends:
        return likely
    ends = (base.least, base.greatest)
    return replace(likely, ends=tuple(likely if np.array_equal(end, base.likely) else evolved(end) for end in ends))


def _evolved(
    state: ClusterState, now: Moment, leader: Leader, memories: Memories, cycles: int, load: Load, sheds: bool
) -> Simulation:
    """The cluster of a snapshot's `state` from a moment on."""
    settings = leader.settings
    intervals = Intervals.of(settings)
    splits_happen, split_memory = can_be_judged(state, settings), SplitMemory()
    settles_after = _quiet_cycles(leader.shedder, state, settings, intervals, splits_happen)
    draw = np.random.default_rng(leader.seed)
    passed = [_cycle(0, now, settings)]
    met: dict[bytes, int] = {}
    quiet = 0
    for number in range(1, 2 * cycles + 1):
        elapsed_ms = now.reports.now_ms - state.captured_at_ms
        now = now.under(load.factors(len(state.bundles), draw, elapsed_ms))
        division, placed = None, NO_UNLOADS
        if splits_happen:
            splits, split_memory = splits_due(now, settings, split_memory, passes_due(now, intervals, elapsed_ms))
            if splits:
                division, whole = divided(now.state, splits), now.seen
                now = now.divided(division)
                leader = replace(leader, facts=placement_facts(now.state, settings))
                placed, memories = leader.unload_children(whole, now.seen, number, memories, division)
        shed = NO_UNLOADS
        if sheds:
            shed, memories = leader.lead(now.seen, number, memories)
        unloads = Unloads(*(np.concatenate(both) for both in zip(placed, shed, strict=True)))
        before, now = now, now.moved(unloads)
        if len(shed.bundle):
            now = now.protected(shed.bundle)
        passed.append(_cycle(number, now, settings, division, unloads.bundle, before.steady.owner[unloads.bundle]))
        acts = division is not None or len(unloads.bundle) > 0
        if acts and number > cycles:
            break
        quiet = 0 if acts else quiet + 1
        is_over = elapsed_ms >= load.lasts_ms
        if is_over and quiet >= settles_after and not now.in_grace(intervals).any():
            return Simulation(state, tuple(passed), "settled", None, intervals.shedding)
        if acts:
            circumstances = now.circumstances(settings, intervals)
            if is_over and circumstances in met:
                return Simulation(state, tuple(passed), "repeats", met[circumstances], intervals.shedding)
            met[circumstances] = number
        if number >= cycles and not (is_over and quiet >= settles_after):
            break
        now = now.advanced(settings, intervals)
    return Simulation(state, tuple(passed[: cycles + 1]), "unfinished", None, intervals.shedding)


def _quiet_cycles(
    shedder: str, state: ClusterState, settings: LoadBalancerSettings, intervals: Intervals, splits_happen: bool
) -> int:
    """After how many cycles without an unload or a split, with no grace period running, a cluster has settled.

    More than those that its shedder, or a broker that splits, counts before it acts.
    """
    counted: list[int] = [
        settings.value(key) + more
        for key, more in _CYCLES_COUNTED.items()
        if key in shedders.load(shedder).SETTING_KEYS
    ]
    if splits_happen and state.load_manager == "extensible":
        passes = settings.load_balancer_namespace_bundle_split_condition_hit_count_threshold + 1
        counted.append(ceil(passes * intervals.split / intervals.shedding))
    return max([MOST_CYCLES, *counted])


def _cycle(
    number: int,
    now: Moment,
    settings: LoadBalancerSettings,
    division: Division | None = None,
    bundle: Indices = NO_UNLOADS.bundle,
    source: Indices = NO_UNLOADS.bundle,
) -> Cycle:
    limit, cluster = now.state.brokers.limit, now.cluster
    return Cycle(
        number=number,
        at_ms=now.reports.now_ms,
        state=now.state,
        division=division,
        bundle=bundle,
        source=source,
        destination=cluster.owner[bundle],
        traffic=cluster.traffic[bundle],
        usage=weighted_maximum(cluster.broker_usage, limit, settings),
        broker_traffic=cluster.broker_traffic,
        seen_usage=weighted_maximum(now.reports.published.usage, limit, settings),
    )
