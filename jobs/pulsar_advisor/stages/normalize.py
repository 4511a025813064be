"""`normalize`: verifies a raw snapshot, parses it once, writes its tables as Parquet, and only then the result."""

from __future__ import annotations

import logging

from pyspark.sql import SparkSession

from pulsar_advisor.documents.tables_result import TablesResult
from pulsar_advisor.model.errors import StorageError
from pulsar_advisor.model.text.some_of import count
from pulsar_advisor.storage.files import read_file, sha256_hex
from pulsar_advisor.storage.lease import Lease, write_once
from pulsar_advisor.storage.results import read_manifest, read_tables_result
from pulsar_advisor.storage.root import Snapshot
from pulsar_advisor.tables.normalize import (
    LAST,
    brokers_of,
    bundles_of,
    check_counts,
    check_rows,
    count_rows,
    readable_earlier,
    tables_of,
    write_tables,
)
from pulsar_advisor.tables.raw import read_raw, verify_files
from pulsar_advisor.tables.schemas import PROBLEMS
from pulsar_advisor.tables.session import jobs_named

_log = logging.getLogger(__name__)


def run(spark: SparkSession, snapshot: Snapshot) -> TablesResult:
    """Make the tables of a raw snapshot; returns the content of `tables/result/…/result.json`.

    A snapshot that was already normalized is left unchanged; the remains of a killed normalize are replaced. Raises
    `DataNotFit` if a raw file or its number of lines isn't as in the manifest, or if the tables don't account for all
    lines; `Refused` while another process makes the tables of this snapshot.
    """
    manifest_sha256 = sha256_hex(read_file(snapshot.result_file("capture"), "capture"))
    path = snapshot.result_file("normalize")
    work = f"the tables of snapshot {snapshot} are being made"
    write_once(path, snapshot.id, work, lambda lease: _make(spark, snapshot, manifest_sha256, lease))
    result = read_tables_result(snapshot)
    if result.manifest_sha256 != manifest_sha256:
        raise StorageError(
            f"{path} was made from another manifest ({result.manifest_sha256} instead of {manifest_sha256}): "
            "a snapshot is never changed; remove its folders under tables/ to normalize it again"
        )
    tables, rows = count(len(result.tables), "table"), count(sum(result.tables.values()), "row")
    _log.info("snapshot %s has %s with %s, and %s", snapshot, tables, rows, count(result.problems, "problem"))
    return result


def _make(spark: SparkSession, snapshot: Snapshot, manifest_sha256: str, lease: Lease) -> TablesResult:
    folder, manifest = snapshot.folder("raw"), read_manifest(snapshot)
    files, earlier = manifest.files, readable_earlier(snapshot)
    lines = sum(file.rows for file in files)
    _log.info("reading %s with %s", count(len(files), "file"), count(lines, "line"))
    verify_files(folder, files)
    with jobs_named(spark, "read raw files"):
        raw = read_raw(spark, folder, files)
    try:
        check_counts(folder, [file for file in files if file.surface not in raw.passing], raw.kept_counts)
        with jobs_named(spark, "make rows for several tables"):
            tables = tables_of(spark, raw, manifest, bundles_of(spark, earlier), brokers_of(spark, earlier))
        write_tables(snapshot, {table: make for table, make in tables.items() if table not in LAST}, lease.require)
        check_counts(folder, files, raw.counts)
        write_tables(snapshot, {table: tables[table] for table in LAST}, lease.require)
    finally:
        raw.release()
    check_rows(snapshot, files, raw.counts)
    rows = count_rows(snapshot)
    return TablesResult(
        cluster=snapshot.root.cluster,
        snapshot=snapshot.id,
        manifest_sha256=manifest_sha256,
        earlier_snapshot=None if earlier is None else earlier.id,
        tables=rows,
        problems=rows[PROBLEMS.name],
    )
