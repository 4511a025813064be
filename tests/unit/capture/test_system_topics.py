"""What Extensible brokers publish to their leader: captured, or reported as missing; no extra requests."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pulsar  # noqa: TID253 (its errors and its client are stood in for)
import pytest

from pulsar_advisor.admin.options import CaptureOptions
from pulsar_advisor.capture import system_topics
from pulsar_advisor.capture.capture import capture
from pulsar_advisor.storage.root import Root
from unit.capture.captured import lines_of, manifest_of, with_zookeeper
from unit.capture.fake_cluster import LOWER, SECRET, UPPER, FakeCluster, Silence, everything_in

EXTENSIBLE = "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"
METADATA_STORE = "org.apache.pulsar.broker.loadbalance.extensions.channel.ServiceUnitStateMetadataStoreTableViewImpl"
STATES = "persistent://pulsar/system/loadbalancer-service-unit-state"
LOAD = "non-persistent://pulsar/system/loadbalancer-broker-load-data"
TOP = "non-persistent://pulsar/system/loadbalancer-top-bundles-load-data"
SERVICE_URL = "pulsar://broker:6650"

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

    def __call__(self, service_url: str, **options: Any) -> Client:
        assert service_url == SERVICE_URL
        self.options = options
        return self

    def create_reader(self, topic: str, start: Any, is_read_compacted: bool = False) -> Reader:
        if self.failure is not None:
            raise self.failure
        self.opened[topic] = (start, is_read_compacted)
        return Reader(Message(topic, key, value) for key, value in self.messages.get(topic, []))

    def close(self) -> None: ...


@pytest.fixture(autouse=True)
def short_listening(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_topics, "LISTEN_S", 0.2)


@pytest.fixture
def extensible(cluster: FakeCluster) -> FakeCluster:
    for broker in (cluster.first, cluster.second):
        cluster.configure(broker, loadManagerClassName=EXTENSIBLE)
        broker.answers("/broker-stats/metrics", [])
    return cluster


def listening_to(client: Client, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, **admin: Any) -> CaptureOptions:
    monkeypatch.setattr(pulsar, "Client", client)
    options = cluster.options()
    fields = {"service_url": SERVICE_URL, "admin": options.admin.model_copy(update=admin)}
    return options.model_copy(update=fields)


def reasons(manifest: dict[str, Any]) -> dict[str, str]:
    return {entry["surface"]: entry["reason"] for entry in manifest["missing"]}


def test_ownership_load_and_top_bundles_are_in_the_snapshot(
    extensible: FakeCluster, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = extensible.first.id, extensible.second.id
    load = {"cpu": {"usage": 50.0, "limit": 400.0}, "weightedMaxEMA": 0.25, "updatedAt": 5, "secret": SECRET}
    top = {"topBundlesLoadData": [{"bundleName": LOWER, "stats": {"msgRateIn": 3.0}, "secret": SECRET}]}
    client = Client(
        {
            STATES: [
                (LOWER, {"state": "Owned", "dstBroker": first, "versionId": 2, "properties": {"secret": SECRET}}),
                (LOWER, {"state": "Owned", "dstBroker": second, "versionId": 2}),
                (UPPER, {"state": "Owned", "dstBroker": first, "versionId": 1}),
                (UPPER, b""),
            ],
            LOAD: [(first, {**load, "weightedMaxEMA": 0.1}), (first, load), (second, load)],
            TOP: [(first, top), (second, {"topBundlesLoadData": []})],
        }
    )
    snapshot = capture(listening_to(client, extensible, monkeypatch), root, Silence())
    assert lines_of(root, snapshot, "service_unit_states") == [
        {"source": "topic", "bundle": LOWER, "document": {"state": "Owned", "dstBroker": first, "versionId": 2}}
    ]
    lines = lines_of(root, snapshot, "broker_load_data")
    assert [(line["broker"], line["document"]["weightedMaxEMA"]) for line in lines] == [
        (first, 0.1),
        (first, 0.25),
        (second, 0.25),
    ]
    published = {line["broker"]: line for line in lines}
    assert published[first]["document"] == {
        "cpu": {"usage": 50.0, "limit": 400.0},
        "weightedMaxEMA": 0.25,
        "updatedAt": 5,
    }
    assert published[first]["publishedAt"] == 1_700_000_000_000
    assert [line["document"]["topBundlesLoadData"] for line in lines_of(root, snapshot, "top_bundles")] == [
        [{"bundleName": LOWER, "stats": {"msgRateIn": 3.0}}],
        [],
    ]
    assert client.opened == {
        LOAD: (pulsar.MessageId.latest, False),
        TOP: (pulsar.MessageId.latest, False),
        STATES: (pulsar.MessageId.earliest, True),
    }
    assert not {"service_unit_states", "broker_load_data", "top_bundles"} & reasons(manifest_of(root, snapshot)).keys()
    assert SECRET.encode() not in everything_in(root)


def test_a_broker_that_stays_silent_or_takes_its_word_back_is_named_and_loses_nothing_else(
    extensible: FakeCluster, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = extensible.first.id, extensible.second.id
    client = Client({LOAD: [(first, {"topics": 1}), (second, {"topics": 1}), (second, b"")], TOP: [(first, {})]})
    snapshot = capture(listening_to(client, extensible, monkeypatch), root, Silence())
    manifest = manifest_of(root, snapshot)
    lines = lines_of(root, snapshot, "broker_load_data")
    assert [(line["broker"], line["document"]) for line in lines] == [
        (first, {"topics": 1}),
        (second, {"topics": 1}),
        (second, None),
    ]
    for surface in ("broker_load_data", "top_bundles"):
        assert reasons(manifest)[surface].startswith(f"not available from {second} within")
    assert manifest["incomplete_brokers"] == []


def test_of_many_messages_of_a_broker_the_last_ones_are_kept(
    extensible: FakeCluster, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client({LOAD: [(extensible.first.id, {"topics": number}) for number in range(25)]})
    monkeypatch.setattr(system_topics, "LISTEN_S", 2.0)
    snapshot = capture(listening_to(client, extensible, monkeypatch), root, Silence())
    lines = lines_of(root, snapshot, "broker_load_data")
    assert [line["document"]["topics"] for line in lines] == list(range(15, 25))


def test_what_cannot_be_decoded_is_noted_and_the_rest_kept(
    extensible: FakeCluster, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = extensible.first.id
    client = Client(
        {STATES: [(LOWER, b"not JSON"), (UPPER, {"state": "Free", "versionId": 1})], LOAD: [(first, b"[]")]}
    )
    snapshot = capture(listening_to(client, extensible, monkeypatch), root, Silence())
    assert [line["bundle"] for line in lines_of(root, snapshot, "service_unit_states")] == [UPPER]
    failed = {(entry["surface"], entry["broker"]) for entry in manifest_of(root, snapshot)["failures"]}
    assert failed == {("service_unit_states", None), ("broker_load_data", None)}


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (pulsar.ConnectError("no"), "ConnectError: check that it is the brokers' binary port"),
        (pulsar.AuthorizationError("no"), "AuthorizationError: the role may not consume in pulsar/system"),
    ],
)
def test_a_service_url_that_does_not_let_us_in_costs_the_three_surfaces_only(
    failure: Exception, message: str, extensible: FakeCluster, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = listening_to(Client({}, failure), extensible, monkeypatch)
    manifest = manifest_of(root, capture(options, root, Silence()))
    for surface in ("service_unit_states", "broker_load_data", "top_bundles"):
        assert reasons(manifest)[surface].startswith(f"{SERVICE_URL}: {message}")
    assert manifest["incomplete_brokers"] == []


def test_without_a_service_url_nothing_is_wrong(extensible: FakeCluster, root: Root) -> None:
    manifest = manifest_of(root, capture(extensible.options(), root, Silence()))
    for surface in ("service_unit_states", "broker_load_data", "top_bundles"):
        assert reasons(manifest)[surface] == "not available without a service URL"


def test_other_load_managers_have_no_such_topics_and_none_is_made(
    cluster: FakeCluster, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client({})
    capture(listening_to(client, cluster, monkeypatch), root, Silence())
    assert client.opened == {}


def test_a_channel_in_the_metadata_store_is_read_there(
    extensible: FakeCluster, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    for broker in (extensible.first, extensible.second):
        extensible.configure(
            broker,
            loadManagerClassName=EXTENSIBLE,
            loadManagerServiceUnitStateTableViewClassName=METADATA_STORE,
        )
    nodes = {
        f"/loadbalance/brokers/{extensible.first.id}": b"{}",
        f"/service_unit_state/{LOWER}": b'{"state": "Owned", "dstBroker": "a:1", "versionId": 2}',
    }
    client = Client({})
    with_topics = listening_to(client, extensible, monkeypatch)
    options = with_zookeeper(extensible, nodes, monkeypatch).model_copy(update={"service_url": with_topics.service_url})
    snapshot = capture(options, root, Silence())
    assert lines_of(root, snapshot, "service_unit_states") == [
        {
            "source": "zookeeper",
            "bundle": LOWER,
            "document": {"state": "Owned", "dstBroker": "a:1", "versionId": 2},
        }
    ]
    assert client.opened.keys() == {LOAD, TOP}

    without = manifest_of(root, capture(extensible.options(), root, Silence()))
    assert "no metadata store was given" in reasons(without)["service_unit_states"]


def test_the_client_carries_the_credentials_and_the_trust_of_the_admin_connection(
    extensible: FakeCluster, root: Root, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    authority, token = tmp_path / "ca.pem", tmp_path / "token"
    authority.write_text("")
    token.write_text("first\n")
    client = Client({})
    capture(listening_to(client, extensible, monkeypatch, token_file=token, tls_ca_file=authority), root, Silence())
    assert client.options["tls_trust_certs_file_path"] == str(authority)
    assert client.options["tls_validate_hostname"] is True
    assert isinstance(client.options["authentication"], pulsar.AuthenticationToken)
