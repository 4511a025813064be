"""Where an unloaded bundle would go: the filters, the placement strategy, and a second try off an overloaded broker.

Source: `ModularLoadManagerImpl.selectBroker`, `ExtensibleLoadManagerImpl.selectAsync`,
`SimpleLoadManagerImpl.getFinalCandidates` (2.11.0 to 5.0.1). Where Pulsar draws at random, the draw here depends only
on the seed, the strategy and the bundle's name.

Bundles of namespaces excluded from shedding go to the brokers in turn, except under Simple, which ignores that setting.

If the Modular manager draws a bundle's own broker, it leaves the bundle where it is. Among k brokers that happens once
in k times, so the bundle is at least as likely to go: a prediction lets it go.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, Booleans, ClusterState, Indices, rate_per_s
from pulsar_advisor.model.java.maps import Hashes, hash_map_order, name_hashes
from pulsar_advisor.model.load.averages import DEFAULT_FIGURES
from pulsar_advisor.model.load.load_data import LoadData, load_data
from pulsar_advisor.model.load.resource_usage import overload_usage
from pulsar_advisor.model.strategy.decision import PlacementDecision
from pulsar_advisor.model.strategy.memory import NoMemory
from pulsar_advisor.model.strategy.outcomes import Outcomes
from pulsar_advisor.placement import round_robin_broker_selector
from pulsar_advisor.placement.filters import (
    Candidates,
    PlacementFacts,
    extensible_candidates,
    modular_candidates,
    overloaded_retry,
    policy_candidates,
    simple_candidates,
)
from pulsar_advisor.placement.registry import Placement, load
from pulsar_advisor.planning.proposals.views import observed

PIPELINES: Final = {"modular": modular_candidates, "simple": simple_candidates, "extensible": extensible_candidates}
"""The filters of each load manager."""
_PLACES_FIRST_SINCE: Final = (3, 0, 1)
BUNDLES_EXPLAINED: Final = 50
"""Number of bundles for which the outcome of every broker is kept; more would add size, not insight."""


@dataclass(frozen=True, eq=False)
class CandidateSets:
    """The brokers that a namespace's bundles may go to, whatever the placement strategy; computed on demand."""

    facts: PlacementFacts
    _hashes: Hashes
    _overloaded: Booleans
    excluded: Booleans
    """Per namespace, whether it is excluded from shedding: brokers take its bundles in turn."""
    _non_persistent: Booleans
    """Per bundle, whether whoever places it knows that it holds a non-persistent topic."""
    _allowed: dict[tuple[int, bool], Booleans] = field(default_factory=dict)
    _candidates: dict[tuple[int, bool], Candidates] = field(default_factory=dict)
    _restored: dict[tuple[int, bool], Candidates] = field(default_factory=dict)
    _in_order: dict[bytes, Indices] = field(default_factory=dict)

    @classmethod
    def of(cls, facts: PlacementFacts, *, shedding: bool = False) -> CandidateSets:
        """The sets of a cluster, none computed yet.

        From 3.0.1 on a Modular leader places what it sheds by the range alone, so as if there were no non-persistent
        topics; what a client looks up is placed by its topics. Source: `LoadManagerShared.getNamespaceBundle`.
        """
        state, settings = facts.state, facts.settings
        usage = overload_usage(state.brokers.usage, state.brokers.limit, settings)
        overloaded = usage > settings.overloaded_ratio
        excluded = settings.load_balancer_shedding_excluded_namespaces if state.load_manager != "simple" else ()
        sets = cls(
            facts, name_hashes(state.brokers.ids), overloaded, state.namespaces.among(excluded), facts.non_persistent
        )
        by_range = shedding and sets.places_first
        return replace(sets, _non_persistent=np.zeros_like(facts.non_persistent)) if by_range else sets

    @property
    def state(self) -> ClusterState:
        """The cluster, with what was assigned so far."""
        return self.facts.state

    @property
    def places_first(self) -> bool:
        """Whether the leader selects the broker for what it sheds itself, before it unloads it."""
        return self.state.load_manager == "modular" and self.facts.settings.behaviour >= _PLACES_FIRST_SINCE

    def after_moves(self, facts: PlacementFacts) -> CandidateSets:
        """The sets of a cluster in which bundles were assigned to other brokers."""
        return replace(self, facts=facts, _candidates={}, _restored={})

    def allowed(self, namespace: int, non_persistent: bool = False) -> Booleans:
        """Per broker, whether the isolation policies allow it for a namespace (row)."""
        key = (namespace, non_persistent)
        if key not in self._allowed:
            self._allowed[key] = policy_candidates(self.facts, namespace, non_persistent=non_persistent)
        return self._allowed[key]

    def first(self, bundle: int) -> Candidates:
        """The candidates for a bundle (row)."""
        key = self._key(bundle)
        if key not in self._candidates:
            pipeline = PIPELINES[self.state.load_manager]
            self._candidates[key] = pipeline(self.facts, key[0], non_persistent=key[1])
        return self._candidates[key]

    def second(self, bundle: int, chosen: int) -> Candidates | None:
        """The candidates for a second choice, when the broker chosen from the first ones (a row) is overloaded."""
        if self.state.load_manager != "modular" or not self._overloaded[chosen]:
            return None
        key = self._key(bundle)
        if key not in self._restored:
            self._restored[key] = overloaded_retry(self.first(bundle), self.allowed(*key))
        return self._restored[key]

    def placed_in_turn(self, bundle: int) -> bool:
        """Whether brokers take the bundles of this one's namespace in turn: it is excluded from shedding."""
        return bool(self.excluded[self.state.bundles.namespace[bundle]])

    def in_java_order(self, brokers: Indices) -> Indices:
        """Candidates in the order of the Modular manager's hash set."""
        key = brokers.tobytes()
        if key not in self._in_order:
            self._in_order[key] = brokers[hash_map_order(self._hashes[brokers])]
        return self._in_order[key]

    def _key(self, bundle: int) -> tuple[int, bool]:
        """Namespace, and whether the bundle is known to hold non-persistent topics: what the candidates depend on."""
        return int(self.state.bundles.namespace[bundle]), bool(self._non_persistent[bundle])


