import pytest

from pulsar_advisor.tables.columns import Table
from pulsar_advisor.tables.schemas import TABLES


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_columns_are_named_once_and_commented(table: Table) -> None:
    names = [column.name for column in table.columns]
    assert len(names) == len(set(names))
    assert all(column.comment for column in table.columns)
    assert set(table.key) <= set(names)


def test_rates_times_and_sizes_carry_their_unit() -> None:
    figures = {column.name for table in TABLES for column in table.columns}
    assert {name for name in figures if "msg_rate" in name and not name.endswith("_per_s")} == set()
    assert {name for name in figures if "throughput" in name and not name.endswith("_bytes_per_s")} == set()
    assert {name for name in figures if name.endswith(("_at", "timestamp"))} == set()
