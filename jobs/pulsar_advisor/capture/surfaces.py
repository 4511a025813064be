"""Reads each surface of a capture: the brokers, the cluster as a whole, its metadata in ZooKeeper."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote_plus

import msgspec

from pulsar_advisor.admin.read_client import Domain, ReadClient, decode
from pulsar_advisor.admin.zookeeper import ZooKeeperReader
from pulsar_advisor.capture.documents import (
    BROKER_TIME_AVERAGE,
    BUNDLE_DATA,
    ISOLATION_POLICIES,
    LEADER_NODE,
    LOAD_REPORT,
    LOCAL_POLICIES,
    POLICIES,
    RESOURCE_QUOTA,
    broker_metrics,
    unloads_of_leader,
)
from pulsar_advisor.capture.journal import ZOOKEEPER, Journal, now_ms
from pulsar_advisor.capture.service_unit_state import SERVICE_UNIT_STATE
from pulsar_advisor.capture.session import BrokerRead, Session
from pulsar_advisor.capture.system_topics import STATES
from pulsar_advisor.model.cluster.cluster_state import LoadManagerKind
from pulsar_advisor.model.configuration.class_names import simple_name
from pulsar_advisor.model.configuration.settings import ALLOWED_KEYS, setting_value
from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor.model.text.some_of import some_of

_STATISTICS_INTERVAL: Final = "statsUpdateFrequencyInSecs"
LONGEST_STATISTICS_INTERVAL_S: Final = 3600.0
"""Upper bound on the configured value, as a second pass waits for it."""

Line = dict[str, Any]

_KIND_OF_REPORT: Mapping[str, LoadManagerKind] = {"LocalBrokerData": "modular", "LoadReport": "simple"}
_KIND_OF_CLASS: tuple[tuple[str, LoadManagerKind], ...] = (
    ("ExtensibleLoadManager", "extensible"),
    ("ModularLoadManager", "modular"),
    ("SimpleLoadManager", "simple"),
)


@dataclass(frozen=True)
class BrokerFacts:
    """Facts by broker id, for the brokers that answered."""

    releases: dict[str, str] = field(default_factory=dict)
    clocks_ahead_ms: dict[str, int] = field(default_factory=dict)
    """The certain offset of a broker's clock ahead of ours, negative if behind; 0 if they may agree."""
    load_manager_classes: dict[str, str] = field(default_factory=dict)
    load_managers: dict[str, LoadManagerKind] = field(default_factory=dict)
    statistics_intervals: dict[str, str] = field(default_factory=dict)
    """`statsUpdateFrequencyInSecs`."""
    load_reports: dict[str, Line] = field(default_factory=dict)
    broker_metrics: dict[str, Line] = field(default_factory=dict)
    """Lines of these two surfaces, of which a broker has one; written after the last read."""
    table_view_classes: dict[str, str] = field(default_factory=dict)
    """Where an Extensible broker keeps its ownership channel: `loadManagerServiceUnitStateTableViewClassName`."""

    read_again: list[str] = field(default_factory=list)
    """Ids of the brokers whose load and topics are from a second pass."""

    def reported_bundles(self) -> dict[str, Collection[str]]:
        """By broker, the bundles in its load report."""
        documents = {broker: line["document"] for broker, line in self.load_reports.items()}
        return {broker: (report.lastStats or report.bundleStats or {}) for broker, report in documents.items()}

    def statistics_interval_s(self) -> float:
        """The time in seconds within which every broker has updated its statistics."""
        texts = self.statistics_intervals.values() or ("",)
        intervals = (setting_value(_STATISTICS_INTERVAL, runtime={_STATISTICS_INTERVAL: text}) for text in texts)
        return min(float(max(intervals)), LONGEST_STATISTICS_INTERVAL_S)


def read_brokers(session: Session) -> BrokerFacts:
    """Read each broker's settings, release, load and topics; `write_load` must be called afterwards."""
    facts = BrokerFacts()

    def read_settings(client: ReadClient, broker: str) -> None:
        values = client.runtime_configuration(broker)
        if (named := values.get("clusterName", "")) != session.cluster_name:
            session.journal.miss(
                "settings",
                f"the broker is configured for cluster '{plain(named)}', not '{session.cluster_name}'",
                broker,
            )
            return
        class_name = values.get("loadManagerClassName", "")
        facts.load_manager_classes[broker] = class_name
        facts.table_view_classes[broker] = values.get("loadManagerServiceUnitStateTableViewClassName", "")
        facts.statistics_intervals[broker] = values.get(_STATISTICS_INTERVAL, "")
        if (kind := load_manager_kind(None, class_name)) is not None:
            facts.load_managers[broker] = kind
        session.files.extend("settings", [settings_line("runtime", broker, values)])

    def read_release(client: ReadClient, broker: str) -> None:
        facts.releases[broker], clock = client.version_and_clock(broker)
        if clock is not None:
            facts.clocks_ahead_ms[broker] = round(clock.certain_s * 1000)

    reads = [("settings", read_settings), ("brokers", read_release), *_load(session, facts)]
    session.at_each_broker("settings, load and topics", session.brokers, reads)
    return facts


