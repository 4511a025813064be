"""Reads a capture's surfaces from the admin API: of each broker, and of the cluster as a whole."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import UNSET

from pulsar_advisor.admin.decoding import decode, decode_once, unreadable
from pulsar_advisor.admin.metadata_store import StoreConnection
from pulsar_advisor.admin.oxia import OxiaConnection
from pulsar_advisor.admin.read_client import MIGRATES_SINCE, Domain, Migration, ReadClient
from pulsar_advisor.capture.documents import (
    ISOLATION_POLICIES,
    LOAD_REPORT,
    POLICIES,
    broker_metrics,
    unloads_of_leader,
)
from pulsar_advisor.capture.journal import now_ms
from pulsar_advisor.capture.session import BrokerRead, Session
from pulsar_advisor.model.cluster.cluster_state import LoadManagerKind
from pulsar_advisor.model.cluster.namespaces import has_three_parts
from pulsar_advisor.model.configuration.class_names import load_manager_kind
from pulsar_advisor.model.configuration.defaults import storable
from pulsar_advisor.model.configuration.releases import release_number
from pulsar_advisor.model.configuration.resolved_settings import setting_value
from pulsar_advisor.model.errors import DataNotFit
from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor.model.text.reader import reader

_STATISTICS_INTERVAL: Final = "statsUpdateFrequencyInSecs"
LONGEST_STATISTICS_INTERVAL_S: Final = 3600.0
"""Upper bound on the configured value, as a second pass waits for it."""

Line = dict[str, Any]


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
    """Lines of the two surfaces of which each broker has one; written after the last read."""
    table_view_classes: dict[str, str] = field(default_factory=dict)
    """Where an Extensible broker keeps its ownership channel: `loadManagerServiceUnitStateTableViewClassName`."""

    namespaces_with_segments: set[str] = field(default_factory=set)
    """Namespaces with a loaded segment of a scalable topic."""
    segments_listed: set[str] = field(default_factory=set)
    """Namespaces whose scalable topics were listed."""
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


def leads_still(session: Session) -> bool:
    """Whether the broker that led at the beginning still leads; a change of leader is recorded."""
    with session.journal.attempt("leader"):
        if (now := session.client("leader").leader()) != session.leader:
            began, ended = (plain(leader or "none") for leader in (session.leader, now))
            session.journal.miss("leader", f"it changed during the capture, from {began} to {ended}: capture again")
            return False
    return True


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
        document = client.load_report(broker)
        report = decode_once(document, LOAD_REPORT)
        if report.cpu is UNSET and report.systemResourceUsage is UNSET:
            raise unreadable(document, ValueError("no usage in it"))
        report_type = report.loadReportType or None
        if (kind := load_manager_kind(report_type, facts.load_manager_classes.get(broker))) is not None:
            facts.load_managers[broker] = kind
        facts.load_reports[broker] = {"source": "rest", "broker": broker, "readAt": now_ms(), "document": report}

    def read_topics(client: ReadClient, broker: str) -> None:
        with session.documents.room() as settle:
            document = client.broker_topics(broker)
            settle(len(document.body))
            found = session.decoders.topic_file(broker, document)
        number = session.brokers.index(broker)
        session.files.write(f"topic_stats/{number}.jsonl.zst", "topic_stats", broker, found.file)
        facts.namespaces_with_segments.update(found.with_segments)

    return [("load_reports", read_load_report), ("topic_stats", read_topics)]


def settings_line(origin: str, broker: str | None, values: Mapping[str, str]) -> Line:
    """One line of `settings`, without what may not be stored."""
    return {"origin": origin, "broker": broker, "values": storable(values)}


def prevailing_load_manager(kinds: Mapping[str, LoadManagerKind], leader: str | None) -> LoadManagerKind | None:
    """The leader's manager, because the leader decides; without a leader, the one that most brokers run."""
    if leader is not None and leader in kinds:
        return kinds[leader]
    found = list(kinds.values())
    return max(sorted(set(found)), key=found.count, default=None)


def oldest_release(releases: Collection[str]) -> str | None:
    """The oldest of these releases; a milestone or a snapshot counts as its release."""
    return min(sorted(releases), key=release_number, default=None)


