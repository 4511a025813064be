"""A raw snapshot as Spark sees it: one explicit schema per surface, for all releases and load managers.

A line that doesn't fit its schema, or lacks a required field, is kept apart and becomes a row of `problems`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, Final

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from upath import UPath

from pulsar_advisor.model.errors import DataNotFit, StorageError
from pulsar_advisor.storage.files import read_json
from pulsar_advisor.storage.root import MANIFEST, Root
from pulsar_advisor.storage.shapes import RAW_SNAPSHOT_SCHEMA
from pulsar_advisor.tables.frames import in_few_partitions, materialized, no_rows
from pulsar_advisor.tables.schemas import RESOURCES, TRAFFIC

_TRAFFIC = ", ".join(f"{field}: double" for field in TRAFFIC)
_RESOURCES = ", ".join(f"{field}: struct<usage: double, limit: double>" for field in RESOURCES)
BUNDLE_STATS: Final = (
    f"struct<{_TRAFFIC}, consumerCount: bigint, producerCount: bigint, topics: bigint, cacheSize: bigint>"
)
"""Figures of one bundle, in load reports and top bundles alike. Source: Pulsar `NamespaceBundleStats`."""
_STATS_BY_BUNDLE = f"map<string, {BUNDLE_STATS}>"
_AVERAGE = f"struct<{_TRAFFIC}, numSamples: bigint>"
_BROKER_AVERAGES = ", ".join(
    f"{term}{field[0].upper()}{field[1:]}: double" for term in ("shortTerm", "longTerm") for field in TRAFFIC
)
_BOUNDARIES = "bundles: struct<boundaries: array<string>, numBundles: bigint>"


@dataclass(frozen=True)
class Surface:
    """The shape of one surface's lines, and their required fields."""

    schema: str
    required: tuple[str, ...]


SURFACES: Final[Mapping[str, Surface]] = {
    "brokers": Surface(
        "broker string, webServiceUrl string, version string, available boolean, clockAheadMs bigint",
        ("broker",),
    ),
    "settings": Surface("origin string, broker string, values map<string, string>", ("origin", "values")),
    "load_reports": Surface(
        # Modular (LocalBrokerData) and Simple (LoadReport) side by side: each fills its own fields.
        "source string, broker string, readAt bigint, modifiedAt bigint, version bigint, "
        f"document struct<{_RESOURCES}, {_TRAFFIC}, numTopics: bigint, "
        "numBundles: bigint, numProducers: bigint, numConsumers: bigint, bundles: array<string>, "
        f"lastStats: {_STATS_BY_BUNDLE}, lastBundleGains: array<string>, lastBundleLosses: array<string>, "
        "brokerVersionString: string, loadManagerClassName: string, startTimestamp: bigint, "
        "persistentTopicsEnabled: boolean, nonPersistentTopicsEnabled: boolean, "
        "webServiceUrl: string, lastUpdate: bigint, "
        f"systemResourceUsage: struct<{_RESOURCES}>, bundleStats: {_STATS_BY_BUNDLE}, bundleGains: array<string>, "
        "bundleLosses: array<string>, "
        "timestamp: bigint>",
        ("source", "broker", "document"),
    ),
    "broker_metrics": Surface(
        "broker string, readAt bigint, document struct<brk_lb_cpu_usage: double, brk_lb_memory_usage: double, "
        "brk_lb_directMemory_usage: double, brk_lb_bandwidth_in_usage: double, brk_lb_bandwidth_out_usage: double, "
        "max_ema: double>",
        ("broker", "readAt", "document"),
    ),
    "service_unit_states": Surface(
        "source string, bundle string, document struct<state: string, dstBroker: string, sourceBroker: string, "
        "force: boolean, timestamp: bigint>",
        ("source", "bundle", "document"),
    ),
    "broker_load_data": Surface(
        "broker string, readAt bigint, publishedAt bigint, "
        f"document struct<{_RESOURCES}, {_TRAFFIC}, bundleCount: bigint, topics: bigint, "
        "weightedMaxEMA: double, msgThroughputEMA: double, updatedAt: bigint>",
        ("broker", "readAt"),
    ),
    "top_bundles": Surface(
        "broker string, readAt bigint, publishedAt bigint, "
        f"document struct<topBundlesLoadData: array<struct<bundleName: string, stats: {BUNDLE_STATS}>>>",
        ("broker", "readAt"),
    ),
    "topic_stats": Surface(
        "broker string, namespace string, range string, domain string, topic string, "
        f"stats struct<{_TRAFFIC}, producerCount: bigint, storageSize: bigint>",
        ("broker", "namespace", "range", "domain", "topic", "stats"),
    ),
    "owned_bundles": Surface(
        "source string, broker string, bundle string, isActive boolean, acquiredAt bigint, readAt bigint, pass string",
        ("source", "broker", "bundle", "pass"),
    ),
    "tenants": Surface("tenant string", ("tenant",)),
    "namespaces": Surface(
        f"namespace string, antiAffinityGroup string, document struct<{_BOUNDARIES}, deleted: boolean, "
        "migrated: boolean, replication_clusters: array<string>>",
        ("namespace", "document"),
    ),
    "local_policies": Surface(
        f"namespace string, version bigint, document struct<{_BOUNDARIES}, namespaceAntiAffinityGroup: string, "
        "migrated: boolean>",
        ("namespace", "document"),
    ),
    "isolation_policies": Surface(
        "name string, document struct<namespaces: array<string>, primary: array<string>, secondary: array<string>, "
        "auto_failover_policy: struct<policy_type: string, parameters: map<string, string>>, unload_scope: string>",
        ("name", "document"),
    ),
    "failure_domains": Surface("domain string, brokers array<string>", ("domain", "brokers")),
    "topic_names": Surface("namespace string, domain string, topic string", ("namespace", "domain", "topic")),
    "partitioned_topics": Surface(
        "namespace string, domain string, topic string, partitions int", ("namespace", "domain", "topic", "partitions")
    ),
    "bundle_data": Surface(
        f"bundle string, modifiedAt bigint, document struct<shortTermData: {_AVERAGE}, longTermData: {_AVERAGE}>",
        ("bundle", "modifiedAt", "document"),
    ),
    "broker_time_averages": Surface(
        f"broker string, modifiedAt bigint, document struct<{_BROKER_AVERAGES}>", ("broker", "modifiedAt", "document")
    ),
    "resource_quotas": Surface("bundle string", ("bundle",)),
    "leader": Surface("source string", ("source",)),
}

