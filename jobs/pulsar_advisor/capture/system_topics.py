"""Reads the Extensible manager's three system topics: ownership, and the load that brokers publish for their leader.

The ownership channel is read from its beginning. The other two keep nothing, so the capture listens to them, for a
bounded time, while it reads the rest; it keeps each broker's last messages with their times, withdrawals included.
Reading them assigns no bundle: the leader serves them whatever their hash.
Source: Pulsar `ServiceUnitStateTableViewImpl`, `BrokerLoadData`, `TopBundlesLoadData`, `LoadDataStoreFactory` of
`loadbalance.extensions` (3.0.7 to 4.2.4).
"""

# ruff: noqa: N815 (the field names are the keys of the documents)

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from pulsar_advisor.admin.binary_client import OPERATION_LIMIT_S, binary_client
from pulsar_advisor.admin.read_client import Document, UnreadableAnswer, decode
from pulsar_advisor.admin.transport import AdminTransport
from pulsar_advisor.capture.documents import AllowList, BundleStats, Count, Number, ResourceUsage, Text
from pulsar_advisor.capture.journal import SERVICE, now_ms
from pulsar_advisor.capture.service_unit_state import SERVICE_UNIT_STATE, ServiceUnitState, prevailing
from pulsar_advisor.capture.session import Session
from pulsar_advisor.capture.surfaces import Line
from pulsar_advisor.model.errors import ClusterUnreachable
from pulsar_advisor.model.text.some_of import some_of

if TYPE_CHECKING:
    import pulsar

STATES: Final = "service_unit_states"
BROKER_LOAD: Final = "broker_load_data"
TOP_BUNDLES: Final = "top_bundles"
SURFACES: Final = (STATES, BROKER_LOAD, TOP_BUNDLES)

LISTEN_S: Final = 65.0
"""Brokers publish their top bundles after each statistics update, every 60 s by default; once all have, it ends."""
STATES_LIMIT_S: Final = 60.0
_POLL_MS: Final = 200
_KEPT: Final = 10
"""Messages of one broker on one topic that a snapshot keeps, the last ones."""

TOPICS: Final = {
    STATES: "persistent://pulsar/system/loadbalancer-service-unit-state",
    BROKER_LOAD: "non-persistent://pulsar/system/loadbalancer-broker-load-data",
    TOP_BUNDLES: "non-persistent://pulsar/system/loadbalancer-top-bundles-load-data",
}


class BrokerLoadData(AllowList):
    """The load that a broker publishes: ratios, messages/s, bytes/s, epoch milliseconds."""

    cpu: ResourceUsage | UnsetType = UNSET
    memory: ResourceUsage | UnsetType = UNSET
    directMemory: ResourceUsage | UnsetType = UNSET
    bandwidthIn: ResourceUsage | UnsetType = UNSET
    bandwidthOut: ResourceUsage | UnsetType = UNSET
    msgRateIn: Number = UNSET
    msgRateOut: Number = UNSET
    msgThroughputIn: Number = UNSET
    msgThroughputOut: Number = UNSET
    bundleCount: Count = UNSET
    topics: Count = UNSET
    maxResourceUsage: Number = UNSET
    weightedMaxEMA: Number = UNSET
    msgThroughputEMA: Number = UNSET
    updatedAt: Count = UNSET
    reportedAt: Count = UNSET


class TopBundle(AllowList):
    """One of a broker's busiest bundles."""

    bundleName: Text = UNSET
    stats: BundleStats | UnsetType | None = UNSET


class TopBundlesLoadData(AllowList):
    """A broker's busiest bundles, lightest first."""

    topBundlesLoadData: list[TopBundle] | UnsetType | None = UNSET


DECODERS: Final[dict[str, msgspec.json.Decoder[Any]]] = {
    BROKER_LOAD: msgspec.json.Decoder(BrokerLoadData),
    TOP_BUNDLES: msgspec.json.Decoder(TopBundlesLoadData),
}


@contextmanager
def listening(session: Session, service_url: str, *, states_in_topic: bool) -> Iterator[None]:
    """Read the topics into the snapshot while the block reads other things, and then until every broker has published.

    `states_in_topic`: false where the cluster keeps the channel in its metadata store. What can't be read is recorded.
    """
    surfaces = SURFACES if states_in_topic else (BROKER_LOAD, TOP_BUNDLES)
    with ThreadPoolExecutor(1, "system-topics") as pool:
        reading = pool.submit(_read, session, service_url, surfaces)
        try:
            yield
        except BaseException:
            session.stopped.set()
            raise
        session.progress.begin("system topics", 1)
        reading.result()
        session.progress.advance()


def refusal(transport: AdminTransport, service_url: str) -> str | None:
    """Why the topics can't be read at this URL; None if they can."""
    import pulsar

    try:
        with closing(binary_client(transport, service_url)) as client:
            client.create_reader(TOPICS[BROKER_LOAD], pulsar.MessageId.latest).close()
    except pulsar.PulsarException as error:
        return _explained(error, service_url)
    return None