@dataclass
class BrokerSelection:
    """Selects a broker for one bundle after another; the strategy's memory advances with every choice."""

    candidates: CandidateSets
    name: str
    """Of the placement strategy; a draw depends on it."""
    strategy: Placement
    view: Any
    """The strategy's observation of the state."""
    memory: Any
    """The strategy's; replaced with every choice."""
    seed: int | str
    """What a draw depends on besides the strategy and the bundle."""
    likeliest: bool = False
    """Whether a draw leaves out the bundle's source if it is one of several (see the module's docstring)."""
    turns: round_robin_broker_selector.Memory = field(default_factory=round_robin_broker_selector.Memory)
    """Of the brokers that take the bundles of excluded namespaces; replaced with every choice."""
    possible: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Bundle row -> the brokers (rows) where Pulsar may put it."""
    explained: list[tuple[int, Outcomes]] = field(default_factory=list)
    """Bundle row and the answer about each broker: first the filters' answer, then the strategy's."""
    _answers: dict[bytes, PlacementDecision] = field(default_factory=dict)
    """Candidates -> the answer of a strategy that remembers nothing: to every bundle the same, until loads change."""
    _counts: bool = False
    """Whether what changes as bundles are assigned is this selection's own copy."""

    @classmethod
    def of(
        cls,
        placement: str,
        candidates: CandidateSets,
        seed: int | str,
        *,
        memory: Any = None,
        view: Any = None,
        likeliest: bool = False,
    ) -> BrokerSelection:
        """The selection by a placement strategy (its name).

        `memory`: None for that of a new leader; `view`: None unless it is known what the strategy observes.
        """
        strategy = load(placement)
        memory = strategy.Memory() if memory is None else memory
        view = observed(strategy.observe, candidates.facts) if view is None else view
        return cls(candidates, placement, strategy, view, memory, seed, likeliest)

    def select(self, bundle: int, source: int) -> int:
        """The broker for a bundle at `source` (rows), NO_ROW if no broker qualifies."""
        first = self.candidates.first(bundle)
        in_turn = self.candidates.placed_in_turn(bundle)
        chosen = self._next_in_turn(bundle, first) if in_turn else self._choose(bundle, source, first)
        if chosen == NO_ROW or (others := self.candidates.second(bundle, chosen)) is None:
            return chosen
        again = self._choose(bundle, source, others)
        return again if again != NO_ROW else chosen

    def assign(self, bundle: int, source: int) -> int:
        """The broker for a bundle that a client looks up; the leader counts the bundle there before a report shows it.

        Source: `ModularLoadManagerImpl.preallocateBundle`, `LoadManagerShared.filterBrokersWithLargeTopicCount`,
        `LeastLongTermMessageRate` (2.11.0 to 5.0.1).
        """
        destination = self.select(bundle, source)
        if destination != NO_ROW:
            self._count_at(destination, bundle)
        return destination

    def _count_at(self, broker: int, bundle: int) -> None:
        if not self._counts:
            self._begin_to_count()
        facts = self.candidates.facts
        bundles, brokers = facts.state.bundles, facts.state.brokers
        bundles.owner[bundle], bundles.listed[bundle] = broker, True
        if facts.state.load_manager == "modular":
            brokers.topics[broker] += bundles.topics[bundle]
        self.candidates = self.candidates.after_moves(facts.after_moves(facts.state))
        if isinstance(self.view, LoadData):
            self._answers.clear()
            figures = bundles.long_term[bundle]
            rate = rate_per_s(np.where(np.isfinite(figures), figures, DEFAULT_FIGURES))
            self.view.brokers.preallocated_rate_per_s[broker] += rate

    def _begin_to_count(self) -> None:
        """Copy what changes as bundles are assigned, once: others share the state and the view."""
        facts = self.candidates.facts
        bundles, brokers = facts.state.bundles, facts.state.brokers
        bundles = replace(bundles, owner=bundles.owner.copy(), listed=bundles.listed.copy())
        brokers = replace(brokers, topics=brokers.topics.copy())
        self.candidates = replace(
            self.candidates, facts=facts.after_moves(replace(facts.state, brokers=brokers, bundles=bundles))
        )
        if isinstance(self.view, LoadData):
            load = self.view.brokers
            load = replace(load, preallocated_rate_per_s=load.preallocated_rate_per_s.copy())
            self.view = replace(self.view, brokers=load)
        self._counts = True

    @cached_property
    def _load(self) -> LoadData:
        """What `RoundRobinBrokerSelector` observes: the brokers, which stay when bundles move."""
        state = self.candidates.state
        return load_data(state, self.candidates.facts.settings, state.captured_at_ms)

    def _next_in_turn(self, bundle: int, candidates: Candidates) -> int:
        settings = self.candidates.facts.settings
        in_order = self.candidates.in_java_order(candidates.brokers)
        decision, self.turns = round_robin_broker_selector.choose(self._load, in_order, bundle, settings, self.turns)
        self.possible[bundle] = tuple(decision.eligible.tolist())
        return int(decision.eligible[0]) if len(decision.eligible) else NO_ROW

    def _choose(self, bundle: int, source: int, candidates: Candidates) -> int:
        if not len(candidates.brokers):
            return NO_ROW
        decision = self._decision(bundle, self.candidates.in_java_order(candidates.brokers))
        # The Simple manager's leader ranks by quotas that it smooths in its memory, not by the reports' figures.
        anyone = candidates.brokers if self.candidates.state.load_manager == "simple" else decision.otherwise
        self.possible[bundle] = tuple((decision.eligible if anyone is None else anyone).tolist())
        if len(self.explained) < 2 * BUNDLES_EXPLAINED:
            self.explained += [(bundle, candidates.outcomes), (bundle, decision.brokers)]
        eligible = np.sort(decision.eligible)
        if self.likeliest and len(eligible) > 1:
            eligible = eligible[eligible != source]
        if len(eligible) <= 1:
            return int(eligible[0]) if len(eligible) else NO_ROW
        draw = random.Random(f"{self.seed}/{self.name}/{self.candidates.state.bundle_name(bundle)}")
        return int(eligible[draw.randrange(len(eligible))])

    def _decision(self, bundle: int, in_order: Indices) -> PlacementDecision:
        settings = self.candidates.facts.settings
        if isinstance(self.memory, NoMemory):
            key = in_order.tobytes()
            if key not in self._answers:
                self._answers[key], _ = self.strategy.choose(self.view, in_order, bundle, settings, self.memory)
            return self._answers[key]
        decision, self.memory = self.strategy.choose(self.view, in_order, bundle, settings, self.memory)
        return decision
