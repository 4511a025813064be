"""A seeded, skewed and steady load with the real client: which topics at which rate, on which broker.

With three brokers the first is hot (about 800 of 1,300 messages per second), by several bundles of which one is over
the harness's split threshold (`loadBalancerNamespaceBundleMaxMsgRate`) with topics in both halves of its range. The
bundle that moves most bytes is another one, so that a cluster at these figures has one bundle to unload and one to
split.
"""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness import children
from harness.admin_api import AdminApi
from harness.cluster import LiveCluster
from harness.configuration import CLUSTER_NAME

SUBSCRIPTION = "harness"
DEFAULT_SEED = 1
STEADY = "load is steady"
"""The line of the generator's output that tells that everything is connected and placed."""

TICK_S = 0.1
PLACEMENT_LIMIT_S = 60
STEADY_LIMIT_S = 120

_NAMESPACES = {
    "retail/orders": 4,
    "retail/payments": 4,
    "telemetry/devices": 4,
    "telemetry/alerts": 2,
    "telemetry/archive": 4,  # stays empty
}


@dataclass(frozen=True, slots=True)
class TopicLoad:
    """What is published to one topic (all its partitions together) and consumed from it once."""

    name: str
    partitions: int
    messages_per_s: float
    message_bytes: int


@dataclass(frozen=True, slots=True)
class Workload:
    """Namespaces with their number of bundles, topics, and the broker (by position) where each bundle belongs."""

    namespaces: dict[str, int]
    topics: list[TopicLoad]
    brokers: dict[str, int]

    def topic_inside(self, bundle: str) -> str:
        """The first topic of a bundle (`tenant/namespace/0x…_0x…`)."""
        namespace, _, text = bundle.rpartition("/")
        low, high = (int(boundary, 16) for boundary in text.split("_"))
        return next(
            topic.name
            for topic in self.topics
            if f"://{namespace}/" in topic.name and not topic.partitions and low <= topic_hash(topic.name) < high
        )


def skewed_workload(seed: int = DEFAULT_SEED) -> Workload:
    """The same workload for the same seed: names (and so hashes) and rates (within 5 %) depend on it."""
    chance = random.Random(seed)
    topics: list[TopicLoad] = []
    brokers: dict[str, int] = {}

    def add(
        broker: int, namespace: str, bundle: int, base: str, halves: str, messages_per_s: float, message_bytes: int,
        domain: str = "persistent",
    ) -> None:  # fmt: skip
        """One topic per letter of `halves`: in the lower (L) or upper (U) half of this bundle's range."""
        low, high = bundle_range(bundle, _NAMESPACES[namespace])
        middle = (low + high) // 2
        brokers[f"{namespace}/0x{low:08x}_0x{high:08x}"] = broker
        for half in halves:
            wanted = range(low, middle) if half == "L" else range(middle, high)
            numbers = itertools.count(chance.randrange(100, 900))
            names = (f"{domain}://{namespace}/{base}-{number}" for number in numbers)
            name = next(name for name in names if topic_hash(name) in wanted)
            topics.append(TopicLoad(name, 0, messages_per_s * chance.uniform(0.95, 1.05), message_bytes))

    # Broker 0 is hot.
    add(0, "retail/orders", 0, "checkout", "LLUU", 110, 128)  # over the split threshold, even halves under it
    add(0, "retail/payments", 1, "settlement", "LU", 100, 1024)  # moves the most bytes
    add(0, "retail/orders", 1, "refund", "LU", 30, 256)
    add(0, "retail/payments", 2, "audit", "L", 50, 256)
    add(0, "telemetry/devices", 0, "engine", "U", 50, 128)
    # Broker 1.
    add(1, "retail/orders", 2, "shipment", "LUU", 30, 256)
    add(1, "telemetry/devices", 1, "position", "LU", 40, 128)
    add(1, "retail/payments", 0, "ledger", "LL", 30, 256)
    add(1, "telemetry/alerts", 0, "door", "L", 40, 128, domain="non-persistent")
    # Broker 2 is cold.
    add(2, "retail/orders", 3, "invoice", "LU", 20, 256)
    add(2, "telemetry/devices", 2, "vitals", "LU", 30, 128)
    add(2, "retail/payments", 3, "dispute", "U", 15, 256)
    add(2, "telemetry/devices", 3, "firmware", "L", 2, 512)
    add(2, "telemetry/alerts", 1, "fire", "U", 1, 128)
    # Partitions lie where their hashes fall.
    topics.append(TopicLoad("persistent://telemetry/devices/readings", 8, 40, 128))
    topics.append(TopicLoad("persistent://retail/orders/events", 6, 18, 256))
    return Workload(dict(_NAMESPACES), topics, brokers)


def topic_hash(topic: str) -> int:
    """Where a topic lies in its namespace's ring: CRC-32 of its full name (NamespaceBundleFactory)."""
    return zlib.crc32(topic.encode())


def bundle_range(index: int, bundles: int) -> tuple[int, int]:
    """The range of bundle `index` of a namespace created with so many bundles (a power of two)."""
    width = (1 << 32) // bundles
    return index * width, min((index + 1) * width, 0xFFFFFFFF)


def create(workload: Workload, admin: AdminApi) -> None:
    """Create tenants, namespaces and topics; those that exist stay."""
    for tenant in sorted({namespace.split("/")[0] for namespace in workload.namespaces}):
        admin.write("PUT", f"/tenants/{tenant}", body={"allowedClusters": [CLUSTER_NAME], "adminRoles": []})
    for namespace, bundles in workload.namespaces.items():
        admin.write("PUT", f"/namespaces/{namespace}", body={"bundles": {"numBundles": bundles}})
    for topic in workload.topics:
        if topic.partitions:
            admin.write("PUT", f"/{topic.name.replace('://', '/')}/partitions", body=topic.partitions)


