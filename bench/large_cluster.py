"""A synthetic cluster of any size that answers the admin API's reads over loopback HTTP: `large_cluster.py BROKERS …`.

Documents have the shape of a real Modular 4.0 broker's (936 bytes per topic, one producer, one consumer) and agree with
each other, so that a snapshot passes the checks: topics are reported in the range of their hash, a bundle's figures are
the sums of its topics', a broker's those of its bundles. Each broker has a separate port, and owns all bundles of one
namespace; half of the brokers carry several times the traffic of the others.

A few templates are created once, with random figures; each broker serves one of them with its number filled in, so that
names are unique and neither disk nor memory fills up. The number moves every topic on the hash ring, all by the same
bits, as CRC-32 is linear: a template's topics are kept by slot, and a broker's number permutes the slots. Documents are
sent in chunks of about 32 KiB, as Jetty does.
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
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from typing import Any

CLUSTER = "large"
RELEASE = "4.0.8"
MANAGER = "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"
TEMPLATES = 8
CHUNK_BYTES = 32 * 1024
NUMBER = "@@@@@"
"""Placeholder for a broker's number in a template."""
RATES = ("msgRateIn", "msgRateOut", "msgThroughputIn", "msgThroughputOut")
CUT = 0.00037
"""What the brokers' reports have beyond the thousandths of each topic."""


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
    def slot_bits(self) -> int:
        """The ring is divided into 2^bits slots; a range covers one of them or two."""
        return (self.bundles // self.brokers - 1).bit_length()

    @property
    def slots_of_ranges(self) -> list[range]:
        """The slots of each range of one namespace, hence of each bundle of one broker."""
        ranges = self.bundles // self.brokers
        pairs = 2**self.slot_bits - ranges
        starts = [*range(0, 2 * pairs, 2), *range(2 * pairs, 2**self.slot_bits + 1)]
        return [range(start, end) for start, end in itertools.pairwise(starts)]

    @property
    def boundaries(self) -> list[str]:
        starts = [slots.start << (32 - self.slot_bits) for slots in self.slots_of_ranges]
        return [f"0x{bound:08x}" for bound in (*starts, 0xFFFFFFFF)]

    @property
    def ranges(self) -> list[str]:
        return [f"{lower}_{upper}" for lower, upper in itertools.pairwise(self.boundaries)]

    def topic_name(self, index: int) -> str:
        return f"persistent://{self.namespace}/orders-{index:08d}"

    def topic_names(self) -> list[str]:
        """Topics of one namespace."""
        return [self.topic_name(index) for index in range(self.topics // self.brokers)]

    def slot(self, topic: str) -> int:
        """The slot of a topic by its name, or by its name in the template."""
        return zlib.crc32(topic.encode()) >> (32 - self.slot_bits)

    def moved(self, number: bytes) -> int:
        """What a broker's number changes in the slot of every topic."""
        name = self.topic_name(0)
        return self.slot(name) ^ self.slot(name.replace(NUMBER, number.decode()))


@dataclass(frozen=True)
class Slot:
    """The topics of one slot of a template."""

    content: bytes
    """Their entries in `broker-stats/topics`."""
    topics: int
    thousandths: tuple[int, ...]
    """Sums of their figures in the order of `RATES`."""


def template(cluster: LargeCluster, seed: int) -> list[Slot]:
    """The topics of one namespace with random figures, by slot."""
    draw = random.Random(seed)
    scale = 1.0 if seed % 2 else 0.25
    entries: list[list[str]] = [[] for _ in range(2**cluster.slot_bits)]
    sums = [[0] * len(RATES) for _ in entries]
    for name in cluster.topic_names():
        slot = cluster.slot(name)
        statistics, figures = _topic_statistics(draw, scale)
        entries[slot].append(f'"{name}":{statistics}')
        sums[slot] = [total + round(1000 * figure) for total, figure in zip(sums[slot], figures, strict=True)]
    return [
        Slot(",".join(topics).encode(), len(topics), tuple(thousandths))
        for topics, thousandths in zip(entries, sums, strict=True)
    ]


@dataclass(frozen=True)
class Broker:
    """What one broker reports: a template's slots, permuted by its number."""

    cluster: LargeCluster
    number: bytes
    slots: list[Slot]
    greatest_rate: int
    """Messages of the busiest broker, in thousandths per second."""

    def bundles(self) -> Iterator[tuple[str, list[Slot]]]:
        """Each range with its slots."""
        moved = self.cluster.moved(self.number)
        for bundle_range, slots in zip(self.cluster.ranges, self.cluster.slots_of_ranges, strict=True):
            yield bundle_range, [self.slots[slot ^ moved] for slot in slots]

    def topics_document(self) -> Iterator[bytes]:
        """`broker-stats/topics` in parts."""
        yield f'{{"{self.cluster.namespace}":{{'.encode().replace(NUMBER.encode(), self.number)
        for index, (bundle_range, slots) in enumerate(self.bundles()):
            yield f'{"," if index else ""}"{bundle_range}":{{"persistent":{{'.encode()
            yield b",".join(slot.content.replace(NUMBER.encode(), self.number) for slot in slots if slot.topics)
            yield b"}}"
        yield b"}}"

    def load_report(self) -> bytes:
        """`broker-stats/load-report`, a few seconds old."""
        namespace = self.cluster.namespace.replace(NUMBER, self.number.decode())
        stats = {}
        for bundle_range, slots in self.bundles():
            topics = sum(slot.topics for slot in slots)
            sums = [sum(column) / 1000 for column in zip(*(slot.thousandths for slot in slots), strict=True)]
            stats[f"{namespace}/{bundle_range}"] = {
                **{name: figure + CUT * topics for name, figure in zip(RATES, sums, strict=True)},
                **dict.fromkeys(("consumerCount", "producerCount", "topics"), topics),
                "cacheSize": 0,
            }
        totals: dict[str, Any] = {name: sum(figures[name] for figures in stats.values()) for name in RATES}
        topics = sum(figures["topics"] for figures in stats.values())
        busy = 1000 * (totals["msgRateIn"] + totals["msgRateOut"]) / self.greatest_rate
        report = {
            "loadReportType": "LocalBrokerData",
            "loadManagerClassName": MANAGER,
            "brokerVersionString": RELEASE,
            "persistentTopicsEnabled": True,
            "nonPersistentTopicsEnabled": True,
            "startTimestamp": 1_795_000_000_000,
            "lastUpdate": int(time.time() * 1000) - 5_000,
            "cpu": {"usage": 40 + 280 * busy, "limit": 400.0},
            "memory": {"usage": 900.5, "limit": 4096.0},
            "directMemory": {"usage": 256.0, "limit": 8192.0},
            "bandwidthIn": {"usage": totals["msgThroughputIn"] / 125, "limit": 25e6},
            "bandwidthOut": {"usage": totals["msgThroughputOut"] / 125, "limit": 25e6},
            **totals,
            "numTopics": topics,
            "numBundles": len(stats),
            "numConsumers": topics,
            "numProducers": topics,
            "bundles": list(stats),
            "lastStats": stats,
            "lastBundleGains": [],
            "lastBundleLosses": [],
        }
        return json.dumps(report).encode()


def _topic_statistics(draw: random.Random, scale: float) -> tuple[str, tuple[float, ...]]:
    """One topic's statistics, and its figures in the order of `RATES`."""
    rate, size, messages = scale * draw.lognormvariate(1, 1.5), draw.uniform(100, 2000), draw.randrange(10**7)
    rate_text, throughput = f"{rate:.3f}", f"{rate * size:.3f}"
    rates_in = f'"msgRateIn":{rate_text},"msgThroughputIn":{throughput}'
    rates_out = f'"msgRateOut":{rate_text},"msgThroughputOut":{throughput}'
    port = draw.randrange(10000, 60000)
    text = (
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
    return text, (float(rate_text), float(rate_text), float(throughput), float(throughput))


class _Answers:
    """Each broker's responses; `@@@@@` is replaced on sending."""

    def __init__(self, cluster: LargeCluster, brokers: list[str]) -> None:
        templates = [template(cluster, seed) for seed in range(min(TEMPLATES, cluster.brokers))]
        rates = [sum(sum(slot.thousandths[:2]) for slot in slots) for slots in templates]
        self._brokers = [
            Broker(cluster, f"{number:05d}".encode(), templates[number % len(templates)], max(rates))
            for number in range(cluster.brokers)
        ]
        runtime = {**_default_settings(), "clusterName": CLUSTER, "loadManagerClassName": MANAGER}
        runtime["brokerClientToken"] = "not-to-be-kept"
        owned = {f"{cluster.namespace}/{bundle_range}": {"is_active": True} for bundle_range in cluster.ranges}
        namespaces = [cluster.namespace.replace(NUMBER, f"{index:05d}") for index in range(cluster.brokers)]
        policies = {"bundles": {"boundaries": cluster.boundaries, "numBundles": len(cluster.ranges)}, "deleted": False}
        self._fixed = {
            "/brokers/configuration/runtime": json.dumps(runtime).encode(),
            "/brokers/configuration/values": b"{}",
            "/broker-stats/metrics": b"[]",
            "/brokers/version": RELEASE.encode(),
            f"/brokers/{CLUSTER}": json.dumps(brokers).encode(),
            "/brokers/leaderBroker": json.dumps({"brokerId": brokers[0]}).encode(),
            f"/clusters/{CLUSTER}/namespaceIsolationPolicies": b"{}",
            f"/clusters/{CLUSTER}/failureDomains": b"{}",
            "/tenants": b'["bench"]',
            "/namespaces/bench": json.dumps(namespaces).encode(),
        }
        self._owned = json.dumps(owned).encode()
        self._of_namespace = {
            "/namespaces": json.dumps(policies).encode(),
            "/persistent": json.dumps(cluster.topic_names()).encode(),
        }

    def answer(self, broker: int, path: str) -> Iterator[bytes]:
        """One response in parts."""
        path = path.removeprefix("/admin/v2")
        if path in self._fixed:
            yield self._fixed[path]
        elif path == "/broker-stats/topics":
            yield from self._brokers[broker].topics_document()
        elif path == "/broker-stats/load-report":
            yield self._brokers[broker].load_report()
        elif path.endswith("/ownedNamespaces"):
            yield self._owned.replace(NUMBER.encode(), self._brokers[broker].number)
        elif path.endswith("/partitioned"):
            yield b"[]"
        elif not path.endswith("/antiAffinity"):
            surface, _, namespace = path[1:].partition("/")
            yield self._of_namespace[f"/{surface}"].replace(NUMBER.encode(), namespace[-len(NUMBER) :].encode())


def _default_settings() -> dict[str, str]:
    """The values of a broker's configuration, as it writes them."""
    text = resources.files("pulsar_advisor.model.configuration").joinpath("defaults_by_version.json").read_text()
    defaults = {key: entry["default"] for key, entry in json.loads(text)[RELEASE].items()}
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in defaults.items()}


def _in_chunks(parts: Iterator[bytes]) -> Iterator[bytes]:
    """The parts of a response as chunks of equal size."""
    rest = b""
    for part in parts:
        rest += part
        whole = len(rest) - len(rest) % CHUNK_BYTES
        yield from (rest[start : start + CHUNK_BYTES] for start in range(0, whole, CHUNK_BYTES))
        rest = rest[whole:]
    if rest:
        yield rest


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
                    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
                    writer.write(head)
                    for chunk in _in_chunks(answers.answer(broker, path)):
                        writer.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
                        await writer.drain()
                    writer.write(b"0\r\n\r\n")
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
