import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import documents
from pulsar_advisor.cli import exit_code
from pulsar_advisor.quality.history import (
    good_before,
    quality_history,
    started_failing,
    trend,
    write_checks,
)
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.root import MANIFEST, RESULT, Root
from pulsar_advisor.tables.schemas import CHECKS

FIRST, SECOND, THIRD = (f"2026112{day}T080000Z" for day in (1, 2, 3))


@pytest.fixture
def root(tmp_path: Path) -> Root:
    root = Root(str(tmp_path), "test")
    for snapshot in (FIRST, SECOND, THIRD):
        captured(root, snapshot, "pulsar")
    return root


def captured(root: Root, snapshot: str, cluster_name: str) -> None:
    """The raw snapshot of a cluster by Pulsar's own name."""
    identity = {"cluster_name": cluster_name, "broker_ids": ["broker-1:8080"]}
    write_file(root.folder("raw", snapshot) / MANIFEST, documents.manifest(identity=identity).content())


def judged(root: Root, snapshot: str, *, success: bool = True, **checks: int | str) -> None:
    """A validation result: check -> rows that fail, or why it could not be evaluated."""
    results = [
        documents.check(
            check=check,
            success=answer == 0,
            failed_rows=answer if isinstance(answer, int) else 0,
            error=answer if isinstance(answer, str) else None,
        )
        for check, answer in checks.items()
    ]
    document = documents.validation(*results, snapshot=snapshot, success=success)
    write_file(root.folder("tables/result", snapshot) / RESULT, b"{}")
    write_checks(root, document)
    write_file(root.folder("validation", snapshot) / RESULT, document.content())


def test_the_first_snapshot_has_none_before(root: Root) -> None:
    judged(root, FIRST, leader=0)
    assert good_before(root, FIRST) is None


def test_a_snapshot_unfit_for_use_is_passed_over(root: Root) -> None:
    judged(root, FIRST)
    judged(root, SECOND, success=False)
    assert good_before(root, THIRD) == FIRST


def test_a_snapshot_that_nobody_validated_is_not_known_to_be_good(root: Root) -> None:
    judged(root, FIRST)
    write_file(root.folder("tables/result", SECOND) / RESULT, b"{}")
    assert good_before(root, THIRD) == FIRST


def test_the_history_is_of_one_cluster(root: Root) -> None:
    for snapshot in (FIRST, SECOND, THIRD):
        judged(root, snapshot, leader=0)
    captured(root, SECOND, "another")
    assert [row.snapshot for row in quality_history(root, THIRD)] == [FIRST, THIRD]


def test_a_check_that_starts_to_fail_is_named_with_its_trend(root: Root) -> None:
    judged(root, FIRST, leader=0, unique=0, some=2)
    judged(root, SECOND, leader=0, unique=0, some=2)
    judged(root, THIRD, leader=3, unique=0, some=2)
    assert started_failing(quality_history(root, THIRD)) == (
        "Check leader (warning) fails for 3 rows; it passed in 2 of the last 2 snapshots.",
    )


def test_a_check_that_can_no_longer_be_evaluated_has_a_sign_of_its_own(root: Root) -> None:
    judged(root, SECOND, leader=0)
    judged(root, THIRD, leader="no such column")
    assert started_failing(quality_history(root, THIRD)) == (
        "Check leader (warning) could not be evaluated; it passed in 1 of the last 1 snapshot.",
    )


def test_a_new_check_has_not_started_to_fail(root: Root) -> None:
    judged(root, SECOND, leader=0)
    judged(root, THIRD, leader=0, unique=1)
    assert started_failing(quality_history(root, THIRD)) == ()


def test_the_history_is_a_row_for_each_check_and_snapshot(root: Root) -> None:
    judged(root, FIRST, leader=0)
    judged(root, SECOND, leader=5)
    rows = [(row.snapshot, row.check, row.failed_rows) for row in quality_history(root, SECOND)]
    assert rows == [(FIRST, "leader", 0), (SECOND, "leader", 5)]


def test_the_history_is_a_table_that_any_engine_reads(root: Root) -> None:
    judged(root, FIRST, leader=0, unique="no such column")
    judged(root, SECOND, leader=5, unique=0)
    table = pq.read_table(str(root.path / "tables/checks"))
    assert table.select(["snapshot", "check", "success", "failed_rows", "evaluated"]).to_pylist() == [
        {"snapshot": FIRST, "check": "leader", "success": True, "failed_rows": 0, "evaluated": True},
        {"snapshot": FIRST, "check": "unique", "success": False, "failed_rows": 0, "evaluated": False},
        {"snapshot": SECOND, "check": "leader", "success": False, "failed_rows": 5, "evaluated": True},
        {"snapshot": SECOND, "check": "unique", "success": True, "failed_rows": 0, "evaluated": True},
    ]
    comments = {
        field.name: field.metadata for field in pq.read_schema(root.folder("tables/checks", FIRST) / "checks.parquet")
    }
    assert comments == {column.name: {b"comment": column.comment.encode()} for column in CHECKS.columns}


def test_the_trend_of_one_check_is_a_line_for_each_snapshot(root: Root) -> None:
    judged(root, FIRST, leader=0)
    judged(root, SECOND, leader=5)
    judged(root, THIRD, leader="no such column")
    assert trend(quality_history(root, THIRD), "leader") == (
        f"{FIRST}  passed",
        f"{SECOND}  failed for 5 rows (warning)",
        f"{THIRD}  could not be evaluated",
    )


def test_the_trend_of_all_names_the_checks_that_did_not_always_pass(root: Root) -> None:
    judged(root, FIRST, leader=0, unique=0)
    judged(root, SECOND, leader=5, unique=0, steady="no such column")
    judged(root, THIRD, leader=0, unique=0, steady=0)
    head, *lines = trend(quality_history(root, THIRD), None)
    assert head.startswith(f"3 snapshots, {FIRST} to {THIRD}: ")
    assert lines == [".F.  leader", " ?.  steady"]


def test_the_trend_is_shown_at_a_terminal(root: Root, capsys: pytest.CaptureFixture[str]) -> None:
    judged(root, FIRST, **{"brokers.leader": 0})
    place = ["--root", root.url, "--cluster", root.cluster]
    assert exit_code(["validate", *place, "--snapshot", FIRST, "--trend", "brokers.leader"]) == 0
    assert capsys.readouterr().out == f"{FIRST}  passed\n"


def test_the_trend_is_printed_as_json(root: Root, capsys: pytest.CaptureFixture[str]) -> None:
    judged(root, FIRST, **{"brokers.leader": 0, "brokers.unique": 0})
    place = ["--root", root.url, "--cluster", root.cluster]
    assert exit_code(["validate", *place, "--snapshot", FIRST, "--trend", "brokers.leader", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["snapshot"], row["check"], row["success"]) for row in rows] == [(FIRST, "brokers.leader", True)]
