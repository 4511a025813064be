"""Reads a capture's surfaces from the metadata store: those that only it has, and those shared with the admin API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final
from urllib.parse import unquote_plus

import msgspec
from msgspec.json import Decoder

from pulsar_advisor.admin.decoding import decode
from pulsar_advisor.admin.metadata_store import MetadataReader, Node
from pulsar_advisor.admin.read_client import LEADER, FailureDomain, is_release
from pulsar_advisor.capture.documents import (
    BROKER_TIME_AVERAGE,
    BUNDLE_DATA,
    ISOLATION_POLICIES,
    LOAD_REPORT,
    LOCAL_POLICIES,
    POLICIES,
    RESOURCE_QUOTA,
)
from pulsar_advisor.capture.journal import ZOOKEEPER, Journal, now_ms
from pulsar_advisor.capture.segments import SURFACE as SEGMENTS
from pulsar_advisor.capture.segments import stored_segments
from pulsar_advisor.capture.service_unit_state import SERVICE_UNIT_STATE
from pulsar_advisor.capture.session import Session
from pulsar_advisor.capture.surfaces import (
    DOMAINS,
    BrokerFacts,
    Line,
    miss_topics_if_old,
    settings_line,
)
from pulsar_advisor.capture.system_topics import STATES
from pulsar_advisor.documents.manifest import OF_THE_STORE_ONLY
from pulsar_advisor.model.cluster.cluster_state import LoadManagerKind
from pulsar_advisor.model.configuration.class_names import load_manager_kind
from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor.model.text.some_of import some_of

_OF_MODULAR_ONLY: Final = ("bundle_data", "broker_time_averages")
"""The other load managers keep no averages at all."""

_LONGEST_QUOTE: Final = 100


def read_store(session: Session, metadata: MetadataReader) -> None:
    """Read the metadata store into the snapshot."""

    def broker_nodes() -> Iterator[Line]:
        for broker, node, report in session.decoded("load_reports", metadata.broker_nodes(), LOAD_REPORT):
            yield {
                "source": "zookeeper",
                "broker": broker,
                "readAt": now_ms(),
                "modifiedAt": node.modified_at_ms,
                "version": node.version,
                "document": report,
            }

    def leaders() -> Iterator[Line]:
        nodes = ((node.path, node) for node in metadata.leaders())
        found = [node.broker_id for _, _, node in session.decoded("leader", nodes, LEADER)]
        named = [leader for leader in found if leader is not None]
        if named and session.leader not in named:
            session.journal.miss(
                "leader", f"{metadata.kind} names {some_of(named)}, the brokers {session.leader or 'none'}"
            )
        yield from ({"source": "zookeeper", "broker": leader} for leader in found)

    def local_policies() -> Iterator[Line]:
        for namespace, node, policies in session.decoded("local_policies", metadata.local_policies(), LOCAL_POLICIES):
            yield {"namespace": namespace, "version": node.version, "document": policies}

    def dated(surface: str, of: str, nodes: Iterator[tuple[str, Node]], decoder: Decoder[Any]) -> Iterator[Line]:
        for name, node, document in session.decoded(surface, nodes, decoder):
            yield {of: name, "modifiedAt": node.modified_at_ms, "document": document}

    def topic_names() -> Iterator[Line]:
        for namespace, topics in metadata.persistent_topics():
            for topic in topics:
                yield {"source": "zookeeper", "namespace": namespace, "domain": "persistent", "topic": topic}

    averages = metadata.broker_time_averages()
    surfaces = (
        ("load_reports", broker_nodes()),
        ("leader", leaders()),
        ("local_policies", local_policies()),
        ("bundle_data", dated("bundle_data", "bundle", metadata.bundle_data(), BUNDLE_DATA)),
        ("broker_time_averages", dated("broker_time_averages", "broker", averages, BROKER_TIME_AVERAGE)),
        ("resource_quotas", dated("resource_quotas", "bundle", metadata.resource_quotas(), RESOURCE_QUOTA)),
        ("topic_names", topic_names()),
        (SEGMENTS, stored_segments(session, metadata)),
    )
    _write_each(session, "metadata store", surfaces)


def _write_each(session: Session, step: str, surfaces: Sequence[tuple[str, Iterator[Line]]]) -> None:
    """Write the lines of each surface; if one can't be read, only that one is missing."""
    session.progress.begin(step, len(surfaces))
    for surface, lines in surfaces:
        with session.journal.attempt(surface):
            write_nodes(session, surface, lines)
        session.progress.advance()


def miss_store(journal: Journal, load_manager: LoadManagerKind) -> None:
    """Record the surfaces that only ZooKeeper has as missing, because none was configured."""
    for surface in OF_THE_STORE_ONLY:
        if load_manager != "modular" and surface in _OF_MODULAR_ONLY:
            journal.lack(surface, f"under the {load_manager.capitalize()} load manager")
        else:
            journal.miss(surface, "only the metadata store holds it, and none was given")


def read_service_unit_states(session: Session, metadata: MetadataReader) -> None:
    """Read the Extensible manager's ownership channel, for a cluster that keeps it in its metadata store."""
    nodes = metadata.service_unit_states()
    with session.journal.attempt(STATES):
        write_nodes(
            session,
            STATES,
            (
                {"source": "zookeeper", "bundle": bundle, "document": record}
                for bundle, _, record in session.decoded(STATES, nodes, SERVICE_UNIT_STATE)
            ),
        )


