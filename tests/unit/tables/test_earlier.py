"""Which snapshots one may be compared with, and whose averages and unloads it goes on from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import documents
from pulsar_advisor.model.cluster.snapshot_id import snapshot_id
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.root import MANIFEST, RESULT, Root, Snapshot
from pulsar_advisor.tables import earlier
from pulsar_advisor.tables.earlier import (
    comparable_before,
    earlier_snapshot,
    snapshots_before,
    validations_until,
    within,
)

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
NAME, BROKERS = "pulsar", ["broker-1:8080", "broker-2:8080"]


def at(root: Root, minutes_ago: int) -> Snapshot:
    return root.snapshot(snapshot_id(NOW - timedelta(minutes=minutes_ago)))


def capture(root: Root, minutes_ago: int, *, name: str = NAME, brokers: list[str] = BROKERS) -> None:
    """A raw snapshot that began so long before now."""
    manifest = documents.manifest(identity={"cluster_name": name, "broker_ids": brokers})
    write_file(at(root, minutes_ago).folder("raw") / MANIFEST, manifest.content())


def normalize(root: Root, minutes_ago: int) -> None:
    write_file(at(root, minutes_ago).folder("tables/result") / RESULT, b"{}")


def validate(root: Root, minutes_ago: int, *, success: bool) -> None:
    write_file(at(root, minutes_ago).folder("validation") / RESULT, documents.validation(success=success).content())


def root_with(folder: Path, *minutes_ago: int) -> Root:
    """One cluster's snapshots so long before now, with tables, and one of now."""
    root = Root(str(folder), "c")
    for minutes in (0, *minutes_ago):
        capture(root, minutes)
        normalize(root, minutes)
    return root


@pytest.mark.parametrize(
    ("minutes_ago", "found"),
    [
        ((15,), 15),
        ((45, 30, 15), 15),
        ((75, 60, 45, 40), 40),
        ((90, 75, 60), None),
        ((24 * 60 + 1,), None),
        ((), None),
    ],
    ids=["one", "several", "two and a half usual gaps", "four usual gaps", "more than a day", "none"],
)
def test_it_goes_on_from_the_one_before_unless_the_gap_is_unusual(
    tmp_path: Path, minutes_ago: tuple[int, ...], found: int | None
) -> None:
    root = root_with(tmp_path, *minutes_ago)
    assert earlier_snapshot(at(root, 0)) == (None if found is None else at(root, found))


def test_a_later_one_does_not_count(tmp_path: Path) -> None:
    assert earlier_snapshot(at(root_with(tmp_path, -15), 0)) is None


def without_tables(root: Root) -> None:
    (at(root, 15).folder("tables/result") / RESULT).unlink()


def unfit(root: Root) -> None:
    validate(root, 15, success=False)


def of_a_cluster_with_another_name(root: Root) -> None:
    capture(root, 15, name="another")


def of_a_cluster_of_the_same_name_with_other_brokers(root: Root) -> None:
    capture(root, 15, brokers=["elsewhere-1:8080"])


def with_a_manifest_that_can_not_be_read(root: Root) -> None:
    write_file(at(root, 15).folder("raw") / MANIFEST, b"{")


@pytest.mark.parametrize(
    "spoilt",
    [
        without_tables,
        unfit,
        of_a_cluster_with_another_name,
        of_a_cluster_of_the_same_name_with_other_brokers,
        with_a_manifest_that_can_not_be_read,
    ],
)
def test_one_that_is_no_comparison_is_passed_over(tmp_path: Path, spoilt: Callable[[Root], None]) -> None:
    root = root_with(tmp_path, 45, 30, 15)
    spoilt(root)
    assert list(comparable_before(at(root, 0))) == [at(root, 30), at(root, 45)]
    assert earlier_snapshot(at(root, 0)) == at(root, 30)


@pytest.mark.parametrize("validated", [True, False])
def test_one_that_was_never_validated_counts_as_one_that_passed(tmp_path: Path, validated: bool) -> None:
    root = root_with(tmp_path, 15)
    if validated:
        validate(root, 15, success=True)
    assert earlier_snapshot(at(root, 0)) == at(root, 15)


def test_a_cluster_that_keeps_one_broker_is_the_same(tmp_path: Path) -> None:
    root = root_with(tmp_path, 15)
    capture(root, 15, brokers=[BROKERS[0], "gone:8080"])
    assert list(snapshots_before(at(root, 0))) == [at(root, 15)]


def test_the_usual_gap_comes_from_the_same_cluster(tmp_path: Path) -> None:
    root = root_with(tmp_path, 120, 60)
    for minutes in range(1, 12):
        capture(root, minutes, name="another")
    assert earlier_snapshot(at(root, 0)) == at(root, 60)


def test_a_gap_within_the_grace_period_is_never_too_long(tmp_path: Path) -> None:
    root = root_with(tmp_path, 34, 33, 32, 31, 30)
    assert earlier_snapshot(at(root, 0)) == at(root, 30)


def test_within_a_period_are_those_since_its_begin(tmp_path: Path) -> None:
    root = root_with(tmp_path, 45, 30, 15)
    before = comparable_before(at(root, 0))
    assert list(within(timedelta(minutes=30), at(root, 0), before)) == [at(root, 15), at(root, 30)]


@pytest.mark.parametrize("asked", [comparable_before, validations_until], ids=["comparable", "validated"])
def test_the_manifests_of_what_was_only_captured_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: Callable[[Snapshot], Iterable[object]]
) -> None:
    root = root_with(tmp_path, 60)
    for minutes in range(5, 60, 5):
        capture(root, minutes)
    for minutes in (0, 60):
        validate(root, minutes, success=True)
    read: list[Snapshot] = []
    manifest = earlier.read_manifest
    monkeypatch.setattr(earlier, "read_manifest", lambda one: read.append(one) or manifest(one))
    assert len(list(asked(at(root, 0)))) == (1 if asked is comparable_before else 2)
    assert read == [at(root, 0), at(root, 60)]
