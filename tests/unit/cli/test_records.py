"""`approve` by a prefix, and what `plans` and `runs` list of it."""

from __future__ import annotations

import json
import subprocess
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import Engine, event

import documents
from pulsar_advisor.cli import exit_code
from pulsar_advisor.cli.places import CLUSTER_VARIABLE, ROOT_VARIABLE
from pulsar_advisor.execution.consent.approval import propose
from pulsar_advisor.execution.ledger.approvals import approvals_of_plan
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.execution.ledger.runs import record_drained
from pulsar_advisor.execution.person import person_on_command_line
from pulsar_advisor.model.plans.names import short
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.plans import write_plan
from pulsar_advisor.storage.root import MANIFEST, Root, Snapshot
from unit.execution.actors import ALICE, started
from unit.execution.doubles import UPPER, make_plan, unload_step


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """A plan that Alice proposed, in the root that the environment names."""
    root, plan = Root(str(tmp_path), "demo"), make_plan([unload_step()])
    write_plan(root, plan)
    with closing(open_ledger(root.ledger_url)) as ledger:
        propose(ledger, plan, ALICE)
    monkeypatch.setenv(ROOT_VARIABLE, str(tmp_path))
    monkeypatch.setenv(CLUSTER_VARIABLE, "demo")
    return plan


