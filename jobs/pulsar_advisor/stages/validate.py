"""`validate`: decides whether a snapshot can be trusted."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from upath import UPath

from pulsar_advisor.documents.validation import Validation
from pulsar_advisor.model.errors import StorageError
from pulsar_advisor.model.text.some_of import count, some_of
from pulsar_advisor.quality.checks import suites, suites_sha256
from pulsar_advisor.quality.history import CheckRow, check_rows, quality_history
from pulsar_advisor.storage.files import read_file, sha256_hex, write_file
from pulsar_advisor.storage.index import update_index
from pulsar_advisor.storage.lease import Lease, write_once
from pulsar_advisor.storage.results import read_manifest, read_tables_result, read_validation
from pulsar_advisor.storage.root import Snapshot
from pulsar_advisor.tables.earlier import comparable_before, validations_until
from pulsar_advisor.tables.parquet import write_table
from pulsar_advisor.tables.schemas import CHECKS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)


def run(spark: SparkSession, snapshot: Snapshot) -> Validation:
    """Judge the tables of a snapshot and write the result, passed or not; returns what it says.

    A snapshot that was already validated is left unchanged. Raises `UsageError` if it wasn't normalized, `StorageError`
    if its tables can't be read or were made from another manifest, or if it was validated with other suites, and
    `Refused` while another process validates it. Whether the data may be used is in the result: `success`.
    """
    manifest_sha256 = _normalized_manifest_sha256(snapshot)
    path = snapshot.result_file("validate")
    work = f"the checks of snapshot {snapshot} are being run"
    write_once(path, snapshot.id, work, lambda lease: _judge(spark, snapshot, manifest_sha256, lease))
    result = read_validation(snapshot)
    if (result.manifest_sha256, result.suites_sha256) != (manifest_sha256, suites_sha256()):
        raise StorageError(
            f"{path} was made from another manifest or with other checks than this release has; plans may rest on it, "
            "so it is not replaced: remove it to validate again"
        )
    update_index(snapshot.root, snapshot.id)
    failed = [check.title for check in result.results if not check.success]
    may = "may" if result.success else "must not"
    found = f"{len(failed)} failed: {some_of(failed)}" if failed else "all passed"
    _log.info("snapshot %s %s be used: %s, %s", snapshot, may, count(len(result.results), "check"), found)
    return result


def write_data_docs(result: Validation, folder: Path) -> None:
    """Write a result as Great Expectations' Data Docs: a page for each suite, `<table>.html`."""
    from pulsar_advisor.quality.data_docs import data_docs_page

    for table in suites():
        write_file(UPath(folder / f"{table}.html"), data_docs_page(result, table).encode())


def history(snapshot: Snapshot) -> tuple[CheckRow, ...]:
    """How every check went in a snapshot and in the last ones validated before it, oldest snapshot first."""
    return quality_history(validations_until(snapshot))


def _normalized_manifest_sha256(snapshot: Snapshot) -> str:
    """SHA-256 of the manifest, which must be the one that the tables were made from."""
    normalized = read_tables_result(snapshot).manifest_sha256
    path = snapshot.result_file("capture")
    found = sha256_hex(read_file(path, "capture"))
    if found != normalized:
        raise StorageError(
            f"{path} is not the manifest that was normalized (SHA-256 {found} instead of {normalized}): "
            "a snapshot is never changed; put the captured one back, or remove the snapshot's folders under tables/ "
            "and normalize again"
        )
    return found


def _judge(spark: SparkSession, snapshot: Snapshot, manifest_sha256: str, lease: Lease) -> Validation:
    """Read the tables and those of the snapshot before, run the checks, and write them as a table too."""
    # They load Spark: imported here so that a refusal comes at once.
    from pulsar_advisor.quality.validate import run_checks
    from pulsar_advisor.tables.settings_inputs import settings_inputs
    from pulsar_advisor.tables.snapshot_frames import SnapshotFrames

    before = next(comparable_before(snapshot), None)
    tables = SnapshotFrames.of(spark, snapshot)
    earlier = None if before is None else tables.at(before)
    results = run_checks(tables, earlier, read_manifest(snapshot), settings_inputs(snapshot))
    found = Validation(
        cluster=snapshot.root.cluster,
        snapshot=snapshot.id,
        manifest_sha256=manifest_sha256,
        suites_sha256=suites_sha256(),
        success=all(result.success for result in results if result.severity == "critical"),
        results=results,
    )
    lease.require()
    write_checks(snapshot, found)
    return found


def write_checks(snapshot: Snapshot, result: Validation) -> None:
    """Write a validation result as a table, `tables/checks/…`: one row per check."""
    rows = list(check_rows(result))
    columns = {column.name: [getattr(row, column.name) for row in rows] for column in CHECKS.columns}
    write_table(snapshot.folder("tables/checks") / "checks.parquet", CHECKS, columns)
