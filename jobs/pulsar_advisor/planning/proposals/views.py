"""A strategy's view of a cluster state, with the policies and filters that its load manager would apply."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import Booleans, ClusterState
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.extensible_load import ExtensibleLoad
from pulsar_advisor.model.load.simple_load import SimpleLoad
from pulsar_advisor.placement.filters import (
    PlacementFacts,
    extensible_candidates,
    policy_candidates,
    version_filter_fails,
)

Observe = Callable[[ClusterState, LoadBalancerSettings, int], Any]


def observed(observe: Observe, facts: PlacementFacts) -> Any:
    """What a strategy observes of the cluster that these facts describe.

    An Extensible or Simple view applies the filters, which strategies can't import.
    Source: `TransferShedder.isTransferable`, `SimpleLoadManagerImpl.doLoadShedding` (4.0.8).
    """
    state, settings = facts.state, facts.settings
    view = observe(state, settings, state.captured_at_ms)
    namespace_of = state.bundles.namespace
    if isinstance(view, ExtensibleLoad):
        if version_filter_fails(facts):
            return replace(view, transferable=lambda _bundle, _source, _destination: False)

        @cache
        def candidates(namespace: int) -> Booleans:
            found = np.zeros(len(state.brokers), dtype=np.bool_)
            found[extensible_candidates(facts, namespace).brokers] = True
            return found

        def transferable(bundle: int, source: int, destination: int) -> bool:
            left = candidates(int(namespace_of[bundle])).copy()
            if not left[destination]:
                return False
            left[source] = False
            return bool(left[destination] if settings.load_balancer_transfer_enabled else left.any())

        return replace(view, transferable=transferable)
    if isinstance(view, SimpleLoad):

        @cache
        def allowed(namespace: int) -> Booleans:
            return policy_candidates(facts, namespace)

        return replace(view, allowed=lambda bundle: allowed(int(namespace_of[bundle])))
    return view
