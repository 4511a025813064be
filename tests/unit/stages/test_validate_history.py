"""What validation left of the snapshots before a given one."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import documents
from pulsar_advisor.cli import exit_code
from pulsar_advisor.stages.validate import history, write_checks
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.root import MANIFEST, RESULT, Root, Snapshot
from pulsar_advisor.tables.earlier import good_before
from pulsar_advisor.tables.schemas import CHECKS

FIRST, SECOND, THIRD = (f"2026112{day}T080000Z" for day in (1, 2, 3))


@pytest.fixture
def root(tmp_path: Path) -> Root:
    root = Root(str(tmp_path), "test")
    for snapshot in (FIRST, SECOND, THIRD):
        captured(root.snapshot(snapshot), "pulsar")
    return root


def captured(snapshot: Snapshot, cluster_name: str) -> None:
    """The raw snapshot of a cluster by Pulsar's own name."""
    identity = {"cluster_name": cluster_name, "broker_ids": ["broker-1:8080"]}
    write_file(snapshot.folder("raw") / MANIFEST, documents.manifest(identity=identity).content())


def judged(snapshot: Snapshot, *, success: bool = True, **checks: int | str) -> None:
    """A validation result: check -> rows that fail, or why it could not be evaluated."""
    document = documents.validation(*documents.answered(checks), snapshot=snapshot.id, success=success)
    write_file(snapshot.folder("tables/result") / RESULT, b"{}")
    write_checks(snapshot, document)
    write_file(snapshot.folder("validation") / RESULT, document.content())


def test_the_first_snapshot_has_none_before(root: Root) -> None:
    judged(root.snapshot(FIRST), leader=0)
    assert good_before(root.snapshot(FIRST)) is None


def test_a_snapshot_unfit_for_use_is_passed_over(root: Root) -> None:
    judged(root.snapshot(FIRST))
    judged(root.snapshot(SECOND), success=False)
    assert good_before(root.snapshot(THIRD)) == root.snapshot(FIRST)


def test_a_snapshot_that_nobody_validated_is_not_known_to_be_good(root: Root) -> None:
    judged(root.snapshot(FIRST))
    write_file(root.snapshot(SECOND).folder("tables/result") / RESULT, b"{}")
    assert good_before(root.snapshot(THIRD)) == root.snapshot(FIRST)


def test_the_history_is_of_one_cluster(root: Root) -> None:
    for snapshot in (FIRST, SECOND, THIRD):
        judged(root.snapshot(snapshot), leader=0)
    captured(root.snapshot(SECOND), "another")
    assert [row.snapshot for row in history(root.snapshot(THIRD))] == [FIRST, THIRD]


def test_the_history_is_a_table_that_any_engine_reads(root: Root) -> None:
    judged(root.snapshot(FIRST), leader=0, unique="no such column")
    judged(root.snapshot(SECOND), leader=5, unique=0)
    table = pq.read_table(str(root.path / "tables/checks"))
    assert table.select(["snapshot", "check", "success", "failed_rows", "evaluated"]).to_pylist() == [
        {"snapshot": FIRST, "check": "leader", "success": True, "failed_rows": 0, "evaluated": True},
        {"snapshot": FIRST, "check": "unique", "success": False, "failed_rows": 0, "evaluated": False},
        {"snapshot": SECOND, "check": "leader", "success": False, "failed_rows": 5, "evaluated": True},
        {"snapshot": SECOND, "check": "unique", "success": True, "failed_rows": 0, "evaluated": True},
    ]
    comments = {
        field.name: field.metadata
        for field in pq.read_schema(root.snapshot(FIRST).folder("tables/checks") / "checks.parquet")
    }
    assert comments == {column.name: {b"comment": column.comment.encode()} for column in CHECKS.columns}


def test_the_trend_is_shown_at_a_terminal(root: Root, capsys: pytest.CaptureFixture[str]) -> None:
    judged(root.snapshot(FIRST), **{"brokers.leader": 0})
    place = ["--root", root.url, "--cluster", root.cluster]
    assert exit_code(["validate", *place, "--snapshot", FIRST, "--trend", "brokers.leader"]) == 0
    assert capsys.readouterr().out == f"{FIRST}  passed\n"


def test_the_trend_is_printed_as_json(root: Root, capsys: pytest.CaptureFixture[str]) -> None:
    judged(root.snapshot(FIRST), **{"brokers.leader": 0, "brokers.unique": 0})
    place = ["--root", root.url, "--cluster", root.cluster]
    assert exit_code(["validate", *place, "--snapshot", FIRST, "--trend", "brokers.leader", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["snapshot"], row["check"], row["success"]) for row in rows] == [(FIRST, "brokers.leader", True)]