def read_load_again(session: Session, facts: BrokerFacts, brokers: Sequence[str]) -> None:
    """Read the load and the topics of some brokers again, replacing the earlier data."""
    session.at_each_broker("load and topics again", brokers, _load(session, facts))
    facts.read_again.extend(brokers)


def leader_unloads(session: Session, leader: str) -> int | None:
    """How many bundles the Modular leader has unloaded since it started; None if it doesn't say."""
    if session.journal.silence_of(leader) is None:
        with session.journal.attempt("leader"):
            return unloads_of_leader(session.client("leader", leader).broker_metrics(leader))
    return None


def write_load(session: Session, facts: BrokerFacts) -> None:
    """Write each broker's load as last read."""
    for surface, lines in (("load_reports", facts.load_reports), ("broker_metrics", facts.broker_metrics)):
        if lines:
            session.files.extend(surface, lines.values())


def _load(session: Session, facts: BrokerFacts) -> list[BrokerRead]:
    def read_metrics(broker: str) -> None:
        with session.journal.attempt("broker_metrics", broker):
            metrics = broker_metrics(session.client("broker_metrics", broker).broker_metrics(broker))
            facts.broker_metrics[broker] = {"broker": broker, "readAt": now_ms(), "document": metrics}

    def read_load_report(client: ReadClient, broker: str) -> None:
        if facts.load_managers.get(broker) == "extensible":
            session.journal.lack("load_reports", "under the Extensible load manager, whose load is in broker_metrics")
            read_metrics(broker)
            return
        report = decode(client.load_report(broker), LOAD_REPORT)
        report_type = report.loadReportType or None
        if (kind := load_manager_kind(report_type, facts.load_manager_classes.get(broker))) is not None:
            facts.load_managers[broker] = kind
        facts.load_reports[broker] = {"source": "rest", "broker": broker, "readAt": now_ms(), "document": report}

    def read_topics(client: ReadClient, broker: str) -> None:
        with session.documents.room() as settle:
            document = client.broker_topics(broker)
            settle(len(document.body))
            file = session.decoders.topic_file(broker, document)
        number = session.brokers.index(broker)
        session.files.write(f"topic_stats/{number}.jsonl.zst", "topic_stats", broker, file)

    return [("load_reports", read_load_report), ("topic_stats", read_topics)]


def settings_line(origin: str, broker: str | None, values: Mapping[str, str]) -> dict[str, object]:
    """One line of `settings`: only keys of the allow-list, as a configuration may hold any secret."""
    kept = {key: values[key] for key in sorted(values.keys() & ALLOWED_KEYS)}
    return {"origin": origin, "broker": broker, "values": kept}


def load_manager_kind(report_type: str | None, class_name: str | None) -> LoadManagerKind | None:
    """Which manager a broker runs: by its load report's type, else by `loadManagerClassName`; None if unknown."""
    if report_type is not None and report_type in _KIND_OF_REPORT:
        return _KIND_OF_REPORT[report_type]
    name = simple_name(class_name or "")
    return next((kind for prefix, kind in _KIND_OF_CLASS if name.startswith(prefix)), None)


def prevailing_load_manager(kinds: Mapping[str, LoadManagerKind], leader: str | None) -> LoadManagerKind | None:
    """The leader's manager, as the leader decides; without a leader, the one that most brokers run."""
    if leader is not None and leader in kinds:
        return kinds[leader]
    found = list(kinds.values())
    return max(sorted(set(found)), key=found.count, default=None)


def oldest_release(releases: Collection[str]) -> str | None:
    """The oldest of these releases; a milestone or a snapshot counts as its release."""
    return min(
        sorted(releases),
        key=lambda release: [int(part) for part in re.findall(r"[0-9]{1,9}", release)[:3]],
        default=None,
    )


_DOMAINS: tuple[Domain, ...] = ("persistent", "non-persistent")