_WITH_CONSUMERS: Final = Surface(
    SURFACES["topic_stats"].schema.replace(
        "stats struct<",
        "stats struct<subscriptions: map<string, struct<consumers: array<struct<msgRateOut: double>>>>, ",
    ),
    SURFACES["topic_stats"].required,
)
"""Read if some brokers give no report that counts consumers; otherwise it would only cost time."""

_TOPICS: Final = "topic_stats"
_MANY_LINES: Final = 100_000
"""Of a surface: more than this are parsed into a frame by themselves."""
_CORRUPT: Final = "_corrupt"
_HASHED_AT_ONCE = 8
_BLOCK_BYTES = 4 * 2**20


def spark_url(path: UPath) -> str:
    """The URL of a path for Hadoop's file systems."""
    if path.protocol in ("", "file"):
        return f"file://{path.path}"
    return f"s3a://{path.path}" if path.protocol == "s3" else str(path)


def raw_bytes(root: Root, snapshot: str) -> int:
    """Total size of a snapshot's raw files, compressed, by its manifest. Raises `UsageError` without a manifest."""
    manifest = read_json(root.folder("raw", snapshot) / MANIFEST, "capture", [RAW_SNAPSHOT_SCHEMA])
    return sum(file["bytes"] for file in manifest["files"])


def verify_files(folder: UPath, files: Sequence[Mapping[str, Any]]) -> None:
    """Compare every raw file with its SHA-256 in the manifest. Raises `DataNotFit` for the first that differs."""

    def digest(path: UPath) -> str:
        sha256 = hashlib.sha256()
        with path.open("rb") as content:
            while block := content.read(_BLOCK_BYTES):
                sha256.update(block)
        return sha256.hexdigest()

    with ThreadPoolExecutor(_HASHED_AT_ONCE) as pool:
        for file, found in zip(
            files, pool.map(lambda file: _attempt(digest, folder / file["path"]), files), strict=True
        ):
            if found != file["sha256"]:
                raise DataNotFit(
                    f"{folder / file['path']} is not the file that was captured: SHA-256 {found} instead of "
                    f"{file['sha256']}; copy the snapshot again, or capture anew"
                )


def _attempt(digest: Any, path: UPath) -> str:
    try:
        return str(digest(path))
    except FileNotFoundError as error:
        raise DataNotFit(
            f"{path} is in the manifest but does not exist; copy the snapshot again, or capture anew"
        ) from error
    except OSError as error:
        raise StorageError(f"can't read {path}: {error.strerror or error}") from error


@dataclass(frozen=True)
class RawTables:
    """All lines of a snapshot, parsed once: the readable ones by surface, and the rest."""

    parsed: Sequence[DataFrame]
    """(_path, _surface, _text, one struct per surface): every line, with the struct of its surface. `_text` is the text
    of an unusable line, else null. Topic statistics, and any other surface of many lines, are a separate frame: whoever
    reads another surface doesn't pass over them."""
    has_extensible_brokers: bool
    """Whether some brokers gave metrics instead of a load report; lines of `topic_stats` have consumers only then."""
    counts: Mapping[str, tuple[int, int]]
    """Path of each file that has lines -> (lines, unreadable lines among them)."""
    readable: Mapping[str, int]
    """Surface -> its readable lines."""

    def __getitem__(self, surface: str) -> DataFrame:
        """The readable lines of one surface. Without any, Spark removes joins with them."""
        parsed = next(frame for frame in self.parsed if surface in frame.columns)
        lines = parsed.where((sf.col("_surface") == surface) & sf.col("_text").isNull()).select(f"{surface}.*")
        return (
            lines.drop(_CORRUPT) if self.has_lines(surface) else no_rows(parsed.sparkSession, SURFACES[surface].schema)
        )

    def has_lines(self, surface: str) -> bool:
        """Whether any line of a surface is readable."""
        return self.readable.get(surface, 0) > 0

    def unreadable(self) -> DataFrame:
        """(surface, path, text) of every unusable line."""
        return _union(
            parsed.where("_text is not null").select(
                sf.col("_surface").alias("surface"), _path_in_snapshot().alias("path"), sf.col("_text").alias("text")
            )
            for parsed in self.parsed
        )

    def release(self) -> None:
        """Free the memory and disk that the parsed lines occupy."""
        for parsed in self.parsed:
            parsed.unpersist()


