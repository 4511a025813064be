"""Raw snapshots made in memory for tests, written exactly as `docs/formats.md` says `capture` writes them.

    from snapshots import skewed_modular_cluster

    snapshot = skewed_modular_cluster()
    snapshot.lines["owned_bundles"].pop()          # whatever the test is about
    written = snapshot.write(Root(str(tmp_path), "test"))

The cluster is seeded and the same on every machine. Its figures agree with each other as a real cluster's do: a
bundle's are the sums over its loaded topics, a broker's the sums over its bundles, CPU follows the message rate, a
topic lies in the bundle its hash belongs to.
"""

from __future__ import annotations

import bisect
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import resources
from typing import Any

import zstandard

from pulsar_advisor.model.cluster.bundle_range import format_range, topic_hash
from pulsar_advisor.model.cluster.snapshot_id import snapshot_id
from pulsar_advisor.storage.files import sha256_hex, write_file
from pulsar_advisor.storage.root import MANIFEST, Root, Snapshot
from scalable_topics import Segment
from states import namespace_of

Line = dict[str, Any]

CLUSTER_NAME = "pulsar-test"
FULL_RANGE = "0x00000000_0xffffffff"
RATES = ("msgRateIn", "msgRateOut", "msgThroughputIn", "msgThroughputOut")


@dataclass
class RawSnapshot:
    """The lines of every surface by file name without suffix (`brokers`, `topic_stats/0`), and the manifest's head."""

    lines: dict[str, list[Line]]
    head: dict[str, Any]
    raw_text: dict[str, bytes] = field(default_factory=dict)
    """Bytes to write (before compression) in place of the lines of a surface: for lines no encoder would make."""

    @property
    def started_at(self) -> datetime:
        return datetime.fromtimestamp(self.head["started_at_ms"] / 1000, UTC)

    def broker_report(self, broker: str, source: str = "rest") -> dict[str, Any]:
        """The load report of one broker, to be changed in place."""
        return next(
            line["document"]
            for line in self.lines["load_reports"]
            if line["broker"] == broker and line["source"] == source
        )

    def write(self, root: Root) -> Snapshot:
        """Write every file, the manifest last."""
        snapshot = root.snapshot(snapshot_id(self.started_at))
        folder = snapshot.folder("raw")
        files = []
        for name, lines in sorted(self.lines.items()):
            text = self.raw_text.get(name, b"".join(_json_line(line) for line in lines))
            content = zstandard.ZstdCompressor(level=3).compress(text)
            path = f"{name}.jsonl.zst"
            write_file(folder / path, content)
            surface = name.partition("/")[0]
            files.append(
                {
                    "path": path,
                    "surface": surface,
                    "broker": lines[0]["broker"] if surface == "topic_stats" and lines else None,
                    "rows": len(text.splitlines()),
                    "bytes": len(content),
                    "sha256": sha256_hex(content),
                }
            )
        manifest = {**self.head, "cluster": root.cluster, "snapshot": snapshot.id, "files": files}
        write_file(folder / MANIFEST, json.dumps(manifest).encode())
        return snapshot


