"""Spark starts while Python loads a stage, unless the stage is going to refuse the snapshot; how a command ends."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import documents
from pulsar_advisor.cli import exit_code, stages
from pulsar_advisor.planning.advice.coverage import Coverage
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.root import MANIFEST, RESULT, Root

SNAPSHOT = "20261121T083000Z"
SESSION = object()


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

    monkeypatch.setattr(stages, "spark_for", start)
    return threads


def test_spark_starts_beside_the_main_thread_which_then_handles_ctrl_c(
    root: Root, starts: list[threading.Thread]
) -> None:
    write_file(root.folder("validation", SNAPSHOT) / RESULT, b"{}")
    assert stages.spark_soon("local[1]", "recommend", root, SNAPSHOT)() is SESSION
    assert [thread is threading.main_thread() for thread in starts] == [False, True]


def test_spark_waits_for_a_snapshot_that_was_never_validated_to_be_refused(
    root: Root, starts: list[threading.Thread]
) -> None:
    spark = stages.spark_soon("local[1]", "recommend", root, SNAPSHOT)
    assert starts == []
    assert spark() is SESSION


def test_what_keeps_spark_from_starting_is_raised_where_it_is_needed(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError("no Java")

    write_file(root.folder("validation", SNAPSHOT) / RESULT, b"{}")
    monkeypatch.setattr(stages, "spark_for", fails)
    with pytest.raises(OSError, match="no Java"):
        stages.spark_soon("local[1]", "recommend", root, SNAPSHOT)()


@pytest.mark.parametrize(
    ("words", "outcome", "plan", "code"),
    [
        (["drain", "broker-3"], "reached", "plan.json", 0),
        (["drain", "broker-3"], "perhaps", "plan.json", 0),
        (["drain", "broker-3"], "in part", "plan.json", 6),
        (["drain", "broker-3"], "missed", None, 6),
        (["drain", "broker-3", "--detailed-exitcode"], "reached", "plan.json", 7),
        (["drain", "broker-3", "--detailed-exitcode"], "in part", "plan.json", 6),
        (["drain", "broker-3", "--detailed-exitcode"], "reached", None, 0),
        (["recommend"], None, "plan.json", 0),
        (["recommend", "--detailed-exitcode"], None, "plan.json", 7),
        (["recommend", "--detailed-exitcode"], None, None, 0),
    ],
)
def test_an_exit_code_says_whether_the_goal_is_reached_and_if_asked_whether_something_changes(
    words: list[str], outcome: str | None, plan: str | None, code: int, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = documents.recommendation(plan=plan).model_copy(update={"goal_outcome": outcome})
    write_file(root.folder("raw", SNAPSHOT) / MANIFEST, b"{}")
    monkeypatch.setattr(stages, "_recommend", lambda *_: document)
    assert exit_code([*words, "--json", "--root", root.url, "--cluster", root.cluster]) == code


@pytest.mark.parametrize("plan", [None, "plan.json"])
@pytest.mark.parametrize(("words", "outcome", "code"), [(["recommend"], None, 3), (["drain", "b"], "reached", 6)])
def test_too_little_data_for_an_answer_has_the_code_of_unfit_data_or_of_the_goal(
    words: list[str], outcome: str | None, code: int, plan: str | None, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    too_little = {"goal_outcome": outcome, "coverage": Coverage(decides=True)}
    document = documents.recommendation(plan=plan).model_copy(update=too_little)
    write_file(root.folder("raw", SNAPSHOT) / MANIFEST, b"{}")
    monkeypatch.setattr(stages, "_recommend", lambda *_: document)
    detailed = [*words, "--detailed-exitcode", "--json", "--root", root.url, "--cluster", root.cluster]
    assert exit_code(detailed) == code
