"""Gathers the facts for one step: the owner of its bundle, and all inputs of its preconditions."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pulsar_advisor.execution.cluster.cluster_port import ClusterPort
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.steps import unresolved_bundles
from pulsar_advisor.execution.run.preconditions import Found
from pulsar_advisor.model.plans.plan import Plan, Step, digest_of


def find_owner(cluster: ClusterPort, namespace: str, bundle: str, likely: Iterable[str]) -> str | None:
    """The broker that reports owning a bundle, or None. `likely` brokers are queried first."""
    name = f"{namespace}/{bundle}"
    active = cluster.active_brokers()
    for broker in dict.fromkeys((*(broker for broker in likely if broker in active), *sorted(active))):
        if name in cluster.owned_bundles(broker):
            return broker
    return None


def look(
    cluster: ClusterPort, ledger: Ledger, plan: Plan, step: Step, arriving: Collection[str] = ()
) -> tuple[Found, tuple[str, ...]]:
    """The current facts about a step, and its bundle's topics (loaded topics for an unload, all for a split).

    `arriving` are the namespaces of bundles that are on their way to the step's destination.
    """
    active, boundaries = cluster.active_brokers(), cluster.boundaries(step.namespace)
    if not boundaries:
        return Found(active_brokers=active, boundaries=(), owner=None, topics=0), ()
    brokers = [broker for broker in (step.source, step.destination) if broker]
    owner = find_owner(cluster, step.namespace, step.bundle, brokers)
    if step.action == "split":
        topics = cluster.topics(step.namespace, step.bundle)
    else:
        topics = cluster.loaded_topics(owner, step.namespace, step.bundle) if owner else ()
    peers = cluster.anti_affinity_peers(step.namespace) if step.destination else frozenset()
    found = Found(
        active_brokers=active,
        boundaries=boundaries,
        owner=owner,
        topics=len(topics),
        isolation_policies=cluster.isolation_policies() if step.destination else (),
        peers_at_source=_count_at(cluster, step.source, peers),
        peers_at_destination=_count_at(cluster, step.destination, peers, arriving),
        destination_usage_ratio=cluster.usage_ratio(step.destination) if step.destination in active else None,
        unresolved=unresolved_bundles(ledger, plan.identity.cluster_name, except_of=digest_of(plan)),
    )
    return found, topics


def _count_at(
    cluster: ClusterPort, broker: str | None, namespaces: frozenset[str], arriving: Collection[str] = ()
) -> int:
    if not namespaces or not broker:
        return 0
    return len(namespaces & {*arriving, *(name.rpartition("/")[0] for name in cluster.owned_bundles(broker))})
