"""One cycle of a cluster's leader: its shedder decides, its load manager carries that out, its placement assigns.

What its manager does with the children of split bundles is here too, since they are placed like any other bundle.

Both strategies keep their memory from cycle to cycle. Within a cycle nothing that is shed is added to the load of its
destination; a child is, when it is looked up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, ClusterState, Indices
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.placement import registry as placements
from pulsar_advisor.placement.filters import PlacementFacts, unload_obstacle
from pulsar_advisor.planning.plans.propose import surroundings
from pulsar_advisor.planning.proposals.select_broker import BrokerSelection, CandidateSets
from pulsar_advisor.planning.proposals.views import observed
from pulsar_advisor.shedding import registry as shedders
from pulsar_advisor.shedding.cycle import carry_out
from pulsar_advisor.splitting.division import Division

_POLICIES_KEEP_CHILDREN_SINCE: Final = (3, 0)


@dataclass(frozen=True)
class Memories:
    """What the strategies remember. A class with both roles is one object in Pulsar, and has one memory."""

    shedder: Any
    placement: Any

    def once_shed(self, shedder: Any) -> Memories:
        """What they remember once the shedder remembers this."""
        return Memories(shedder, shedder if isinstance(shedder, type(self.placement)) else self.placement)

    def once_placed(self, placement: Any) -> Memories:
        """What they remember once the placement strategy remembers this."""
        return Memories(placement if isinstance(placement, type(self.shedder)) else self.shedder, placement)


class Unloads(NamedTuple):
    """Bundles that the leader unloads in a cycle, in its order (rows)."""

    bundle: Indices
    destination: Indices


NO_UNLOADS: Final = Unloads(np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int32))


@dataclass(frozen=True)
class Leader:
    """A leader with its two strategies, by name."""

    shedder: str
    placement: str
    facts: PlacementFacts
    """Policies, topics and versions don't change while bundles move; a split divides topics."""
    seed: int

    @property
    def settings(self) -> LoadBalancerSettings:
        """The cluster's."""
        return self.facts.settings

    def first_memories(self, shedder: Any) -> Memories:
        """The memories before the first cycle, with what the shedder has learnt from earlier snapshots."""
        return Memories(shedder, placements.load(self.placement).Memory()).once_shed(shedder)

    def lead(self, seen: ClusterState, cycle: int, memories: Memories) -> tuple[Unloads, Memories]:
        """What it does in one cycle (counted from 1) with the cluster as it sees it, and what it remembers then."""
        shedder, placement = shedders.load(self.shedder), placements.load(self.placement)
        facts = self.facts.after_moves(seen)
        view = observed(shedder.observe, facts)
        chosen, remembered = shedder.decide(view, self.settings, memories.shedder)
        memories = memories.once_shed(remembered)
        if not len(chosen.bundle):
            return Unloads(chosen.bundle, chosen.destination), memories
        same = placement.observe is shedder.observe
        selection = self._selection(cycle, memories, facts, view if same else None, shedding=True)
        left, _ = carry_out(chosen, surroundings(selection, chosen))
        memories = memories.once_placed(selection.memory)
        if sources := {seen.brokers.ids[broker] for broker in left.source.tolist()}:
            memories = memories.once_shed(memories.shedder.after_unloads(sources, seen.captured_at_ms))
        return Unloads(left.bundle, left.destination), memories

    def unload_children(
        self, before: ClusterState, seen: ClusterState, cycle: int, memories: Memories, division: Division
    ) -> tuple[Unloads, Memories]:
        """Where the manager puts the children of split bundles, which it sees `before` and after the splits.

        Modular and Simple unload those with loaded topics if `loadBalancerAutoUnloadSplitBundlesEnabled` is on; from
        3.0 on Modular keeps those whose policies allow no other broker. Extensible leaves children where they are.
        They are looked up before a report shows the split.
        Source: `ModularLoadManagerImpl.checkNamespaceBundleSplit`, `SimpleLoadManagerImpl.doNamespaceBundleSplit`.
        """
        bundles, unloaded = seen.bundles, NO_UNLOADS
        if seen.load_manager == "extensible" or not self.settings.load_balancer_auto_unload_split_bundles_enabled:
            return unloaded, memories
        known = _with_parents(before, seen, division)
        facts = self.facts.after_moves(known)
        selection = self._selection(cycle, memories, facts)
        own = replace(known, bundles=replace(known.bundles, long_term=bundles.long_term))
        selection.candidates = selection.candidates.after_moves(facts.after_moves(own))
        asks_policies = seen.load_manager == "modular" and self.settings.behaviour >= _POLICIES_KEEP_CHILDREN_SINCE
        moves = []
        for split in division.splits:
            for child in division.children(split):
                namespace, source = int(bundles.namespace[child]), int(bundles.owner[child])
                if not bundles.topics[child] or source == NO_ROW:
                    continue
                allowed = selection.candidates.allowed(namespace)
                if asks_policies and unload_obstacle(facts, allowed, namespace, source):
                    continue
                destination = selection.assign(child, source)
                moves.append((child, source if destination == NO_ROW else destination))
        if moves:
            unloaded = Unloads(*np.array(moves, dtype=np.int32).T)
        return unloaded, memories.once_placed(selection.memory)

    def _selection(
        self, cycle: int, memories: Memories, facts: PlacementFacts, view: Any = None, *, shedding: bool = False
    ) -> BrokerSelection:
        """The placement of one cycle; `view` is what the strategy observes, if that is known already."""
        # The first cycle draws as a recommendation does.
        seed = self.seed if cycle == 1 else f"{self.seed}/{cycle}"
        candidates, memory = CandidateSets.of(facts, shedding=shedding), memories.placement
        return BrokerSelection.of(self.placement, candidates, seed, memory=memory, view=view, likeliest=shedding)


def _with_parents(before: ClusterState, seen: ClusterState, division: Division) -> ClusterState:
    """What a leader knows until a report shows the splits: for one child of each it has the figures of the parent."""
    bundles = seen.bundles
    parents = np.array([split.bundle for split in division.splits], dtype=np.intp)
    first = np.array([division.children(split)[0] for split in division.splits], dtype=np.intp)
    columns = {name: getattr(bundles, name).copy() for name in ("reported", "listed", "long_term", "long_term_samples")}
    for name, column in columns.items():
        column[first] = getattr(before.bundles, name)[parents]
    return replace(seen, bundles=replace(bundles, **columns))
