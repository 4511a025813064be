"""A capture of real brokers holds what they say, keeps no secret, and leaves no trace on them."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from captures import Captured, capture, everything_in
from harness.cluster import ClusterOptions, LiveCluster
from live.starting import StartCluster
from pulsar_advisor.admin.options import CaptureOptions, capture_options
from pulsar_advisor.capture.raw_files import read_lines
from pulsar_advisor.model.errors import ClusterUnreachable
from pulsar_advisor.storage.files import sha256_hex
from pulsar_advisor.storage.root import Root

pytestmark = pytest.mark.live

NAMESPACE = "shy/data"
TOPIC = f"persistent://{NAMESPACE}/letters"
IDLE_NAMESPACE = "shy/idle"
"""Its bundles are unowned: a broker that comes to own one loads every persistent topic in it."""
IDLE_TOPIC = f"persistent://{IDLE_NAMESPACE}/never-used"
SECRET = "planted-secret-7f3a"
STATISTICS_LIMIT_S = 60
BUNDLE = re.compile(r"\S+/0x[0-9a-f]{8}_0x[0-9a-f]{8}")

KEYS = {
    "brokers": {"broker", "webServiceUrl", "version", "leader", "available", "clockAheadMs"},
    "settings": {"origin", "broker", "values"},
    "load_reports": {"source", "broker", "readAt", "document"},
    "topic_stats": {"broker", "namespace", "range", "domain", "topic", "stats"},
    "owned_bundles": {"source", "broker", "bundle", "isActive", "acquiredAt", "readAt", "pass"},
    "tenants": {"tenant"},
    "namespaces": {"namespace", "antiAffinityGroup", "document"},
    "local_policies": {"namespace", "version", "document"},
    "isolation_policies": {"name", "document"},
    "failure_domains": {"domain", "brokers"},
    "topic_names": {"source", "namespace", "domain", "topic"},
    "partitioned_topics": {"namespace", "domain", "topic", "partitions"},
    "segments": {"source", "namespace", "scalableTopic", "topic", "document"},
    "bundle_data": {"bundle", "modifiedAt", "document"},
    "broker_time_averages": {"broker", "modifiedAt", "document"},
    "resource_quotas": {"bundle", "modifiedAt", "document"},
    "leader": {"source", "broker"},
}
"""Surfaces and the keys of their lines, as docs/formats.md has them."""
OF_A_NODE = {"modifiedAt", "version"}
"""Additional keys of a load report from ZooKeeper."""


def options(cluster: LiveCluster, **admin: Any) -> CaptureOptions:
    return capture_options(admin={"admin_urls": tuple(cluster.admin_urls), **admin}, zookeeper=cluster.zookeeper)


@contextmanager
def secretive_traffic(cluster: LiveCluster) -> Iterator[None]:
    """One producer and one consumer that put secrets wherever a client can, in a namespace that does too."""
    cluster.admin.write("PUT", "/tenants/shy", body={"allowedClusters": ["live"], "adminRoles": [SECRET]})
    cluster.admin.write("PUT", f"/namespaces/{NAMESPACE}", body={"bundles": {"numBundles": 4}})
    cluster.admin.write("PUT", f"/namespaces/{NAMESPACE}/property/password/{SECRET}")
    cluster.admin.write("PUT", f"/namespaces/{IDLE_NAMESPACE}", body={"bundles": {"numBundles": 4}})
    cluster.admin.write("PUT", f"/persistent/{IDLE_NAMESPACE}/never-used/partitions", body=2)
    token = cluster.tokens.super_user if cluster.tokens else None
    import pulsar

    client = pulsar.Client(
        cluster.service_url,
        authentication=pulsar.AuthenticationToken(token) if token else None,
        logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
    )
    try:
        properties = {"password": SECRET}
        consumer = client.subscribe(TOPIC, "reader", consumer_name=SECRET, properties=properties)
        producer = client.create_producer(TOPIC, producer_name=SECRET, properties=properties)
        producer.send(SECRET.encode(), properties=properties)
        consumer.acknowledge(consumer.receive(10_000))
        deadline = time.monotonic() + STATISTICS_LIMIT_S
        while not any(SECRET in str(cluster.admin.topics(url).get(TOPIC)) for url in cluster.admin_urls):
            assert time.monotonic() < deadline, "the brokers' statistics never showed the planted secret"
            time.sleep(0.5)
        yield
    finally:
        client.close()


@pytest.fixture(scope="module")
def busy_cluster(cluster: LiveCluster) -> Iterator[LiveCluster]:
    with secretive_traffic(cluster):
        yield cluster


@pytest.fixture(scope="module")
def snapshot(busy_cluster: LiveCluster, tmp_path_factory: pytest.TempPathFactory) -> Captured:
    root = Root(str(tmp_path_factory.mktemp("root")), "live")
    return Captured(root, options(busy_cluster))


def test_every_surface_is_there_in_its_documented_form(snapshot: Captured) -> None:
    assert {entry["surface"] for entry in snapshot.manifest["files"]} == KEYS.keys()
    for surface, keys in KEYS.items():
        of_a_node = OF_A_NODE if surface == "load_reports" else set()
        for line in snapshot.lines(surface):
            assert line.keys() == (keys | of_a_node if line.get("source") == "zookeeper" else keys), surface
    for entry in snapshot.manifest["files"]:
        content = (snapshot.folder / entry["path"]).read_bytes()
        rows = len(list(read_lines(content)))
        assert (entry["bytes"], entry["sha256"], entry["rows"]) == (len(content), sha256_hex(content), rows)


def test_the_snapshot_says_what_the_brokers_say(snapshot: Captured, cluster: LiveCluster) -> None:
    manifest = snapshot.manifest
    assert manifest["identity"] == {"cluster_name": "live", "broker_ids": sorted(cluster.broker_ids)}
    assert (manifest["load_manager"], manifest["pulsar_version"]) == ("modular", "4.0.8")
    assert [manifest[name] for name in ("missing", "failures", "incomplete_brokers")] == [[], [], []]
    namespaces = {line["namespace"]: line for line in snapshot.lines("namespaces")}
    boundaries = cluster.admin.read(f"/namespaces/{NAMESPACE}/bundles")["boundaries"]
    assert namespaces[NAMESPACE]["document"]["bundles"]["boundaries"] == boundaries
    topics = {line["topic"] for line in snapshot.lines("topic_names")}
    loaded = {line["topic"] for line in snapshot.lines("topic_stats")}
    idle = {f"{IDLE_TOPIC}-partition-0", f"{IDLE_TOPIC}-partition-1"}
    assert {TOPIC} | idle <= topics
    assert TOPIC in loaded
    assert not idle & loaded
    partitions = {line["topic"]: line["partitions"] for line in snapshot.lines("partitioned_topics")}
    assert partitions[IDLE_TOPIC] == 2
    (version,) = {line["version"] for line in snapshot.lines("local_policies") if line["namespace"] == NAMESPACE}
    assert version == 0


def test_brokers_and_zookeeper_name_the_same_owners(snapshot: Captured, cluster: LiveCluster) -> None:
    owned = snapshot.lines("owned_bundles")
    by_source = {
        source: {
            (line["bundle"], line["broker"]) for line in owned if (line["source"], line["pass"]) == (source, "end")
        }
        for source in ("rest", "zookeeper")
    }
    assert by_source["rest"] == by_source["zookeeper"] == set(cluster.admin.owners("live").items())
    assert [bundle for bundle, _ in by_source["rest"] if not BUNDLE.fullmatch(bundle)] == []


def test_a_bundles_statistics_are_the_sums_over_its_topics(busy_cluster: LiveCluster, tmp_path: Path) -> None:
    """One of three captures agrees: a report read while its broker updates its statistics lacks bundles.

    The broker empties them and fills them again, every 5 s here (PulsarStats.updateStats).
    """
    roots = (Root(str(tmp_path / f"root-{attempt}"), "live") for attempt in range(3))
    snapshots = (Captured(root, options(busy_cluster)) for root in roots)
    pairs = [(counted_topics(snapshot), reported_topics(snapshot)) for snapshot in snapshots]
    assert any(counted == reported for counted, reported in pairs), pairs


def reported_topics(snapshot: Captured) -> dict[str, int]:
    """Topics by bundle as the load reports count them, bundles without topics left out."""
    reports = [line["document"]["lastStats"] for line in snapshot.lines("load_reports") if line["source"] == "rest"]
    return {bundle: stats["topics"] for report in reports for bundle, stats in report.items() if stats["topics"]}


def counted_topics(snapshot: Captured) -> dict[str, int]:
    """Topics by bundle as the topics' own statistics count them."""
    return dict(Counter(f"{line['namespace']}/{line['range']}" for line in snapshot.lines("topic_stats")))


