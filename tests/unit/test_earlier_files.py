"""A root and a ledger that an earlier commit wrote open in this one, stage by stage."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from published import faults
from pulsar_advisor.cli import exit_code, stages
from pulsar_advisor.documents.document import Document, as_json
from pulsar_advisor.documents.manifest import Manifest
from pulsar_advisor.documents.recommendation import Recommendation
from pulsar_advisor.documents.tables_result import TablesResult
from pulsar_advisor.documents.validation import Validation
from pulsar_advisor.execution.ledger.approvals import approvals_of_plan
from pulsar_advisor.execution.ledger.audit import audit
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.lists import newest_events, summaries
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.execution.ledger.plan_states import states_of
from pulsar_advisor.execution.ledger.proposals import proposals_of_plan
from pulsar_advisor.execution.ledger.runs import runs_of_plan
from pulsar_advisor.execution.ledger.steps import steps_of_run
from pulsar_advisor.history.columns import DAY_TABLES
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.stages.fold import run as fold
from pulsar_advisor.stages.report import run as report
from pulsar_advisor.stages.show import run as summary
from pulsar_advisor.stages.trend import run as trend
from pulsar_advisor.storage.history import folded_days
from pulsar_advisor.storage.plans import find_plan, plan_files, read_plan, read_recommendation
from pulsar_advisor.storage.results import read_validation
from pulsar_advisor.storage.root import Root
from pulsar_advisor.tables.days import damage
from pulsar_advisor.tables.state import cluster_state

EARLIER = Path(__file__).parents[1] / "data" / "earlier"
SNAPSHOT = "20261122T093126Z"
DIGEST = "sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03"


@pytest.fixture
def root(tmp_path: Path) -> Root:
    """A copy that may be written to."""
    shutil.copytree(EARLIER / "root", tmp_path / "root")
    return Root(str(tmp_path / "root"), "live")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as connection:
        connection.executescript((EARLIER / "ledger.sql").read_text())
    with closing(open_ledger(f"sqlite:///{tmp_path}/ledger.sqlite")) as ledger:
        yield ledger


def test_its_snapshot_is_listed_with_the_result_of_every_stage(root: Root) -> None:
    assert root.snapshots() == [SNAPSHOT]
    assert summary(root.snapshot(SNAPSHOT)).stages.keys() >= {"normalized", "validated"}


def test_its_tables_make_a_cluster_state(root: Root) -> None:
    state = cluster_state(root.snapshot(SNAPSHOT))
    assert list(state.brokers.ids) == ["broker-1:8080", "broker-2:8080", "broker-3:8080"]


def test_its_validation_says_what_becomes_of_failing_rows(root: Root) -> None:
    results = read_validation(root.snapshot(SNAPSHOT)).results
    assert {result.effect for result in results} == {"stop", "confine", "doubt"}


@pytest.mark.parametrize(
    ("folder", "name", "kind"),
    [
        ("raw", "manifest.json", Manifest),
        ("tables/result", "result.json", TablesResult),
        ("validation", "result.json", Validation),
        ("plans", "recommendation.json", Recommendation),
    ],
)
def test_its_documents_are_read_as_those_of_today(folder: str, name: str, kind: type[Document]) -> None:
    file = EARLIER / "root" / folder / "cluster=live" / f"snapshot={SNAPSHOT}" / name
    assert faults(as_json(kind.parsed(file.read_bytes(), name))) == []


def test_tables_that_continued_no_other_snapshot_did_not_say_so_at_first() -> None:
    file = EARLIER / "root" / "tables" / "result" / "cluster=live" / f"snapshot={SNAPSHOT}" / "result.json"
    written = json.loads(file.read_bytes())
    del written["earlier_snapshot"]
    assert TablesResult.parsed(json.dumps(written).encode(), "result.json").earlier_snapshot is None


def test_its_plan_keeps_its_digest(root: Root) -> None:
    [file] = plan_files(root)
    assert digest_of(read_plan(str(file))) == DIGEST
    assert find_plan(root, "82dfc837").digest == DIGEST


def test_a_report_can_be_made_again(root: Root) -> None:
    _, path = report(root.snapshot(SNAPSHOT))
    assert "broker-3:8080" in Path(str(path)).read_text()


def test_its_report_says_that_the_plan_was_carried_out(root: Root, ledger: Ledger, tmp_path: Path) -> None:
    page, _ = report(root.snapshot(SNAPSHOT), ledger_url=f"sqlite:///{tmp_path}/ledger.sqlite")
    assert "was already carried out, in run 1" in page.verdict.commands[-1].purpose
    assert page.verdict.commands[-1].continued == "pulsar-advisor runs 82dfc837"


def test_recommending_it_again_says_so_too(
    root: Root, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stages, "_recommend", lambda *_: read_recommendation(root.snapshot(SNAPSHOT)))
    place = ["--root", root.url, "--cluster", root.cluster, "--ledger", f"sqlite:///{tmp_path}/ledger.sqlite"]
    assert exit_code(["recommend", *place]) == 0
    said = capsys.readouterr().out
    assert "pulsar-advisor runs 82dfc837" in said
    assert "pulsar-advisor approve" not in said


def test_its_plans_are_listed(ledger: Ledger) -> None:
    [state] = [one for one in states_of(ledger, "live", summaries(ledger, "live")) if one.digest == DIGEST]
    assert (state.state, state.problem, state.executable_steps > 0) == ("applied", "", True)
    assert newest_events(ledger, "live", 1)[0].id == ledger.head().event


def test_its_ledger_is_whole_and_knows_the_run(ledger: Ledger) -> None:
    assert audit(ledger).findings == ()
    [run] = runs_of_plan(ledger, DIGEST)
    assert run.state == "done"
    assert {step.state for step in steps_of_run(ledger, run.id).values()} == {"confirmed"}
    assert [(one.proposer, one.source) for one in proposals_of_plan(ledger, DIGEST)] == [("admin", "airflow")]
    assert [(one.approver, one.source) for one in approvals_of_plan(ledger, DIGEST)] == [("operator", "airflow")]


def test_its_folded_day_is_whole_and_shows_what_it_did(tmp_path: Path) -> None:
    shutil.copytree(EARLIER / "days", tmp_path / "root")
    root = Root(str(tmp_path / "root"), "recorded")
    [day], unreadable = folded_days(root)
    assert (len(day.snapshots), unreadable, list(damage(root, day, DAY_TABLES))) == (4, [], [])
    days, found = trend(root, 28)
    assert (days, found.fit, found.moves, found.bundles) == (1, 4, 9, (56, 56))  # nine, as its leader counted too
    assert found.busiest is not None
    assert found.busiest.now == pytest.approx(0.643, abs=0.001)


def test_days_of_the_first_columns_get_the_causes_of_their_moves_when_they_are_folded_again(tmp_path: Path) -> None:
    shutil.copytree(EARLIER / "days", tmp_path / "root")
    root = Root(str(tmp_path / "root"), "recorded")
    assert trend(root, 28)[1].causes == {}
    fold(root.day("20261124"))
    assert trend(root, 28)[1].causes == {"own": 9}


def test_a_trend_and_a_difference_say_that_days_of_the_first_columns_do_not_name_causes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(EARLIER / "days", tmp_path / "root")
    root = Root(str(tmp_path / "root"), "recorded")
    [day], _ = folded_days(root)
    place = ["--root", root.url, "--cluster", root.cluster]
    for verb in (["trend"], ["diff", day.snapshots[0].id, "latest"]):
        assert exit_code([*verb, *place]) == 0
        assert "run `history fold --all`" in capsys.readouterr().err
    fold(root.day(day.day))
    for verb in (["trend"], ["diff", day.snapshots[0].id, "latest"]):
        assert exit_code([*verb, *place]) == 0
        assert capsys.readouterr().err == ""


def test_a_day_of_the_second_columns_is_whole_and_says_who_moved_bundles(tmp_path: Path) -> None:
    shutil.copytree(EARLIER / "days-2", tmp_path / "root")
    root = Root(str(tmp_path / "root"), "recorded")
    [day], unreadable = folded_days(root)
    assert (day.columns, unreadable, list(damage(root, day, DAY_TABLES))) == (2, [], [])
    assert trend(root, 28)[1].causes == {"own": 9}


def test_a_day_of_the_third_columns_is_whole_and_says_who_moved_bundles(tmp_path: Path) -> None:
    shutil.copytree(EARLIER / "days-3", tmp_path / "root")
    root = Root(str(tmp_path / "root"), "recorded")
    [day], unreadable = folded_days(root)
    assert (day.columns, unreadable, list(damage(root, day, DAY_TABLES))) == (3, [], [])
    assert trend(root, 28)[1].causes == {"own": 9}
    assert fold(root.day("20261124")) == day
