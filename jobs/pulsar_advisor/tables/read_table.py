"""Reads a snapshot's tables as Arrow; refuses one that is damaged or not made by `normalize`."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from pulsar_advisor.model.cluster.cluster_state import View
from pulsar_advisor.model.errors import StorageError
from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor.storage.results import read_tables_result
from pulsar_advisor.storage.root import Snapshot
from pulsar_advisor.tables.schemas import TABLES, TOPICS
from pulsar_advisor.tables.stored import ARROW, parquet_files, stored_files

_TABLES: Final = {table.name: table for table in TABLES}
_ADDED_LATER: Final = frozenset(
    {
        "averages_folded_samples",
        "averages_unknown_samples",
        "publishes_every_ms",
        *(column.name for column in TOPICS.columns if column.name.startswith(("scalable_", "segment_", "controller_"))),
    }
)
"""Columns that tables of earlier releases lack: read as null, which counts as zero. For any other column that would be
false."""


def read_table(snapshot: Snapshot, table: str, view: View | None = None, columns: list[str] | None = None) -> pa.Table:
    """One table of a snapshot, or the rows of one view of it, or only some of its columns.

    Raises `UsageError` if the snapshot wasn't normalized, `StorageError` if the table is gone, can't be read, or isn't
    one that `normalize` makes.
    """
    read_tables_result(snapshot)
    files = readable_files(snapshot, table)
    wanted = [column for column in _TABLES[table].columns if columns is None or column.name in columns]
    there = set(files.schema.names)
    for column in wanted:
        if column.name not in there and column.name not in _ADDED_LATER:
            raise damaged_table(snapshot, table, f"it has no column {column.name}")
    try:
        rows = files.to_table(
            columns=[column.name for column in wanted if column.name in there],
            filter=None if view is None else pc.field("view") == view,
        )
    except (OSError, pa.ArrowException) as error:
        raise damaged_table(snapshot, table, str(error)) from error
    for column in wanted:
        if column.name not in there:
            rows = rows.append_column(column.name, pa.nulls(len(rows), ARROW[column.type]))
    return rows


def readable_files(snapshot: Snapshot, table: str) -> ds.Dataset:
    """The files of a table, after a check that `normalize` makes such sizes and types. Raises `StorageError`."""
    try:
        paths = parquet_files(snapshot.folder(f"tables/{table}"))
        if not paths:
            raise StorageError("it has no file")
        return stored_files(paths, {column.name: ARROW[column.type] for column in _TABLES[table].columns})
    except (OSError, StorageError) as error:
        raise damaged_table(snapshot, table, str(error)) from error


def damaged_table(snapshot: Snapshot, table: str, why: str) -> StorageError:
    """The error for a table that can't be read."""
    return StorageError(
        f"table {table} of snapshot {snapshot} is missing, damaged or of another release ({plain(why)}): remove "
        f"{snapshot.folder('tables/*')} and normalize again"
    )
