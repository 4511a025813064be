"""The tables of one snapshot as Spark frames, each read on first use."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from pulsar_advisor.model.cluster.cluster_state import View
from pulsar_advisor.model.errors import StorageError
from pulsar_advisor.storage.root import Snapshot
from pulsar_advisor.tables.frames import in_few_partitions
from pulsar_advisor.tables.read_table import damaged_table, read_table, readable_files
from pulsar_advisor.tables.session import session_for_few_rows
from pulsar_advisor.tables.spark_parquet import read_parquet

_MANY_ROWS: Final = ("bundles", "topics")
"""The tables that grow with the cluster; for a few rows, compiling a query costs more than running it."""


@dataclass(frozen=True)
class SnapshotFrames:
    """The tables of a snapshot; an unreadable one raises `StorageError` when it is requested."""

    many: SparkSession
    few: SparkSession
    """The session for small frames."""
    _snapshot: Snapshot
    _read: dict[str, DataFrame] = field(default_factory=dict)

    @classmethod
    def of(cls, spark: SparkSession, snapshot: Snapshot) -> SnapshotFrames:
        """The tables of a normalized snapshot."""
        return cls(spark, session_for_few_rows(spark), snapshot)

    def at(self, snapshot: Snapshot) -> SnapshotFrames:
        """The tables of another snapshot of the cluster, in the same sessions."""
        return replace(self, _snapshot=snapshot, _read={})

    def frame(self, name: str) -> DataFrame:
        """A whole table, in the session that suits it."""
        if name not in self._read:
            session = self.many if name in _MANY_ROWS else self.few
            # Spark would run a job to read the schema from the same footers.
            schema = from_arrow_schema(readable_files(self._snapshot, name).schema)
            folder = self._snapshot.folder(f"tables/{name}")
            self._read[name] = in_few_partitions(read_parquet(session, schema, folder))
        return self._read[name]

    def rows(self, name: str, view: View | None = None) -> pa.Table:
        """A small table in memory, as `read_table`."""
        return read_table(self._snapshot, name, view)

    def unreadable(self, snapshot: str, name: str) -> StorageError:
        """The error for a table of the cluster that turned out to have rows that can't be read."""
        return damaged_table(self._snapshot.root.snapshot(snapshot), name, "its rows can't be read")
