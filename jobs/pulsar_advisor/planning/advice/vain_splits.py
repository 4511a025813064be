"""Splits that leave the load as it is: of bundles whose load is one topic's, which no split divides."""

from __future__ import annotations

import numpy as np

from pulsar_advisor.model.cluster.bundle_range import parse_range
from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.plans.plan import Plan, Step
from pulsar_advisor.splitting.cluster_bundles import bundle_topics
from pulsar_advisor.splitting.even_cut import LEAST_RELIEF, NoCut, even_cut


def only_splits_in_vain(plan: Plan, state: ClusterState, settings: LoadBalancerSettings) -> bool:
    """Whether nothing that a plan does changes the load."""
    steps = plan.executable_steps
    return bool(steps) and all(step.action == "split" and is_in_vain(step, state, settings) for step in steps)


def is_in_vain(split: Step, state: ClusterState, settings: LoadBalancerSettings) -> bool:
    """Whether one topic makes nearly all of the load of a split's bundle, which doesn't have too many topics or clients
    either."""
    if split.namespace not in state.namespaces.names:
        return False
    bundles, (lower, upper) = state.bundles, parse_range(split.bundle)
    is_it = (bundles.namespace == state.namespaces.names.index(split.namespace)) & (bundles.lower == lower)
    rows = np.flatnonzero(is_it & (bundles.upper == upper)).tolist()
    topics = bundle_topics(state, rows[0]) if rows else None
    if topics is None:  # a part of another split, or not known
        return False
    clients = bundles.producers[rows[0]] + bundles.consumers[rows[0]]
    if bundles.topics[rows[0]] > settings.load_balancer_namespace_bundle_max_topics:
        return False
    if 0 < settings.load_balancer_namespace_bundle_max_sessions < clients:
        return False
    cut = even_cut(topics)
    return isinstance(cut, NoCut) and cut.hottest_share > 1.0 - LEAST_RELIEF