def test_no_planted_secret_is_in_the_snapshot(snapshot: Captured) -> None:
    content = everything_in(snapshot.root)
    assert TOPIC.encode() in content
    assert SECRET.encode() not in content


def test_a_capture_leaves_no_trace_on_the_brokers(busy_cluster: LiveCluster, root: Root) -> None:
    owners, writes = busy_cluster.admin.owners("live"), busy_cluster.write_requests()
    capture(options(busy_cluster), root)
    assert busy_cluster.admin.owners("live") == owners
    assert not [bundle for bundle in owners if bundle.startswith(IDLE_NAMESPACE)]
    assert busy_cluster.write_requests() == writes


@pytest.mark.full
def test_a_broker_killed_before_the_capture_costs_its_part_only(start_cluster: StartCluster, root: Root) -> None:
    cluster = start_cluster(ClusterOptions(cpu_sensor=False))
    dead = cluster.brokers[-1]
    cluster.kill_broker(dead)
    manifest = Captured(root, options(cluster)).manifest
    assert manifest["incomplete_brokers"] == [dead.broker_id]
    lost = {entry["surface"]: entry["reason"] for entry in manifest["missing"] if entry["broker"] == dead.broker_id}
    assert lost.keys() == {"owned_bundles", "settings", "brokers", "load_reports", "topic_stats"}
    assert [reason for reason in lost.values() if "connection refused" not in reason] == []
    assert manifest["pulsar_versions"].keys() == {broker.broker_id for broker in cluster.brokers[:-1]}


