"""Cluster states for tests, written in a few words per broker and bundle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pulsar_advisor.model.cluster.bundle_range import parse_range, topic_hash
from pulsar_advisor.model.cluster.cluster_state import (
    AVERAGES_ORIGINS,
    NO_ROW,
    RESOURCES,
    Brokers,
    Bundles,
    ClusterState,
    IsolationPolicy,
    LoadManagerKind,
    Namespaces,
    Segments,
    Topics,
    View,
)
from pulsar_advisor.model.cluster.inputs import Input
from pulsar_advisor.model.load.base_load import BaseLoad
from pulsar_advisor.planning.usage.forecast import Outlook

WHOLE = "0x00000000_0xffffffff"
LOWER_HALF, UPPER_HALF = HALVES = ("0x00000000_0x80000000", "0x80000000_0xffffffff")
QUARTERS = ("0x00000000_0x40000000", "0x40000000_0x80000000", "0x80000000_0xc0000000", "0xc0000000_0xffffffff")


@dataclass(frozen=True)
class BrokerRow:
    """A broker: usage and limit of the resources that matter to the test (others 0 of 100), traffic as FIGURES."""

    id: str
    cpu: tuple[float, float] = (0.0, 100.0)
    bandwidth_in: tuple[float, float] = (0.0, 100.0)
    bandwidth_out: tuple[float, float] = (0.0, 100.0)
    direct_memory: tuple[float, float] = (0.0, 100.0)
    memory: tuple[float, float] = (0.0, 100.0)
    traffic: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    topics: int = 0
    complete: bool = True
    doubtful: bool = False
    available: bool = True
    version: str = "4.0.8"


@dataclass(frozen=True)
class BundleRow:
    """A bundle: namespace, range text, owner id or None, traffic in FIGURES' order, names of its loaded topics."""

    namespace: str
    range: str
    owner: str | None
    traffic: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    topics: int = 0
    producers: int = 0
    consumers: int = 0
    in_boundaries: bool = True
    usable: bool = True
    origin: str = "bundle_data"
    last_unloaded_at_ms: int = 0
    unknown_samples: int = 0


