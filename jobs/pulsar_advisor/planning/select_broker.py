"""Where an unloaded bundle would go: the filters, the placement strategy, and a second try off an overloaded broker.

Source: `ModularLoadManagerImpl.selectBroker`, `ExtensibleLoadManagerImpl.selectAsync` (2.11.0 to 5.0.1). Where Pulsar
draws at random, the draw here depends on the seed, the strategy and the bundle's name only.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from pulsar_advisor.model.cluster_state import NOBODY, Booleans, ClusterState, Indices
from pulsar_advisor.model.java_maps import hash_map_order, string_hashes
from pulsar_advisor.model.outcomes import Outcomes
from pulsar_advisor.model.resource_usage import overload_usage
from pulsar_advisor.model.settings import LoadBalancerSettings
from pulsar_advisor.placement.filters import (
    Candidates,
    PlacementFacts,
    extensible_candidates,
    modular_candidates,
    overloaded_retry,
    policy_candidates,
)
from pulsar_advisor.placement.registry import Placement

BUNDLES_EXPLAINED: Final = 50
"""For so many bundles the answer about every broker is kept; more would say the same at a thousand times the size."""


@dataclass
class BrokerSelection:
    """Selects a broker for one bundle after the other; the strategy's memory advances with every choice."""

    state: ClusterState
    settings: LoadBalancerSettings
    facts: PlacementFacts
    name: str
    """Of the placement strategy."""
    strategy: Placement
    view: Any
    """What the strategy observes of the state."""
    memory: Any
    seed: int
    explained: list[tuple[int, Outcomes]] = field(default_factory=list)
    """Bundle row and the answer about each broker: first the filters', then the strategy's."""
    _candidates: dict[tuple[int, bool], Candidates] = field(default_factory=dict)
    _in_order: dict[bytes, Indices] = field(default_factory=dict)

    def select(self, bundle: int, _source: int) -> int:
        """The broker for a bundle (rows), NOBODY where there is none."""
        namespace = int(self.state.bundles.namespace[bundle])
        non_persistent = self._holds_non_persistent_topics(bundle)
        candidates = self._candidates_for(namespace, non_persistent)
        chosen = self._choose(bundle, candidates)
        if chosen != NOBODY and self._is_overloaded(chosen) and self.state.load_manager != "extensible":
            allowed = self.allowed(namespace, non_persistent)
            again = self._choose(bundle, overloaded_retry(candidates, allowed))
            chosen = again if again != NOBODY else chosen
        return chosen

    def allowed(self, namespace: int, non_persistent: bool = False) -> Booleans:
        """Per broker, whether the isolation policies allow it for a namespace (row)."""
        return policy_candidates(self.state, self.facts, namespace, non_persistent=non_persistent)

    def _candidates_for(self, namespace: int, non_persistent: bool) -> Candidates:
        key = (namespace, non_persistent)
        if key not in self._candidates:
            pipeline = extensible_candidates if self.state.load_manager == "extensible" else modular_candidates
            self._candidates[key] = pipeline(
                self.state, self.settings, self.facts, namespace, non_persistent=non_persistent
            )
        return self._candidates[key]

    def _choose(self, bundle: int, candidates: Candidates) -> int:
        if not len(candidates.brokers):
            return NOBODY
        in_order = self._in_java_order(candidates.brokers)
        decision, self.memory = self.strategy.choose(self.view, in_order, bundle, self.settings, self.memory)
        if len(self.explained) < 2 * BUNDLES_EXPLAINED:
            self.explained += [(bundle, candidates.outcomes), (bundle, decision.brokers)]
        if not len(decision.eligible):
            return NOBODY
        eligible = np.sort(decision.eligible)
        draw = random.Random(f"{self.seed}/{self.name}/{self.state.bundle_name(bundle)}")
        return int(eligible[draw.randrange(len(eligible))])

    def _in_java_order(self, brokers: Indices) -> Indices:
        """Candidates in the order of the hash set the Modular manager keeps them in."""
        key = brokers.tobytes()
        if key not in self._in_order:
            ids = [self.state.brokers.ids[row] for row in brokers]
            self._in_order[key] = brokers[hash_map_order(string_hashes(ids))]
        return self._in_order[key]

    def _is_overloaded(self, broker: int) -> bool:
        brokers = self.state.brokers
        usage = overload_usage(brokers.usage[[broker]], brokers.limit[[broker]], self.settings)[0]
        return bool(usage > self.settings.load_balancer_broker_overloaded_threshold_percentage / 100)

    def _holds_non_persistent_topics(self, bundle: int) -> bool:
        topics = self.state.topics
        mine = topics.names[(topics.bundle == bundle) & topics.loaded]
        return any(str(name).startswith("non-persistent://") for name in mine)