def write_nodes(session: Session, surface: str, lines: Iterable[Line]) -> None:
    """Write a surface's lines while its nodes are read, and record the read."""
    started_at_ms = now_ms()
    session.files.extend(surface, lines)
    session.journal.read(surface, ZOOKEEPER, started_at_ms, status=None, size=0)


_FROM_BROKERS_ONLY: Final = {
    "settings": "the release's defaults and the dynamic settings are used instead",
    "load_reports": "those in ZooKeeper may be 15 minutes old",
    "topic_stats": "nothing is known about single loaded topics, so no split by their load can be computed",
}
_FROM_EXTENSIBLE_BROKERS_ONLY: Final = {
    "broker_metrics": "nothing is known about the brokers' load",
    STATES: "ownership is unknown if the cluster doesn't keep it in ZooKeeper",
}


class _PartitionedTopic(msgspec.Struct):
    partitions: int = 0


_PARTITIONED_TOPIC = Decoder(_PartitionedTopic)
_FAILURE_DOMAIN = Decoder(FailureDomain)
_SETTINGS = Decoder(dict[str, str | None])

_CONFIGURATION_APART: Final = (
    "the cluster's configuration is kept in another store than this one: give --configuration-metadata-store"
)


def read_metadata(session: Session, metadata: MetadataReader) -> BrokerFacts:
    """Read everything from ZooKeeper: what it shares with the admin API, and what only it has."""
    facts = BrokerFacts()
    with session.journal.attempt("brokers"):
        for broker, _, report in session.decoded("load_reports", metadata.broker_nodes(), LOAD_REPORT):
            class_name = report.loadManagerClassName or ""
            facts.load_manager_classes[broker] = class_name
            if (kind := load_manager_kind(report.loadReportType or None, class_name)) is not None:
                facts.load_managers[broker] = kind
            release = report.brokerVersionString or report.brokerVersion
            if release and is_release(release):
                facts.releases[broker] = release
            elif release:
                session.journal.miss("brokers", f"its node names the release {plain(release[:_LONGEST_QUOTE])}", broker)
    _read_configuration(session, metadata)
    read_store(session, metadata)
    return facts


def miss_what_brokers_tell(session: Session, load_manager: LoadManagerKind, metadata: MetadataReader) -> None:
    """Record which surfaces are unavailable without an admin URL, and the consequences."""
    unknown = dict(_FROM_BROKERS_ONLY)
    if load_manager == "extensible":
        unknown |= _FROM_EXTENSIBLE_BROKERS_ONLY
        with session.journal.attempt(STATES):
            if metadata.children("/service_unit_state"):
                read_service_unit_states(session, metadata)
                del unknown[STATES]
    for surface, consequence in unknown.items():
        session.journal.miss(surface, f"only brokers report it, and no admin URL was given: {consequence}")


def _read_configuration(session: Session, metadata: MetadataReader) -> None:
    """Read what Pulsar keeps in its configuration store, which may be a different store."""
    cluster_name = session.cluster_name

    def dynamic_settings() -> Iterator[Line]:
        for node in metadata.dynamic_configuration():
            values = {key: value or "" for key, value in decode(node.document, _SETTINGS).items()}
            yield settings_line("dynamic", None, values)

    def isolation_policies() -> Iterator[Line]:
        for node in metadata.isolation_policies(cluster_name):
            for name, policy in decode(node.document, ISOLATION_POLICIES).items():
                yield {"name": name, "document": policy}

    def failure_domains() -> Iterator[Line]:
        nodes = metadata.failure_domains(cluster_name)
        for name, _, domain in session.decoded("failure_domains", nodes, _FAILURE_DOMAIN):
            yield {"domain": name, "brokers": sorted(domain.brokers)}

    def tenants() -> Iterator[Line]:
        names = metadata.tenants()
        if not names:
            session.journal.miss("namespaces", _CONFIGURATION_APART)
        yield from ({"tenant": name} for name in names)

    def namespaces() -> Iterator[Line]:
        for namespace, _, policies in session.decoded("namespaces", metadata.policies(), POLICIES):
            miss_topics_if_old(session, namespace)
            yield {"namespace": namespace, "antiAffinityGroup": None, "document": policies}

    def partitioned_topics() -> Iterator[Line]:
        nodes = metadata.partitioned_topics()
        for name, _, topics in session.decoded("partitioned_topics", nodes, _PARTITIONED_TOPIC):
            folder, _, topic = name.rpartition("/")
            namespace, _, domain = folder.rpartition("/")
            if domain not in DOMAINS or "/" not in namespace:
                continue  # a folder without topics
            yield {
                "namespace": namespace,
                "domain": domain,
                "topic": f"{domain}://{namespace}/{unquote_plus(topic)}",
                "partitions": topics.partitions,
            }

    surfaces = (
        ("settings", dynamic_settings()),
        ("isolation_policies", isolation_policies()),
        ("failure_domains", failure_domains()),
        ("tenants", tenants()),
        ("namespaces", namespaces()),
        ("partitioned_topics", partitioned_topics()),
    )
    _write_each(session, "configuration in the metadata store", surfaces)
