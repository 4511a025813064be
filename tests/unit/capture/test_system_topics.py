"""What Extensible brokers publish to their leader: captured, or reported as missing; no extra requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pulsar  # noqa: TID253 (its errors and its client are stood in for)
import pytest

from captures import capture, everything_in, lines_of, manifest_of
from pulsar_advisor.storage.root import Root
from unit.capture.fake_cluster import LOWER, SECRET, UPPER, FakeCluster, with_zookeeper
from unit.capture.fake_topics import EXTENSIBLE, LOAD, SERVICE_URL, STATES, TOP, Client, listening_to

METADATA_STORE = "org.apache.pulsar.broker.loadbalance.extensions.channel.ServiceUnitStateMetadataStoreTableViewImpl"


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
    snapshot = capture(listening_to(client, extensible, monkeypatch), root)
    assert lines_of(snapshot, "service_unit_states") == [
        {"source": "topic", "bundle": LOWER, "document": {"state": "Owned", "dstBroker": first, "versionId": 2}}
    ]
    lines = lines_of(snapshot, "broker_load_data")
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
    assert [line["document"]["topBundlesLoadData"] for line in lines_of(snapshot, "top_bundles")] == [
        [{"bundleName": LOWER, "stats": {"msgRateIn": 3.0}}],
        [],
    ]
    assert client.opened == {
        LOAD: (pulsar.MessageId.latest, False),
        TOP: (pulsar.MessageId.latest, False),
        STATES: (pulsar.MessageId.earliest, True),
    }
    assert not {"service_unit_states", "broker_load_data", "top_bundles"} & reasons(manifest_of(snapshot)).keys()
    assert SECRET.encode() not in everything_in(root)


def test_a_broker_that_stays_silent_or_takes_its_word_back_is_named_and_loses_nothing_else(
    extensible: FakeCluster, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = extensible.first.id, extensible.second.id
    client = Client({LOAD: [(first, {"topics": 1}), (second, {"topics": 1}), (second, b"")], TOP: [(first, {})]})
    snapshot = capture(listening_to(client, extensible, monkeypatch), root)
    manifest = manifest_of(snapshot)
    lines = lines_of(snapshot, "broker_load_data")
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
    snapshot = capture(listening_to(client, extensible, monkeypatch), root)
    lines = lines_of(snapshot, "broker_load_data")
    assert [line["document"]["topics"] for line in lines] == list(range(15, 25))


def test_what_cannot_be_decoded_is_noted_and_the_rest_kept(
    extensible: FakeCluster, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = extensible.first.id
    client = Client(
        {STATES: [(LOWER, b"not JSON"), (UPPER, {"state": "Free", "versionId": 1})], LOAD: [(first, b"[]")]}
    )
    snapshot = capture(listening_to(client, extensible, monkeypatch), root)
    assert [line["bundle"] for line in lines_of(snapshot, "service_unit_states")] == [UPPER]
    failed = {(entry["surface"], entry["broker"]) for entry in manifest_of(snapshot)["failures"]}
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
    manifest = manifest_of(capture(options, root))
    for surface in ("service_unit_states", "broker_load_data", "top_bundles"):
        assert reasons(manifest)[surface].startswith(f"{SERVICE_URL}: {message}")
    assert manifest["incomplete_brokers"] == []


def test_without_a_service_url_nothing_is_wrong(extensible: FakeCluster, root: Root) -> None:
    manifest = manifest_of(capture(extensible.options(), root))
    for surface in ("service_unit_states", "broker_load_data", "top_bundles"):
        assert reasons(manifest)[surface] == "not available without a service URL"


def test_other_load_managers_have_no_such_topics_and_none_is_made(
    cluster: FakeCluster, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client({})
    capture(listening_to(client, cluster, monkeypatch), root)
    assert client.opened == {}


def test_a_channel_in_the_metadata_store_is_read_there(
    extensible: FakeCluster, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    extensible.configure_all(
        loadManagerClassName=EXTENSIBLE, loadManagerServiceUnitStateTableViewClassName=METADATA_STORE
    )
    nodes = {
        f"/loadbalance/brokers/{extensible.first.id}": b"{}",
        f"/service_unit_state/{LOWER}": b'{"state": "Owned", "dstBroker": "a:1", "versionId": 2}',
    }
    client = Client({})
    with_topics = listening_to(client, extensible, monkeypatch)
    options = with_zookeeper(extensible, nodes, monkeypatch).model_copy(
        update={"service_url": with_topics.service_url, "listen_s": 1}
    )
    snapshot = capture(options, root)
    assert lines_of(snapshot, "service_unit_states") == [
        {
            "source": "zookeeper",
            "bundle": LOWER,
            "document": {"state": "Owned", "dstBroker": "a:1", "versionId": 2},
        }
    ]
    assert client.opened.keys() == {LOAD, TOP}

    without = manifest_of(capture(extensible.options(), root))
    assert "no metadata store was given" in reasons(without)["service_unit_states"]


def test_the_client_carries_the_credentials_and_the_trust_of_the_admin_connection(
    extensible: FakeCluster, root: Root, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    authority, token = tmp_path / "ca.pem", tmp_path / "token"
    authority.write_text("")
    token.write_text("first\n")
    client = Client({})
    capture(listening_to(client, extensible, monkeypatch, token_file=token, tls_ca_file=authority), root)
    assert client.options["tls_trust_certs_file_path"] == str(authority)
    assert client.options["tls_validate_hostname"] is True
    assert isinstance(client.options["authentication"], pulsar.AuthenticationToken)
