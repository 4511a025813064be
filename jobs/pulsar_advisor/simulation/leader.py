"""One cycle of a cluster's leader: its shedder decides, its load manager carries that out, its placement assigns.

Both strategies keep their memory from cycle to cycle. Within a cycle nothing is added to the load of a destination.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from pulsar_advisor.model.cluster_state import ClusterState, Indices
from pulsar_advisor.model.settings import LoadBalancerSettings
from pulsar_advisor.placement import registry as placements
from pulsar_advisor.placement.filters import PlacementFacts, facts_after_moves
from pulsar_advisor.planning.propose import surroundings
from pulsar_advisor.planning.select_broker import BrokerSelection, CandidateSets
from pulsar_advisor.planning.views import observed
from pulsar_advisor.shedding import registry as shedders
from pulsar_advisor.shedding.cycle import carry_out


@dataclass(frozen=True)
class Memories:
    """What the strategies remember. A class with both roles is one object in Pulsar, and has one memory."""

    shedder: Any
    placement: Any


class Unloads(NamedTuple):
    """Bundles that the leader unloads in a cycle, in its order (rows)."""

    bundle: Indices
    destination: Indices


@dataclass(frozen=True)
class Leader:
    """A leader with its two strategies, by name."""

    shedder: str
    placement: str
    settings: LoadBalancerSettings
    facts: PlacementFacts
    """Those of the snapshot: policies, topics and versions don't change while bundles move."""
    seed: int

    def first_memories(self, shedder: Any) -> Memories:
        """The memories before the first cycle, with what the shedder has learnt from earlier snapshots."""
        memory = placements.load(self.placement).Memory
        return Memories(shedder, shedder if isinstance(shedder, memory) else memory())

    def lead(self, seen: ClusterState, cycle: int, memories: Memories) -> tuple[Unloads, Memories]:
        """What it does in one cycle (counted from 1) with the cluster as it sees it, and what it remembers then."""
        shedder, placement = shedders.load(self.shedder), placements.load(self.placement)
        facts = facts_after_moves(self.facts, seen, self.settings)
        view = observed(shedder.observe, seen, self.settings, facts)
        chosen, remembered = shedder.decide(view, self.settings, memories.shedder)
        memories = self._shared(memories, remembered)
        if not len(chosen.bundle):
            return Unloads(chosen.bundle, chosen.destination), memories
        same = placement.observe is shedder.observe
        selection = BrokerSelection(
            candidates=CandidateSets.of(seen, self.settings, facts),
            name=self.placement,
            strategy=placement,
            view=view if same else observed(placement.observe, seen, self.settings, facts),
            memory=memories.placement,
            # The first cycle draws as a recommendation does.
            seed=self.seed if cycle == 1 else f"{self.seed}/{cycle}",
        )
        left, _ = carry_out(chosen, surroundings(selection, chosen))
        if isinstance(selection.memory, type(remembered)):
            remembered = selection.memory
        sources = {seen.brokers.ids[broker] for broker in left.source.tolist()}
        if sources:
            remembered = remembered.after_unloads(sources, seen.captured_at_ms)
        return Unloads(left.bundle, left.destination), Memories(remembered, selection.memory)

    def _shared(self, memories: Memories, remembered: Any) -> Memories:
        shared = isinstance(remembered, placements.load(self.placement).Memory)
        return Memories(remembered, remembered if shared else memories.placement)
