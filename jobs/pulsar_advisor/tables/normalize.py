"""From raw lines to tables: builds each table, writes it as declared, and checks that no line was lost."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from upath import UPath

from pulsar_advisor.documents.manifest import File, Manifest
from pulsar_advisor.model.cluster.cluster_state import View
from pulsar_advisor.model.cluster.snapshot_id import snapshot_moment
from pulsar_advisor.model.configuration.resolved_settings import setting_value
from pulsar_advisor.model.errors import DataNotFit, StorageError
from pulsar_advisor.model.load.next_publication import unprompted_report_ms
from pulsar_advisor.storage.root import Snapshot
from pulsar_advisor.tables.brokers import brokers
from pulsar_advisor.tables.bundles import GOES_ON, bundles
from pulsar_advisor.tables.captured import captured_documents, gaps
from pulsar_advisor.tables.columns import Table
from pulsar_advisor.tables.configuration import policies, settings
from pulsar_advisor.tables.earlier import earlier_snapshot
from pulsar_advisor.tables.frames import frame_of, in_few_partitions, in_one_partition, materialized, no_rows
from pulsar_advisor.tables.namespaces import namespaces
from pulsar_advisor.tables.ownership import ownership
from pulsar_advisor.tables.problems import problems
from pulsar_advisor.tables.raw import RawTables
from pulsar_advisor.tables.read_table import readable_files
from pulsar_advisor.tables.reports import OF_BROKER, load_reports, reported_figures
from pulsar_advisor.tables.schemas import (
    BROKERS,
    BUNDLES,
    DOCUMENTS,
    NAMESPACES,
    POLICIES,
    PROBLEMS,
    SETTINGS,
    TABLES,
    TOPICS,
)
from pulsar_advisor.tables.session import jobs_named
from pulsar_advisor.tables.spark_parquet import read_parquet, write_parquet
from pulsar_advisor.tables.state import judged_view
from pulsar_advisor.tables.topics import topics

_WRITTEN_AT_ONCE: Final = 4
"""Tables built and written in parallel: planning takes most of the time for a small cluster, on one core per table."""

LAST: Final = (PROBLEMS, DOCUMENTS)
"""The tables that count unreadable lines, written last: those of topics are counted while `topics` is written."""

_log = logging.getLogger(__name__)

_BUNDLE_DATA_INTERVAL: Final = "loadBalancerResourceQuotaUpdateIntervalMinutes"
_REPORT_INTERVAL: Final = "loadBalancerReportUpdateMaxIntervalMinutes"
_REPORT_CHECKS: Final = "loadBalancerReportUpdateMinIntervalMillis"
_UNITS_MS: Final = {_BUNDLE_DATA_INTERVAL: 60_000, _REPORT_INTERVAL: 60_000, _REPORT_CHECKS: 1}
"""The settings needed to read averages, and the milliseconds of their units."""


def count_rows(snapshot: Snapshot) -> dict[str, int]:
    """Table -> its rows, from the Parquet footers."""
    return {table.name: int(_written(snapshot, table).count_rows()) for table in TABLES}


def _written(snapshot: Snapshot, table: Table) -> ds.Dataset:
    folder = snapshot.folder(f"tables/{table.name}")
    return ds.dataset(folder.path, filesystem=folder.fs, format="parquet", partitioning=None)


def readable_earlier(snapshot: Snapshot) -> Snapshot | None:
    """The snapshot that this one continues; None if its bundles or brokers can't be read."""
    earlier = earlier_snapshot(snapshot)
    try:
        if earlier is not None:
            for table in (BUNDLES, BROKERS):
                readable_files(earlier, table.name)
    except StorageError:
        return None
    return earlier


def bundles_of(spark: SparkSession, snapshot: Snapshot | None) -> DataFrame:
    """(view, bundle, earlier) as `bundles` expects it: no rows if there is no such snapshot."""
    schema = BUNDLES.ddl("view", "bundle", *GOES_ON)
    if snapshot is None:
        rows, captured_at_ms = no_rows(spark, schema), 0
    else:
        rows = read_parquet(spark, schema, snapshot.folder("tables/bundles"))
        captured_at_ms = int(snapshot_moment(snapshot.id).timestamp() * 1000)
    going_on = sf.struct(sf.lit(captured_at_ms).alias("captured_at_ms"), *GOES_ON)
    return rows.select("view", "bundle", going_on.alias("earlier"))


def brokers_of(spark: SparkSession, snapshot: Snapshot | None) -> DataFrame:
    """The reports in a snapshot's published view; no rows if there is no such snapshot."""
    schema = BROKERS.ddl("view", "broker", *OF_BROKER)
    if snapshot is None:
        return no_rows(spark, schema)
    rows = read_parquet(spark, schema, snapshot.folder("tables/brokers"))
    return rows.where("view = 'published'")


def check_counts(folder: UPath, files: Sequence[File], counts: Mapping[str, tuple[int, int]]) -> None:
    """Check that each raw file has as many lines as the manifest says; `counts` as `RawTables.counts`."""
    for file in files:
        read = counts.get(file.path, (0, 0))[0]
        if read != file.rows:
            raise DataNotFit(
                f"{folder / file.path} has {read} lines, its manifest says {file.rows}: the capture is damaged; "
                "capture again"
            )


