"""Anti-affinity groups: namespaces of one group spread over failure domains and brokers.

Groups are compared case-insensitively, spaces included. Per broker, the Modular manager counts the namespaces of the
group that have a bundle on it, the Extensible manager the bundles of the group that it owns. With
`failureDomainsEnabled` and at least one broker in a domain, brokers of domains above the lowest sum are dropped
(brokers without a domain form the domain "default"); of the rest, those above the lowest count. Unchanged from 2.11 to
5.0. Source: Pulsar `LoadManagerShared.filterAntiAffinityGroupOwnedBrokers`, `shouldAntiAffinityNamespaceUnload`,
`AntiAffinityGroupPolicyHelper`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, Booleans, ClusterState, Indices, Integers

NO_GROUP = -1
_DEFAULT_DOMAIN = "default"


@dataclass(frozen=True, eq=False)
class AntiAffinity:
    """The groups of a cluster, which stay while bundles move."""

    group_of_namespace: Indices
    """NO_GROUP for a namespace without a group."""
    bundles: tuple[Indices, ...]
    """Per group, the bundles (rows) of its namespaces."""
    domain: Indices | None
    """Per broker, the number of its failure domain; None if domains don't count."""


def anti_affinity_of(state: ClusterState, failure_domains_enabled: bool) -> AntiAffinity:
    """The groups of a cluster state."""
    named = zip(state.namespaces.anti_affinity_groups, state.namespaces.in_groups.tolist(), strict=True)
    groups = [(group or "").lower() if is_one else "" for group, is_one in named]
    known = _numbered(set(groups) - {""})
    group_of_namespace = np.array([known.get(group, NO_GROUP) for group in groups], dtype=np.int32)
    group = group_of_namespace[state.bundles.namespace]
    by_group = np.argsort(group, kind="stable").astype(np.int32)
    # The first part is of the bundles in no group.
    _, *bundles = np.split(by_group, np.searchsorted(group[by_group], np.arange(len(known))))
    return AntiAffinity(
        group_of_namespace=group_of_namespace,
        bundles=tuple(bundles),
        domain=domains(state.failure_domains) if failure_domains_enabled else None,
    )


def counts_of(state: ClusterState, bundles: Indices) -> Integers:
    """Per broker, how much of a group with these bundles (rows) its load manager counts there."""
    owner, extensible = state.bundles.owner[bundles], state.load_manager == "extensible"
    counted = (owner != NO_ROW) & (state.bundles.listed[bundles] | extensible)
    owner, number = owner[counted], len(state.brokers)
    if extensible:
        return np.bincount(owner, minlength=number)
    return namespaces_at(owner, state.bundles.namespace[bundles[counted]], number)


def namespaces_at(place: Indices, namespace: Indices, number: int) -> Integers:
    """Per place, of this number, how many namespaces have a bundle there; both are given for each bundle."""
    pairs = np.unique(namespace.astype(np.int64) * number + place)
    return np.bincount(pairs % max(number, 1), minlength=number)


def domains(failure_domains: Sequence[str | None]) -> Indices | None:
    """A number per broker for its failure domain; None if no broker has one."""
    if not any(domain is not None for domain in failure_domains):
        return None
    names = [_DEFAULT_DOMAIN if domain is None else domain for domain in failure_domains]
    known = _numbered(set(names))
    return np.array([known[name] for name in names], dtype=np.int32)


def _numbered(names: Collection[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(sorted(names))}


@dataclass(frozen=True, eq=False)
class Spread:
    """The candidates that anti-affinity leaves, and the comparison that dropped the others."""

    in_domain: Booleans
    """Candidates whose domain is among those with the lowest sum."""
    kept: Booleans
    domain_count: Integers
    """Per broker, the sum of its domain over the candidates."""
    least_in_domain: int
    least: int
    """Lowest count of a broker among those left by the domains."""


def least_occupied(candidates: Booleans, counts: Integers, domain: Indices | None) -> Spread:
    """The candidates (a flag per broker) for one more namespace of the group that `counts` describes."""
    domain_count = np.zeros_like(counts)
    in_domain, least_in_domain = candidates, 0
    if domain is not None and candidates.any():
        sums = np.bincount(domain[candidates], weights=counts[candidates]).astype(np.int64)
        domain_count = np.append(sums, np.zeros(int(domain.max()) + 1 - len(sums), dtype=np.int64))[domain]
        least_in_domain = int(domain_count[candidates].min())
        in_domain = candidates & (domain_count == least_in_domain)
    least = int(counts[in_domain].min()) if in_domain.any() else 0
    return Spread(in_domain, in_domain & (counts == least), domain_count, least_in_domain, least)


def may_unload(candidates: Booleans, counts: Integers, current: int) -> bool:
    """Whether the Modular manager would unload a bundle of the group from broker `current`.

    `candidates` are the brokers that the policies allow. Without any it would not, unless the group has no bundle yet.
    Otherwise it would, unless the current broker is no fuller than the emptiest candidate and every candidate is as
    full as that one.
    """
    if not counts.any():
        return True
    if not candidates.any():
        return False
    least = int(counts[candidates].min())
    on_current = int(counts[current]) if candidates[current] else 0
    return least == 0 or on_current > least or bool((counts[candidates] != least).any())
