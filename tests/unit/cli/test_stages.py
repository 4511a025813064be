"""How a command ends."""

from __future__ import annotations

import io
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

import documents
from pulsar_advisor.cli import exit_code, stages
from pulsar_advisor.documents.document import Document
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.execution.ledger.seals import seals_of_snapshot
from pulsar_advisor.model.cluster.snapshot_id import snapshot_id
from pulsar_advisor.planning.advice.coverage import Coverage
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.root import MANIFEST, RESULT, Root

SNAPSHOT = "20261121T083000Z"


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
    write_file(root.snapshot(SNAPSHOT).folder("raw") / MANIFEST, b"{}")
    monkeypatch.setattr(stages, "_recommend", lambda *_: document)
    assert exit_code([*words, "--json", "--root", root.url, "--cluster", root.cluster]) == code


@pytest.mark.parametrize("plan", [None, "plan.json"])
@pytest.mark.parametrize(("words", "outcome", "code"), [(["recommend"], None, 3), (["drain", "b"], "reached", 6)])
def test_too_little_data_for_an_answer_has_the_code_of_unfit_data_or_of_the_goal(
    words: list[str], outcome: str | None, code: int, plan: str | None, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    too_little = {"goal_outcome": outcome, "coverage": Coverage(decides=True)}
    document = documents.recommendation(plan=plan).model_copy(update=too_little)
    write_file(root.snapshot(SNAPSHOT).folder("raw") / MANIFEST, b"{}")
    monkeypatch.setattr(stages, "_recommend", lambda *_: document)
    detailed = [*words, "--detailed-exitcode", "--json", "--root", root.url, "--cluster", root.cluster]
    assert exit_code(detailed) == code


@pytest.mark.parametrize(
    ("verb", "result"), [("normalize", documents.tables_result()), ("validate", documents.validation())]
)
def test_what_a_stage_on_spark_writes_is_sealed_in_the_ledger(
    verb: str, result: Document, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    def written(*_: object) -> Document:
        write_file(root.snapshot(SNAPSHOT).result_file(verb), result.content())
        return result

    write_file(root.snapshot(SNAPSHOT).folder("raw") / MANIFEST, b"{}")
    monkeypatch.setattr(stages, "spark_for", lambda *_: None)
    monkeypatch.setattr(f"pulsar_advisor.stages.{verb}.run", written)
    assert exit_code([verb, "--root", root.url, "--cluster", root.cluster]) == 0
    with closing(open_ledger(root.ledger_url)) as ledger:
        assert [seal.stage for seal in seals_of_snapshot(ledger, root.cluster, SNAPSHOT)] == [verb]


@pytest.mark.parametrize(
    ("age_min", "is_fit", "code"),
    [(5, True, 0), (60, True, 3), (5, False, 3), (None, True, 3)],
    ids=["young", "old", "not to be used", "none"],
)
def test_a_list_of_snapshots_says_by_its_exit_code_if_asked_whether_one_that_young_led_to_advice(
    age_min: int | None, is_fit: bool, code: int, root: Root, capsys: pytest.CaptureFixture[str]
) -> None:
    root.path.mkdir(parents=True, exist_ok=True)
    if age_min is not None:
        taken = root.snapshot(snapshot_id(datetime.now(UTC) - timedelta(minutes=age_min)))
        write_file(taken.folder("raw") / MANIFEST, documents.manifest().content())
        write_file(taken.folder("validation") / RESULT, documents.validation(success=is_fit).content())
        write_file(taken.folder("plans") / "recommendation.json", documents.recommendation().content())
    words = ["snapshots", "list", "--root", root.url, "--cluster", root.cluster]
    assert exit_code(words) == 0
    capsys.readouterr()
    assert exit_code([*words, "--max-age", "45m"]) == code
    assert ("led to advice: " in capsys.readouterr().err) == (code == 3)


def test_no_answer_at_all_has_the_code_of_unfit_data(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = documents.combination(plan=None, digest=None, steps=0, error="isolation_policies is missing")
    write_file(root.snapshot(SNAPSHOT).folder("raw") / MANIFEST, b"{}")
    monkeypatch.setattr(stages, "_recommend", lambda *_: documents.recommendation(lacking))
    assert exit_code(["recommend", "--json", "--root", root.url, "--cluster", root.cluster]) == 3


def test_a_goal_that_is_missed_has_its_code_though_the_disk_has_no_room_for_the_answer(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_file(root.snapshot(SNAPSHOT).folder("raw") / MANIFEST, b"{}")
    missed = documents.recommendation(plan=None).model_copy(update={"goal_outcome": "missed"})
    monkeypatch.setattr(stages, "_recommend", lambda *_: missed)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.FileIO("/dev/full", "w"), write_through=True))
    assert exit_code(["drain", "b", "--json", "--root", root.url, "--cluster", root.cluster]) == 6


def test_tables_that_can_not_be_read_are_not_taken_for_a_result_that_can_not_be_written(
    root: Root, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unreadable(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "brokers.parquet")

    write_file(root.snapshot(SNAPSHOT).folder("raw") / MANIFEST, b"{}")
    missed = documents.recommendation(plan=None).model_copy(update={"goal_outcome": "missed"})
    monkeypatch.setattr(stages, "_recommend", lambda *_: missed)
    monkeypatch.setattr("pulsar_advisor.stages.report.report_page", unreadable)
    exit_code(["drain", "b", "--root", root.url, "--cluster", root.cluster])
    assert "brokers.parquet" in (said := capsys.readouterr().err)
    assert "can't write the result" not in said


def page_of(why: str = "", kind: str = "nothing") -> SimpleNamespace:
    return SimpleNamespace(trust=SimpleNamespace(coverage=SimpleNamespace(why=why)), verdict=SimpleNamespace(kind=kind))


@pytest.mark.parametrize("words", [["report"], ["report", "--json"]])
@pytest.mark.parametrize(
    ("why", "kind", "code"),
    [("too little can be judged", "act", 3), ("", "not_fit", 3), ("", "act", 0), ("", "nothing", 0)],
)
def test_a_report_of_too_little_data_has_the_code_of_unfit_data_in_every_form(
    words: list[str], why: str, kind: str, code: int, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = page_of(why, kind)
    write_file(root.snapshot(SNAPSHOT).folder("raw") / MANIFEST, b"{}")
    monkeypatch.setattr("pulsar_advisor.stages.report.run", lambda *_: (page, "report.html"))
    monkeypatch.setattr("pulsar_advisor.reporting.json.json_chunks", lambda _: ["{}"])
    monkeypatch.setattr(stages, "_show_verdict", lambda _, *, has_report: None)
    assert exit_code([*words, "--root", root.url, "--cluster", root.cluster]) == code


def test_files_of_options_are_in_the_home_that_no_shell_expands(
    root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    asked = list[str]()

    def written(*given: str) -> tuple[SimpleNamespace, str]:
        asked.append(given[2])
        return page_of(), given[2]

    write_file(root.snapshot(SNAPSHOT).folder("raw") / MANIFEST, b"{}")
    monkeypatch.setattr("pulsar_advisor.stages.report.run", written)
    monkeypatch.setattr(stages, "_show_verdict", lambda _, *, has_report: None)
    of_root = ["--root", root.url, "--cluster", root.cluster]
    assert exit_code(["report", "--output=~/report.html", *of_root]) == 0
    assert asked == [f"{tmp_path}/report.html"]
    assert exit_code(["run", "--from-archive=~/a.tar", *of_root]) == 2
    assert f"there is no archive {tmp_path}/a.tar" in capsys.readouterr().err
