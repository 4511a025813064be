"""A rolling restart: one broker after another stops, the others get its bundles, and it comes back empty.

Nothing is drained before, shedding and splits are switched off, and the next broker stops a cycle later, once reports
show the load of those before, as Pulsar's documentation of rolling upgrades asks for. What a broker had is assigned in
the order of names, since no snapshot knows the order of its clients' look-ups. The Modular leader adds what it has
assigned, but no report shows yet, to a broker's long-term rate and topics.
Source: `ModularLoadManagerImpl.preallocateBundle`, `LoadManagerShared.filterBrokersWithLargeTopicCount`,
`LeastLongTermMessageRate` (2.11.0 to 5.0.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, ClusterState, Indices, rate_per_s
from pulsar_advisor.model.cluster.namespaces import is_never_shed
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.averages import DEFAULT_FIGURES
from pulsar_advisor.model.load.base_load import base_load
from pulsar_advisor.model.load.load_data import LoadData
from pulsar_advisor.placement import registry as placements
from pulsar_advisor.placement import round_robin_broker_selector
from pulsar_advisor.placement.filters import PlacementFacts, facts_after_moves, placement_facts
from pulsar_advisor.planning.proposals.select_broker import BrokerSelection, CandidateSets
from pulsar_advisor.planning.proposals.views import observed
from pulsar_advisor.simulation.intervals import Intervals
from pulsar_advisor.simulation.leader import Unloads
from pulsar_advisor.simulation.moment import Moment
from pulsar_advisor.simulation.simulate import CarriedOut
from pulsar_advisor.splitting.division import divided


def rolling_restart(
    placement: str,
    state: ClusterState,
    settings: LoadBalancerSettings,
    *,
    seed: int = 0,
    history: Sequence[ClusterState] = (),
) -> CarriedOut:
    """Where each bundle is once every active broker was restarted, in the order of their ids, the leader last."""
    turns = sorted(np.flatnonzero(state.brokers.available).tolist(), key=lambda row: (row == state.leader, row))
    intervals = Intervals.of(settings)
    now = Moment.of(state, base_load(state, history).likely, settings, intervals, seed)
    facts = placement_facts(state, settings)
    memories = _Memories(placements.load(placement).Memory(), round_robin_broker_selector.Memory())
    stays_away = np.array([is_never_shed(name, settings) for name in state.namespaces.names], dtype=np.bool_)
    for turn, broker in enumerate(turns):
        homeless = np.flatnonzero((now.steady.owner == broker) & ~stays_away[state.bundles.namespace])
        unloads, memories = _assigned(
            placement, now.seen, settings, facts, memories, broker, homeless.tolist(), f"{seed}/restart {turn}"
        )
        now = now.moved(unloads).advanced(settings, intervals)
    owner = now.steady.owner
    moved = np.flatnonzero(owner != state.bundles.owner)
    return CarriedOut(divided(state, ()), dict(zip(moved.tolist(), owner[moved].tolist(), strict=True)))


class _Memories(NamedTuple):
    """What places bundles remembers from one broker's restart to the next."""

    placement: Any
    turns: round_robin_broker_selector.Memory
    """Of namespaces excluded from shedding."""


def _assigned(
    placement: str,
    seen: ClusterState,
    settings: LoadBalancerSettings,
    facts: PlacementFacts,
    memories: _Memories,
    broker: int,
    bundles: Sequence[int],
    seed: str,
) -> tuple[Unloads, _Memories]:
    """Where the bundles of a broker that stops are assigned, one after another, and what the placement remembers."""
    available = seen.brokers.available.copy()
    available[broker] = False
    # A broker that is down is no candidate, so that it counts as the owner until a bundle is assigned changes nothing.
    state = replace(seen, brokers=replace(seen.brokers, available=available))
    facts = facts_after_moves(facts, state, settings)
    strategy = placements.load(placement)
    selection = BrokerSelection(
        candidates=CandidateSets.of(state, settings, facts),
        name=placement,
        strategy=strategy,
        view=observed(strategy.observe, state, settings, facts),
        memory=memories.placement,
        seed=seed,
        turns=memories.turns,
    )
    rate = rate_per_s(np.where(np.isfinite(state.bundles.long_term), state.bundles.long_term, DEFAULT_FIGURES))
    grouped = facts.anti_affinity.group_of_namespace >= 0
    found = {}
    for bundle in bundles:
        destination = selection.select(bundle, broker)
        if destination == NO_ROW:
            continue
        found[bundle] = destination
        state = _owned(state, bundle, destination)
        if state.load_manager == "modular":
            state = _with_topics(state, bundle, destination)
        if grouped[state.bundles.namespace[bundle]]:
            facts = facts_after_moves(facts, state, settings)
        selection.candidates = selection.candidates.after_moves(state, facts)
        if isinstance(selection.view, LoadData):
            selection.view = _preallocated(selection.view, destination, float(rate[bundle]))
    rows: Indices = np.array(list(found), dtype=np.int32)
    return Unloads(rows, np.array(list(found.values()), dtype=np.int32)), _Memories(selection.memory, selection.turns)


def _owned(state: ClusterState, bundle: int, broker: int) -> ClusterState:
    owner = state.bundles.owner.copy()
    owner[bundle] = broker
    return replace(state, bundles=replace(state.bundles, owner=owner))


def _with_topics(state: ClusterState, bundle: int, broker: int) -> ClusterState:
    topics = state.brokers.topics.copy()
    topics[broker] += state.bundles.topics[bundle]
    return replace(state, brokers=replace(state.brokers, topics=topics))


def _preallocated(load: LoadData, broker: int, rate: float) -> LoadData:
    """The leader's view once it has assigned a bundle with this long-term rate."""
    assigned = load.brokers.preallocated_rate_per_s.copy()
    assigned[broker] += rate
    return replace(load, brokers=replace(load.brokers, preallocated_rate_per_s=assigned))
