"""Which snapshot's averages and unloads the next one goes on from."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pulsar_advisor.storage import MANIFEST, RESULT, Root, snapshot_id, write_json
from pulsar_advisor.tables.normalize import earlier_snapshot

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def root_with(folder: Path, *minutes_ago: int, tables: bool = True) -> Root:
    """Snapshots so long before now."""
    root = Root(str(folder), "c")
    for minutes in minutes_ago:
        snapshot = snapshot_id(NOW - timedelta(minutes=minutes))
        write_json(root.folder("raw", snapshot) / MANIFEST, {})
        if tables:
            write_json(root.folder("tables/result", snapshot) / RESULT, {})
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
def test_it_is_the_one_before_unless_the_gap_is_unusual(
    tmp_path: Path, minutes_ago: tuple[int, ...], found: int | None
) -> None:
    expected = None if found is None else snapshot_id(NOW - timedelta(minutes=found))
    assert earlier_snapshot(root_with(tmp_path, *minutes_ago), snapshot_id(NOW)) == expected


def test_without_tables_it_is_none(tmp_path: Path) -> None:
    assert earlier_snapshot(root_with(tmp_path, 15, tables=False), snapshot_id(NOW)) is None


def test_a_later_one_does_not_count(tmp_path: Path) -> None:
    assert earlier_snapshot(root_with(tmp_path, -15), snapshot_id(NOW)) is None
