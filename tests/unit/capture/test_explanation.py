"""What `capture --explain` lists is what a capture asks: no call more, none less."""

from __future__ import annotations

import re

import pytest

from captures import capture
from pulsar_advisor.admin.connection import AdminConnection
from pulsar_advisor.admin.options import CaptureOptions
from pulsar_advisor.admin.zookeeper import ZooKeeperConnection
from pulsar_advisor.capture.explanation import explained
from pulsar_advisor.storage.root import Root
from unit.admin.fake_zookeeper import FakeKazoo, read_by_captures
from unit.capture.recorded_cluster import Planting, recorded_cluster
from unit.capture.recorded_store import RecordedStore

CHANNEL_IN_METADATA_STORE = "getChildren, getData /service_unit_state/**"
OF_LATER_RELEASES = {
    "GET /admin/v2/metadata/migration/status",
    "GET /admin/v2/scalable/{tenant}/{namespace}",
    "GET /admin/v2/scalable/{tenant}/{namespace}/{topic}",
}
"""Not asked of the recorded clusters."""


def asked_in_captures(root: Root, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Every request to the recorded clusters, one of each load manager, when they are captured."""
    asked: set[str] = set()
    for load_manager in ("modular", "simple", "extensible"):
        with recorded_cluster(load_manager, Planting("secret")) as cluster:
            kazoo = FakeKazoo(cluster.nodes)
            kazoo.get_children_async("/loadbalance")
            read_by_captures(kazoo, monkeypatch)
            urls = tuple(f"http://{broker}" for broker in cluster.brokers)
            capture(
                CaptureOptions(admin=AdminConnection(admin_urls=urls), zookeeper=ZooKeeperConnection(hosts="zk1:2181")),
                root,
            )
            asked |= {f"{request.method} {request.path}" for server in cluster.servers for request, _ in server.log}
            asked |= kazoo.asked
    return asked


def pattern(call: str) -> str:
    verbs, _, path = call.partition(" /")
    verb = "|".join(verbs.split(", "))
    template = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path))
    return rf"({verb}) /" + template.replace(r"/\*\*", "(/.+)?")


def test_the_explanation_is_what_is_asked(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    options = CaptureOptions(
        admin=AdminConnection(admin_urls=("http://b:8080",)), zookeeper=ZooKeeperConnection(hosts="zk1:2181")
    )
    patterns = {call.call: re.compile(pattern(call.call)) for call in explained(options)}
    asked = asked_in_captures(root, monkeypatch)
    assert {request for request in asked if not any(known.fullmatch(request) for known in patterns.values())} == set()
    unasked = {call for call, known in patterns.items() if not any(known.fullmatch(request) for request in asked)}
    assert unasked == {CHANNEL_IN_METADATA_STORE, *OF_LATER_RELEASES}


def test_the_explanation_for_zookeeper_alone_is_what_is_asked(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    store = RecordedStore("modular", monkeypatch)
    store.captured(root)
    assert store.kazoo.asked
    calls = list(explained(CaptureOptions(zookeeper=ZooKeeperConnection(hosts="zk1:2181"))))
    patterns = [re.compile(pattern(call.call)) for call in calls]
    assert {call.target for call in calls} == {"ZooKeeper"}
    assert {
        request for request in store.kazoo.asked if not any(known.fullmatch(request) for known in patterns)
    } == set()


def test_a_configuration_store_of_its_own_is_named() -> None:
    apart = {"zookeeper": {"hosts": "zk1:2181"}, "configuration_store": {"url": "oxia://o:6648/c"}}
    calls = [
        call for call in explained(CaptureOptions.model_validate(apart)) if call.call.endswith("/admin/policies/**")
    ]
    assert [(call.target, call.call) for call in calls] == [("configuration store", "List, Read /admin/policies/**")]


def test_what_is_not_given_is_not_asked() -> None:
    admin = AdminConnection(admin_urls=("http://b:8080",))
    targets = {call.target for call in explained(CaptureOptions(admin=admin))}
    assert targets == {"any broker", "each broker", "the leader"}
    with_topics = CaptureOptions(admin=admin, service_url="pulsar://b:6650")
    assert [call.call for call in explained(with_topics) if call.target == "system topic"] == [
        "read persistent://pulsar/system/loadbalancer-service-unit-state",
        "read non-persistent://pulsar/system/loadbalancer-broker-load-data",
        "read non-persistent://pulsar/system/loadbalancer-top-bundles-load-data",
    ]


def test_a_second_pass_asks_for_load_and_topics_only() -> None:
    admin = AdminConnection(admin_urls=("http://b:8080",))
    again = [call.call for call in explained(CaptureOptions(admin=admin, second_pass=True)) if "more" in call.times]
    assert again == [f"GET /admin/v2/broker-stats/{name}" for name in ("load-report", "metrics", "topics")]


def test_nothing_but_reads_is_explained() -> None:
    options = CaptureOptions(
        admin=AdminConnection(admin_urls=("http://b:8080",)),
        zookeeper=ZooKeeperConnection(hosts="zk1:2181"),
        service_url="pulsar://b:6650",
    )
    calls = [call.call for call in explained(options)]
    assert [call for call in calls if re.search(r"/lookup/|/(partitioned-)?stats$|/health$|/internal", call)] == []
    verbs = {verb for call in explained(options) for verb in call.call.partition(" /")[0].split(", ")}
    assert {verb.partition(" ")[0] for verb in verbs} == {"GET", "getChildren", "getData", "read"}
