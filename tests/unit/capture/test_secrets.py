"""No secret reaches the disk: neither what the cluster shows of others, nor the credentials it is given."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from werkzeug import Response

from captures import capture, everything_in, manifest_of
from pulsar_advisor.admin.connection import AdminConnection
from pulsar_advisor.admin.options import CaptureOptions
from pulsar_advisor.admin.zookeeper import ZooKeeperConnection
from pulsar_advisor.storage.root import Root
from unit.admin.fake_zookeeper import FakeKazoo, read_by_captures
from unit.capture.fake_cluster import FakeCluster
from unit.capture.recorded_cluster import Planting, RecordedCluster, recorded_cluster

SECRET = "planted-secret-7f3a"


@pytest.fixture
def planting() -> Planting:
    return Planting(SECRET)


@pytest.fixture(params=["modular", "simple", "extensible"])
def cluster_of_secrets(
    request: pytest.FixtureRequest, planting: Planting, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RecordedCluster]:
    """A real cluster's answers and nodes, full of secrets."""
    with recorded_cluster(request.param, planting) as cluster:
        read_by_captures(FakeKazoo(cluster.nodes), monkeypatch)
        yield cluster


def options(cluster: RecordedCluster, token_file: Path) -> CaptureOptions:
    token_file.write_text(SECRET)
    urls = tuple(f"http://{broker}" for broker in cluster.brokers)
    admin = AdminConnection(admin_urls=urls, token_file=token_file)
    return CaptureOptions(admin=admin, zookeeper=ZooKeeperConnection(hosts="zk1:2181"))


def test_no_planted_secret_is_in_a_snapshot(
    cluster_of_secrets: RecordedCluster, planting: Planting, root: Root, tmp_path: Path
) -> None:
    snapshot = capture(options(cluster_of_secrets, tmp_path / "token"), root)
    content = everything_in(root)
    found = [planting.places[int(number) - 1] for number in re.findall(rb"%b-(\d+)" % SECRET.encode(), content)]
    assert found == []
    assert SECRET.encode() not in content
    # The planted documents were asked for, decoded, and what a snapshot is for was kept.
    assert cluster_of_secrets.paths_asked == cluster_of_secrets.paths
    assert manifest_of(snapshot)["failures"] == []
    assert b'"topic":"persistent://shy/data/letters"' in content
    assert b'"consumers":[{' in content


def test_secrets_were_planted_wherever_they_stand_in_real_documents(
    cluster_of_secrets: RecordedCluster, planting: Planting
) -> None:
    places = "\n".join(planting.places)
    for place in (
        r"configuration/runtime\.brokerClientAuthenticationParameters$",
        r"topics\..*\.publishers\.address$",
        r"topics\..*\.publishers\.producerName$",
        r"topics\..*\.publishers\.metadata\.\w+$",
        r"topics\..*\.consumers\.address$",
        r"topics\..*\.consumers\.consumerName$",
        r"topics\..*\.consumers\.metadata\.\w+$",
        r"topics\..*\.clientVersion$",
        r"namespaces/shy/data\.properties\.owner$",
        r"namespaces/shy/data\.auth_policies\.namespace_auth\.shy-role$",
        r"namespaces/shy/data\.auth_policies\.namespace_auth key$",
        r"/loadbalance/brokers/\S+\.protocols key$",
        r"/admin/local-policies/\S+ key$",
    ):
        assert re.search(place, places, re.MULTILINE), place


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, json.dumps({"reason": f"{SECRET} --- stack"})),
        (401, json.dumps({"reason": f"clientAppId [{SECRET}]"})),
        (403, json.dumps({"reason": SECRET})),
        (404, json.dumps({"reason": SECRET})),
        (412, SECRET),
        (200, SECRET),
        (200, json.dumps({SECRET: SECRET})),
        (200, json.dumps([{SECRET: SECRET}])),
        (307, SECRET),
    ],
)
def test_no_secret_in_an_error_is_in_a_snapshot(cluster: FakeCluster, root: Root, status: int, body: str) -> None:
    headers = {"Location": f"http://{SECRET}@127.0.0.9:8080/{SECRET}"} if status == 307 else {}
    for path in ("/broker-stats/load-report", "/broker-stats/topics", "/brokers/configuration/values", "/tenants"):
        cluster.first.answers_by(path, lambda _: Response(body, status, headers))
    capture(cluster.options(), root)
    content = everything_in(root)
    assert b'"missing"' in content
    assert SECRET.encode() not in content
