"""A double of Pulsar's binary client, for what Extensible brokers publish at moments of a test's choice."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import pulsar  # noqa: TID253 (its errors and its client are stood in for)
import pytest

from pulsar_advisor.admin.options import CaptureOptions
from unit.capture.fake_cluster import FakeCluster

STATES = "persistent://pulsar/system/loadbalancer-service-unit-state"
LOAD = "non-persistent://pulsar/system/loadbalancer-broker-load-data"
TOP = "non-persistent://pulsar/system/loadbalancer-top-bundles-load-data"
SERVICE_URL = "pulsar://broker:6650"
EXTENSIBLE = "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"

Messages = dict[str, list[tuple[str, Any]]]


class Message:
    def __init__(self, topic: str, key: str, value: Any) -> None:
        self._topic, self._key = topic, key
        self._data = value if isinstance(value, bytes) else json.dumps(value).encode()

    def topic_name(self) -> str:
        return self._topic

    def partition_key(self) -> str:
        return self._key

    def data(self) -> bytes:
        return self._data

    def publish_timestamp(self) -> int:
        return 1_700_000_000_000


class Reader:
    def __init__(self, messages: Iterable[Message]) -> None:
        self._messages = deque(messages)

    def has_message_available(self) -> bool:
        return bool(self._messages)

    def read_next(self, timeout_millis: int) -> Message:
        if not self._messages:
            raise pulsar.Timeout(f"nothing within {timeout_millis} ms")
        return self._messages.popleft()

    def close(self) -> None: ...


class Client:
    """Stands in for `pulsar.Client`; `opened` holds every topic read, with where reading begins."""

    def __init__(self, messages: Messages, failure: Exception | None = None) -> None:
        self.messages, self.failure = messages, failure
        self.opened: dict[str, tuple[Any, bool]] = {}
        self.options: dict[str, Any] = {}
        self._listeners: dict[str, Callable[[Message], None]] = {}

    def __call__(self, service_url: str, **options: Any) -> Client:
        assert service_url == SERVICE_URL
        self.options = options
        return self

    def create_reader(
        self, topic: str, start: Any, is_read_compacted: bool = False, reader_listener: Any = None
    ) -> Reader:
        if self.failure is not None:
            raise self.failure
        self.opened[topic] = (start, is_read_compacted)
        reader = Reader(Message(topic, key, value) for key, value in self.messages.get(topic, []))
        if reader_listener is not None:
            self._listeners[topic] = lambda message: reader_listener(reader, message)
            while reader.has_message_available():
                reader_listener(reader, reader.read_next(0))
        return reader

    def publish(self, topic: str, broker: str, value: Any) -> None:
        """One more message, to who is listening."""
        self._listeners[topic](Message(topic, broker, value))

    def close(self) -> None: ...


def listening_to(client: Client, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, **admin: Any) -> CaptureOptions:
    monkeypatch.setattr(pulsar, "Client", client)
    options = cluster.options()
    fields = {"service_url": SERVICE_URL, "listen_s": 1, "admin": options.admin.model_copy(update=admin)}
    return options.model_copy(update=fields)