def read_raw(spark: SparkSession, folder: UPath, files: Sequence[Mapping[str, Any]]) -> RawTables:
    """Parse all raw files of a snapshot's folder, each once, spilling to disk if memory is short."""
    extensible = any(file["surface"] == "broker_metrics" for file in files)
    lines: Counter[str] = Counter()
    for file in files:
        lines[file["surface"]] += file["rows"]
    alone = [name for name in SURFACES if name == _TOPICS or lines[name] > _MANY_LINES]
    others = {name: surface for name, surface in SURFACES.items() if name not in alone}

    def of(surfaces: Mapping[str, Surface]) -> DataFrame:
        return _parsed(spark, folder, [file for file in files if file["surface"] in surfaces], surfaces)

    with_consumers = {_TOPICS: _WITH_CONSUMERS} if extensible else {}
    parsed = [
        materialized(of(others)),
        *(of({name: with_consumers.get(name, SURFACES[name])}).persist(StorageLevel.MEMORY_AND_DISK) for name in alone),
    ]
    counts = _counts(parsed)
    readable: Counter[str] = Counter()
    for file in files:
        read, unreadable = counts.get(file["path"], (0, 0))
        readable[file["surface"]] += read - unreadable
    return RawTables(parsed, extensible, counts, readable)


def _counts(parsed: Iterable[DataFrame]) -> dict[str, tuple[int, int]]:
    counted = _union(
        lines.groupBy("_path").agg(sf.count("*").alias("lines"), sf.count("_text").alias("unreadable"))
        for lines in parsed
    )
    with_path = counted.select(_path_in_snapshot().alias("path"), "lines", "unreadable")
    return {row["path"]: (row["lines"], row["unreadable"]) for row in with_path.collect()}


def _path_in_snapshot() -> Column:
    """A file's path as in the manifest: the part after the folder `snapshot=<id>`."""
    return sf.regexp_extract("_path", r"/snapshot(?:=|%3D)[^/]+/(.+)$", 1)


def _parsed(
    spark: SparkSession, folder: UPath, files: Sequence[Mapping[str, Any]], surfaces: Mapping[str, Surface]
) -> DataFrame:
    """Lines as in `RawTables.parsed`. A file, or its folder, is named for its surface."""
    lines = _lines(spark, [spark_url(folder / file["path"]) for file in files])
    only = next(iter(surfaces)) if len(surfaces) == 1 else None
    surface = sf.lit(only) if only else sf.substring_index(sf.substring_index("_path", "/", -1), ".", 1)
    documents = [
        sf.when(
            sf.col("_surface") == name,
            sf.from_json("value", f"{surface.schema}, {_CORRUPT} string", {"columnNameOfCorruptRecord": _CORRUPT}),
        ).alias(name)
        for name, surface in surfaces.items()
    ]
    unusable = sf.coalesce(*(_unusable(name, surface) for name, surface in surfaces.items()))
    return (
        lines.withColumn("_surface", surface)
        .select("_path", "_surface", "value", *documents)
        .select("_path", "_surface", unusable.alias("_text"), *surfaces)
    )


def _lines(spark: SparkSession, urls: Sequence[str]) -> DataFrame:
    if not urls:
        return no_rows(spark, "_path string, value string")
    return in_few_partitions(spark.read.text(list(urls)).select(sf.col("_metadata.file_path").alias("_path"), "value"))


def _unusable(name: str, surface: Surface) -> Column:
    """The text of a line of a surface if it is unusable, else null.

    For a line that isn't JSON or has other types, the line itself; if it lacks a required field, what was parsed.
    """
    document = sf.col(name)
    broken = document.isNull() | document[_CORRUPT].isNotNull() | ~sf.is_valid_utf8("value")
    incomplete = reduce(or_, (document[field].isNull() for field in surface.required))
    found = sf.to_json(sf.struct(*(document[field].alias(field) for field in surface.required)))
    return sf.when(sf.col("_surface") == name, sf.when(broken, sf.col("value")).when(incomplete, found))


def _union(frames: Iterable[DataFrame]) -> DataFrame:
    return reduce(DataFrame.union, frames)