def place(workload: Workload, admin: AdminApi) -> list[str]:
    """Bring each bundle to its broker; those that would not go within the time limit.

    By unloading with a destination, again and again: the destination is a wish under the Modular load manager, and
    nothing at all under the Simple one. Where no client is connected yet, the one look-up made here uses the wish;
    reconnecting clients look up in parallel, and one that lost the wish may win the bundle.
    """
    wanted = {bundle: admin.broker_ids[broker % len(admin.urls)] for bundle, broker in workload.brokers.items()}
    inside = {bundle: workload.topic_inside(bundle) for bundle in wanted}
    for topic in inside.values():
        admin.look_up(topic)
    deadline = time.monotonic() + PLACEMENT_LIMIT_S
    while True:
        owners = admin.owners(CLUSTER_NAME)
        misplaced = [bundle for bundle, broker_id in wanted.items() if owners.get(bundle) != broker_id]
        if not misplaced or time.monotonic() > deadline:
            return misplaced
        for bundle in misplaced:
            admin.write("PUT", f"/namespaces/{bundle}/unload", params={"destinationBroker": wanted[bundle]})
            # At once: a wish that no look-up has used yet also steers the same range of other namespaces.
            admin.look_up(inside[bundle])


def generate(admin: AdminApi, service_url: str, *, seed: int, placed: bool) -> None:
    """Create the workload, connect, place it if asked to, then hold its rates until this process is ended."""
    import pulsar

    workload = skewed_workload(seed)
    create(workload, admin)
    misplaced = place(workload, admin) if placed else []
    client = pulsar.Client(
        service_url,
        authentication=pulsar.AuthenticationToken(admin.token) if admin.token else None,
        logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Warn),
    )
    for topic in workload.topics:
        client.subscribe(
            topic.name,
            SUBSCRIPTION,
            consumer_type=pulsar.ConsumerType.Shared,
            message_listener=lambda consumer, message: consumer.acknowledge(message),
        )
    # A queue that is full while a bundle moves drops messages there, and holds up no other topic.
    producers = [
        client.create_producer(topic.name, batching_enabled=True, block_if_queue_full=False)
        for topic in workload.topics
    ]
    total = sum(topic.messages_per_s for topic in workload.topics)
    elsewhere = f"; not on their broker: {', '.join(misplaced)}" if misplaced else ""
    print(f"{STEADY}: {total:.0f} messages/s to {len(workload.topics)} topics{elsewhere}", flush=True)

    payloads = [random.Random(seed).randbytes(topic.message_bytes) for topic in workload.topics]
    owed = [0.0] * len(producers)
    last = time.monotonic()
    while True:
        time.sleep(TICK_S)
        now = time.monotonic()
        for index, (topic, producer) in enumerate(zip(workload.topics, producers, strict=True)):
            # After a pause of the machine, at most one second is caught up.
            owed[index] = min(owed[index] + topic.messages_per_s * (now - last), topic.messages_per_s + 1)
            while owed[index] >= 1:
                owed[index] -= 1
                producer.send_async(payloads[index], _ignore_result)
        last = now


class LoadDidNotStart(Exception):
    """The generator ended or wasn't connected in time. Says what it printed."""


def generator_arguments(
    admin_urls: list[str], service_url: str, *, token_file: str | Path | None, seed: int, placed: bool
) -> list[str]:
    """The arguments of `python -m harness` that run the load in the foreground."""
    arguments = ["generate", "--service-url", service_url, "--seed", str(seed)]
    for url in admin_urls:
        arguments += ["--admin-url", url]
    if token_file:
        arguments += ["--token-file", str(token_file)]
    return [*arguments, "--place"] if placed else arguments


def wait_until_steady(generator: subprocess.Popen[bytes], log: Path) -> str:
    """What the generator says about the load once it is steady.

    Raises:
        LoadDidNotStart: it ended, or did not get there within the limit.
    """
    deadline = time.monotonic() + STEADY_LIMIT_S
    while STEADY not in (printed := log.read_text(encoding="utf-8")):
        if generator.poll() is not None or time.monotonic() > deadline:
            raise LoadDidNotStart(f"The load did not get steady; its output {log} is:\n{printed}")
        time.sleep(TICK_S)
    return next(line for line in printed.splitlines() if line.startswith(STEADY))


@contextmanager
def running_load(cluster: LiveCluster, seed: int = DEFAULT_SEED) -> Iterator[Workload]:
    """The load on this cluster, steady, from a process of its own that ends with the block.

    Raises:
        LoadDidNotStart: it ended, or wasn't steady within `STEADY_LIMIT_S`.
    """
    token_file = None
    if cluster.tokens:
        token_file = cluster.directory / "load.token"
        token_file.write_text(cluster.tokens.super_user, encoding="utf-8")
    arguments = generator_arguments(
        cluster.admin_urls,
        cluster.service_url,
        token_file=token_file,
        seed=seed,
        placed=cluster.options.load_manager != "simple",
    )
    log = cluster.directory / "load.log"
    generator = children.start([sys.executable, "-m", "harness", *arguments], log)
    try:
        wait_until_steady(generator, log)
        yield skewed_workload(seed)
    finally:
        children.kill(generator)


def _ignore_result(_result: object, _message_id: object) -> None:
    pass
