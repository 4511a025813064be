"""Every line that was read is a row or a problem, or the tables are not used."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import documents
from pulsar_advisor.model.errors import DataNotFit
from pulsar_advisor.storage.root import Root, Snapshot
from pulsar_advisor.tables.normalize import check_rows

FILES = [
    documents.file(path.partition("/")[0]).model_copy(update={"path": path})
    for path in ("topic_stats/0", "topic_stats/1", "isolation_policies", "tenants")
]
COUNTS = {"topic_stats/0": (3, 1), "topic_stats/1": (1, 0), "isolation_policies": (2, 0), "tenants": (5, 1)}
"""Path -> (lines, unreadable lines among them)."""


def written(folder: Path, *, reports: list[int], policies: int = 2, unreadable: int = 2) -> Snapshot:
    """The tables that are counted: topics by their number of reports, policies, and problems of two kinds."""
    snapshot = Root(str(folder), "c").snapshot("20261121T083000Z")
    tables = {
        "topics": pa.table({"reports": pa.array(reports, pa.int64())}),
        "policies": pa.table({"name": [f"policy-{number}" for number in range(policies)]}),
        "problems": pa.table({"problem": ["unreadable_line"] * unreadable + ["bad_name"]}),
    }
    for name, table in tables.items():
        path = snapshot.folder(f"tables/{name}")
        path.mkdir(parents=True)
        pq.write_table(table, str(path / "part-0.parquet"))
    return snapshot


def test_tables_that_account_for_every_line_are_good(tmp_path: Path) -> None:
    check_rows(written(tmp_path, reports=[2, 1, 0]), FILES, COUNTS)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ({"reports": [2, 1, 2, 1]}, r"topics of snapshot \w+ has 6 of 3 readable lines of topic_stats"),
        ({"reports": [2]}, r"topics of snapshot \w+ has 2 of 3"),
        ({"reports": [3], "policies": 1}, r"policies of snapshot \w+ has 1 of 2 readable lines"),
        ({"reports": [3], "unreadable": 1}, r"problems of snapshot \w+ has 1 of 2 unreadable lines"),
    ],
    ids=["twice", "lost", "a policy lost", "a problem lost"],
)
def test_tables_that_do_not_are_not_used(tmp_path: Path, rows: dict[str, list[int] | int], said: str) -> None:
    snapshot = written(tmp_path, **rows)  # type: ignore[arg-type]
    with pytest.raises(DataNotFit, match=said):
        check_rows(snapshot, FILES, COUNTS)
