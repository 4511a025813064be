"""Segments of scalable topics: every one is captured by name, and a namespace whose segments nobody lists is noted."""

from __future__ import annotations

import json
from typing import Any

import pytest
from werkzeug import Request, Response

from captures import capture, lines_of, manifest_of
from pulsar_advisor.storage.root import Root, Snapshot
from unit.capture.fake_cluster import SECRET, TOPIC_STATS, FakeCluster, with_zookeeper

CLICKS = "topic://retail/orders/clicks"
SEALED = {
    "segmentId": 0,
    "hashRange": {"start": 0, "end": 65535},
    "state": "SEALED",
    "parentIds": [],
    "childIds": [1, 2],
    "createdAtMs": 1_795_250_000_000,
    "sealedAtMs": 1_795_250_060_000,
    "legacyTopicName": "persistent://retail/orders/clicks",
}
LOWER_HALF = {"segmentId": 1, "hashRange": {"start": 0, "end": 32767}, "state": "ACTIVE", "parentIds": [0]}
UPPER_HALF = {"segmentId": 2, "hashRange": {"start": 32768, "end": 65535}, "state": "ACTIVE", "parentIds": [0]}
LAYOUT: dict[str, Any] = {
    "epoch": 2,
    "segments": {"0": SEALED, "1": LOWER_HALF, "2": UPPER_HALF},
    "properties": {"owner": SECRET},
}
NAMES = [
    "persistent://retail/orders/clicks",
    "segment://retail/orders/clicks/0000-7fff-1",
    "segment://retail/orders/clicks/8000-ffff-2",
]


@pytest.fixture
def release_5(cluster: FakeCluster) -> FakeCluster:
    """A cluster of 5.0 with one scalable topic, which was an ordinary topic and has been split once."""
    cluster.answers("/brokers/version", "5.0.1")
    cluster.answers("/metadata/migration/status", {"phase": "NOT_STARTED"})
    cluster.answers("/scalable/retail/orders", [CLICKS])
    cluster.answers("/scalable/retail/orders/clicks", LAYOUT)
    return cluster


def serve_a_segment(cluster: FakeCluster) -> None:
    topics = {NAMES[1]: TOPIC_STATS}
    cluster.first.answers("/broker-stats/topics", {"retail/orders": {"0x00000000_0x80000000": {"persistent": topics}}})


def gaps(snapshot: Snapshot) -> list[tuple[str | None, str]]:
    missing = manifest_of(snapshot)["missing"]
    return [(entry["namespace"], entry["reason"]) for entry in missing if entry["surface"] == "segments"]


def test_every_segment_is_captured_under_its_complete_name(release_5: FakeCluster, root: Root) -> None:
    lines = lines_of(capture(release_5.options(), root), "segments")
    assert [line["topic"] for line in lines] == NAMES
    assert {line["scalableTopic"] for line in lines} == {CLICKS}
    assert lines[0]["document"] == SEALED
    assert SECRET not in str(lines)