def skewed_modular_cluster(
    *,
    brokers: int = 3,
    version: str = "4.0.8",
    started_at: datetime = datetime(2026, 11, 21, 8, 30, tzinfo=UTC),
    zookeeper: bool = True,
    bundles: Mapping[str, int] | None = None,
    topics: int = 120,
    partitions: int = 16,
    segments: Sequence[Segment] = (),
    seed: int = 7,
) -> RawSnapshot:
    """A healthy Modular cluster whose first broker carries about twice its share.

    With the default arguments and Pulsar's default settings the first broker is at about 90 % CPU, above the overload
    threshold and more than ten points above the mean, and one bundle is above the split limit of 30,000 msg/s. The
    namespaces are `shop/orders` (with a partitioned topic, all loaded), `shop/payments`, `public/default` (nothing
    loaded, bundles unowned), `pulsar/system`, and each broker's heartbeat namespaces. `zookeeper=False` leaves out what
    only ZooKeeper shows. `segments` are those of scalable topics in `shop`; the active ones are loaded.
    """
    chance = random.Random(seed)
    started_at_ms = int(started_at.timestamp() * 1000)
    ids = [f"broker-{number}.pulsar.test:8080" for number in range(1, brokers + 1)]
    sizes = {"shop/orders": 8, "shop/payments": 4, "public/default": 16, "pulsar/system": 16} | dict(bundles or {})
    boundaries = {namespace: equal_boundaries(count) for namespace, count in sizes.items()}
    names = _topic_names(boundaries, topics, partitions)
    active = [segment.name for segment in segments if segment.state == "ACTIVE"]
    loaded = [*(topic for topic in names if not topic.endswith("-idle")), *active]
    stats = {topic: _topic_stats(chance, rank) for rank, topic in enumerate(loaded)}
    bundle_of = {topic: _bundle_of(topic, boundaries) for topic in (*names, *active)}
    loaded_of: dict[str, list[Line]] = {bundle: [] for bundle in sorted({bundle_of[topic] for topic in loaded})}
    for topic in loaded:
        loaded_of[bundle_of[topic]].append(stats[topic])
    figures = {bundle: _sum_of_topics(topics_of_bundle) for bundle, topics_of_bundle in loaded_of.items()}
    owners = _skewed_owners(figures, ids)
    heartbeats = {f"{prefix}/{broker}": broker for broker in ids for prefix in ("pulsar", f"pulsar/{CLUSTER_NAME}")}
    for namespace, broker in heartbeats.items():
        owners[f"{namespace}/{FULL_RANGE}"] = broker
        figures[f"{namespace}/{FULL_RANGE}"] = _sum_of_topics([])
    runtime = runtime_settings(version)
    owned = [
        {
            "source": source,
            "broker": broker,
            "bundle": bundle,
            "isActive": True,
            "acquiredAt": started_at_ms - 86_400_000 if source == "zookeeper" else None,
            "readAt": started_at_ms + at,
            "pass": when,
        }
        for source in (("rest", "zookeeper") if zookeeper else ("rest",))
        for when, at in (("begin", 200), ("end", 2_800))
        for bundle, broker in sorted(owners.items())
    ]
    lines: dict[str, list[Line]] = {
        "brokers": [
            {
                "broker": b,
                "webServiceUrl": f"http://{b}",
                "version": version,
                "leader": b == ids[0],
                "available": True,
                "clockAheadMs": 0,
            }
            for b in ids
        ],
        "settings": [
            *({"origin": "runtime", "broker": b, "values": runtime} for b in ids),
            {"origin": "dynamic", "broker": None, "values": {}},
        ],
        "load_reports": [
            {
                "source": "rest",
                "broker": b,
                "readAt": started_at_ms + 1_000,
                "document": _load_report(b, owners, figures, version, started_at_ms - 45_000, 1.0),
            }
            for b in ids
        ],
        "owned_bundles": owned,
        "tenants": [{"tenant": tenant} for tenant in ("public", "pulsar", "shop")],
        "namespaces": [
            {"namespace": namespace, "antiAffinityGroup": None, "document": _policies(edges)}
            for namespace, edges in sorted(boundaries.items())
        ],
        "isolation_policies": [],
        "failure_domains": [],
        "topic_names": [
            {"source": "rest", "namespace": namespace_of(topic), "domain": "persistent", "topic": topic}
            for topic in sorted(names)
        ],
        "partitioned_topics": [
            {
                "namespace": "shop/orders",
                "domain": "persistent",
                "topic": "persistent://shop/orders/placed",
                "partitions": partitions,
            }
        ],
        "leader": [{"source": "rest", "broker": ids[0]}],
    }
    for number, broker in enumerate(ids):
        lines[f"topic_stats/{number}"] = [
            {
                "broker": broker,
                "namespace": namespace_of(topic),
                "range": bundle_of[topic].rpartition("/")[2],
                "domain": "persistent",
                "topic": topic,
                "stats": stats[topic],
            }
            for topic in loaded
            if owners[bundle_of[topic]] == broker
        ]
    if segments:
        lines["segments"] = [segment.line for segment in segments]
    if zookeeper:
        lines["load_reports"] += [
            {
                "source": "zookeeper",
                "broker": b,
                "readAt": started_at_ms + 100,
                "document": _load_report(b, owners, figures, version, started_at_ms - 240_000, 0.97),
            }
            for b in ids
        ]
        lines["topic_names"] += [dict(line, source="zookeeper") for line in lines["topic_names"]]
        lines["leader"].append({"source": "zookeeper", "broker": ids[0]})
        lines["local_policies"] = [
            {"namespace": namespace, "version": 0, "document": {"bundles": _bundles_document(edges)}}
            for namespace, edges in sorted(boundaries.items())
        ]
        lines["bundle_data"] = [
            {
                "bundle": bundle,
                "modifiedAt": started_at_ms - 300_000,
                "document": {
                    "shortTermData": _average(figure, 10, 0.98),
                    "longTermData": _average(figure, 1000, 0.9),
                    "topics": figure["topics"],
                },
            }
            for bundle, figure in sorted(figures.items())
        ]
        lines["broker_time_averages"] = [
            {"broker": b, "modifiedAt": started_at_ms - 300_000, "document": _time_average(b, owners, figures)}
            for b in ids
        ]
    head = {
        "schema": "pulsar-advisor/raw-snapshot/1",
        "tool_version": "0.1.0",
        "started_at_ms": started_at_ms,
        "finished_at_ms": started_at_ms + 3_000,
        "identity": {"cluster_name": CLUSTER_NAME, "broker_ids": ids},
        "load_manager": "modular",
        "load_managers": dict.fromkeys(ids, "modular"),
        "pulsar_version": version,
        "pulsar_versions": dict.fromkeys(ids, version),
        "leader": ids[0],
        "sources": {"admin_urls": [f"http://{ids[0]}"], "zookeeper": zookeeper},
        "reads": [],
        "failures": [],
        "missing": [],
        "incomplete_brokers": [],
        "moved_bundles": [],
        "skew_ms": 2_900,
    }
    return RawSnapshot(lines, head)