def cluster_state(
    brokers: Sequence[BrokerRow],
    bundles: Sequence[BundleRow],
    *,
    topics: Sequence[str] = (),
    view: View = "fresh",
    load_manager: LoadManagerKind = "modular",
    pulsar_version: str = "4.0.8",
    missing: Mapping[Input, str] | None = None,
    isolation_policies: tuple[IsolationPolicy, ...] = (),
    anti_affinity_groups: Mapping[str, str] | None = None,
) -> ClusterState:
    """A state of these rows, sorted as the product sorts them; `topics` are complete names, placed by their hash."""
    brokers = sorted(brokers, key=lambda row: row.id)
    bundles = sorted(bundles, key=lambda row: (row.namespace, parse_range(row.range)))
    namespaces = sorted({row.namespace for row in bundles})
    ids = [row.id for row in brokers]
    bounds = [parse_range(row.range) for row in bundles]
    names = sorted(topics, key=lambda topic: (namespace_of(topic), topic))
    hashes = [topic_hash(topic) for topic in names]
    topic_namespaces = [namespaces.index(namespace_of(topic)) for topic in names]

    def bundle_of(position: int, namespace: int) -> int:
        for row, (lower, upper) in enumerate(bounds):
            if namespaces.index(bundles[row].namespace) == namespace and lower <= position < upper:
                return row
        return NO_ROW

    def columns(rows: Sequence[Sequence[float]], width: int) -> np.ndarray:
        return np.array(rows, dtype=np.float64).reshape(len(rows), width)

    def resources(row: BrokerRow, side: int) -> list[float]:
        known = {
            "cpu": row.cpu,
            "memory": row.memory,
            "bandwidthIn": row.bandwidth_in,
            "bandwidthOut": row.bandwidth_out,
            "directMemory": row.direct_memory,
        }
        return [known[name][side] for name in RESOURCES]

    owned = [sum(bundle.owner == row.id for bundle in bundles) for row in brokers]
    number = len(brokers)
    traffic = columns([row.traffic for row in bundles], 4)
    return ClusterState(
        cluster="test",
        cluster_name="live",
        snapshot="20261121T083000Z",
        captured_at_ms=1_795_250_000_000,
        view=view,
        pulsar_version=pulsar_version,
        load_manager=load_manager,
        leader=0 if brokers else NO_ROW,
        brokers=Brokers(
            ids=tuple(ids),
            usage=columns([resources(row, 0) for row in brokers], 5),
            limit=columns([resources(row, 1) for row in brokers], 5),
            traffic=columns([row.traffic for row in brokers], 4),
            topics=np.array([row.topics for row in brokers], dtype=np.int64),
            bundles=np.array(owned, dtype=np.int64),
            producers=np.zeros(number, dtype=np.int64),
            consumers=np.zeros(number, dtype=np.int64),
            report_updated_at_ms=np.full(number, 1_795_250_000_000, dtype=np.int64),
            started_at_ms=np.zeros(number, dtype=np.int64),
            complete=np.array([row.complete for row in brokers], dtype=np.bool_),
            doubtful=np.array([row.doubtful for row in brokers], dtype=np.bool_),
            available=np.array([row.available for row in brokers], dtype=np.bool_),
            persistent_topics_enabled=np.ones(number, dtype=np.bool_),
            non_persistent_topics_enabled=np.ones(number, dtype=np.bool_),
            versions=tuple(row.version for row in brokers),
            load_manager_class_names=("org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl",) * number,
        ),
        namespaces=Namespaces(
            tuple(namespaces), tuple((anti_affinity_groups or {}).get(namespace) for namespace in namespaces)
        ),
        bundles=Bundles(
            namespace=np.array([namespaces.index(row.namespace) for row in bundles], dtype=np.int32),
            lower=np.array([lower for lower, _ in bounds], dtype=np.int64),
            upper=np.array([upper for _, upper in bounds], dtype=np.int64),
            owner=np.array([ids.index(row.owner) if row.owner else NO_ROW for row in bundles], dtype=np.int32),
            in_boundaries=np.array([row.in_boundaries for row in bundles], dtype=np.bool_),
            reported=np.array([row.topics > 0 for row in bundles], dtype=np.bool_),
            listed=np.array([row.owner is not None for row in bundles], dtype=np.bool_),
            usable=np.array([row.usable for row in bundles], dtype=np.bool_),
            traffic=traffic,
            topics=np.array([row.topics for row in bundles], dtype=np.int64),
            producers=np.array([row.producers for row in bundles], dtype=np.int64),
            consumers=np.array([row.consumers for row in bundles], dtype=np.int64),
            cache_size_bytes=np.zeros(len(bundles), dtype=np.int64),
            short_term=traffic.copy(),
            short_term_samples=np.ones(len(bundles), dtype=np.int64),
            long_term=traffic.copy(),
            long_term_samples=np.ones(len(bundles), dtype=np.int64),
            averages_origin=np.array([AVERAGES_ORIGINS.index(row.origin) for row in bundles], dtype=np.uint8),
            folded_samples=np.zeros(len(bundles), dtype=np.int64),
            unknown_samples=np.array([row.unknown_samples for row in bundles], dtype=np.int64),
            last_unloaded_at_ms=np.array([row.last_unloaded_at_ms for row in bundles], dtype=np.int64),
        ),
        topics=Topics(
            names=np.array(names, dtype=object),
            namespace=np.array(topic_namespaces, dtype=np.int32),
            bundle=np.array([bundle_of(*pair) for pair in zip(hashes, topic_namespaces, strict=True)], dtype=np.int32),
            hash=np.array(hashes, dtype=np.int64),
            loaded=np.ones(len(names), dtype=np.bool_),
            traffic=np.zeros((len(names), 4)),
            segments=segments_among(names),
        ),
        missing=missing or {},
        isolation_policies=isolation_policies,
        failure_domains=(None,) * number,
    )


def namespace_of(topic: str) -> str:
    """Namespace of a complete topic name."""
    domain, _, name = topic.partition("://")
    return "/".join(name.split("/")[:2]) if domain == "segment" else name.rpartition("/")[0]


def segments_among(names: Sequence[str]) -> Segments:
    """The active segments of scalable topics among these topics, whose loads no controller knows."""
    rows = [row for row, name in enumerate(names) if name.startswith("segment://")]
    topics = [f"topic://{names[row].removeprefix('segment://').rpartition('/')[0]}" for row in rows]
    found = sorted(set(topics))
    return Segments(
        row=np.array(rows, dtype=np.int64),
        scalable_topic=np.array([found.index(topic) for topic in topics], dtype=np.int32),
        names=tuple(found),
        id=np.array([int(names[row].rpartition("-")[2]) for row in rows], dtype=np.int64),
        is_active=np.ones(len(rows), dtype=np.bool_),
        is_listed=np.zeros(len(rows), dtype=np.bool_),
        controller_traffic=np.full((len(rows), 4), np.nan),
    )


def without_base(state: ClusterState) -> Outlook:
    """The loads of brokers whose whole CPU usage goes with their bundles."""
    nothing = np.zeros(len(state.brokers))
    return Outlook.of(state, BaseLoad(nothing, nothing, nothing, ("default",) * len(state.brokers)))
