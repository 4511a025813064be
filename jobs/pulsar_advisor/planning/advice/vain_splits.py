"""Splits that leave the load as it is: of bundles whose load is one topic's, which no split divides, or has gone."""

from __future__ import annotations

from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.bundle_range import parse_range
from pulsar_advisor.model.cluster.cluster_state import ClusterState, rate_per_s, throughput_bytes_per_s
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.plans.plan import Plan, Step
from pulsar_advisor.splitting.cluster_bundles import bundle_topics
from pulsar_advisor.splitting.even_cut import LEAST_RELIEF, NoCut, even_cut

_GONE: Final = 0.1
"""The share of its long-term average below which a bundle's load has gone."""


def only_splits_in_vain(plan: Plan, state: ClusterState, settings: LoadBalancerSettings) -> bool:
    """Whether nothing that a plan does changes the load."""
    steps = plan.executable_steps
    return bool(steps) and all(step.action == "split" and why_in_vain(step, state, settings) for step in steps)


def why_in_vain(split: Step, state: ClusterState, settings: LoadBalancerSettings) -> str | None:
    """A clause: why a split divides no load. None if it does, if the bundle has too many topics or clients, and if it
    isn't known."""
    if split.namespace not in state.namespaces.names:
        return None
    bundles, (lower, upper) = state.bundles, parse_range(split.bundle)
    is_it = (bundles.namespace == state.namespaces.names.index(split.namespace)) & (bundles.lower == lower)
    rows = np.flatnonzero(is_it & (bundles.upper == upper)).tolist()
    if not rows:  # a part of another split
        return None
    row = rows[0]
    clients = bundles.producers[row] + bundles.consumers[row]
    if bundles.topics[row] > settings.load_balancer_namespace_bundle_max_topics:
        return None
    if 0 < settings.load_balancer_namespace_bundle_max_sessions < clients:
        return None
    now, usually = bundles.traffic[row], bundles.long_term[row]
    if all(flow(now) < _GONE * flow(usually) for flow in (rate_per_s, throughput_bytes_per_s)):
        return f"that is its long-term average: now it has {rate_per_s(now):,.0f} messages/s"
    topics = bundle_topics(state, row)
    cut = None if topics is None else even_cut(topics)
    if isinstance(cut, NoCut) and cut.hottest_share > 1.0 - LEAST_RELIEF:
        return f"one topic makes {cut.hottest_share:.0%} of its load, which no split divides"
    return None
