"""A rolling restart: one broker after another stops, the others get its bundles, and it comes back empty.

Nothing is drained before, shedding and splits are switched off, and the next broker stops a cycle later, once reports
show the load of those before, as Pulsar's documentation of rolling upgrades asks for. What a broker had is assigned in
the order of names, since no snapshot knows the order of its clients' look-ups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, ClusterState, Indices
from pulsar_advisor.model.cluster.namespaces import is_never_shed
from pulsar_advisor.placement import registry as placements
from pulsar_advisor.placement import round_robin_broker_selector
from pulsar_advisor.placement.filters import PlacementFacts, placement_facts
from pulsar_advisor.planning.proposals.select_broker import BrokerSelection, CandidateSets
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.simulation.intervals import Intervals
from pulsar_advisor.simulation.leader import Unloads
from pulsar_advisor.simulation.moment import Moment
from pulsar_advisor.simulation.simulate import CarriedOut
from pulsar_advisor.splitting.division import divided


def rolling_restart(
    placement: str, situation: Situation, *, seed: int = 0, before: Situation | None = None
) -> CarriedOut:
    """Where each bundle is once every active broker was restarted, in the order of their ids, the leader last.

    In an upgrade, the leader places as configured `before` until it is restarted itself.
    """
    state, settings = situation.fit, situation.settings.values
    turns = sorted(np.flatnonzero(state.brokers.available).tolist(), key=lambda row: (row == state.leader, row))
    intervals = Intervals.of(settings)
    now = Moment.of(state, situation.base.likely, settings, intervals, seed)
    leader = _Leader.of(placement, situation) if before is None else _Leader.of(before.configured.placement, before)
    stays_away = np.array([is_never_shed(name, settings) for name in state.namespaces.names], dtype=np.bool_)
    for turn, broker in enumerate(turns):
        if before is not None and broker == turns[-1]:
            leader = _Leader.of(placement, situation)
        homeless = np.flatnonzero((now.steady.owner == broker) & ~stays_away[state.bundles.namespace])
        unloads, leader = _assigned(leader, now.seen, broker, homeless.tolist(), f"{seed}/restart {turn}")
        now = now.moved(unloads).advanced(settings, intervals)
    owner = now.steady.owner
    moved = np.flatnonzero(owner != state.bundles.owner)
    return CarriedOut(divided(state, ()), dict(zip(moved.tolist(), owner[moved].tolist(), strict=True)))


class _Leader(NamedTuple):
    """What places bundles, and remembers from one broker's restart to the next."""

    placement: str
    facts: PlacementFacts
    memory: Any
    turns: round_robin_broker_selector.Memory
    """Of namespaces excluded from shedding."""

    @classmethod
    def of(cls, placement: str, situation: Situation) -> _Leader:
        facts = placement_facts(situation.fit, situation.settings.values)
        return cls(placement, facts, placements.load(placement).Memory(), round_robin_broker_selector.Memory())


def _assigned(
    leader: _Leader, seen: ClusterState, broker: int, bundles: Sequence[int], seed: str
) -> tuple[Unloads, _Leader]:
    """Where the bundles of a broker that stops are assigned, one after another, and what the placement remembers."""
    available = seen.brokers.available.copy()
    available[broker] = False
    # Until a bundle is assigned, the broker that is down counts as its owner: harmless, since it is no candidate.
    state = replace(seen, brokers=replace(seen.brokers, available=available))
    facts = leader.facts.after_moves(state)
    selection = BrokerSelection.of(leader.placement, CandidateSets.of(facts), seed, memory=leader.memory)
    selection.turns = leader.turns
    found = {}
    for bundle in bundles:
        destination = selection.assign(bundle, broker)
        if destination != NO_ROW:
            found[bundle] = destination
    rows: Indices = np.array(list(found), dtype=np.int32)
    leader = leader._replace(memory=selection.memory, turns=selection.turns)
    return Unloads(rows, np.array(list(found.values()), dtype=np.int32)), leader