def read_cluster(session: Session) -> None:
    """Read what applies to the whole cluster."""
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
    """Read tenants, namespaces and all their topic names.

    Non-persistent topics aren't listed: they exist only while loaded, so `topic_stats` has them all, and listing them
    would make Pulsar query every bundle's owner in turn.
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


_OF_ZOOKEEPER_ONLY: Final = ("local_policies", "bundle_data", "broker_time_averages", "resource_quotas")

_OF_MODULAR_ONLY: Final = ("bundle_data", "broker_time_averages")
"""The other load managers keep no averages at all."""

_LINES_AT_A_TIME = 10_000


def read_zookeeper(session: Session, zookeeper: ZooKeeperReader) -> None:
    """Read the metadata store into the snapshot."""

    def broker_nodes() -> Iterable[Line]:
        for broker, node, report in session.decoded("load_reports", zookeeper.broker_nodes(), LOAD_REPORT):
            yield {
                "source": "zookeeper",
                "broker": broker,
                "readAt": now_ms(),
                "modifiedAt": node.modified_at_ms,
                "version": node.version,
                "document": report,
            }

    def leaders() -> Iterable[Line]:
        nodes = ((node.path, node) for node in zookeeper.leaders())
        found = [node.leader for _, _, node in session.decoded("leader", nodes, LEADER_NODE)]
        named = [leader for leader in found if leader is not None]
        if named and session.leader not in named:
            session.journal.miss("leader", f"ZooKeeper names {some_of(named)}, the brokers {session.leader or 'none'}")
        yield from ({"source": "zookeeper", "broker": leader} for leader in found)

    def local_policies() -> Iterable[Line]:
        for namespace, node, policies in session.decoded("local_policies", zookeeper.local_policies(), LOCAL_POLICIES):
            yield {"namespace": namespace, "version": node.version, "document": policies}

    def bundle_data() -> Iterable[Line]:
        for bundle, node, data in session.decoded("bundle_data", zookeeper.bundle_data(), BUNDLE_DATA):
            yield {"bundle": bundle, "modifiedAt": node.modified_at_ms, "document": data}

    def broker_time_averages() -> Iterable[Line]:
        nodes = zookeeper.broker_time_averages()
        for broker, node, averages in session.decoded("broker_time_averages", nodes, BROKER_TIME_AVERAGE):
            yield {"broker": broker, "modifiedAt": node.modified_at_ms, "document": averages}

    def resource_quotas() -> Iterable[Line]:
        for bundle, node, quota in session.decoded("resource_quotas", zookeeper.resource_quotas(), RESOURCE_QUOTA):
            yield {"bundle": bundle, "modifiedAt": node.modified_at_ms, "document": quota}

    def topic_names() -> Iterable[Line]:
        for namespace, topics in zookeeper.persistent_topics():
            for topic in topics:
                yield {"source": "zookeeper", "namespace": namespace, "domain": "persistent", "topic": topic}

    surfaces: tuple[tuple[str, Callable[[], Iterable[Line]]], ...] = (
        ("load_reports", broker_nodes),
        ("leader", leaders),
        ("local_policies", local_policies),
        ("bundle_data", bundle_data),
        ("broker_time_averages", broker_time_averages),
        ("resource_quotas", resource_quotas),
        ("topic_names", topic_names),
    )
    _write_each(session, "ZooKeeper", surfaces)


def _write_each(session: Session, step: str, surfaces: Sequence[tuple[str, Callable[[], Iterable[Line]]]]) -> None:
    """Write the lines of each surface; one that can't be read costs only itself."""
    session.progress.begin(step, len(surfaces))
    for surface, lines in surfaces:
        with session.journal.attempt(surface):
            write_nodes(session, surface, lines())
        session.progress.advance()


def miss_zookeeper(journal: Journal, load_manager: LoadManagerKind) -> None:
    """Record what only ZooKeeper has as missing, if none was configured."""
    for surface in _OF_ZOOKEEPER_ONLY:
        if load_manager != "modular" and surface in _OF_MODULAR_ONLY:
            journal.lack(surface, f"under the {load_manager.capitalize()} load manager")
        else:
            journal.miss(surface, "only ZooKeeper holds it, and no ZooKeeper was given")


def read_service_unit_states(session: Session, zookeeper: ZooKeeperReader) -> None:
    """Read the Extensible manager's ownership channel, for a cluster that keeps it in its metadata store."""
    nodes = zookeeper.service_unit_states()
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
    some: list[Line] = []
    for line in lines:
        some.append(line)
        if len(some) == _LINES_AT_A_TIME:
            session.files.extend(surface, some)
            some = []
    session.files.extend(surface, some)
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


class _FailureDomain(msgspec.Struct):
    brokers: list[str] = msgspec.field(default_factory=list)


_PARTITIONED_TOPIC = msgspec.json.Decoder(_PartitionedTopic)
_FAILURE_DOMAIN = msgspec.json.Decoder(_FailureDomain)
_SETTINGS = msgspec.json.Decoder(dict[str, str | None])


def read_metadata(session: Session, zookeeper: ZooKeeperReader) -> BrokerFacts:
    """Read into the snapshot what ZooKeeper shares with the admin API, and what only ZooKeeper has."""
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
    """Record what is unavailable, and what can't be computed without it."""
    unknown = dict(_FROM_BROKERS_ONLY)
    if load_manager == "extensible":
        unknown |= _FROM_EXTENSIBLE_BROKERS_ONLY
        if zookeeper.children("/service_unit_state"):
            read_service_unit_states(session, zookeeper)
            del unknown[STATES]
    for surface, consequence in unknown.items():
        session.journal.miss(surface, f"only brokers report it, and no admin URL was given: {consequence}")


def _read_configuration(session: Session, zookeeper: ZooKeeperReader) -> None:
    """Read what Pulsar keeps in its configuration store, which may be a different store."""
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
    _write_each(session, "configuration in ZooKeeper", surfaces)
