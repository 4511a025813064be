"""Makes and writes Parquet without Spark: one file for a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from upath import UPath

from pulsar_advisor.storage.files import write_file
from pulsar_advisor.tables.columns import Table
from pulsar_advisor.tables.stored import ARROW


def write_table(path: UPath, table: Table, columns: Mapping[str, Sequence[Any]]) -> None:
    """Write a whole table, typed and described as declared; `columns` has the values of each. Raises `StorageError`."""
    fields = [pa.field(one.name, ARROW[one.type], one.nullable, {"comment": one.comment}) for one in table.columns]
    rows = pa.table({one.name: columns[one.name] for one in table.columns}, pa.schema(fields))
    write_file(path, as_parquet(rows))


def as_parquet(rows: pa.Table, **encodings: Any) -> bytes:
    """Rows as the content of a file; `encodings` are options of pyarrow's writer."""
    content = pa.BufferOutputStream()
    pq.write_table(rows, content, compression="zstd", **encodings)
    return bytes(content.getvalue().to_pybytes())
