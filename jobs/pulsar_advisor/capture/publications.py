"""Listens to what Extensible brokers publish for their leader, and nothing stores: their load and their top bundles.

Listening begins before any other read and goes on during them, so a snapshot has what the leader has at its end. Each
broker's last messages are kept with their times, withdrawals included.
"""

# ruff: noqa: N815 (the field names are the keys of the lines)

from __future__ import annotations

import threading
import time
from base64 import b64decode, b64encode
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar

import msgspec
import zstandard

from pulsar_advisor.admin.binary_client import binary_client
from pulsar_advisor.admin.decoding import Document, UnreadableAnswer, decode
from pulsar_advisor.admin.transport import AdminTransport
from pulsar_advisor.capture.journal import SERVICE, now_ms
from pulsar_advisor.capture.session import Session
from pulsar_advisor.capture.system_topics import (
    BROKER_LOAD,
    DECODERS,
    PUBLISHED,
    TOP_BUNDLES,
    TOPICS,
    BrokerLoadData,
    TopBundlesLoadData,
    explained_failure,
)
from pulsar_advisor.documents.manifest import Failure
from pulsar_advisor.model.errors import AdvisorError, StorageError
from pulsar_advisor.model.text.some_of import some_of

if TYPE_CHECKING:
    import pulsar

KEPT: Final = 10
"""How many of a broker's last messages on a topic a snapshot keeps."""
LOOK_AGAIN_S: Final = 30.0
"""Interval at which the brokers to wait for are listed again."""
LARGEST_HEARD_BYTES: Final = 256 << 20
"""What another process heard of a thousand brokers takes less."""

_Published = TypeVar("_Published", BrokerLoadData, TopBundlesLoadData)


class Message(msgspec.Struct, Generic[_Published], frozen=True):
    """One message of a broker, as a line of the surface; a document of None withdraws what it had published."""

    broker: str
    readAt: int
    publishedAt: int
    document: _Published | None


class Received(msgspec.Struct, frozen=True):
    """How much arrived on one topic."""

    messages: int = 0
    bytes: int = 0


class Unreadable(msgspec.Struct, frozen=True):
    """A message that can't be decoded."""

    surface: str
    error: str
    size: int
    sha256: str


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """What was heard between two moments (epoch milliseconds), or why nothing could be."""

    since_ms: int
    until_ms: int
    broker_load_data: tuple[Message[BrokerLoadData], ...] = ()
    top_bundles: tuple[Message[TopBundlesLoadData], ...] = ()
    received: Mapping[str, Received] = {}
    unreadable: tuple[Unreadable, ...] = ()
    refused: str | None = None

    @classmethod
    def unpacked(cls, text: str) -> Self:
        """The inverse of `packed`. Raises `StorageError` for anything else."""
        try:
            with zstandard.ZstdDecompressor().stream_reader(b64decode(text)) as reader:
                return msgspec.json.decode(reader.read(LARGEST_HEARD_BYTES), type=cls)
        except (ValueError, zstandard.ZstdError, RecursionError) as error:
            raise StorageError(f"what was heard before can't be read ({error}): listen again") from error

    def packed(self) -> str:
        """This as text, for another process that goes on listening."""
        return b64encode(zstandard.compress(msgspec.json.encode(self))).decode()


