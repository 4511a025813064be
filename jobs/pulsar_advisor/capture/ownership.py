"""Bundle ownership, read at the start and the end of a capture, and the moves in between."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple

from pulsar_advisor.admin.metadata_store import MetadataReader
from pulsar_advisor.admin.read_client import ReadClient
from pulsar_advisor.capture.documents import OWNERSHIP_NODE
from pulsar_advisor.capture.journal import ZOOKEEPER, now_ms
from pulsar_advisor.capture.session import Session

Pass = Literal["begin", "end"]
Source = Literal["rest", "zookeeper"]

OwnersByBundle = Mapping[str, Collection[str]]
"""Ids of the brokers that own a bundle; more than one if it moved between two reads."""

SURFACE = "owned_bundles"


class _Row(NamedTuple):
    """A broker's claim to a bundle; only ZooKeeper knows when the broker acquired it."""

    broker: str
    bundle: str
    is_active: bool
    acquired_at_ms: int | None


class Ownership:
    """Owners according to the brokers themselves (`rest`) and to ZooKeeper."""

    def __init__(self) -> None:
        self._owners: dict[tuple[Source, Pass], dict[str, set[str]]] = {
            (source, moment): defaultdict(set) for source in ("rest", "zookeeper") for moment in ("begin", "end")
        }
        self._answered: dict[tuple[Source, Pass], set[str]] = defaultdict(set)
        self._lock = threading.Lock()

    def read(self, session: Session, metadata: MetadataReader | None, moment: Pass) -> None:
        """Read the owned bundles of every broker, and ZooKeeper's ownership nodes."""

        def read_broker(client: ReadClient, broker: str) -> None:
            owned = client.owned_bundles(session.cluster_name, broker)
            rows = [_Row(broker, bundle, active, None) for bundle, active in sorted(owned.items())]
            self._add(session, "rest", moment, rows, {broker})

        if session.transport is not None:
            session.at_each_broker(f"owned bundles, {moment}", session.brokers, [(SURFACE, read_broker)])
        if metadata is not None:
            with session.journal.attempt(SURFACE):
                started_at_ms = now_ms()
                nodes = list(session.decoded(SURFACE, metadata.ownerships(), OWNERSHIP_NODE))
                rows = [
                    _Row(owner.owner, bundle, not owner.disabled, node.created_at_ms)
                    for bundle, node, owner in nodes
                    if owner.owner is not None
                ]
                self._add(session, "zookeeper", moment, rows, {row.broker for row in rows})
                session.journal.read(SURFACE, ZOOKEEPER, started_at_ms, status=None, size=0)

    def moved(self) -> list[str]:
        """Bundles whose owners differ between the two passes in either source, sorted."""
        moved: set[str] = set()
        for source in ("rest", "zookeeper"):
            begin, end = self._owners[source, "begin"], self._owners[source, "end"]
            both = self._answered[source, "begin"] & self._answered[source, "end"]
            either = self._answered[source, "begin"] | self._answered[source, "end"]
            # A broker that didn't answer proves nothing; one without a node in ZooKeeper owns nothing.
            moved |= moved_bundles(begin, end, both if source == "rest" else either)
        return sorted(moved)

    def unsettled_brokers(self, reported: Mapping[str, Collection[str]]) -> set[str]:
        """Brokers whose figures lack a bundle they own, or include one that another owns, because a bundle moved.

        `reported`: by broker, the bundles in its load report.
        """
        end = self._owners["rest", "end"]
        strays = {
            bundle: broker
            for broker in reported.keys() & self._answered["rest", "end"]
            for bundle in reported[broker]
            if end.get(bundle) and broker not in end[bundle]
        }
        moved = strays.keys() | set(self.moved())
        owners = {
            owner for by_bundle in self._owners.values() for bundle in moved for owner in by_bundle.get(bundle, ())
        }
        return owners | set(strays.values())

    def _add(self, session: Session, source: Source, moment: Pass, rows: Sequence[_Row], answered: set[str]) -> None:
        read_at_ms = now_ms()
        lines = [
            {
                "source": source,
                "broker": row.broker,
                "bundle": row.bundle,
                "isActive": row.is_active,
                "acquiredAt": row.acquired_at_ms,
                "readAt": read_at_ms,
                "pass": moment,
            }
            for row in rows
        ]
        session.files.extend(SURFACE, lines)
        with self._lock:
            for row in rows:
                self._owners[source, moment][row.bundle].add(row.broker)
            self._answered[source, moment] |= answered


def moved_bundles(begin: OwnersByBundle, end: OwnersByBundle, answered: Collection[str]) -> set[str]:
    """Bundles whose owners, among the brokers that answered, differ: they moved, lost their owner, or gained one."""
    brokers = frozenset(answered)
    return {
        bundle
        for bundle in begin.keys() | end.keys()
        if brokers.intersection(begin.get(bundle, ())) != brokers.intersection(end.get(bundle, ()))
    }
