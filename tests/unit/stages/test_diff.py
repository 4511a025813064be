"""Two snapshots are compared, whether their tables are there or only the folded day."""

import shutil
from pathlib import Path

import pytest

import documents
from pulsar_advisor.cli import exit_code
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.stages.diff import run as diff
from pulsar_advisor.stages.fold import run as fold
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.root import Root
from written_tables import broker, snapshot_of_one_bundle, written

DAY = "20261121"
MORNING, NOON = f"{DAY}T080000Z", f"{DAY}T120000Z"


@pytest.fixture
def moved(tmp_path: Path) -> Root:
    """Two snapshots, between which the only bundle moved."""
    for id, owner in ((MORNING, "a:8080"), (NOON, "b:8080")):
        root = snapshot_of_one_bundle(tmp_path, id, owner)
    return root


def test_a_folded_day_outlives_the_tables(moved: Root) -> None:
    from_tables = diff(moved, MORNING, "latest")
    assert [event.kind for event in from_tables.events] == ["move"]
    fold(moved.day(DAY))
    shutil.rmtree(str(moved.path / "tables"))
    assert diff(moved, MORNING, DAY) == from_tables


def test_where_there_are_days_alone_the_last_folded_snapshot_is_the_latest(moved: Root) -> None:
    fold(moved.day(DAY))
    from_tables = diff(moved, MORNING, "latest")
    for folder in ("raw", "tables"):
        shutil.rmtree(str(moved.path / folder))
    assert diff(moved, MORNING, "latest").later == from_tables.later


def test_who_moved_a_bundle_is_asked_of_folded_days(moved: Root, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["diff", MORNING, NOON, "--root", moved.url, "--cluster", moved.cluster]
    assert exit_code(words) == 0
    assert "only folded days show who moved a bundle: run `history fold --all`" in capsys.readouterr().err
    fold(moved.day(DAY))
    assert exit_code(words) == 0
    assert capsys.readouterr().err == ""


def test_a_snapshot_that_did_not_pass_validation_is_named(moved: Root, caplog: pytest.LogCaptureFixture) -> None:
    failed = documents.validation(documents.check(success=False), success=False, snapshot=NOON)
    write_file(moved.snapshot(NOON).result_file("validate"), failed.content())
    diff(moved, MORNING, NOON)
    assert caplog.messages == [f"{NOON} did not pass validation: its figures may be wrong"]


def test_the_earlier_one_comes_first(moved: Root) -> None:
    with pytest.raises(UsageError, match="isn't before"):
        diff(moved, NOON, MORNING)
    with pytest.raises(UsageError, match=f"both are snapshot {NOON}"):
        diff(moved, NOON, "latest")


def test_snapshots_of_two_clusters_that_had_one_name_in_paths_are_not_compared(moved: Root) -> None:
    identity = {"identity": {"cluster_name": "another", "broker_ids": ["a:8080"]}}
    written(moved.path, identity, snapshot=f"{DAY}T180000Z", brokers=[broker("a:8080")], bundles=[])
    with pytest.raises(UsageError, match="of 'another': they can't be compared"):
        diff(moved, NOON, "latest")


@pytest.mark.parametrize("name", ["20261101T080000Z", "20261101", "yesterday"])
def test_a_moment_that_is_not_known_is_refused(moved: Root, name: str) -> None:
    with pytest.raises(UsageError, match=name):
        diff(moved, name, NOON)


def test_for_a_day_that_was_not_folded_it_says_where_the_days_are_listed(moved: Root) -> None:
    with pytest.raises(UsageError, match="nor 'latest': `history show` lists the days"):
        diff(moved, "20261101", "latest")
