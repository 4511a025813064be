"""One clock for all hosts that share a store."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from upath import UPath

from pulsar_advisor.model.errors import StorageError
from pulsar_advisor.storage.store_clock import carried_on, store_time, written_at

STORES = [UPath, lambda folder: UPath(f"memory:/{folder}")]


@pytest.mark.parametrize("store", STORES, ids=["folder", "object store"])
def test_its_time_is_that_of_the_stamps_on_its_files_and_asking_leaves_none(
    tmp_path: Path, store: Callable[[Path], UPath]
) -> None:
    folder = store(tmp_path / "new")
    before = store_time(folder)
    (folder / "file").write_bytes(b"x")
    after = store_time(folder)
    assert before <= written_at(folder / "file") <= after < before + timedelta(minutes=5)
    assert [path.name for path in folder.iterdir()] == ["file"]


@pytest.mark.parametrize(("stamp_s", "year"), [(10**12, 9999), (-(10**12), 1)])
def test_a_stamp_beyond_all_years_is_of_the_nearest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stamp_s: int, year: int
) -> None:
    stamped = os.stat_result((0o100644, 0, 0, 1, 0, 0, 0, stamp_s, stamp_s, stamp_s))
    monkeypatch.setattr(UPath(tmp_path).__class__, "stat", lambda *_, **__: stamped)
    assert written_at(UPath(tmp_path)).year == year


def test_a_store_that_takes_no_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="can't write to"):
        store_time(UPath(tmp_path / "file"))


def test_between_two_questions_this_machine_counts_the_time() -> None:
    answers, elapsed_s = itertools.count(1_000_000, 90_000), iter([10.0, 10.1, 12.5, 15.0, 15.1])
    now_ms = carried_on(lambda: next(answers), lambda: next(elapsed_s))
    assert [now_ms() for _ in range(3)] == [1_000_000, 1_002_500, 1_090_000]


def test_an_answer_during_which_the_process_was_suspended_is_not_carried_on() -> None:
    answers, elapsed_s = iter([1_090_000, 1_091_000]), iter([10.0, 100.0, 101.0, 101.1])
    now_ms = carried_on(lambda: next(answers), lambda: next(elapsed_s))
    assert [now_ms(), now_ms()] == [1_090_000, 1_091_000]