def isolation_policy(namespaces: str, *primaries: str, min_limit: int = 1, usage_threshold: int = 80) -> Line:
    """The document of an isolation policy, as the admin API takes and gives it."""
    return {
        "namespaces": [namespaces],
        "primary": list(primaries),
        "secondary": [],
        "auto_failover_policy": {
            "policy_type": "min_available",
            "parameters": {"min_limit": str(min_limit), "usage_threshold": str(usage_threshold)},
        },
    }


def equal_boundaries(count: int) -> list[int]:
    """Boundaries of a new namespace with `count` bundles, as Pulsar cuts them."""
    return [index * (2**32 // count) for index in range(count)] + [0xFFFFFFFF]


def runtime_settings(version: str) -> dict[str, str]:
    """A broker's runtime configuration, all at the release's defaults, as text."""
    defaults = json.loads(
        (resources.files("pulsar_advisor.model.configuration") / "defaults_by_version.json").read_text()
    )[version]
    return {"clusterName": CLUSTER_NAME} | {key: _as_java_text(entry["default"]) for key, entry in defaults.items()}


def _as_java_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join(value)
    return "" if value is None else str(value)


def _json_line(line: Line) -> bytes:
    return json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def _topic_names(boundaries: Mapping[str, Sequence[int]], topics: int, partitions: int) -> list[str]:
    """All topics, hot ones first: partitions, plain ones, one in eight of them not loaded, and system topics."""
    placed = [f"persistent://shop/orders/placed-partition-{index}" for index in range(partitions)]
    owners = ("shop/orders", "shop/payments", "shop/payments")
    plain = [
        f"persistent://{owners[index % 3]}/account-{index:05d}{'-idle' * (index % 8 == 7)}"
        for index in range(topics - partitions)
    ]
    system = [f"persistent://{namespace}/__change_events" for namespace in sorted(boundaries) if "shop" in namespace]
    return [*placed, *plain, *system, "persistent://pulsar/system/transaction_coordinator_assign-partition-0"]


def _topic_stats(chance: random.Random, rank: int) -> dict[str, Any]:
    """Statistics of one topic, the busier the lower its rank; three decimals, as the broker prints them."""
    rate_in = round(7_000 / (1 + rank) ** 0.8 * chance.uniform(0.8, 1.2), 3)
    size = chance.choice((512, 1024, 2048))
    return {
        "msgRateIn": rate_in,
        "msgRateOut": round(rate_in * 2, 3),
        "msgThroughputIn": round(rate_in * size, 3),
        "msgThroughputOut": round(rate_in * 2 * size, 3),
        "producerCount": 1,
        "storageSize": 1_000_000,
        "subscriptions": {name: {"consumers": [{}]} for name in ("billing", "audit")},
    }


def _bundle_of(topic: str, boundaries: Mapping[str, Sequence[int]]) -> str:
    namespace, position = namespace_of(topic), topic_hash(topic)
    edges = boundaries[namespace]
    above = bisect.bisect_right(edges, position, hi=len(edges) - 1)
    return f"{namespace}/{format_range(edges[above - 1], edges[above])}"


def _sum_of_topics(stats: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        **{rate: round(sum(topic[rate] for topic in stats), 3) for rate in RATES},
        "consumerCount": 2 * len(stats),
        "producerCount": len(stats),
        "topics": len(stats),
        "cacheSize": 0,
    }


def _skewed_owners(figures: Mapping[str, Mapping[str, Any]], ids: Sequence[str]) -> dict[str, str]:
    """The busiest bundles go to the first broker until it has twice its share, the rest in turn to the others."""
    share = 2 / len(ids) * sum(figure["msgRateIn"] for figure in figures.values())
    owners: dict[str, str] = {}
    carried = 0.0
    for number, (bundle, figure) in enumerate(sorted(figures.items(), key=lambda item: -item[1]["msgRateIn"])):
        if len(ids) == 1 or carried + figure["msgRateIn"] <= share * 0.95:
            owners[bundle] = ids[0]
            carried += figure["msgRateIn"]
        else:
            owners[bundle] = ids[1 + number % (len(ids) - 1)]
    return owners


def _load_report(
    broker: str,
    owners: Mapping[str, str],
    figures: Mapping[str, Mapping[str, Any]],
    version: str,
    updated_at_ms: int,
    scale: float,
) -> dict[str, Any]:
    owned = sorted(bundle for bundle, owner in owners.items() if owner == broker)
    stats = {
        bundle: {key: round(value * scale, 3) if key in RATES else value for key, value in figures[bundle].items()}
        for bundle in owned
    }
    totals = {rate: round(sum(figure[rate] for figure in stats.values()), 3) for rate in RATES}
    rate = totals["msgRateIn"] + totals["msgRateOut"]
    return {
        "loadReportType": "LocalBrokerData",
        "webServiceUrl": f"http://{broker}",
        "pulsarServiceUrl": f"pulsar://{broker.partition(':')[0]}:6650",
        "cpu": {"usage": round(20 + rate / 310, 6), "limit": 400.0},
        "memory": {"usage": 900.5, "limit": 4096.0},
        "directMemory": {"usage": 256.0, "limit": 8192.0},
        "bandwidthIn": {"usage": round(totals["msgThroughputIn"] * 8 / 1000, 3), "limit": 10_000_000.0},
        "bandwidthOut": {"usage": round(totals["msgThroughputOut"] * 8 / 1000, 3), "limit": 10_000_000.0},
        **totals,
        "numTopics": sum(figure["topics"] for figure in stats.values()),
        "numBundles": len(owned),
        "numProducers": sum(figure["producerCount"] for figure in stats.values()),
        "numConsumers": sum(figure["consumerCount"] for figure in stats.values()),
        "bundles": owned,
        "lastStats": stats,
        "lastBundleGains": [],
        "lastBundleLosses": [],
        "brokerVersionString": version,
        "loadManagerClassName": "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl",
        "startTimestamp": updated_at_ms - 86_400_000,
        "persistentTopicsEnabled": True,
        "nonPersistentTopicsEnabled": True,
        "lastUpdate": updated_at_ms,
    }


def _bundles_document(edges: Sequence[int]) -> dict[str, Any]:
    return {"boundaries": [f"0x{edge:08x}" for edge in edges], "numBundles": len(edges) - 1}


def _policies(edges: Sequence[int]) -> dict[str, Any]:
    return {"bundles": _bundles_document(edges), "deleted": False, "replication_clusters": [CLUSTER_NAME]}


def _average(figure: Mapping[str, Any], samples: int, scale: float) -> dict[str, Any]:
    return {"maxSamples": samples, "numSamples": samples, **{rate: figure[rate] * scale for rate in RATES}}


def _time_average(broker: str, owners: Mapping[str, str], figures: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    totals = {rate: sum(figures[b][rate] for b, owner in owners.items() if owner == broker) for rate in RATES}
    return {
        term + rate[0].upper() + rate[1:]: total * scale
        for term, scale in (("shortTerm", 0.98), ("longTerm", 0.9))
        for rate, total in totals.items()
    }
