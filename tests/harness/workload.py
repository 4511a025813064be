"""A seeded, skewed workload: which topics at which rate, on which broker.

With three brokers the first is hot (almost two thirds of 1,250 messages per second), by several bundles of which one
is over the harness's split threshold (`loadBalancerNamespaceBundleMaxMsgRate`) with topics in both halves of its
range. The bundle that moves most bytes is another one, so that a cluster at these figures has one bundle to unload and
one to split.
"""

from __future__ import annotations

import itertools
import random
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

DEFAULT_SEED = 1
SHIFT_SIGMA = 1.0
"""How much a shift changes single rates: the standard deviation of their factors' logarithm."""
LARGEST_SHARE = 0.2
"""Of all messages, the most that a shift gives to one topic: no broker is hot because of one topic alone."""

DIVIDED = 32
"""`defaultNumberOfNamespaceBundles` of 5.0."""

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

    @property
    def messages_per_s(self) -> float:
        """What is published to all topics together."""
        return sum(topic.messages_per_s for topic in self.topics)

    def topic_inside(self, bundle: str) -> str:
        """The first topic of a bundle (`tenant/namespace/0x…_0x…`)."""
        namespace = bundle.rpartition("/")[0]
        return next(
            topic.name
            for topic in self.topics
            if f"://{namespace}/" in topic.name and not topic.partitions and _is_inside(topic.name, bundle)
        )

    @property
    def placement_order(self) -> list[str]:
        """The bundles to place, those with their namespace's topic policies (`__change_events`) first.

        The first bundle of a namespace that a broker acquires makes it look up that topic, which assigns its bundle.
        """
        events = {namespace: f"persistent://{namespace}/__change_events" for namespace in self.namespaces}
        return sorted(self.brokers, key=lambda bundle: not _is_inside(events[bundle.rpartition("/")[0]], bundle))


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


def crowded_workload(seed: int = DEFAULT_SEED) -> Workload:
    """The same load with every bundle on the first broker, as after a rolling restart: at 140 % of its CPU."""
    workload = skewed_workload(seed)
    return replace(workload, brokers=dict.fromkeys(workload.brokers, 0))


def divided_workload(seed: int = DEFAULT_SEED) -> Workload:
    """The same load in namespaces of 32 bundles, as 5.0 makes them; the topics of a bundle stay on their broker."""
    workload = skewed_workload(seed)
    brokers = {
        _bundle_of(topic.name, DIVIDED): workload.brokers[_bundle_of(topic.name, _NAMESPACES[_namespace(topic.name)])]
        for topic in workload.topics
        if not topic.partitions
    }
    return replace(workload, namespaces=dict.fromkeys(_NAMESPACES, DIVIDED), brokers=brokers)


def gentle_workload(seed: int = DEFAULT_SEED) -> Workload:
    """The same topics where they belong, at a quarter of their rates: two brokers have room for it."""
    workload = skewed_workload(seed)
    return replace(
        workload, topics=[replace(topic, messages_per_s=topic.messages_per_s / 4) for topic in workload.topics]
    )


def hot_topic_workload(seed: int = DEFAULT_SEED) -> Workload:
    """One topic with most of a cluster's traffic, and a quiet one in its bundle, on the second broker."""
    namespace, (low, high) = "games/scores", bundle_range(0, 4)
    names = (f"persistent://{namespace}/live-{number}" for number in itertools.count(100 * seed))
    hot, quiet = itertools.islice((name for name in names if low <= topic_hash(name) < high), 2)
    topics = [TopicLoad(hot, 0, 750, 128), TopicLoad(quiet, 0, 2, 128)]
    return Workload({namespace: 4}, topics, {f"{namespace}/0x{low:08x}_0x{high:08x}": 1})


WORKLOADS: Final[Mapping[str, Callable[[int], Workload]]] = {
    "skewed": skewed_workload,
    "crowded": crowded_workload,
    "divided": divided_workload,
    "gentle": gentle_workload,
    "hot-topic": hot_topic_workload,
}
"""By name; each is made of a seed."""


def shifted(workload: Workload, seed: int, shift: int) -> Workload:
    """The same topics and the same total at other rates, drawn anew for every shift; 0 is the workload itself."""
    if shift == 0:
        return workload
    chance = random.Random(f"{seed}/{shift}")
    rates = [topic.messages_per_s * chance.lognormvariate(0, SHIFT_SIGMA) for topic in workload.topics]
    capped = [min(rate, LARGEST_SHARE * sum(rates)) for rate in rates]
    scale = workload.messages_per_s / sum(capped)
    topics = [replace(topic, messages_per_s=rate * scale) for topic, rate in zip(workload.topics, capped, strict=True)]
    return replace(workload, topics=topics)


def topic_hash(topic: str) -> int:
    """Where a topic lies in its namespace's ring: CRC-32 of its full name (NamespaceBundleFactory)."""
    return zlib.crc32(topic.encode())


def _is_inside(topic: str, bundle: str) -> bool:
    low, high = (int(boundary, 16) for boundary in bundle.rpartition("/")[2].split("_"))
    return low <= topic_hash(topic) < high


def _namespace(topic: str) -> str:
    return topic.partition("://")[2].rpartition("/")[0]


def _bundle_of(topic: str, bundles: int) -> str:
    """The bundle with this topic, in a namespace created with this many."""
    low, high = bundle_range(topic_hash(topic) * bundles >> 32, bundles)
    return f"{_namespace(topic)}/0x{low:08x}_0x{high:08x}"


def bundle_range(index: int, bundles: int) -> tuple[int, int]:
    """The range of bundle `index` of a namespace created with this many bundles (a power of two)."""
    width = (1 << 32) // bundles
    return index * width, min((index + 1) * width, 0xFFFFFFFF)