def test_a_plan_is_approved_by_a_prefix_and_its_whole_digest_is_recorded(
    plan: Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["approve", short(digest_of(plan)), "--as", "bob"]) == 0
    shown = capsys.readouterr().out
    assert f"digest: {digest_of(plan)}" in shown
    assert f"{plan.steps[0].namespace}/{plan.steps[0].bundle}" in shown
    with closing(open_ledger(Root(str(tmp_path), "demo").ledger_url)) as ledger:
        (approval,) = approvals_of_plan(ledger, digest_of(plan))
    until = f"{datetime.fromtimestamp(approval.expires_at_ms // 1000, UTC):%Y-%m-%d %H:%M:%S UTC}"
    assert f"approved by bob for 4h, until {until}: {digest_of(plan)}\n" in shown
    assert exit_code(["plans", "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert (listed["digest"], listed["state"]) == (digest_of(plan), "approved")


def test_a_digest_given_beside_the_prefix_must_match(plan: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["approve", short(digest_of(plan)), "--as", "bob", "--digest", f"sha256:{'0' * 64}"]) == 4
    assert "is not the plan's digest" in capsys.readouterr().err


def test_plans_and_history_are_tables_for_people(plan: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["plans"]) == 0
    head, line = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["plan", "state", "snapshot"]
    assert line.split()[:3] == [short(digest_of(plan)), "proposed", plan.snapshot]
    assert exit_code(["runs"]) == 0
    assert capsys.readouterr().out == "no runs yet on cluster 'demo'\n"


def test_a_run_whose_brokers_may_not_be_stopped_says_so(
    plan: Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(open_ledger(Root(str(tmp_path), "demo").ledger_url)) as ledger:
        held = started(ledger, plan)
        held.end("done", "1 of 1 steps confirmed")
        record_drained(ledger, held.digest, held.id, "clients use a/b")
    assert exit_code(["runs"]) == 0
    assert capsys.readouterr().out.endswith("bob: 1 of 1 steps confirmed; clients use a/b\n")


def test_a_run_that_its_process_abandoned_says_so_and_what_to_do(
    plan: Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_ledger(Root(str(tmp_path), "demo").ledger_url)) as ledger:
        started(ledger, plan)
    exit_code(["runs"])
    assert "abandoned" not in capsys.readouterr().out
    monkeypatch.setattr("pulsar_advisor.execution.ledger.runs.has_ended", lambda _process: True)
    exit_code(["runs"])
    [_, line] = capsys.readouterr().out.splitlines()
    assert "bob: abandoned: process " in line
    assert f"(`pulsar-advisor apply {short(digest_of(plan))} --resume`), or end it with" in line


def test_withdrawing_prints_its_result_as_json_too(plan: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    exit_code(["approve", short(digest_of(plan)), "--as", "bob"])
    capsys.readouterr()
    assert exit_code(["withdraw", short(digest_of(plan)), "--as", "bob", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"digest": digest_of(plan), "withdrawn": 1}


def test_the_history_of_a_plan_is_all_that_happened_with_it(plan: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    exit_code(["approve", short(digest_of(plan)), "--as", "bob"])
    capsys.readouterr()
    assert exit_code(["runs", short(digest_of(plan))]) == 0
    _, proposed, approved, *_ = capsys.readouterr().out.splitlines()
    assert "proposed: by alice" in proposed
    assert "approved: by bob" in approved
    assert exit_code(["runs", short(digest_of(plan)), "--json"]) == 0
    assert [event["kind"] for event in json.loads(capsys.readouterr().out)] == ["proposed", "approved"]
    exit_code(["withdraw", short(digest_of(plan)), "--as", "bob"])
    exit_code(["runs", short(digest_of(plan))])
    assert capsys.readouterr().out.splitlines()[-1].endswith(")")  # no comment, and so no colon before it


def test_what_happened_to_a_plan_can_be_read_when_its_file_is_gone(
    plan: Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (file,) = tmp_path.glob("plans/*/*/*.json")
    file.unlink()
    assert exit_code(["runs", short(digest_of(plan))]) == 0
    assert "proposed: by alice" in capsys.readouterr().out
    assert exit_code(["plans", "export", short(digest_of(plan)), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["digest"] == digest_of(plan)
    assert exit_code(["runs", "0123456789"]) == 2
    assert "has a digest that begins with 0123456789" in capsys.readouterr().err


def test_the_history_of_a_plan_holds_what_was_approved_with_it(plan: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    approve = ["approve", short(digest_of(plan)), "--as", "bob", "--accept-worse", "--error-budget", "0"]
    exit_code([*approve, "--comment", "fine"])
    until = capsys.readouterr().out.partition(" for 4h, ")[2].partition(": sha256")[0]
    exit_code(["runs", short(digest_of(plan)), "--json"])
    proposed, approved = json.loads(capsys.readouterr().out)
    assert proposed["terms"] == []
    assert approved["terms"][:2] == [until, "consent: --accept-worse"]
    assert "0 failed steps after the first are tolerated" in approved["terms"]
    exit_code(["runs", short(digest_of(plan))])
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].endswith(": fine")
    assert [line.strip().removeprefix("- ") for line in lines[3:]] == approved["terms"]
    exit_code(["withdraw", short(digest_of(plan)), "--as", "bob"])
    capsys.readouterr()
    exit_code(["runs", short(digest_of(plan)), "--json"])
    assert [len(event["terms"]) > 0 for event in json.loads(capsys.readouterr().out)] == [False, True, False]


def test_a_list_of_runs_asks_once_for_all_their_approvals(
    plan: Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(open_ledger(Root(str(tmp_path), plan.cluster).ledger_url)) as ledger:
        for seed in (1, 2):
            started(ledger, make_plan([unload_step()], seed=seed)).end("done", "")
    asked: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        asked.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    assert exit_code(["runs"]) == 0
    event.remove(Engine, "before_cursor_execute", note)
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert sum("FROM approvals" in statement for statement in asked) == 1


def test_a_list_of_runs_says_what_vouches_for_each_approver(
    plan: Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(open_ledger(Root(str(tmp_path), "demo").ledger_url)) as ledger:
        started(ledger, plan)
    assert exit_code(["runs", "--json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)
    assert (run["approver"], run["approver_source"]) == ("bob", "airflow")


def test_a_comment_can_not_pass_for_an_event(plan: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    forged = "2026-11-27 12:00:00         approved: by carol (airflow)"
    exit_code(["approve", short(digest_of(plan)), "--as", "bob", "--comment", f"fine\n{forged}"])
    capsys.readouterr()
    assert exit_code(["runs", short(digest_of(plan))]) == 0
    assert forged not in (lines := capsys.readouterr().out.splitlines())
    assert lines[2].endswith(f"fine\\n{forged}")


@pytest.mark.parametrize(
    "verb", [["plans"], ["runs"], ["snapshots", "list"], ["recommend"], ["guard"], ["history", "verify"]]
)
def test_an_unknown_cluster_names_those_that_there_are(
    verb: list[str], plan: Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_file(Root(str(tmp_path), "prod-eu").snapshot(plan.snapshot).folder("raw") / MANIFEST, b"{}")
    assert exit_code([*verb, "--cluster", "prod-ue"]) == 2
    assert "there is no cluster 'prod-ue'" in (said := capsys.readouterr().err)
    assert said.endswith("; the nearest is 'prod-eu'; there are: prod-eu\n")


def test_who_is_alone_is_shown_the_policy_that_lets_one_person_do_both(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(open_ledger(Root(str(tmp_path), "demo").ledger_url)) as ledger:
        propose(ledger, plan, person_on_command_line("alice"))
    approve = ["approve", short(digest_of(plan)), "--as", "alicia"]
    assert exit_code(approve) == 4
    shown = capsys.readouterr().err.strip().partition("an approval policy allows it: ")[2]
    written = subprocess.run(
        ["bash", "-c", f'{shown} && printf "%s" "$PULSAR_ADVISOR_POLICY"'],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    monkeypatch.setenv("PULSAR_ADVISOR_POLICY", written.stdout)
    assert exit_code(approve) == 0
    assert "approved by alicia for 4h, until " in capsys.readouterr().out


def _recommend(snapshot: Snapshot, **advice: str) -> None:
    write_file(snapshot.folder("raw") / MANIFEST, b"{}")
    made = documents.recommendation(**advice).model_copy(update={"snapshot": snapshot.id})
    write_file(snapshot.result_file("recommend"), made.content())


def test_a_plan_is_no_longer_advised_once_a_later_snapshot_advises_none(
    plan: Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = Root(str(tmp_path), "demo")
    _recommend(root.snapshot(plan.snapshot), plan="a.json", digest=digest_of(plan))
    _recommend(root.snapshot("20991231T000000Z"))
    assert exit_code(["plans"]) == 0
    said = capsys.readouterr()
    assert said.out == "no plans proposed for snapshot 20991231T000000Z; --all lists earlier ones\n"
    assert said.err == "no plan is advised for snapshot 20991231T000000Z: Nothing is worth doing.\n"
    assert exit_code(["plans", "--all", "--json"]) == 0
    assert [one["advised"] for one in json.loads(capsys.readouterr().out)] == [False]


def test_the_advised_plan_leads_and_those_that_do_the_same_share_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = Root(str(tmp_path), "demo")
    better = make_plan([unload_step(), unload_step(2, UPPER)])
    same = [make_plan([unload_step()], shedder=name) for name in ("UniformLoadShedder", "OverloadShedder")]
    with closing(open_ledger(root.ledger_url)) as ledger:
        for one in (better, *same):
            propose(ledger, one, ALICE)
    _recommend(root.snapshot(better.snapshot), plan="a.json", digest=digest_of(same[1]))
    monkeypatch.setenv(ROOT_VARIABLE, str(tmp_path))
    monkeypatch.setenv(CLUSTER_VARIABLE, "demo")
    assert exit_code(["plans"]) == 0
    _, first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(short(digest_of(same[1])))
    assert first.endswith("advised: OverloadShedder with LeastLongTermMessageRate and 1 other alike")
    assert second.startswith(short(digest_of(better)))
    assert exit_code(["plans", "--all"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4
    assert exit_code(["plans", "--json"]) == 0
    assert [one["advised"] for one in json.loads(capsys.readouterr().out)].count(True) == 1
