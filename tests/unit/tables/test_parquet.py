"""A table as it is declared."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from upath import UPath

from pulsar_advisor.tables.columns import Column, Table
from pulsar_advisor.tables.parquet import write_table
from pulsar_advisor.tables.schemas import CHECKS
from pulsar_advisor.tables.simulation_schemas import SIMULATIONS

TABLE = Table(
    "t", "one row", ("name",), (Column("name", "string", "a name", nullable=False), Column("number", "bigint", "count"))
)


def test_columns_have_their_type_and_meaning(tmp_path: UPath) -> None:
    path = UPath(tmp_path / "t.parquet")
    write_table(path, TABLE, {"number": [1, None], "name": ["a", "b"]})
    found = pq.read_table(path.path)
    assert found.to_pydict() == {"name": ["a", "b"], "number": [1, None]}
    assert found.schema.field("number").type == pa.int64()
    assert found.schema.field("name").metadata == {b"comment": b"a name"}


@pytest.mark.parametrize("table", [CHECKS, *SIMULATIONS], ids=lambda table: table.name)
def test_every_table_written_in_this_way_may_be_empty(table: Table, tmp_path: UPath) -> None:
    path = UPath(tmp_path / "t.parquet")
    write_table(path, table, {column.name: [] for column in table.columns})
    assert pq.read_table(path.path).column_names == [column.name for column in table.columns]
