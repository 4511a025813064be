"""The session of a capture: one read at a time per broker, a bounded number overall, each recorded."""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from pulsar_advisor.admin.answer import TRANSIENT, ErrorAnswer
from pulsar_advisor.admin.decoding import UnreadableAnswer, decode
from pulsar_advisor.admin.metadata_store import MetadataReader, Node
from pulsar_advisor.admin.no_answer import NoAnswer
from pulsar_advisor.admin.read_client import LEADER, ReadClient, some_active
from pulsar_advisor.admin.transport import AdminTransport
from pulsar_advisor.capture.journal import CLUSTER, Journal
from pulsar_advisor.capture.progress import CaptureProgress
from pulsar_advisor.capture.raw_files import SnapshotFiles
from pulsar_advisor.capture.topic_decoders import ByteBudget, TopicDecoders
from pulsar_advisor.model.errors import ClusterUnreachable, UsageError


@dataclass(frozen=True)
class Identity:
    """The cluster's name in Pulsar, and the ids of its brokers."""

    cluster_name: str
    brokers: tuple[str, ...]
    leader: str | None
    load_manager_class: str = ""
    """`loadManagerClassName` of the broker that was asked."""


def identify(client: ReadClient) -> Identity:
    """The cluster that answers. Raises `ClusterUnreachable` if none does, access is denied, or it has no broker."""
    try:
        configuration = client.runtime_configuration()
        cluster_name = configuration.get("clusterName", "")
        if not cluster_name:
            raise ClusterUnreachable(
                "the broker's configuration names no cluster (clusterName): check that the admin URL is a broker's"
            )
        brokers = _active_brokers(client, cluster_name)
    except UnreadableAnswer as error:
        raise ClusterUnreachable(f"{error}: check that this is the admin URL of a Pulsar broker") from error
    class_name = configuration.get("loadManagerClassName", "")
    return Identity(cluster_name, some_active(brokers, cluster_name), client.leader(), class_name)


def _active_brokers(client: ReadClient, cluster_name: str) -> tuple[str, ...]:
    try:
        return client.active_brokers(cluster_name)
    except ErrorAnswer as error:
        if error.status != 404:
            raise
        raise ClusterUnreachable(
            f"a broker says it belongs to cluster {cluster_name!r}, but that cluster does not exist ({error}): "
            "check that all admin URLs lead to the same cluster"
        ) from error


def identify_in(metadata: MetadataReader) -> Identity:
    """The cluster that owns the metadata. Raises `UsageError` if it is ambiguous, `ClusterUnreachable` as above."""
    names = metadata.clusters()
    if len(names) > 1:
        known = f"has the metadata of several clusters ({', '.join(names)})"
        raise UsageError(f"{metadata.kind} {known}: give --admin-url too, as only brokers say which is theirs")
    if not names:
        advice = "give --admin-url too, or --configuration-metadata-store"
        raise UsageError(f"{metadata.kind} does not name the cluster: {advice}")
    brokers = some_active(tuple(metadata.active_brokers()), names[0])
    try:
        leaders = [decode(node.document, LEADER).broker_id for node in metadata.leaders()]
    except UnreadableAnswer:
        leaders = []
    return Identity(names[0], brokers, next(iter(leaders), None))


T = TypeVar("T")

BrokerRead = tuple[str, Callable[[ReadClient, str], None]]
"""A surface, and a read of it at one broker."""


@dataclass(frozen=True)
class Session:
    """The resources of one capture. Reads run on `pool`; once `stopped` is set they end after the pending response."""

    cluster_name: str
    brokers: tuple[str, ...]
    leader: str | None
    transport: AdminTransport | None
    """None if only ZooKeeper is available."""
    journal: Journal
    files: SnapshotFiles
    documents: ByteBudget
    decoders: TopicDecoders
    pool: ThreadPoolExecutor
    progress: CaptureProgress
    stopped: threading.Event = field(default_factory=threading.Event)

    @property
    def admin(self) -> AdminTransport:
        """The admin API, for callers that require it."""
        assert self.transport is not None
        return self.transport

    def client(self, surface: str, broker: str | None = None, any_broker_url: str | None = None) -> ReadClient:
        """A client whose reads the journal records under this surface and broker."""
        observer = self.journal.observer(surface, broker or CLUSTER)
        return ReadClient(self.admin, any_broker_url=any_broker_url, observe=observer)

    def at_each_broker(self, step: str, brokers: Sequence[str], reads: Sequence[BrokerRead]) -> None:
        """Run these reads at each broker, one after another, at several brokers in parallel.

        A broker that has stopped answering gets no further reads.
        """

        def read_broker(broker: str) -> None:
            for surface, read in reads:
                if self.stopped.is_set():
                    return
                silence = self.journal.silence_of(broker)
                if silence is not None:
                    self.journal.miss(surface, silence, broker)
                    continue
                with self.journal.attempt(surface, broker):
                    read(self.client(surface, broker), broker)
            self.progress.advance()

        self.progress.begin(step, len(brokers))
        self._finish([self.pool.submit(read_broker, broker) for broker in brokers])

    def for_each(
        self,
        step: str,
        surface: str,
        items: Sequence[str],
        read: Callable[[ReadClient, str], None],
        among: Container[str] | None = None,
    ) -> None:
        """Run a read that any broker answers for each item (a namespace), distributed over the brokers that answer.

        `read` may run twice for an item if its broker stops answering, so it must add to the files last. `among`: ids
        of the brokers that can be asked, None for all.
        """
        able = [broker for broker in self.brokers if among is None or broker in among]
        answering = [broker for broker in able if self.journal.silence_of(broker) is None]

        def read_share(broker: str, share: Sequence[str]) -> None:
            for item in share:
                if self.stopped.is_set():
                    return
                with self.journal.attempt(surface, namespace=item):
                    self._read_somewhere(surface, broker, read, item)
                self.progress.advance()

        self.progress.begin(step, len(items))
        askable = answering or [CLUSTER]
        shares = [(broker, items[index :: len(askable)]) for index, broker in enumerate(askable)]
        self._finish([self.pool.submit(read_share, broker, share) for broker, share in shares if share])

    def _read_somewhere(self, surface: str, broker: str, read: Callable[[ReadClient, str], None], item: str) -> None:
        """Read at this broker; if it can't answer now, at any admin URL. Once none of them answers, stop reading."""
        if broker != CLUSTER and self.journal.silence_of(broker) is None:
            try:
                read(self.client(surface, any_broker_url=self.admin.web_address(broker)), item)
                return
            except NoAnswer as error:
                self.journal.silence(broker, str(error))
            except ErrorAnswer as error:
                if error.status not in TRANSIENT:
                    raise
        silence = self.journal.silence_of(CLUSTER)
        if silence is not None:
            raise NoAnswer(silence, unsent=True)
        try:
            read(self.client(surface), item)
        except NoAnswer as error:
            self.journal.silence(CLUSTER, str(error))
            raise

    def decoded(
        self, surface: str, nodes: Iterator[tuple[str, Node]], decoder: msgspec.json.Decoder[T]
    ) -> Iterator[tuple[str, Node, T]]:
        """(name, node, document) of ZooKeeper nodes; one that can't be decoded is recorded and skipped."""
        for name, node in nodes:
            try:
                yield name, node, decode(node.document, decoder)
            except UnreadableAnswer as error:
                self.journal.fail(surface, name if name in self.brokers else None, error)

    def _finish(self, reads: Sequence[Future[None]]) -> None:
        for done in as_completed(reads):
            done.result()