@pytest.mark.parametrize("of_bytes", ["bytesRate", "byteRate"], ids=["5.0.0-M1", "5.0.1"])
def test_the_metadata_store_adds_the_load_that_controllers_know(
    of_bytes: str, release_5: FakeCluster, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "/topics/retail/orders/clicks"
    layout = b'{"segments": {"1": {"segmentId": 1, "hashRange": {"start": 0, "end": 32767}, "state": "ACTIVE"}}}'
    load = {"msgRateIn": 900.5, f"{of_bytes}In": 1e6, "msgRateOut": 0.0, f"{of_bytes}Out": 0.0}
    nodes = {
        "/loadbalance/brokers/" + release_5.first.id: b"{}",
        path: layout,
        f"{path}/segments/1/load": json.dumps(load).encode(),
        f"{path}/subscriptions/billing": b"{}",
    }
    lines = lines_of(capture(with_zookeeper(release_5, nodes, monkeypatch), root), "segments")
    [stored] = [line for line in lines if line["source"] == "zookeeper"]
    assert stored["topic"] == NAMES[1]
    assert stored["load"] == {"msgRateIn": 900.5, "bytesRateIn": 1e6, "msgRateOut": 0.0, "bytesRateOut": 0.0}


@pytest.mark.parametrize(
    "layout",
    [
        b'{"segments": {"..": {"segmentId": 1, "hashRange": {"start": 0, "end": 1}}}}',
        b'{"segments": {"1": {"segmentId": -1, "hashRange": {"start": 0, "end": 1}}}}',
        b'{"segments": {"1": {"segmentId": 1, "hashRange": {"start": 0, "end": 65536}}}}',
        b'{"segments": {"1": {"segmentId": 1, "hashRange": {"start": 0, "end": 1}, '
        b'"legacyTopicName": "persistent://other/orders/clicks"}}}',
    ],
)
def test_segments_that_no_topic_can_have_are_a_failure_of_theirs_alone(
    release_5: FakeCluster, root: Root, monkeypatch: pytest.MonkeyPatch, layout: bytes
) -> None:
    nodes = {"/loadbalance/brokers/" + release_5.first.id: b"{}", "/topics/retail/orders/clicks": layout}
    release_5.answers("/scalable/retail/orders/clicks", json.loads(layout))
    snapshot = capture(with_zookeeper(release_5, nodes, monkeypatch), root)
    manifest = manifest_of(snapshot)
    assert lines_of(snapshot, "segments") == []
    failed = [entry["surface"] for entry in (*manifest["failures"], *manifest["missing"])]
    assert "segments" in failed


def test_brokers_of_earlier_releases_are_not_asked(cluster: FakeCluster, root: Root) -> None:
    manifest = manifest_of(capture(cluster.options(), root))
    asked = [path for _, path in (*cluster.first.requests, *cluster.second.requests)]
    assert not [path for path in asked if "scalable" in path]
    assert not [entry for entry in (*manifest["missing"], *manifest["files"]) if entry["surface"] == "segments"]


def test_only_the_brokers_that_have_scalable_topics_are_asked(release_5: FakeCluster, root: Root) -> None:
    release_5.first.answers("/brokers/version", "4.2.4")
    release_5.first.answers("/scalable/retail/orders", "no such resource", status=404)
    snapshot = capture(release_5.options(), root)
    assert len(lines_of(snapshot, "segments")) == len(NAMES)
    assert gaps(snapshot) == []


def test_a_namespace_that_is_deleted_meanwhile_is_not_missing(release_5: FakeCluster, root: Root) -> None:
    def deleted(_: Request) -> Response:
        release_5.first.answers("/namespaces/retail/orders", {"reason": "gone"}, status=404)
        release_5.second.answers("/namespaces/retail/orders", {"reason": "gone"}, status=404)
        return Response('{"reason": "gone"}', status=404, content_type="application/json")

    release_5.answers_by("/scalable/retail/orders", deleted)
    assert gaps(capture(release_5.options(), root)) == []


def test_brokers_that_have_no_such_list_leave_the_namespace_unlisted(release_5: FakeCluster, root: Root) -> None:
    release_5.answers("/scalable/retail/orders", "no such resource", status=404)
    [(namespace, reason)] = gaps(capture(release_5.options(), root))
    assert namespace == "retail/orders"
    assert "404" in reason


def test_a_token_that_may_not_list_them_leaves_the_namespace_unlisted(release_5: FakeCluster, root: Root) -> None:
    release_5.answers("/scalable/retail/orders", {"reason": "not allowed"}, status=403)
    [(namespace, reason)] = gaps(capture(release_5.options(), root))
    assert namespace == "retail/orders"
    assert "403" in reason


def test_a_list_with_topics_of_another_namespace_leaves_the_namespace_unlisted(
    release_5: FakeCluster, root: Root
) -> None:
    release_5.answers("/scalable/retail/orders", [CLICKS, "topic://retail/other/\u001b[2Jx"])
    [(namespace, reason)] = gaps(capture(release_5.options(), root))
    assert namespace == "retail/orders"
    assert reason == "the list has topic://retail/other/\\x1b[2Jx, which is not of this namespace"


def test_segments_that_are_loaded_and_that_no_broker_lists_are_noted(cluster: FakeCluster, root: Root) -> None:
    serve_a_segment(cluster)
    [(namespace, reason)] = gaps(capture(cluster.options(), root))
    assert namespace == "retail/orders"
    assert reason.startswith("brokers serve segments of scalable topics here, and none lists them")


def test_a_scalable_topic_that_is_deleted_meanwhile_is_not_missing(release_5: FakeCluster, root: Root) -> None:
    release_5.answers("/scalable/retail/orders/clicks", {"reason": "gone"}, status=404)
    snapshot = capture(release_5.options(), root)
    assert (lines_of(snapshot, "segments"), gaps(snapshot)) == ([], [])


def test_a_layout_that_can_not_be_decoded_is_recorded(release_5: FakeCluster, root: Root) -> None:
    release_5.answers("/scalable/retail/orders/clicks", {"segments": {"0": {"segmentId": "x"}}})
    failures = manifest_of(capture(release_5.options(), root))["failures"]
    assert [failure["surface"] for failure in failures] == ["segments"]
