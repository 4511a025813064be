"""A raw snapshot as Spark sees it: one explicit schema per surface, for all releases and load managers.

A line that doesn't fit its schema, or lacks a required field, becomes a row of `problems` instead.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, reduce
from operator import or_
from typing import Final

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as sf
from upath import UPath

from pulsar_advisor.documents.manifest import File
from pulsar_advisor.model.errors import DataNotFit, attempting
from pulsar_advisor.storage.files import is_local, sha256_of_file
from pulsar_advisor.tables.columns import RESOURCES, SEGMENT_LOAD, TRAFFIC
from pulsar_advisor.tables.frames import in_few_partitions, materialized, no_rows

_TRAFFIC = ", ".join(f"{field}: double" for field in TRAFFIC)
_RESOURCES = ", ".join(f"{field}: struct<usage: double, limit: double>" for field in RESOURCES)
BUNDLE_STATS: Final = (
    f"struct<{_TRAFFIC}, consumerCount: bigint, producerCount: bigint, topics: bigint, cacheSize: bigint>"
)
"""Figures of one bundle, both in load reports and in top bundles. Source: Pulsar `NamespaceBundleStats`."""
_STATS_BY_BUNDLE = f"map<string, {BUNDLE_STATS}>"
_AVERAGE = f"struct<{_TRAFFIC}, numSamples: bigint>"
_BROKER_AVERAGES = ", ".join(
    f"{term}{field[0].upper()}{field[1:]}: double" for term in ("shortTerm", "longTerm") for field in TRAFFIC
)
_SEGMENT_LOAD = ", ".join(f"{field}: double" for field in SEGMENT_LOAD)
_BOUNDARIES = "bundles: struct<boundaries: array<string>, numBundles: bigint>"


@dataclass(frozen=True)
class Surface:
    """The shape of one surface's lines: columns, required fields, and the maximum of some of them."""

    schema: str
    required: tuple[str, ...]
    most: Mapping[str, int] = field(default_factory=dict)


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
        "namespace string, domain string, topic string, partitions int",
        ("namespace", "domain", "topic", "partitions"),
        # Brokers store any number that a tenant requests before they create the partitions; each becomes a row here.
        {"partitions": 100_000},
    ),
    "segments": Surface(
        "namespace string, scalableTopic string, topic string, loadModifiedAt bigint, "
        "document struct<segmentId: bigint, state: string, parentIds: array<bigint>, childIds: array<bigint>>, "
        f"load struct<{_SEGMENT_LOAD}>",
        ("namespace", "scalableTopic", "topic", "document"),
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
"""Read if some brokers' reports don't count consumers; otherwise it would only cost time."""

_OF_TOPICS: Final = ("topic_stats", "topic_names", "segments")
"""The surfaces with a line per topic. Their lines are parsed on their way into the table `topics` and not kept in
memory: only the reports of Extensible brokers need them, too.
"""
_MANY_LINES: Final = 100_000
"""Surfaces with more lines than this are parsed into a frame of their own."""
_CORRUPT: Final = "_corrupt"
_PATIENCE_S: Final = 60.0
"""How long after its end to wait for a query's counts."""
_HASHED_AT_ONCE = 8
_OF_PATTERNS: Final = re.compile(r"[\\*?\[\]{}]")


def spark_url(path: UPath) -> str:
    """The URL of a path for Hadoop's file systems."""
    if is_local(path):
        return f"file://{path.path}"
    return f"s3a://{path.path}" if path.protocol == "s3" else str(path)


def url_to_read(path: UPath) -> str:
    """The same for a reader, escaping characters of a root's name that it would take for a pattern."""
    return _OF_PATTERNS.sub(r"\\\g<0>", spark_url(path))


def verify_files(folder: UPath, files: Sequence[File]) -> None:
    """Compare every raw file with its SHA-256 in the manifest. Raises `DataNotFit` for the first that differs."""
    with ThreadPoolExecutor(_HASHED_AT_ONCE) as pool:
        hashes = pool.map(lambda file: _sha256(folder / file.path), files)
        for file, found in zip(files, hashes, strict=True):
            if found != file.sha256:
                raise DataNotFit(
                    f"{folder / file.path} is not the file that was captured: SHA-256 {found} instead of "
                    f"{file.sha256}; copy or capture the snapshot again"
                )


def _sha256(path: UPath) -> str:
    with attempting(f"read {path}"):
        try:
            return sha256_of_file(path)
        except FileNotFoundError as error:
            raise DataNotFit(
                f"{path} is in the manifest but does not exist; copy or capture the snapshot again"
            ) from error


@dataclass(frozen=True)
class PassingLines:
    """The lines of a surface that isn't kept: each query that needs them parses them, and the first counts them."""

    parsed: DataFrame
    """(_path, _text, columns of the surface): every line; `_text` as in `RawTables.kept`."""
    readable: DataFrame
    """The surface's columns of its usable lines. A query of them counts all lines."""
    observation: Observation
    """The counts of such a query: `lines`, and `unreadable` ones among them."""
    rows: Mapping[str, int]
    """Path of each file -> its number of lines in the manifest."""

    @cached_property
    def counts(self) -> Mapping[str, tuple[int, int]]:
        """As `RawTables.counts`. The lines are read again if any is unreadable or missing, to say in which file."""
        if _observed(self.observation) == {"lines": sum(self.rows.values()), "unreadable": 0}:
            return {path: (lines, 0) for path, lines in self.rows.items() if lines}
        return _counts([self.parsed])


def _observed(observation: Observation) -> Mapping[str, int]:
    """What a query counted. Empty if Spark dropped it because its queue was full: `get` would wait forever."""
    found: list[Mapping[str, int]] = []
    waiting = threading.Thread(target=lambda: found.append(observation.get), daemon=True)
    waiting.start()
    waiting.join(_PATIENCE_S)
    return found[0] if found else {}


@dataclass(frozen=True)
class RawTables:
    """All lines of a snapshot: the readable ones by surface, and the rest."""

    kept: Sequence[DataFrame]
    """(_path, _surface, _text, one struct per surface): lines that were parsed once, with the struct of their surface.
    `_text` is the text of an unusable line, else null. A surface with many lines has a frame of its own, so that
    reading another surface doesn't scan them."""
    kept_counts: Mapping[str, tuple[int, int]]
    """The part of `counts` that is known from the start."""
    passing: Mapping[str, PassingLines]
    """The surfaces that have files and aren't kept."""
    has_extensible_brokers: bool
    """Whether some brokers gave metrics instead of a load report; lines of `topic_stats` have consumers only then."""
    readable: Mapping[str, int]
    """Surface that is kept -> its number of readable lines."""
    made: dict[str, DataFrame] = field(default_factory=dict, init=False)
    """The frames made so far, by surface: Spark analyses every new frame."""

    def __getitem__(self, surface: str) -> DataFrame:
        """The readable lines of one surface. If there are none, Spark removes joins with them."""
        if surface not in self.made:
            self.made[surface] = self._lines_of(surface)
        return self.made[surface]

    def _lines_of(self, surface: str) -> DataFrame:
        if surface in self.passing:
            return self.passing[surface].readable
        if not self.has_lines(surface):
            return no_rows(self.kept[0].sparkSession, SURFACES[surface].schema)
        kept = next(frame for frame in self.kept if surface in frame.columns)
        return kept.where(f"_surface = '{surface}' and _text is null").select(f"{surface}.*")

    def has_lines(self, surface: str) -> bool:
        """Whether any line of a surface that is kept is readable."""
        return self.readable.get(surface, 0) > 0

    @cached_property
    def counts(self) -> Mapping[str, tuple[int, int]]:
        """Path of each file that has lines -> (lines, unreadable lines among them). Waits until queries have read the
        surfaces that aren't kept.
        """
        return reduce(or_, (passing.counts for passing in self.passing.values()), dict(self.kept_counts))

    def unreadable(self) -> DataFrame:
        """(surface, path, text) of every unusable line, with U+FFFD for what isn't UTF-8. Waits as `counts` does."""
        passing = (
            lines.parsed.withColumn("_surface", sf.lit(surface))
            for surface, lines in self.passing.items()
            if any(unreadable for _, unreadable in lines.counts.values())
        )
        return _union(
            parsed.where("_text is not null").select(
                sf.col("_surface").alias("surface"),
                _path_in_snapshot().alias("path"),
                sf.make_valid_utf8("_text").alias("text"),
            )
            for parsed in (*self.kept, *passing)
        )

    def release(self) -> None:
        """Free the memory and disk that the kept lines occupy."""
        for kept in self.kept:
            kept.unpersist()


def read_raw(spark: SparkSession, folder: UPath, files: Sequence[File]) -> RawTables:
    """Parse the raw files of a snapshot's folder, or prepare to; kept lines spill to disk if memory is short."""
    extensible = any(file.surface == "broker_metrics" for file in files)
    of_surface = {surface: [file for file in files if file.surface == surface] for surface in SURFACES}
    lines = {surface: sum(file.rows for file in of_surface[surface]) for surface in SURFACES}
    with_consumers = {"topic_stats": _WITH_CONSUMERS} if extensible else {}
    passing = {
        name: _passing(spark, folder, of_surface[name], with_consumers.get(name, SURFACES[name]))
        for name in _OF_TOPICS
        if of_surface[name]
    }
    alone = [name for name in SURFACES if name not in _OF_TOPICS and lines[name] > _MANY_LINES]
    others = [name for name in SURFACES if name not in (*_OF_TOPICS, *alone)]

    def parsed(surfaces: Sequence[str]) -> DataFrame:
        return _parsed(spark, folder, [file for name in surfaces for file in of_surface[name]], surfaces)

    kept = [materialized(parsed(others)), *(parsed([name]).persist(StorageLevel.MEMORY_AND_DISK) for name in alone)]
    counts = _counts(kept)
    readable: Counter[str] = Counter()
    for file in files:
        read, unreadable = counts.get(file.path, (0, 0))
        readable[file.surface] += read - unreadable
    return RawTables(kept, counts, passing, extensible, readable)


def _counts(parsed: Iterable[DataFrame]) -> dict[str, tuple[int, int]]:
    counted = _union(
        lines.groupBy("_path").agg(sf.count("*").alias("lines"), sf.count("_text").alias("unreadable"))
        for lines in parsed
    )
    with_path = counted.select(_path_in_snapshot().alias("path"), "lines", "unreadable")
    return {row["path"]: (row["lines"], row["unreadable"]) for row in with_path.collect()}


def _path_in_snapshot() -> Column:
    """A file's path as in the manifest: the part after the folder `snapshot=<id>`."""
    return sf.regexp_extract("_path", r"^.*/snapshot(?:=|%3D)[^/]+/(.+)$", 1)


def _parsed(spark: SparkSession, folder: UPath, files: Sequence[File], surfaces: Sequence[str]) -> DataFrame:
    """Lines as in `RawTables.kept`. A file, or its folder, has its surface's name."""
    lines = _lines(spark, [url_to_read(folder / file.path) for file in files])
    only = surfaces[0] if len(surfaces) == 1 else None
    surface = sf.lit(only) if only else sf.substring_index(sf.substring_index("_path", "/", -1), ".", 1)

    def of_surface(name: str, expression: str) -> str:
        return f"case when _surface = '{name}' then {expression} end"

    def parsed(name: str) -> str:
        return f"from_json(value, '{_schema(SURFACES[name])}', map('columnNameOfCorruptRecord', '{_CORRUPT}'))"

    def unusable(name: str) -> str:
        broken = f"{name} is null or {name}.{_CORRUPT} is not null or not is_valid_utf8(value)"
        return _unusable(SURFACES[name], f"{name}.", f"case when {broken} then value end")

    documents = [f"{of_surface(name, parsed(name))} as {name}" for name in surfaces]
    text = ", ".join(of_surface(name, unusable(name)) for name in surfaces)
    return (
        lines.withColumn("_surface", surface)
        .selectExpr("_path", "_surface", "value", *documents)
        .selectExpr("_path", "_surface", f"coalesce({text}) as _text", *surfaces)
    )


def _lines(spark: SparkSession, urls: Sequence[str]) -> DataFrame:
    if not urls:
        return no_rows(spark, "_path string, value string")
    return in_few_partitions(spark.read.text(list(urls)).select(sf.col("_metadata.file_path").alias("_path"), "value"))


def _passing(spark: SparkSession, folder: UPath, files: Sequence[File], surface: Surface) -> PassingLines:
    """Lines parsed by Spark's JSON source: it reads bytes, whereas `from_json` allocates a reader of 8 KB per line.

    It parses only the columns that a query uses. Every query uses all columns of these surfaces, most of them because
    they are required, so each finds the same lines unusable.
    """
    source = spark.read.schema(_schema(surface)).option("columnNameOfCorruptRecord", _CORRUPT)
    lines = in_few_partitions(source.json([url_to_read(folder / file.path) for file in files]))
    parsed = lines.selectExpr("_metadata.file_path as _path", f"{_unusable(surface, '', _CORRUPT)} as _text", "*")
    observation = Observation()
    observed = parsed.observe(observation, sf.count("*").alias("lines"), sf.count("_text").alias("unreadable"))
    readable = observed.where("_text is null").drop("_path", "_text", _CORRUPT)
    return PassingLines(parsed, readable, observation, {file.path: file.rows for file in files})


def _schema(surface: Surface) -> str:
    return f"{surface.schema}, {_CORRUPT} string"


def _unusable(surface: Surface, prefix: str, broken: str) -> str:
    """The text of a line of a surface if it is unusable, else null. `prefix` comes before the names of fields.

    For a line that isn't JSON or has wrong types, the line itself (`broken`); if a required field is missing or
    impossible, what was parsed.
    """
    incomplete = " or ".join(
        (
            *(f"{prefix}{name} is null" for name in surface.required),
            *(f"{prefix}{name} > {most}" for name, most in surface.most.items()),
        )
    )
    found = ", ".join(f"{prefix}{name}" for name in surface.required)
    return f"coalesce({broken}, case when {incomplete} then to_json(struct({found})) end)"


def _union(frames: Iterable[DataFrame]) -> DataFrame:
    return reduce(DataFrame.union, frames)
