"""Writes a table without Spark: one Parquet file, its columns typed and described as declared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from upath import UPath

from pulsar_advisor.storage.files import write_file
from pulsar_advisor.tables.schemas import Table
from pulsar_advisor.tables.stored import ARROW


def write_table(path: UPath, table: Table, columns: Mapping[str, Sequence[Any]]) -> None:
    """Write a whole table; `columns` has the values of each declared column. Raises `StorageError`."""
    fields = [pa.field(one.name, ARROW[one.type], one.nullable, {"comment": one.comment}) for one in table.columns]
    content = pa.BufferOutputStream()
    rows = pa.table({one.name: columns[one.name] for one in table.columns}, pa.schema(fields))
    pq.write_table(rows, content, compression="zstd")
    write_file(path, content.getvalue().to_pybytes())