@pytest.mark.full
def test_a_secured_cluster_lets_a_super_user_in_and_its_token_stays_secret(
    start_cluster: StartCluster, root: Root, tmp_path: Path
) -> None:
    cluster = start_cluster(ClusterOptions(brokers=1, token_authentication=True, cpu_sensor=False))
    assert cluster.tokens is not None
    tokens = {"super user": cluster.tokens.super_user, "reader": cluster.tokens.reader, "rubbish": "rubbish"}
    for name, token in tokens.items():
        (tmp_path / name).write_text(token)
    with pytest.raises(ClusterUnreachable, match="credentials required: give the token file"):
        capture(options(cluster), root)
    for name, message in {"rubbish": "credentials rejected", "reader": "the role lacks permission"}.items():
        with pytest.raises(ClusterUnreachable, match=message):
            capture(options(cluster, token_file=tmp_path / name), root)
    assert not Path(root.url).exists()

    with secretive_traffic(cluster):
        taken = Captured(root, options(cluster, token_file=tmp_path / "super user"))
    settings = cluster.admin.read("/brokers/configuration/runtime")
    assert cluster.tokens.super_user in settings["brokerClientAuthenticationParameters"]
    content = everything_in(taken.root)
    assert taken.manifest["missing"] == []
    for secret in (cluster.tokens.super_user, cluster.tokens.super_user.rpartition(".")[2], SECRET):
        assert secret.encode() not in content