def check_rows(snapshot: Snapshot, files: Sequence[File], counts: Mapping[str, tuple[int, int]]) -> None:
    """Check that every line became a row or a problem. Raises `DataNotFit` if the written tables lack or repeat some.

    `counts`: path of each raw file -> (lines, unreadable lines among them). Every unreadable line of any surface must
    be a problem. Readable lines can be counted only where each ends up in one table: topic statistics (each line is one
    report of one topic) and isolation policies; the other surfaces are joined by subject.
    """
    readable: Counter[str] = Counter()
    unreadable = 0
    for file in files:
        read, unusable = counts.get(file.path, (0, 0))
        readable[file.surface] += read - unusable
        unreadable += unusable
    reports = pc.sum(_written(snapshot, TOPICS).to_table(columns=["reports"])["reports"]).as_py() or 0
    policies = _written(snapshot, POLICIES).count_rows()
    problems = _written(snapshot, PROBLEMS).count_rows(filter=pc.field("problem") == "unreadable_line")
    for table, rows, expected, what in (
        ("topics", reports, readable["topic_stats"], "readable lines of topic_stats"),
        ("policies", policies, readable["isolation_policies"], "readable lines of isolation_policies"),
        ("problems", problems, unreadable, "unreadable lines"),
    ):
        if rows != expected:
            raise DataNotFit(
                f"table {table} of snapshot {snapshot} has {rows} of {expected} {what}: run `normalize` again; "
                "if that doesn't help, capture again"
            )


def tables_of(
    spark: SparkSession,
    raw: RawTables,
    manifest: Manifest,
    earlier_bundles: DataFrame,
    earlier_brokers: DataFrame,
) -> dict[Table, Callable[[], DataFrame]]:
    """How to build every table, starting with those that take longest to write."""
    reports = materialized(load_reports(raw, earlier_brokers, _without_topics(manifest)))
    views = _views(reports, judged_view(manifest))
    intervals = _longest_intervals(raw, manifest.pulsar_version)
    owned = materialized(ownership(raw))
    figures = reported_figures(reports)
    namespace_rows = materialized(namespaces(raw, owned, figures))
    brokers_of_files = frame_of(spark, DOCUMENTS.ddl("path", "broker"), map(dict, manifest.files))
    return {
        TOPICS: lambda: topics(raw, owned, namespace_rows),
        BUNDLES: lambda: bundles(
            raw,
            reports,
            owned,
            figures,
            namespace_rows,
            earlier_bundles,
            earlier_brokers,
            views,
            moved=manifest.moved_bundles,
            captured_at_ms=manifest.started_at_ms,
            bundle_data_interval_ms=intervals[_BUNDLE_DATA_INTERVAL],
            report_interval_ms=unprompted_report_ms(intervals[_REPORT_INTERVAL], intervals[_REPORT_CHECKS]),
        ),
        PROBLEMS: lambda: problems(raw, figures, brokers_of_files, frame_of(spark, PROBLEMS.ddl(), gaps(manifest))),
        BROKERS: lambda: brokers(
            raw, reports, owned, views, incomplete=manifest.incomplete_brokers, leader=manifest.leader
        ),
        NAMESPACES: lambda: namespace_rows,
        POLICIES: lambda: policies(raw),
        SETTINGS: lambda: settings(raw),
        DOCUMENTS: lambda: frame_of(spark, DOCUMENTS.ddl(), captured_documents(manifest, raw.counts)),
    }


def _without_topics(manifest: Manifest) -> list[str]:
    """The brokers whose topic statistics could not be read."""
    unread = {(one.surface, one.broker) for one in manifest.failures}
    unread |= {(one.surface, one.broker) for one in manifest.missing}
    return sorted(broker for surface, broker in unread if surface == "topic_stats" and broker is not None)


def _views(reports: DataFrame, judged: View) -> list[View]:
    """The views of this snapshot: always the judged one, and `published` if ZooKeeper held load reports."""
    return sorted({judged, *(row["view"] for row in reports.select("view").distinct().collect())})


def _longest_intervals(raw: RawTables, pulsar_version: str | None) -> dict[str, int]:
    """The settings of `_UNITS_MS` in milliseconds; the longest if brokers disagree."""
    of_brokers = [sf.max(sf.expr(f"try_cast(values['{key}'] as int)")) for key in _UNITS_MS]
    longest = raw["settings"].agg(*of_brokers).first() or [None] * len(_UNITS_MS)
    return {
        key: unit_ms * (found or int(setting_value(key, pulsar_version)))
        for (key, unit_ms), found in zip(_UNITS_MS.items(), longest, strict=True)
    }


def write_tables(
    snapshot: Snapshot, frames: Mapping[Table, Callable[[], DataFrame]], require: Callable[[], None]
) -> None:
    """Build and write tables, some at a time; `require` raises if they aren't ours to write any more."""
    _log.info("writing tables: %s", ", ".join(table.name for table in frames))
    with ThreadPoolExecutor(_WRITTEN_AT_ONCE) as pool:
        written = [
            pool.submit(_write_one, frame, table, snapshot.folder(f"tables/{table.name}"), require)
            for table, frame in frames.items()
        ]
    for one in written:
        one.result()


def _write_one(frame: Callable[[], DataFrame], table: Table, folder: UPath, require: Callable[[], None]) -> None:
    """Build and write one table in its declared columns; only `topics` is large enough for more than one file."""
    columns = [
        sf.col(column.name).cast(column.type).alias(column.name, metadata={"comment": column.comment})
        for column in table.columns
    ]
    typed = frame().select(*columns)
    placed = in_few_partitions(typed) if table.name == "topics" else in_one_partition(typed)
    with jobs_named(placed.sparkSession, f"write table {table.name}"):
        require()
        write_parquet(placed, folder)
    _log.info("table %s is written", table.name)