def _read(session: Session, service_url: str, surfaces: tuple[str, ...]) -> None:
    import pulsar

    with _noted(session, service_url, surfaces), closing(binary_client(session.admin, service_url)) as client:
        readers = {
            surface: client.create_reader(TOPICS[surface], pulsar.MessageId.latest)
            for surface in (BROKER_LOAD, TOP_BUNDLES)
        }
        if STATES in surfaces:
            with _noted(session, service_url, (STATES,)), session.journal.attempt(STATES):
                held = prevailing(_states(session, client))
                lines = ({"source": "topic", "bundle": bundle, "document": held[bundle]} for bundle in sorted(held))
                session.files.extend(STATES, lines)
        _listen(session, readers)


@contextmanager
def _noted(session: Session, service_url: str, surfaces: tuple[str, ...]) -> Iterator[None]:
    """A block of client calls; whatever fails is recorded as missing from the snapshot."""
    import pulsar

    try:
        yield
    except pulsar.PulsarException as error:
        for surface in surfaces:
            session.journal.miss(surface, _explained(error, service_url))


def _explained(error: Exception, service_url: str) -> str:
    """The one-line message for a client failure."""
    kind = type(error).__name__
    advice = _ADVICE.get(kind, "check that it is the brokers' binary port, with pulsar+ssl:// if that uses TLS")
    return f"{service_url}: {kind}: {advice}"


_ADVICE: Final = {
    "AuthenticationError": "the credentials are rejected there",
    "AuthorizationError": "the role may not consume in pulsar/system: use the credentials of a super-user",
}


def _states(session: Session, client: pulsar.Client) -> Iterator[tuple[str, ServiceUnitState | None]]:
    """(bundle, record or None: removed) in the channel's order. Raises `ClusterUnreachable` if it takes too long."""
    import pulsar

    started_at_ms, size = now_ms(), 0
    deadline = time.monotonic() + STATES_LIMIT_S
    with closing(client.create_reader(TOPICS[STATES], pulsar.MessageId.earliest, is_read_compacted=True)) as reader:
        while reader.has_message_available() and not session.stopped.is_set():
            if time.monotonic() > deadline:
                raise ClusterUnreachable(f"{TOPICS[STATES]}: not read completely within {STATES_LIMIT_S:.0f} s")
            message = reader.read_next(OPERATION_LIMIT_S * 1000)
            bundle, body = message.partition_key(), message.data()
            size += len(body)
            try:
                yield bundle, decode(Document(TOPICS[STATES], body), SERVICE_UNIT_STATE) if body else None
            except UnreadableAnswer as error:
                session.journal.fail(STATES, None, error)
    session.journal.read(STATES, SERVICE, started_at_ms, status=None, size=size)


def _listen(session: Session, readers: dict[str, pulsar.Reader]) -> None:
    """Keep each broker's last messages per topic, until every broker has load on all of them or time is up."""
    import pulsar

    heard: dict[str, dict[str, deque[Line]]] = {
        surface: defaultdict(lambda: deque(maxlen=_KEPT)) for surface in readers
    }
    deadline = time.monotonic() + LISTEN_S
    while (
        any(_silent(session, messages) for messages in heard.values())
        and time.monotonic() < deadline
        and not session.stopped.is_set()
    ):
        for surface, reader in readers.items():
            try:
                message = reader.read_next(_POLL_MS)
            except pulsar.Timeout:
                continue
            _hear(session, surface, message, heard[surface])
    for surface, messages in heard.items():
        session.files.extend(surface, [message for broker in sorted(messages) for message in messages[broker]])
        if silent := _silent(session, messages):
            why = "brokers publish it when it changes, and rarely otherwise"
            session.journal.lack(surface, f"from {some_of(silent)} within {LISTEN_S:.0f} s: {why}")


def _silent(session: Session, messages: Mapping[str, Sequence[Line]]) -> list[str]:
    """Brokers whose load is unknown: they published none, or withdrew it last (a tombstone)."""
    known = {broker for broker, sent in messages.items() if sent[-1]["document"] is not None}
    return sorted(set(session.brokers) - known)


def _hear(session: Session, surface: str, message: pulsar.Message, messages: Mapping[str, deque[Line]]) -> None:
    body, read_at_ms = message.data(), now_ms()
    session.journal.read(surface, SERVICE, read_at_ms, status=None, size=len(body))
    try:
        document = decode(Document(message.topic_name(), body), DECODERS[surface]) if body else None
    except UnreadableAnswer as error:
        session.journal.fail(surface, None, error)
        return
    broker = message.partition_key()
    messages[broker].append(
        {
            "broker": broker,
            "readAt": read_at_ms,
            "publishedAt": message.publish_timestamp(),
            "document": document,
        }
    )
