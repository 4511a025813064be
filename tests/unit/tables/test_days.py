"""Tables of folded days: whoever read a day's result before it was folded again still gets a whole day."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pulsar_advisor.history.columns import DAY_TABLES
from pulsar_advisor.model.errors import Refused, StorageError
from pulsar_advisor.stages.fold import run as fold
from pulsar_advisor.stages.moments import folded_moments
from pulsar_advisor.storage.lease import Lease
from pulsar_advisor.storage.root import Root
from pulsar_advisor.tables.days import read_day_tables, read_part, remove_parts, write_part
from unit.stages.test_fold import DAY, EVENING, MORNING, NOON
from written_tables import snapshot_of_one_bundle


def test_a_day_folded_again_meanwhile_is_read_as_it_is_now(tmp_path: Path) -> None:
    root = snapshot_of_one_bundle(tmp_path, NOON)
    snapshot_of_one_bundle(tmp_path, EVENING, "b:8080")
    earlier = fold(root.day(DAY))
    snapshot_of_one_bundle(tmp_path, MORNING, "b:8080")
    later = fold(root.day(DAY))
    day, tables = read_day_tables(root, earlier, DAY_TABLES)
    assert day == later
    assert tables["moments"]["snapshot"].to_pylist() == [MORNING, NOON, EVENING]
    assert tables["events"]["t"].to_pylist() == [1, 2]


@pytest.mark.parametrize("levels_up", [0, 1, 2])
def test_folding_again_removes_nothing_that_a_link_leads_to(levels_up: int, tmp_path: Path) -> None:
    root = snapshot_of_one_bundle(tmp_path, NOON)
    fold(root.day(DAY))
    folder = Path(str(root.day(DAY).folder("events")))
    (folder / "file").write_text("stays")
    link = [folder, *folder.parents][levels_up]
    link.rename(tmp_path / "precious")
    link.symlink_to(tmp_path / "precious")
    snapshot_of_one_bundle(tmp_path, EVENING, "b:8080")
    fold(root.day(DAY))
    assert (folder / "file").read_text() == "stays"


def test_a_moment_is_found_by_its_snapshot_in_a_day_folded_again(tmp_path: Path) -> None:
    root = snapshot_of_one_bundle(tmp_path, NOON)
    earlier = fold(root.day(DAY))
    snapshot_of_one_bundle(tmp_path, MORNING, "b:8080")
    fold(root.day(DAY))
    [noon] = folded_moments(root, earlier, [NOON])
    assert (noon.snapshot, noon.owners.to_pylist()) == (NOON, ["a:8080"])


def test_a_table_that_is_gone_is_said_with_what_to_do(tmp_path: Path) -> None:
    root = snapshot_of_one_bundle(tmp_path, NOON)
    day = fold(root.day(DAY))
    file = root.day(DAY).folder("events") / day.tables["events"].file
    file.unlink()
    with pytest.raises(StorageError, match=r"can't be read: .*: fold the day again"):
        read_day_tables(root, day, {"events": DAY_TABLES["events"]})


def test_whoever_was_overtaken_leaves_the_parts_of_the_new_writers_import(tmp_path: Path) -> None:
    day = Root(str(tmp_path), "c").day(DAY)
    write_part(day, "theirs", pa.table({"bundle": [1]}))
    with pytest.raises(Refused, match="was taken over by another process"):
        remove_parts(day, Lease(DAY, day.folder("result")).require)
    assert read_part(day, "theirs") is not None
