"""What a cluster's metadata store tells without the admin API: what brokers published there, at most."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final
from urllib.parse import unquote_plus

import msgspec

from pulsar_advisor.admin.read_client import decode
from pulsar_advisor.capture.broker_surfaces import BrokerFacts, load_manager_kind, settings_line
from pulsar_advisor.capture.documents import ISOLATION_POLICIES, LOAD_REPORT, POLICIES
from pulsar_advisor.capture.metadata_surfaces import Line, read_service_unit_states, read_zookeeper, write_nodes
from pulsar_advisor.capture.session import Session
from pulsar_advisor.capture.system_topics import STATES
from pulsar_advisor.capture.zookeeper import ZooKeeperReader
from pulsar_advisor.model.cluster_state import LoadManagerKind

_TOLD_BY_BROKERS_ONLY: Final = {
    "settings": "the release's own settings and the dynamic ones stand in",
    "load_reports": "those in ZooKeeper may be 15 minutes old",
    "topic_stats": "nothing is known of single loaded topics, so no split by their load can be computed",
}
_TOLD_BY_EXTENSIBLE_BROKERS_ONLY: Final = {
    "broker_metrics": "nothing is known of the brokers' load",
    STATES: "who owns what can't be told, where the cluster doesn't keep it in ZooKeeper",
}


class _PartitionedTopic(msgspec.Struct):
    partitions: int = 0


class _FailureDomain(msgspec.Struct):
    brokers: list[str] = msgspec.field(default_factory=list)


_PARTITIONED_TOPIC = msgspec.json.Decoder(_PartitionedTopic)
_FAILURE_DOMAIN = msgspec.json.Decoder(_FailureDomain)
_SETTINGS = msgspec.json.Decoder(dict[str, str | None])


def read_metadata(session: Session, zookeeper: ZooKeeperReader) -> BrokerFacts:
    """Read into the snapshot what the admin API would have told and ZooKeeper tells too, and what only it has."""
    facts = BrokerFacts()
    with session.journal.attempt("brokers"):
        for broker, _, report in session.decoded("load_reports", zookeeper.broker_nodes(), LOAD_REPORT):
            class_name = report.loadManagerClassName or ""
            facts.load_manager_classes[broker] = class_name
            if (kind := load_manager_kind(report.loadReportType or None, class_name)) is not None:
                facts.load_managers[broker] = kind
            if release := report.brokerVersionString or report.brokerVersion:
                facts.releases[broker] = release
    _read_configuration(session, zookeeper)
    read_zookeeper(session, zookeeper)
    return facts


def miss_what_brokers_tell(session: Session, load_manager: LoadManagerKind, zookeeper: ZooKeeperReader) -> None:
    """Note what is not to be had, and what can't be computed for want of it."""
    unknown = dict(_TOLD_BY_BROKERS_ONLY)
    if load_manager == "extensible":
        unknown |= _TOLD_BY_EXTENSIBLE_BROKERS_ONLY
        if zookeeper.children("/service_unit_state"):
            read_service_unit_states(session, zookeeper)
            del unknown[STATES]
    for surface, consequence in unknown.items():
        session.journal.miss(surface, f"only brokers tell it, and no admin URL was given: {consequence}")


def _read_configuration(session: Session, zookeeper: ZooKeeperReader) -> None:
    """Read what Pulsar keeps in its configuration store, which may be another one than this."""
    cluster_name = session.cluster_name

    def dynamic_settings() -> Iterator[Line]:
        for node in zookeeper.dynamic_configuration():
            values = {key: value or "" for key, value in decode(node.document, _SETTINGS).items()}
            yield settings_line("dynamic", None, values)

    def isolation_policies() -> Iterator[Line]:
        for node in zookeeper.isolation_policies(cluster_name):
            for name, policy in decode(node.document, ISOLATION_POLICIES).items():
                yield {"name": name, "document": policy}

    def failure_domains() -> Iterator[Line]:
        nodes = zookeeper.failure_domains(cluster_name)
        for name, _, domain in session.decoded("failure_domains", nodes, _FAILURE_DOMAIN):
            yield {"domain": name, "brokers": sorted(domain.brokers)}

    def tenants() -> Iterator[Line]:
        names = zookeeper.tenants()
        if not names:
            session.journal.miss("namespaces", "the cluster's configuration is kept in another store than this one")
        yield from ({"tenant": name} for name in names)

    def namespaces() -> Iterator[Line]:
        for namespace, _, policies in session.decoded("namespaces", zookeeper.policies(), POLICIES):
            yield {"namespace": namespace, "antiAffinityGroup": None, "document": policies}

    def partitioned_topics() -> Iterator[Line]:
        nodes = zookeeper.partitioned_topics()
        for name, _, metadata in session.decoded("partitioned_topics", nodes, _PARTITIONED_TOPIC):
            namespace, domain, topic = name.rsplit("/", 2)
            yield {
                "namespace": namespace,
                "domain": domain,
                "topic": f"{domain}://{namespace}/{unquote_plus(topic)}",
                "partitions": metadata.partitions,
            }

    surfaces: tuple[tuple[str, Callable[[], Iterable[Line]]], ...] = (
        ("settings", dynamic_settings),
        ("isolation_policies", isolation_policies),
        ("failure_domains", failure_domains),
        ("tenants", tenants),
        ("namespaces", namespaces),
        ("partitioned_topics", partitioned_topics),
    )
    session.progress.begin("configuration in ZooKeeper", len(surfaces))
    for surface, lines in surfaces:
        with session.journal.attempt(surface):
            write_nodes(session, surface, lines())
        session.progress.advance()
