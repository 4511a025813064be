"""The facts that the suite of the capture uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from pulsar_advisor.documents.manifest import Manifest
from pulsar_advisor.tables.columns import Table
from pulsar_advisor.tables.frames import Row, frame_of
from pulsar_advisor.tables.schemas import TABLES

REQUIRED_SURFACES: Final = ("brokers", "load_reports", "namespaces", "owned_bundles", "topic_stats")
"""Surfaces without which there is no fresh view of the whole cluster."""


def facts_of_capture(spark: SparkSession, manifest: Manifest, table: Callable[[str], DataFrame]) -> DataFrame:
    """One row about the capture as a whole.

    Facts: required surfaces that the manifest does not account for, columns that differ from the tables' declarations.
    """
    accounted = manifest.accounted_surfaces
    row: Row = {
        "snapshot": manifest.snapshot,
        "skew_seconds": manifest.skew_ms / 1000,
        "duration_seconds": (manifest.finished_at_ms - manifest.started_at_ms) / 1000,
        "absent": sorted(set(REQUIRED_SURFACES) - accounted),
        "undeclared": [
            wrong for declared in TABLES for wrong in _undeclared(declared, dict(table(declared.name).dtypes))
        ],
    }
    return frame_of(
        spark,
        "snapshot string, skew_seconds double, duration_seconds double, absent array<string>, undeclared array<string>",
        [row],
    ).withColumns({"absent_surfaces": sf.size("absent"), "undeclared_columns": sf.size("undeclared")})


def _undeclared(table: Table, found: Mapping[str, str]) -> Iterator[str]:
    declared = {column.name: column.type for column in table.columns}
    for column in sorted(declared.keys() | found.keys()):
        if declared.get(column) != found.get(column):
            yield f"{table.name}.{column}: {found.get(column, 'absent')}"
