"""What only ZooKeeper has: node versions, the leader's view and averages, and every managed ledger's name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from pulsar_advisor.capture.documents import (
    BROKER_TIME_AVERAGE,
    BUNDLE_DATA,
    LEADER_NODE,
    LOAD_REPORT,
    LOCAL_POLICIES,
    RESOURCE_QUOTA,
)
from pulsar_advisor.capture.journal import ZOOKEEPER, Journal, now_ms
from pulsar_advisor.capture.service_unit_state import SERVICE_UNIT_STATE
from pulsar_advisor.capture.session import Session
from pulsar_advisor.capture.system_topics import STATES
from pulsar_advisor.capture.zookeeper import ZooKeeperReader
from pulsar_advisor.model.cluster_state import LoadManagerKind

_OF_ZOOKEEPER_ONLY: Final = ("local_policies", "bundle_data", "broker_time_averages", "resource_quotas")

_OF_MODULAR_ONLY: Final = ("bundle_data", "broker_time_averages")
"""The other load managers keep no averages, in ZooKeeper or elsewhere."""

_LINES_AT_A_TIME = 10_000

Line = dict[str, Any]


def read_zookeeper(session: Session, zookeeper: ZooKeeperReader) -> None:
    """Read the metadata store into the snapshot."""

    def broker_nodes() -> Iterable[Line]:
        for broker, _, report in session.decoded("load_reports", zookeeper.broker_nodes(), LOAD_REPORT):
            yield {"source": "zookeeper", "broker": broker, "readAt": now_ms(), "document": report}

    def leaders() -> Iterable[Line]:
        nodes = ((node.path, node) for node in zookeeper.leaders())
        for _, _, found in session.decoded("leader", nodes, LEADER_NODE):
            yield {"source": "zookeeper", "broker": found.leader}

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
    session.progress.begin("ZooKeeper", len(surfaces))
    for surface, lines in surfaces:
        with session.journal.attempt(surface):
            write_nodes(session, surface, lines())
        session.progress.advance()


def miss_zookeeper(journal: Journal, load_manager: LoadManagerKind) -> None:
    """Note what only ZooKeeper has, where none was given."""
    for surface in _OF_ZOOKEEPER_ONLY:
        if load_manager != "modular" and surface in _OF_MODULAR_ONLY:
            journal.lack(surface, f"under the {load_manager.capitalize()} load manager")
        else:
            journal.miss(surface, "only ZooKeeper has it, and no ZooKeeper was given")


def read_service_unit_states(session: Session, zookeeper: ZooKeeperReader) -> None:
    """Read the Extensible manager's ownership channel, of a cluster that keeps it in its metadata store."""
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
    """Write the lines made of a surface's nodes while they are read, and note the read."""
    started_at_ms = now_ms()
    some: list[Line] = []
    for line in lines:
        some.append(line)
        if len(some) == _LINES_AT_A_TIME:
            session.files.extend(surface, some)
            some = []
    session.files.extend(surface, some)
    session.journal.read(surface, ZOOKEEPER, started_at_ms, status=None, size=0)