class Listener:
    """Listens to both topics on threads of Pulsar's own client, from its creation until it is closed.

    `earlier` is what another process has heard, which counts as heard here.
    """

    def __init__(self, transport: AdminTransport, service_url: str, earlier: Heard | None = None) -> None:
        import pulsar

        self._since_ms = earlier.since_ms if earlier else now_ms()
        self._messages: dict[str, dict[str, deque[Message[Any]]]] = {
            surface: defaultdict(lambda: deque(maxlen=KEPT)) for surface in PUBLISHED
        }
        self._received = dict.fromkeys(PUBLISHED, Received()) | (dict(earlier.received) if earlier else {})
        self._unreadable = list(earlier.unreadable) if earlier else []
        for surface in PUBLISHED:
            for message in getattr(earlier, surface, ()):
                self._messages[surface][message.broker].append(message)
        self._changed = threading.Condition()
        self._client: pulsar.Client | None = None
        self.refused: str | None = None
        try:
            self._client = binary_client(transport, service_url)
            for surface in PUBLISHED:
                hear = partial(self._hear, surface)
                self._client.create_reader(TOPICS[surface], pulsar.MessageId.latest, reader_listener=hear)
        except pulsar.PulsarException as error:
            self.refused = explained_failure(error, service_url)

    def close(self) -> None:
        """Stop listening."""
        if self._client is not None:
            self._client.close()

    def silent(self, brokers: Collection[str]) -> list[str]:
        """The brokers among these that have yet to publish on both topics, or withdrew their last publication."""
        with self._changed:
            load, top = (_known(chain.from_iterable(self._messages[surface].values())) for surface in PUBLISHED)
        return sorted(set(brokers) - (load & top))

    def hear_more(self, for_s: float) -> None:
        """Return at the next message, or after this time."""
        with self._changed:
            self._changed.wait(for_s)

    def heard(self) -> Heard:
        """Everything heard until now."""
        with self._changed:
            load, top = (_in_order(self._messages[surface]) for surface in (BROKER_LOAD, TOP_BUNDLES))
            return Heard(
                since_ms=self._since_ms,
                until_ms=now_ms(),
                broker_load_data=load,
                top_bundles=top,
                received=dict(self._received),
                unreadable=tuple(self._unreadable),
                refused=self.refused,
            )

    def _hear(self, surface: str, _reader: pulsar.Reader, message: pulsar.Message) -> None:
        body, read_at_ms = message.data(), now_ms()
        with self._changed:
            before = self._received[surface]
            self._received[surface] = Received(before.messages + 1, before.bytes + len(body))
            try:
                document = decode(Document(TOPICS[surface], body), DECODERS[surface]) if body else None
            except UnreadableAnswer as error:
                self._unreadable.append(Unreadable(surface, error.error, error.size, error.sha256))
            else:
                broker = message.partition_key()
                self._messages[surface][broker].append(
                    Message(broker, read_at_ms, message.publish_timestamp(), document)
                )
            self._changed.notify_all()


class Wait:
    """The time that a listener gives brokers to publish: it ends early once all were heard, or nothing can be."""

    def __init__(
        self,
        listener: Listener,
        brokers: Collection[str],
        active_brokers: Callable[[], Collection[str]],
        listen_s: float,
    ) -> None:
        self._listener = listener
        self._brokers = brokers
        self._active_brokers = active_brokers
        self._over_at_s = time.monotonic() + listen_s
        self._look_at_s = time.monotonic() + LOOK_AGAIN_S

    def silent(self) -> list[str]:
        """The active brokers not heard yet; empty once the wait is over."""
        now_s = time.monotonic()
        if self._listener.refused is not None or now_s >= self._over_at_s:
            return []
        if now_s >= self._look_at_s:
            self._look_at_s = now_s + LOOK_AGAIN_S
            with suppress(AdvisorError):  # the following reads will report it
                self._brokers = self._active_brokers()
        return self._listener.silent(self._brokers)


def write_heard(session: Session, heard: Heard) -> None:
    """Write what was heard into the snapshot, and record which of its brokers it lacks."""
    if heard.refused is not None:
        for surface in PUBLISHED:
            session.journal.miss(surface, heard.refused)
        return
    for one in heard.unreadable:
        session.journal.note(Failure(broker=None, **msgspec.structs.asdict(one)))
    for surface in PUBLISHED:
        messages: tuple[Message[Any], ...] = getattr(heard, surface)
        received = heard.received.get(surface, Received())
        session.journal.read(
            surface,
            SERVICE,
            heard.since_ms,
            status=None,
            size=received.bytes,
            requests=received.messages,
            finished_at_ms=heard.until_ms,
        )
        session.files.extend(surface, messages)
        if silent := sorted(set(session.brokers) - _known(messages)):
            listened_s = (heard.until_ms - heard.since_ms) / 1000
            why = "brokers publish it when it changes, and rarely otherwise"
            session.journal.lack(surface, f"from {some_of(silent)} within {listened_s:.0f} s: {why}")


def _known(messages: Iterable[Message[Any]]) -> set[str]:
    """Brokers whose last message isn't a withdrawal, given each one's messages in order."""
    last = {message.broker: message.document for message in messages}
    return {broker for broker, document in last.items() if document is not None}


def _in_order(messages: Mapping[str, deque[Message[Any]]]) -> tuple[Message[Any], ...]:
    return tuple(message for broker in sorted(messages) for message in messages[broker])
