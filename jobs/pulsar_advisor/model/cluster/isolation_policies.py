"""Namespace isolation policies: which brokers a namespace may use, and which brokers are shared.

The first policy whose namespace expression matches the whole name applies. A broker is matched by its host: its id
without the port; from 5.0.1 on, expressions with a ":" may match its id instead. A broker whose id has no ":" is
ignored. A broker is primary if a primary expression matches all of it, and secondary if only a secondary expression
does. Secondaries are added while fewer primaries are available than `min_limit` (the usage threshold is never read). A
namespace without a policy gets the shared brokers: those that are primary in no policy and accept its kind of topics.

Expressions are Java's (`model.java.expressions`). One that can't be applied here matches nothing; a check reports it.
Otherwise unchanged from 2.11 on. Source: Pulsar `SimpleResourceAllocationPolicies`, `NamespaceIsolationPolicyImpl`,
`MinAvailablePolicy`, `LoadManagerShared.applyNamespacePolicies`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import Booleans, ClusterState, Indices, IsolationPolicy
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.java.expressions import Matched, matched

NO_POLICY = -1
_IDS_MATCH_SINCE: Final = (5, 0, 1)


@dataclass(frozen=True, eq=False)
class Isolation:
    """The policies of a cluster, matched once against every namespace and broker."""

    policy_of_namespace: Indices
    """Index of the policy that applies to each namespace, NO_POLICY where none does."""
    min_limit: tuple[int, ...]
    """Per policy."""
    primary: Booleans
    """(policies, brokers)."""
    secondary: Booleans
    """(policies, brokers); excludes the primaries."""
    shared: Booleans
    """Per broker, whether it is primary in no policy."""
    has_host: Booleans
    """Per broker, whether its id has a port to remove."""


def isolation_of(state: ClusterState, settings: LoadBalancerSettings) -> Isolation:
    """The policies of a cluster state, in the order of its policies."""
    return _isolation(state.isolation_policies, state.namespaces.names, state.brokers.ids, settings.behaviour)


@lru_cache(maxsize=4)  # what-ifs, strategies and cycles change nothing of it, and hundreds of policies take seconds
def _isolation(
    policies: tuple[IsolationPolicy, ...],
    namespaces: tuple[str, ...],
    brokers: tuple[str, ...],
    release: tuple[int, int, int],
) -> Isolation:
    policy_of_namespace = np.full(len(namespaces), NO_POLICY, dtype=np.int32)
    primary = np.zeros((len(policies), len(brokers)), dtype=np.bool_)
    secondary = np.zeros_like(primary)
    for row, policy in enumerate(policies):
        applies = matched(policy.namespaces, namespaces).matches
        policy_of_namespace[applies & (policy_of_namespace == NO_POLICY)] = row
        primary[row] = matched_brokers(policy.primary, brokers, release).matches
        secondary[row] = matched_brokers(policy.secondary, brokers, release).matches & ~primary[row]
    return Isolation(
        policy_of_namespace=policy_of_namespace,
        min_limit=tuple(policy.min_limit for policy in policies),
        primary=primary,
        secondary=secondary,
        shared=np.asarray(~primary.any(axis=0)),
        has_host=_has_host(brokers),
    )


def under_policies(state: ClusterState, isolation: Isolation) -> Booleans:
    """Per namespace, whether an isolation policy applies to it or it is in an anti-affinity group."""
    under: Booleans = (isolation.policy_of_namespace != NO_POLICY) | state.namespaces.in_groups
    return under


def matched_brokers(expressions: Sequence[str], brokers: Sequence[str], release: tuple[int, ...]) -> Matched:
    """Which brokers (ids) the expressions of a policy match in a release."""
    found = matched(expressions, [broker_host(broker) or "" for broker in brokers])
    matches, unusable = found.matches, found.unusable
    if release >= _IDS_MATCH_SINCE:
        by_id = matched([one for one in expressions if ":" in one], brokers)
        matches, unusable = matches | by_id.matches, {**unusable, **by_id.unusable}
    return Matched(matches & _has_host(brokers), unusable)


def _has_host(brokers: Sequence[str]) -> Booleans:
    return np.array([broker_host(broker) is not None for broker in brokers], dtype=np.bool_)


def broker_host(broker: str) -> str | None:
    """Host of a broker id `host:port`; None without a port."""
    host, separator, _ = broker.rpartition(":")
    return host if separator else None


def needs_secondaries(primaries: int, min_limit: int) -> bool:
    """Whether a policy falls back to its secondaries with this many available primaries (`MinAvailablePolicy`)."""
    return primaries < min_limit
