"""Without the admin API a snapshot holds what brokers published, asks no broker, and says what can't be computed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from kazoo.exceptions import ConnectionLoss, NoAuthError

from captures import everything_in
from pulsar_advisor.admin.options import capture_options
from pulsar_advisor.documents.manifest import NOT_AVAILABLE
from pulsar_advisor.model.errors import ClusterUnreachable, DataNotFit, UsageError
from pulsar_advisor.storage.root import Root
from unit.admin.fake_zookeeper import Call
from unit.capture.fake_cluster import SECRET
from unit.capture.recorded_store import CONFIGURATION, NAMESPACE, RecordedStore


def test_what_brokers_published_is_there(monkeypatch: pytest.MonkeyPatch, root: Root) -> None:
    store = RecordedStore("modular", monkeypatch)
    manifest, lines = store.captured(root)
    assert manifest["identity"] == {"cluster_name": "live", "broker_ids": sorted(store.brokers)}
    assert manifest["sources"] == {"admin_urls": [], "zookeeper": True, "service_url": False}
    assert (manifest["load_manager"], manifest["pulsar_version"]) == ("modular", "4.0.8")
    assert manifest["leader"] in store.brokers
    assert {line["broker"] for line in lines["load_reports"]} == set(store.brokers)
    assert {line["pass"] for line in lines["owned_bundles"]} == {"begin", "end"}
    assert len(lines["bundle_data"]) > 0
    assert [(line["broker"], line["available"]) for line in lines["brokers"]] == [
        (b, True) for b in sorted(store.brokers)
    ]
    assert manifest["failures"] == manifest["incomplete_brokers"] == manifest["moved_bundles"] == []


def test_the_configuration_is_read_by_its_allow_list(monkeypatch: pytest.MonkeyPatch, root: Root) -> None:
    _, lines = RecordedStore("modular", monkeypatch).captured(root)
    assert lines["settings"] == [
        {"origin": "dynamic", "broker": None, "values": {"loadBalancerSheddingEnabled": "false"}}
    ]
    assert [line["name"] for line in lines["isolation_policies"]] == ["apart", "b"]
    assert lines["failure_domains"] == [{"domain": "zone-a", "brokers": ["b1:8080", "b2:8080"]}]
    assert [line["tenant"] for line in lines["tenants"]] == ["empty", "shy"]
    assert [(line["namespace"], line["document"]["bundles"]["boundaries"]) for line in lines["namespaces"]] == [
        (NAMESPACE, ["0x00000000", "0xffffffff"])
    ]
    assert lines["partitioned_topics"] == [
        {"namespace": NAMESPACE, "domain": "persistent", "topic": f"persistent://{NAMESPACE}/a/b", "partitions": 3}
    ]
    assert SECRET.encode() not in everything_in(root)


def test_the_topics_of_a_namespace_of_three_parts_are_not_available(
    monkeypatch: pytest.MonkeyPatch, root: Root
) -> None:
    node = {"/admin/policies/shy/us-east/data": "{}", "/managed-ledgers/shy/us-east/data/persistent/a": "{}"}
    manifest, _ = RecordedStore("modular", monkeypatch, **node).captured(root)
    [entry] = [entry for entry in manifest["missing"] if entry["namespace"]]
    assert (entry["surface"], entry["namespace"]) == ("topic_names", "shy/us-east/data")
    assert entry["reason"].startswith(NOT_AVAILABLE)


@pytest.mark.parametrize(
    ("load_manager", "unknown"),
    [
        ("modular", {"settings", "load_reports", "topic_stats"}),
        ("simple", {"settings", "load_reports", "topic_stats"}),
        ("extensible", {"settings", "load_reports", "topic_stats", "broker_metrics", "service_unit_states"}),
    ],
)
def test_what_only_brokers_tell_is_named_with_what_follows(
    monkeypatch: pytest.MonkeyPatch, root: Root, load_manager: str, unknown: set[str]
) -> None:
    manifest, _ = RecordedStore(load_manager, monkeypatch).captured(root)
    missing = {entry["surface"]: entry["reason"] for entry in manifest["missing"]}
    assert manifest["load_manager"] == load_manager
    assert missing.keys() == unknown
    assert {reason.partition(":")[0] for reason in missing.values()} == {
        "only brokers report it, and no admin URL was given"
    }


def test_an_ownership_channel_in_the_metadata_store_is_read(monkeypatch: pytest.MonkeyPatch, root: Root) -> None:
    record = json.dumps({"state": "Owned", "dstBroker": "b1:8080", "versionId": 1, "properties": {"password": SECRET}})
    store = RecordedStore("extensible", monkeypatch, **{"/service_unit_state/shy/data/0x00000000_0xffffffff": record})
    manifest, lines = store.captured(root)
    assert [line["bundle"] for line in lines["service_unit_states"]] == ["shy/data/0x00000000_0xffffffff"]
    assert "service_unit_states" not in {entry["surface"] for entry in manifest["missing"]}
    assert SECRET.encode() not in everything_in(root)


def test_a_store_lost_before_the_ownership_channel_costs_the_channel_only(
    monkeypatch: pytest.MonkeyPatch, root: Root
) -> None:
    store = RecordedStore("extensible", monkeypatch)
    answer = store.kazoo.get_children_async

    def lost(path: str) -> Call:
        found = answer(path)
        return replace(found, answer=ConnectionLoss()) if path == "/service_unit_state" else found

    monkeypatch.setattr(store.kazoo, "get_children_async", lost)
    manifest, _ = store.captured(root)
    (reason,) = (entry["reason"] for entry in manifest["missing"] if entry["surface"] == "service_unit_states")
    assert "reading /service_unit_state failed (ConnectionLoss)" in reason


def test_what_keeps_the_load_manager_unknown_is_named(monkeypatch: pytest.MonkeyPatch, root: Root) -> None:
    store = RecordedStore("modular", monkeypatch)
    answer, first = store.kazoo.get_async, f"/loadbalance/brokers/{min(store.brokers)}"

    def protected(path: str) -> Call:
        found = answer(path)
        return replace(found, answer=NoAuthError()) if path == first else found

    monkeypatch.setattr(store.kazoo, "get_async", protected)
    with pytest.raises(DataNotFit, match=f"no broker reports its load manager: .*no permission to read {first}"):
        store.captured(root)


@pytest.mark.parametrize("folder", ["odd", "shy/data", "shy/data/persistent"])
def test_a_folder_without_partitioned_topics_is_none(folder: str, monkeypatch: pytest.MonkeyPatch, root: Root) -> None:
    nodes = {"/admin/partitioned-topics/shy/data/persistent/a%2Fb": "", f"/admin/partitioned-topics/{folder}": "{}"}
    _, lines = RecordedStore("modular", monkeypatch, **nodes).captured(root)
    assert lines["partitioned_topics"] == []


def test_a_node_that_cannot_be_decoded_is_named(monkeypatch: pytest.MonkeyPatch, root: Root) -> None:
    manifest, _ = RecordedStore("modular", monkeypatch, **{"/admin/policies/shy/odd": "{"}).captured(root)
    (failure,) = manifest["failures"]
    assert failure["error"] == "zookeeper:/admin/policies/shy/odd: Input data was truncated"


@pytest.mark.parametrize("release", ["banana", "4" * 100_000, "4.0.8\\n"])
def test_a_node_that_names_no_release_leaves_it_unknown(
    release: str, monkeypatch: pytest.MonkeyPatch, root: Root
) -> None:
    store = RecordedStore("modular", monkeypatch)
    for path, node in store.kazoo.nodes.items():
        store.kazoo.nodes[path] = node.replace(b'"4.0.8"', f'"{release}"'.encode())
    manifest, _ = store.captured(root)
    assert (manifest["pulsar_version"], manifest["pulsar_versions"]) == (None, {})
    assert manifest["incomplete_brokers"] == sorted(store.brokers)
    assert max(len(entry["reason"]) for entry in manifest["missing"]) < 200


def test_a_configuration_kept_elsewhere_is_named(monkeypatch: pytest.MonkeyPatch, root: Root) -> None:
    elsewhere = dict.fromkeys(CONFIGURATION, "") | {"/admin/clusters/live": "{}"}
    manifest, lines = RecordedStore("modular", monkeypatch, **elsewhere).captured(root)
    assert lines["namespaces"] == []
    reasons = {entry["surface"]: entry["reason"] for entry in manifest["missing"]}
    assert reasons["namespaces"] == "the cluster's configuration is kept in another store than this one: " + (
        "give --configuration-metadata-store"
    )


def test_a_configuration_store_of_its_own_gives_the_same(monkeypatch: pytest.MonkeyPatch, root: Root) -> None:
    store = RecordedStore("modular", monkeypatch)
    together = surfaces_of_configuration(store.captured(root))
    store.part_configuration()
    assert surfaces_of_configuration(store.captured(root, configuration_store={"hosts": "zk2:2181"})) == together


def surfaces_of_configuration(captured: tuple[dict[str, Any], dict[str, list[dict[str, Any]]]]) -> dict[str, Any]:
    manifest, lines = captured
    names = ("settings", "isolation_policies", "failure_domains", "tenants", "namespaces", "partitioned_topics")
    assert all(lines[name] for name in names)
    return {name: lines[name] for name in names} | {"identity": manifest["identity"], "missing": manifest["missing"]}


@pytest.mark.parametrize(("release", "said"), [("4.0.8", False), ("4.2.4", True), ("5.0.1", True)])
def test_whether_the_store_is_migrated_is_unknown_without_brokers(
    release: str, said: bool, monkeypatch: pytest.MonkeyPatch, root: Root
) -> None:
    store = RecordedStore("modular", monkeypatch)
    for path, node in store.kazoo.nodes.items():
        store.kazoo.nodes[path] = node.replace(b'"4.0.8"', f'"{release}"'.encode())
    manifest, _ = store.captured(root)
    assert manifest["pulsar_version"] == release
    assert [entry["surface"] for entry in manifest["missing"]].count("metadata_store") == said


@pytest.mark.parametrize(
    ("clusters", "message"),
    [
        (
            {"/admin/clusters/east": "{}"},
            r"ZooKeeper has the metadata of several clusters \(east, live\): give --admin-url too, as",
        ),
        (dict.fromkeys(CONFIGURATION, ""), "ZooKeeper does not name the cluster: give --admin-url too, or"),
    ],
)
def test_a_cluster_whose_name_is_not_sure_is_refused(
    monkeypatch: pytest.MonkeyPatch, root: Root, clusters: dict[str, str], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        RecordedStore("modular", monkeypatch, **clusters).captured(root)
    assert root.snapshots() == []


def test_a_cluster_without_brokers_is_no_cluster_to_capture(monkeypatch: pytest.MonkeyPatch, root: Root) -> None:
    store = RecordedStore("modular", monkeypatch)
    for broker in store.brokers:
        del store.kazoo.nodes[f"/loadbalance/brokers/{broker}"]
    with pytest.raises(ClusterUnreachable, match="cluster 'live' has no active broker"):
        store.captured(root)


def test_options_for_zookeeper_alone() -> None:
    options = capture_options(zookeeper="zk1:2181")
    assert options.admin is None
    with pytest.raises(UsageError, match="no admin URL: give --admin-url"):
        _ = options.required_admin
    with pytest.raises(UsageError, match="no admin URL"):
        capture_options(zookeeper="zk1:2181", service_url="pulsar://b:6650")
    with pytest.raises(UsageError, match="no admin URL"):
        capture_options(zookeeper="zk1:2181", admin={"token_env": "OUR_TOKEN"})
