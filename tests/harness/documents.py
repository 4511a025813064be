"""Records what a real cluster answers a capture, byte for byte, for tests that plant things in it.

PYTHONPATH=tests python -m harness.documents tests/data/recorded
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import zstandard
from kazoo.client import KazooClient

from captures import capture
from harness.cluster import ClusterOptions, LiveCluster
from harness.configuration import LOAD_MANAGERS
from pulsar_advisor.admin.answer import Answer
from pulsar_advisor.admin.options import capture_options
from pulsar_advisor.admin.transport import AdminTransport
from pulsar_advisor.capture import capture as capturing
from pulsar_advisor.storage.root import Root
from snapshots import isolation_policy

TOPIC = "persistent://shy/data/letters"
STATISTICS_LIMIT_S = 60
LEADER_WRITES_S = 75
"""After that the leader has written its averages (`loadBalancerResourceQuotaUpdateIntervalMinutes`)."""
METADATA = ("/loadbalance", "/namespace", "/admin/local-policies", "/managed-ledgers/shy")

_TOKEN = re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]+")


def record(directory: Path) -> None:
    """Write `documents-<load manager>.json.zst` for each load manager."""
    for load_manager in LOAD_MANAGERS:
        options = ClusterOptions(load_manager=load_manager, brokers=2, token_authentication=True, cpu_sensor=False)
        with LiveCluster(options) as cluster, _traffic(cluster):
            document = {
                "brokers": cluster.broker_ids,
                "answers": list(_answers(cluster)),
                "nodes": dict(_nodes(cluster.zookeeper)),
            }
            text = json.dumps(document, indent=1).replace(str(cluster.directory), "/cluster")
        text = _TOKEN.sub("a-token", text)
        file = directory / f"documents-{load_manager}.json.zst"
        file.write_bytes(zstandard.ZstdCompressor(level=19).compress(text.encode()))
        print(f"{file}: {len(document['answers'])} answers, {len(document['nodes'])} nodes", file=sys.stderr)


def _answers(cluster: LiveCluster) -> Iterator[dict[str, Any]]:
    """Every answer to a capture: which broker gave it, to which path, with which status and body."""
    answers: dict[tuple[str, str], dict[str, Any]] = {}

    class RecordingTransport(AdminTransport):
        def get(self, path: str, **options: Any) -> Answer:
            answer = super().get(path, **options)
            broker = urlsplit(answer.url).netloc
            answers[broker, path] = {"broker": broker, "path": path, "status": answer.status, "body": answer.text}
            return answer

    original, capturing.AdminTransport = capturing.AdminTransport, RecordingTransport  # type: ignore[attr-defined]
    try:
        with tempfile.TemporaryDirectory() as root:
            assert cluster.tokens is not None
            token = Path(root, "token")
            token.write_text(cluster.tokens.super_user)
            admin = {"admin_urls": tuple(cluster.admin_urls), "token_file": token}
            capture(capture_options(admin=admin), Root(root, "recorded"))
    finally:
        capturing.AdminTransport = original  # type: ignore[attr-defined]
    yield from answers.values()


def _nodes(zookeeper: str) -> Iterator[tuple[str, str]]:
    client = KazooClient(hosts=zookeeper)
    client.start()

    def below(path: str) -> Iterator[tuple[str, str]]:
        children = client.get_children(path) if client.exists(path) else []
        if not children and client.exists(path):
            yield path, client.get(path)[0].decode("utf-8", errors="replace")
        for child in children:
            yield from below(f"{path}/{child}")

    try:
        for path in METADATA:
            yield from below(path)
    finally:
        client.stop()
        client.close()


@contextmanager
def _traffic(cluster: LiveCluster) -> Iterator[None]:
    """A producer and a consumer with something in every field that a client can fill, and policies of every kind."""
    admin = cluster.admin
    admin.write("PUT", "/tenants/shy", body={"allowedClusters": ["live"], "adminRoles": ["shy-admin"]})
    admin.write("PUT", "/namespaces/shy/data", body={"bundles": {"numBundles": 4}})
    admin.write("PUT", "/namespaces/shy/data/property/owner/somebody")
    admin.write("POST", "/namespaces/shy/data/permissions/shy-role", body=["produce", "consume"])
    admin.write("PUT", "/persistent/shy/data/parts/partitions", body=2)
    admin.write("POST", "/clusters/live/failureDomains/zone-a", body={"brokers": cluster.broker_ids[:1]})
    isolation = isolation_policy("nobody/.*", "elsewhere.*")
    admin.write("POST", "/clusters/live/namespaceIsolationPolicies/apart", body=isolation)
    assert cluster.tokens is not None
    import pulsar

    client = pulsar.Client(
        cluster.service_url,
        authentication=pulsar.AuthenticationToken(cluster.tokens.super_user),
        logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
    )
    try:
        properties = {"team": "letters"}
        consumer = client.subscribe(TOPIC, "reader", consumer_name="a-consumer", properties=properties)
        producer = client.create_producer(TOPIC, producer_name="a-producer", properties=properties)
        for _ in range(100):
            producer.send(b"letter")
            consumer.acknowledge(consumer.receive(10_000))
        deadline = time.monotonic() + STATISTICS_LIMIT_S
        while not any("a-producer" in str(admin.topics(url).get(TOPIC)) for url in cluster.admin_urls):
            assert time.monotonic() < deadline, "the brokers' statistics never showed the producer"
            time.sleep(0.5)
        time.sleep(LEADER_WRITES_S)
        yield
    finally:
        client.close()


if __name__ == "__main__":
    record(Path(sys.argv[1]))
