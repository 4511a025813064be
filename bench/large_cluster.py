"""A synthetic cluster of any size that answers the admin API's reads over loopback HTTP: `large_cluster.py BROKERS …`.

Documents have the shape of a real Modular 4.0 broker's (936 bytes per topic, one producer, one consumer). A few
templates are created once, with random figures; each broker serves one of them with its number filled in, so that names
are unique and neither disk nor memory fills up. They are sent in chunks of about 32 KiB, as Jetty does. Each broker has
a separate port, and owns all bundles of one namespace.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

CLUSTER = "large"
MANAGER = "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"
TEMPLATES = 8
CHUNK_BYTES = 32 * 1024
NUMBER = "@@@@@"
"""Placeholder for a broker's number in a template."""


@dataclass(frozen=True)
class LargeCluster:
    """Sizes of the whole cluster."""

    brokers: int
    bundles: int
    topics: int

    @property
    def namespace(self) -> str:
        return f"bench/namespace-{NUMBER}"

    @property
    def ranges(self) -> list[str]:
        """Ranges of one namespace, hence the bundles of one broker."""
        bounds = self.boundaries
        return [f"{lower}_{upper}" for lower, upper in itertools.pairwise(bounds)]

    @property
    def boundaries(self) -> list[str]:
        count = self.bundles // self.brokers
        return [f"0x{min(2**32 * index // count, 2**32 - 1):08x}" for index in range(count + 1)]

    def topic_names(self) -> list[str]:
        """Topics of one namespace."""
        return [f"persistent://{self.namespace}/orders-{index:08d}" for index in range(self.topics // self.brokers)]

    def topics_document(self, seed: int) -> list[bytes]:
        """`broker-stats/topics` of one broker in chunks; the broker's number never crosses a chunk boundary."""
        draw = random.Random(seed)
        ranges, names = self.ranges, self.topic_names()
        chunks, parts, size = [], [f'{{"{self.namespace}":{{'], 0
        for index, bundle_range in enumerate(ranges):
            mine = names[index :: len(ranges)]
            parts.append(f'{"," if index else ""}"{bundle_range}":{{"persistent":{{')
            for position, name in enumerate(mine):
                topic = f'{"," if position else ""}"{name}":{_topic_statistics(draw)}'
                parts.append(topic)
                size += len(topic)
                if size >= CHUNK_BYTES:
                    chunks.append("".join(parts).encode())
                    parts, size = [], 0
            parts.append("}}")
        return [*chunks, ("".join(parts) + "}}").encode()]

    def load_report(self) -> dict[str, Any]:
        bundles = [f"{self.namespace}/{bundle_range}" for bundle_range in self.ranges]
        topics = self.topics // self.brokers
        stats = {
            "msgRateIn": 812.4391,
            "msgThroughputIn": 91823.1234,
            "msgRateOut": 811.9312,
            "msgThroughputOut": 90871.9712,
            "consumerCount": topics // len(bundles),
            "producerCount": topics // len(bundles),
            "topics": topics // len(bundles),
            "cacheSize": 0,
        }
        usage = {"usage": 112.5, "limit": 400.0}
        return {
            "loadReportType": "LocalBrokerData",
            "loadManagerClassName": MANAGER,
            "brokerVersionString": "4.0.8",
            "lastUpdate": 1_795_260_000_000,
            "numTopics": topics,
            "numBundles": len(bundles),
            **dict.fromkeys(("cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut"), usage),
            "lastStats": dict.fromkeys(bundles, stats),
            "bundles": bundles,
        }


def _topic_statistics(draw: random.Random) -> str:
    rate, size, messages = draw.lognormvariate(1, 2), draw.uniform(100, 2000), draw.randrange(10**7)
    rate_text, throughput = f"{rate:.3f}", f"{rate * size:.3f}"
    rates_in = f'"msgRateIn":{rate_text},"msgThroughputIn":{throughput}'
    rates_out = f'"msgRateOut":{rate_text},"msgThroughputOut":{throughput}'
    port = draw.randrange(10000, 60000)
    return (
        f'{{"publishers":[{{{rates_in},"averageMsgSize":{size:.3f},"address":"/10.20.{port % 250}.17:{port}",'
        f'"producerId":{port % 97},"producerName":"orders-{messages}","connectedSince":"2026-11-20T08:12:44.123Z",'
        '"clientVersion":"Pulsar-Java-v4.0.8","metadata":{}}],"replication":{},"subscriptions":{"billing":{"consumers":['
        f'{{"address":"/10.20.{port % 251}.23:{port}","consumerName":"c{messages:x}","availablePermits":{port % 1000},'
        f'"connectedSince":"2026-11-20T08:12:44.123Z",{rates_out},"msgRateRedeliver":0.0,"unackedMessages":0,'
        '"clientVersion":"Pulsar-Java-v4.0.8","metadata":{}}],'
        f'"msgBacklog":{port % 100},"msgRateExpired":0.0,{rates_out},"msgRateRedeliver":0.0,'
        '"numberOfEntriesSinceFirstNotAckedMessage":1,"totalNonContiguousDeletedMessagesRange":0,"type":"Shared"}},'
        f'"producerCount":1,"averageMsgSize":{size:.3f},{rates_in},{rates_out},"msgInCount":{messages},'
        f'"bytesInCount":{int(messages * size)},"msgOutCount":{messages},"bytesOutCount":{int(messages * size)},'
        f'"storageSize":{int(messages * size)},"backlogSize":{port},"pendingAddEntriesCount":0}}'
    )


class _Answers:
    """Each broker's responses; `@@@@@` is replaced on sending."""

    def __init__(self, cluster: LargeCluster, brokers: list[str]) -> None:
        ids = json.dumps(brokers).encode()
        self._topics = [cluster.topics_document(seed) for seed in range(min(TEMPLATES, cluster.brokers))]
        runtime = {"clusterName": CLUSTER, "loadManagerClassName": MANAGER, "brokerClientToken": "not-to-be-kept"}
        owned = {f"{cluster.namespace}/{bundle_range}": {"is_active": True} for bundle_range in cluster.ranges}
        namespaces = [cluster.namespace.replace(NUMBER, f"{index:05d}") for index in range(cluster.brokers)]
        policies = {"bundles": {"boundaries": cluster.boundaries, "numBundles": len(cluster.ranges)}, "deleted": False}
        self._fixed = {
            "/brokers/configuration/runtime": json.dumps(runtime).encode(),
            "/brokers/configuration/values": b"{}",
            "/brokers/version": b"4.0.8",
            f"/brokers/{CLUSTER}": ids,
            "/brokers/leaderBroker": json.dumps({"brokerId": brokers[0]}).encode(),
            f"/clusters/{CLUSTER}/namespaceIsolationPolicies": b"{}",
            f"/clusters/{CLUSTER}/failureDomains": b"{}",
            "/tenants": b'["bench"]',
            "/namespaces/bench": json.dumps(namespaces).encode(),
        }
        self._of_broker = {
            "/broker-stats/load-report": json.dumps(cluster.load_report()).encode(),
            "ownedNamespaces": json.dumps(owned).encode(),
        }
        self._of_namespace = {
            "/namespaces": json.dumps(policies).encode(),
            "/persistent": json.dumps(cluster.topic_names()).encode(),
        }

    def answer(self, broker: int, path: str) -> list[bytes]:
        """The chunks of one response."""
        path = path.removeprefix("/admin/v2")
        if path in self._fixed:
            return [self._fixed[path]]
        number = f"{broker:05d}".encode()
        if path == "/broker-stats/topics":
            return [chunk.replace(NUMBER.encode(), number) for chunk in self._topics[broker % len(self._topics)]]
        key = "ownedNamespaces" if path.endswith("/ownedNamespaces") else path
        if key in self._of_broker:
            return [self._of_broker[key].replace(NUMBER.encode(), number)]
        if path.endswith("/partitioned"):
            return [b"[]"]
        if path.endswith("/antiAffinity"):
            return []
        surface, _, namespace = path[1:].partition("/")
        return [self._of_namespace[f"/{surface}"].replace(NUMBER.encode(), namespace[-len(NUMBER) :].encode())]


async def _serve(cluster: LargeCluster) -> None:
    sockets = []
    for _ in range(cluster.brokers):
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        sockets.append(listener)
    brokers = [f"127.0.0.1:{listener.getsockname()[1]}" for listener in sockets]
    answers = _Answers(cluster, brokers)

    def handler(broker: int) -> Any:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                while request := await reader.readuntil(b"\r\n\r\n"):
                    path = request.split(b" ", 2)[1].decode().partition("?")[0]
                    chunks = answers.answer(broker, path)
                    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
                    framed = [b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks]
                    writer.write(head)
                    for chunk in (*framed, b"0\r\n\r\n"):
                        writer.write(chunk)
                        await writer.drain()
            except (asyncio.IncompleteReadError, ConnectionError):
                pass
            finally:
                writer.close()

        return handle

    for broker, listener in enumerate(sockets):
        await asyncio.start_server(handler(broker), sock=listener)
    print(brokers[0], flush=True)
    await asyncio.Event().wait()


@contextmanager
def served(cluster: LargeCluster) -> Iterator[str]:
    """The address of the first broker of such a cluster, which runs in a separate process within the block."""
    command = [sys.executable, __file__, str(cluster.brokers), str(cluster.bundles), str(cluster.topics)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


if __name__ == "__main__":
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(_serve(LargeCluster(*map(int, sys.argv[1:4]))))
