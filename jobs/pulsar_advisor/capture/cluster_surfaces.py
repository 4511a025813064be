"""What any broker can tell: dynamic settings, isolation, tenants, namespaces with their policies, and topic names."""

from __future__ import annotations

from pulsar_advisor.admin.read_client import Domain, ReadClient, decode
from pulsar_advisor.capture.broker_surfaces import settings_line
from pulsar_advisor.capture.documents import ISOLATION_POLICIES, POLICIES
from pulsar_advisor.capture.session import Session

_DOMAINS: tuple[Domain, ...] = ("persistent", "non-persistent")


def read_cluster(session: Session) -> None:
    """Read what holds for the whole cluster."""
    session.progress.begin("cluster", 3)
    with session.journal.attempt("settings"):
        values = session.client("settings").dynamic_configuration()
        session.files.extend("settings", [settings_line("dynamic", None, values)])
    session.progress.advance()
    with session.journal.attempt("isolation_policies"):
        policies = decode(
            session.client("isolation_policies").isolation_policies(session.cluster_name), ISOLATION_POLICIES
        )
        session.files.extend(
            "isolation_policies", [{"name": name, "document": policy} for name, policy in policies.items()]
        )
    session.progress.advance()
    with session.journal.attempt("failure_domains"):
        domains = session.client("failure_domains").failure_domains(session.cluster_name)
        lines = [{"domain": name, "brokers": sorted(brokers)} for name, brokers in sorted(domains.items())]
        session.files.extend("failure_domains", lines)
    session.progress.advance()


def read_namespaces(session: Session) -> None:
    """Read tenants, namespaces and the names of all their topics.

    Non-persistent topics aren't listed: they exist only where they are loaded, so `topic_stats` names them all, and
    Pulsar would ask every bundle's owner in turn.
    """
    tenants: tuple[str, ...] = ()
    with session.journal.attempt("tenants"):
        tenants = session.client("tenants").tenants()
        session.files.extend("tenants", [{"tenant": tenant} for tenant in tenants])
    if not tenants:
        for surface in ("namespaces", "topic_names", "partitioned_topics"):
            session.journal.miss(surface, "the tenants could not be listed, or there are none")
        return

    found: list[str] = []
    session.for_each("tenants", "namespaces", tenants, lambda client, tenant: found.extend(client.namespaces(tenant)))
    deleted: set[str] = set()

    def read_policies(client: ReadClient, namespace: str) -> None:
        policies = decode(client.policies(namespace), POLICIES)
        group = client.anti_affinity_group(namespace)
        if policies.deleted is True:
            deleted.add(namespace)
        session.files.extend("namespaces", [{"namespace": namespace, "antiAffinityGroup": group, "document": policies}])

    def read_topic_names(client: ReadClient, namespace: str) -> None:
        topics = client.persistent_topics(namespace)
        session.files.extend(
            "topic_names",
            ({"source": "rest", "namespace": namespace, "domain": "persistent", "topic": topic} for topic in topics),
        )

    def read_partitioned_topics(client: ReadClient, namespace: str) -> None:
        session.files.extend(
            "partitioned_topics",
            [
                {"namespace": namespace, "domain": domain, "topic": topic, "partitions": partitions}
                for domain in _DOMAINS
                for topic in client.partitioned_topics(namespace, domain)
                if (partitions := client.partitions(topic)) is not None
            ],
        )

    namespaces = sorted(found)
    session.for_each("namespaces", "namespaces", namespaces, read_policies)
    living = [namespace for namespace in namespaces if namespace not in deleted]
    session.for_each("topic names", "topic_names", living, read_topic_names)
    session.for_each("partitioned topics", "partitioned_topics", living, read_partitioned_topics)