def check_migration(session: Session, facts: BrokerFacts, store: StoreConnection | None) -> None:
    """Record whether the metadata store is being migrated, if the release supports that.

    Raises `DataNotFit` if the `store` that is read isn't the one in use: the old store has outdated content, the new
    one may have only a part.
    """
    if not _can_migrate(facts):
        return
    with session.journal.attempt("metadata_store"):
        migration = session.client("metadata_store").migration()
        if migration is None:
            return
        if isinstance(store, OxiaConnection):
            _check_target(store, migration)
        if migration.is_under_way:
            session.journal.miss(
                "metadata_store",
                f"it is being migrated to another ({plain(migration.phase)}): nothing can be written to it, and Pulsar "
                "defers balancing",
            )
        if migration.phase == "COMPLETED" and store is not None and store.kind == "ZooKeeper":
            raise DataNotFit(
                "the cluster's metadata was migrated to another store, so what ZooKeeper has is outdated: "
                f"{reader().name_store}, and capture again"
            )


def _check_target(store: OxiaConnection, migration: Migration) -> None:
    if migration.phase == "COMPLETED" and not store.has_namespace_of(migration.target_url or ""):
        raise DataNotFit(
            f"the cluster's metadata was migrated to {plain(migration.target_url or 'another store')}, not to "
            f"{store.name}: {reader().name_store}, and capture again"
        )
    if migration.has_half_a_copy:
        raise DataNotFit(
            f"the cluster still uses the store it is migrating from (migration {plain(migration.phase)}), so "
            f"{store.name} has at most part of its metadata: {reader().name_store}, and capture again"
        )


def miss_migration(session: Session, facts: BrokerFacts) -> None:
    """Record that without an admin URL it is unknown whether the metadata store was or is being migrated."""
    if _can_migrate(facts):
        session.journal.miss(
            "metadata_store",
            "only brokers say whether it is being migrated to another, or was, and no admin URL was given: if it was, "
            "what is read here is outdated",
        )


def _can_migrate(facts: BrokerFacts) -> bool:
    return any(release_number(release) >= MIGRATES_SINCE for release in facts.releases.values())


DOMAINS: Final[tuple[Domain, ...]] = ("persistent", "non-persistent")


def miss_topics_if_old(session: Session, namespace: str) -> bool:
    """Whether a namespace has three parts; if so, record that its topics aren't listed."""
    is_old = has_three_parts(namespace)
    if is_old:
        where = f"where a name has three parts, as {plain(namespace)}: only its loaded topics are known"
        session.journal.lack("topic_names", where, namespace)
    return is_old


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


def read_namespaces(session: Session) -> list[str]:
    """Read tenants, namespaces and all their topic names; returns the namespaces that aren't being deleted.

    Non-persistent topics aren't listed: they exist only while loaded, so `topic_stats` has them all, and listing them
    would make Pulsar query every bundle's owner in turn. Nor are partitioned topics of namespaces that are replicated
    to other clusters only: clusters that share their configuration list them, and brokers refuse to say more (412).
    """
    tenants: tuple[str, ...] = ()
    with session.journal.attempt("tenants"):
        tenants = session.client("tenants").tenants()
        session.files.extend("tenants", [{"tenant": tenant} for tenant in tenants])
    if not tenants:
        for surface in ("namespaces", "topic_names", "partitioned_topics"):
            session.journal.miss(surface, "the tenants could not be listed, or there are none")
        return []

    found: list[str] = []
    session.for_each("tenants", "namespaces", tenants, lambda client, tenant: found.extend(client.namespaces(tenant)))
    deleted: set[str] = set()
    elsewhere: set[str] = set()

    def read_policies(client: ReadClient, namespace: str) -> None:
        policies = decode(client.policies(namespace), POLICIES)
        group = client.anti_affinity_group(namespace)
        if policies.deleted is True:
            deleted.add(namespace)
        if not policies.are_served_by(session.cluster_name):
            elsewhere.add(namespace)
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
                for domain in DOMAINS
                for topic in client.partitioned_topics(namespace, domain)
                if (partitions := client.partitions(topic)) is not None
            ],
        )

    namespaces = [namespace for namespace in sorted(found) if not miss_topics_if_old(session, namespace)]
    session.for_each("namespaces", "namespaces", namespaces, read_policies)
    living = [namespace for namespace in namespaces if namespace not in deleted]
    session.for_each("topic names", "topic_names", living, read_topic_names)
    served = [namespace for namespace in living if namespace not in elsewhere]
    session.for_each("partitioned topics", "partitioned_topics", served, read_partitioned_topics)
    return living
