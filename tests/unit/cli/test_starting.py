"""Spark starts while Python loads a stage, unless the stage is going to refuse the snapshot or does without."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from pulsar_advisor.cli import starting
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.root import RESULT, Root

SNAPSHOT = "20261121T083000Z"
SESSION = object()
LARGE = 1 << 30


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return Root(str(tmp_path), "demo")


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[threading.Thread]:
    """The thread of every start of Spark."""
    threads: list[threading.Thread] = []

    def start(*_: object) -> object:
        threads.append(threading.current_thread())
        return SESSION

    monkeypatch.setattr(starting, "spark_for", start)
    return threads


def test_spark_starts_beside_the_main_thread_which_then_handles_ctrl_c(
    root: Root, starts: list[threading.Thread], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_file(root.snapshot(SNAPSHOT).folder("validation") / RESULT, b"{}")
    monkeypatch.setattr("pulsar_advisor.tables.snapshot_size.raw_bytes", lambda *_: LARGE)
    assert starting.spark_soon("local[1]", "recommend", root.snapshot(SNAPSHOT))() is SESSION
    assert [thread is threading.main_thread() for thread in starts] == [False, True]


@pytest.mark.parametrize(
    ("master", "raw_bytes", "starts_spark"),
    [("local[*]", 0, False), ("sc://host:15002", 0, False), ("spark://host:7077", 0, True), ("local[*]", LARGE, True)],
)
def test_no_spark_starts_on_one_machine_to_ask_the_strategies_of_a_small_snapshot(
    master: str,
    raw_bytes: int,
    starts_spark: bool,
    root: Root,
    starts: list[threading.Thread],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_file(root.snapshot(SNAPSHOT).folder("validation") / RESULT, b"{}")
    monkeypatch.setattr("pulsar_advisor.tables.snapshot_size.raw_bytes", lambda *_: raw_bytes)
    spark = starting.spark_soon(master, "recommend", root.snapshot(SNAPSHOT))()
    assert (spark is SESSION, bool(starts)) == (starts_spark, starts_spark)


def test_spark_waits_for_a_snapshot_that_was_never_validated_to_be_refused(
    root: Root, starts: list[threading.Thread]
) -> None:
    spark = starting.spark_soon("local[1]", "recommend", root.snapshot(SNAPSHOT))
    assert starts == []
    assert spark() is SESSION


def test_what_keeps_spark_from_starting_is_raised_where_it_is_needed(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError("no Java")

    write_file(root.snapshot(SNAPSHOT).folder("validation") / RESULT, b"{}")
    monkeypatch.setattr(starting, "spark_for", fails)
    monkeypatch.setattr("pulsar_advisor.tables.snapshot_size.raw_bytes", lambda *_: LARGE)
    with pytest.raises(OSError, match="no Java"):
        starting.spark_soon("local[1]", "recommend", root.snapshot(SNAPSHOT))()
