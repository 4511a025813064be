"""What happens next under the cluster's own strategies: by themselves, and once a plan has been carried out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.strategy.decision import Split
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.simulation.scores import CycleScore, Ending, cycle_scores, simulation_score
from pulsar_advisor.simulation.simulate import CarriedOut, Simulation, simulate
from pulsar_advisor.splitting.division import divided

CYCLES: Final = 60
"""An hour at Pulsar's default interval: two grace periods."""
BROKERS_SEEN: Final = 40
"""Brokers whose usage is kept for every cycle in which something happens."""


@dataclass(frozen=True)
class CycleSeen:
    """One cycle in which something happens; ratios are the usage of the busiest broker and the standard deviation."""

    cycle: int
    unloads: int
    maximum_ratio: float
    standard_deviation_ratio: float
    splits: int = 0
    usage_ratios: Mapping[str, float] = field(default_factory=dict)
    """Of the brokers that are busiest in any of these cycles, at most `BROKERS_SEEN`; empty in earlier releases."""


@dataclass(frozen=True, kw_only=True)
class Undone(Ending):
    """What the cluster's own balancer does with the bundles of a plan once it has been carried out."""

    plan_bundles: int
    moved_again: int
    """Bundles of the plan that are unloaded again; the children of one that is split don't count."""
    moved_back: int
    """Of these, the ones that end on the broker where the plan found them."""
    first_cycle: int | None
    """The first cycle that moves one of them."""


def left_alone(situation: Situation, seed: int, after: CarriedOut | None = None) -> Simulation:
    """The cluster under its own strategies, at both ends of the base load too. Raises `AdvisorError` as `simulate`."""
    return simulate(*situation.configured, situation, cycles=CYCLES, seed=seed, after=after, both_ends=True)


def after_plan(situation: Situation, plan: Plan) -> Undone | None:
    """The cluster under its own strategies once a plan was carried out, with the plan's seed.

    None for a plan that moves no bundle to a broker of its choice. Raises `AdvisorError` as `simulate`.
    """
    carried_out = planned(situation.fit, plan)
    if not carried_out.moves:
        return None
    return _interference(left_alone(situation, plan.seed, carried_out), carried_out)


def acting(alone: Simulation, scores: Sequence[CycleScore]) -> tuple[CycleSeen, ...]:
    """The snapshot, and the cycles with an unload or a split; `scores` are those of the simulation's cycles."""
    pairs = [
        (one, cycle)
        for one, cycle in zip(scores, alone.cycles, strict=True)
        if one.unloads or one.splits or not one.cycle
    ]
    highest = np.max([cycle.usage for _, cycle in pairs], axis=0)
    known = np.flatnonzero(alone.state.brokers.available & np.isfinite(highest))
    rows = sorted(known[np.argsort(-highest[known], kind="stable")][:BROKERS_SEEN].tolist())
    ids = alone.state.brokers.ids
    return tuple(
        CycleSeen(
            cycle=one.cycle,
            unloads=one.unloads,
            maximum_ratio=one.usage.maximum,
            standard_deviation_ratio=one.usage.standard_deviation,
            splits=one.splits,
            usage_ratios={ids[row]: float(cycle.usage[row]) for row in rows},
        )
        for one, cycle in pairs
    )


def planned(state: ClusterState, plan: Plan) -> CarriedOut:
    """What a plan's executable steps make of a cluster: its splits, and the unloads with a destination."""
    rows = _rows(state)
    division = divided(
        state,
        [
            Split(
                bundle=rows[step.bundle_name],
                algorithm=step.algorithm or "",
                boundaries=tuple(int(boundary, 16) for boundary in step.boundaries),
                reason=step.reason,
                near_tie=False,
            )
            for step in plan.executable_steps
            if step.action == "split"
        ],
    )
    brokers = {broker: row for row, broker in enumerate(state.brokers.ids)}
    whole = {step.bundle_name: brokers[step.destination] for step in plan.unloads if step.destination is not None}
    moves = {}
    for name, row in _rows(division.state).items():
        destination = whole.get(name)
        if destination is None and division.is_child[row]:
            # A bundle may move before it is split: then its children are where it went, unless they move on.
            destination = whole.get(state.bundle_name(int(division.parent[row])))
        if destination is not None:
            moves[row] = destination
    return CarriedOut(division, moves)


def _rows(state: ClusterState) -> dict[str, int]:
    return {state.bundle_name(row): row for row in range(len(state.bundles))}


def _interference(after: Simulation, carried_out: CarriedOut) -> Undone:
    found, moves = carried_out.division, carried_out.moves
    rows = {found.state.bundle_name(bundle): bundle for bundle in moves}
    last_destination: dict[int, int] = {}
    first_cycle = None
    for cycle in after.cycles:
        for bundle, destination in zip(cycle.bundle.tolist(), cycle.destination.tolist(), strict=True):
            if (row := rows.get(cycle.state.bundle_name(bundle))) is not None:
                last_destination[row] = destination
                first_cycle = first_cycle or cycle.number
    back = sum(owner == int(found.state.bundles.owner[bundle]) for bundle, owner in last_destination.items())
    return Undone(
        **vars(simulation_score(after, cycle_scores(after))),
        plan_bundles=len(moves),
        moved_again=len(last_destination),
        moved_back=back,
        first_cycle=first_cycle,
    )
