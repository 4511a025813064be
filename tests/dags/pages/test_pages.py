"""The pages over HTTP, in Airflow's own web server, as its users see them."""

from __future__ import annotations

import base64
import errno
import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from html import unescape
from itertools import count
from pathlib import Path
from sqlite3 import connect
from typing import Any
from unittest.mock import patch
from urllib.parse import urlencode

import pytest
from airflow.sdk import Param
from httpx import Response
from itsdangerous import TimestampSigner

import documents
import rotten_root
from dags.pages.conftest import DECEPTIVE, HOSTILE, LogIn, page_of, started, token_in
from pulsar_advisor.documents.history_day import HistoryDay
from pulsar_advisor.execution.consent.approval import propose
from pulsar_advisor.execution.ledger.approvals import record_rejection, withdraw_approvals
from pulsar_advisor.execution.ledger.held_run import HeldRun
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.pauses import pause_requested
from pulsar_advisor.execution.ledger.runs import record_drained, run_by_id
from pulsar_advisor.execution.ledger.switches import record_switched_back, record_switching_off, switched_off
from pulsar_advisor.execution.ledger.tables import Verification, VerifiedBroker
from pulsar_advisor.execution.ledger.verifications import record_verification
from pulsar_advisor.execution.run.guard.settings import OFF
from pulsar_advisor.model.errors import StorageError, attempting
from pulsar_advisor.model.plans.plan import Plan, Step
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.planning.advice.options import Option
from pulsar_advisor.planning.usage.merit import Cost
from pulsar_advisor.reporting.html import render_html
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.plans import write_plan
from pulsar_advisor.storage.root import MANIFEST, RESULT, Root
from pulsar_advisor_airflow.forms import RUN
from pulsar_advisor_airflow.pages.access import TOKEN_LIFE_S
from unit.execution.actors import ALICE, BOB
from unit.execution.doubles import LOWER, NAMESPACE, SNAPSHOT, UPPER, make_plan, split_step, unload_step
from unit.reporting.skewed import skewed_inputs

pytestmark = pytest.mark.airflow

AFTERWARDS = "20991231T083000Z"
FOUND = {"b1": 0.511, "b2": 0.305}


def test_the_list_shows_each_cluster_with_its_last_verdict(server: LogIn, root: Root) -> None:
    page = server("vic").get("/pulsar-advisor/").text
    assert page.index("prod-us") < page.index("prod-eu")  # the one without a snapshot needs somebody first
    assert "Move one bundle" in page
    assert f'href="/pulsar-advisor/clusters/prod-eu/reports/{SNAPSHOT}"' in page


def test_a_cluster_has_its_snapshots_plans_runs_and_events(server: LogIn, root: Root, held: HeldRun) -> None:
    page = server("vic").get("/pulsar-advisor/clusters/prod-eu").text
    for part in (SNAPSHOT, "applying", "ThresholdShedder", "step sent", "by alice (airflow)", f"/runs/{held.id}"):
        assert part in page


def test_a_run_shows_its_steps_and_renews_itself_while_it_goes_on(server: LogIn, root: Root, held: HeldRun) -> None:
    answer = server("olive").get(page_of(held))
    assert "0 of 1 steps confirmed" in answer.text
    assert f"{NAMESPACE}/{LOWER}" in answer.text
    assert answer.headers["refresh"] == "5"
    held.conclude("step-001", "confirmed", "owner is b2")
    held.end("done", "1 of 1 steps confirmed")
    answer = server("olive").get(page_of(held))
    assert "refresh" not in answer.headers
    assert "owner is b2" in answer.text
    assert "Pause" not in answer.text


def test_a_balancer_that_a_run_left_off_is_red_until_it_is_restored(
    server: LogIn, ledger: Ledger, held: HeldRun
) -> None:
    record_switching_off(held, "loadBalancerSheddingEnabled", None, OFF, {})
    held.conclude("step-001", "confirmed", "owner is b2")
    held.end("done", "1 of 1 steps confirmed")

    def red(path: str) -> list[str]:
        return re.findall(r'class="bad">([^<]*still off)', server("vic").get(path).text)

    cluster, run = "/pulsar-advisor/clusters/prod-eu", "done, balancer still off"
    assert red("/pulsar-advisor/") == ["its balancer is still off", run]
    assert [red(cluster), red(page_of(held))] == [["The cluster's own balancer is still off", run]] * 2
    assert "/dags/pulsar_maintenance" in server("vic").get(cluster).text, "which restores it when it is triggered"
    record_switched_back(ledger, *switched_off(ledger, "live"), "restored: not overridden")
    assert [red(path) for path in ("/pulsar-advisor/", cluster, page_of(held))] == [[], [], []]


def test_a_cluster_shows_its_trends_and_a_snapshot_that_was_not_judged_is_a_gap(server: LogIn, root: Root) -> None:
    for number, spread in enumerate((0.21, None, 0.07)):
        snapshot = f"2026112{number}T083000Z"
        write_file(root.snapshot(snapshot).folder("raw") / MANIFEST, documents.manifest().content())
        if spread is not None:
            write_file(root.snapshot(snapshot).folder("validation") / RESULT, documents.validation().content())
            rows = (documents.combination(standard_deviation_before=each) for each in (None, spread))
            document = documents.recommendation(*rows)
            write_file(root.snapshot(snapshot).folder("plans") / "recommendation.json", document.content())
    for path in ("/pulsar-advisor/", "/pulsar-advisor/clusters/prod-eu"):
        page = server("vic").get(path).text
        assert "standard deviation of usage, last 3\u00a0snapshots: highest 21.0%, newest 7.0%" in page
        assert "7.0%" in page  # as the report has it


def test_a_line_of_failed_checks_says_in_words_what_it_shows(server: LogIn, root: Root) -> None:
    for path in ("/pulsar-advisor/", "/pulsar-advisor/clusters/prod-eu"):
        page = server("vic").get(path).text
        assert 'aria-label="failed checks, last 1\u00a0snapshot: most 1, newest 1"' in page


def test_checks_that_nothing_ran_are_not_said_to_have_passed(server: LogIn, root: Root) -> None:
    def said() -> str:
        return server("vic").get("/pulsar-advisor/clusters/prod-eu").text.partition("Failed checks</figcaption>")[2]

    result = root.snapshot(SNAPSHOT).folder("validation") / RESULT
    result.unlink()
    assert said().startswith("no snapshot was validated")
    write_file(result, documents.validation().content())
    assert said().startswith("none")


def test_a_plan_has_its_steps_who_approved_it_its_runs_and_its_events(
    server: LogIn, root: Root, plan: Plan, held: HeldRun
) -> None:
    page = server("vic").get(f"/pulsar-advisor/clusters/prod-eu/plans/{digest_of(plan)}").text
    for part in (f"{NAMESPACE}/{LOWER}", "alice", "bob", "step sent", 'id="ledger"', f"/runs/{held.id}"):
        assert part in page


def verified(ledger: Ledger, run: HeldRun, **changes: Any) -> None:
    """A run was found as predicted, by the snapshot of its plan, unless said otherwise."""
    run.end("done", "1 of 1 steps confirmed")
    found = {"snapshot": SNAPSHOT, "at_ms": ledger.now_ms(), "usage_judged": True, "as_predicted": True, **changes}
    usage = [VerifiedBroker(broker=name, actual_usage_ratio=ratio, as_predicted=True) for name, ratio in FOUND.items()]
    record_verification(ledger, Verification(run_id=run.id, **found), [], usage)


@pytest.mark.parametrize(
    ("as_predicted", "judged", "colour", "said"),
    [
        (True, True, "good", "as predicted"),
        (False, True, "bad", "not as predicted"),
        (True, False, "muted", "bundles as predicted, usage not judged"),
    ],
)
def test_a_verified_run_says_whether_it_went_as_predicted(
    server: LogIn, ledger: Ledger, held: HeldRun, as_predicted: bool, judged: bool, colour: str, said: str
) -> None:
    verified(ledger, held, usage_judged=judged, as_predicted=as_predicted)
    shown = f'1 of 1 steps confirmed; verified: <span class="{colour}">{said}</span>'
    for path in (page_of(held), f"/pulsar-advisor/clusters/prod-eu/plans/{held.digest}"):
        assert shown in server("vic").get(path).text


def test_two_runs_that_were_verified_with_one_snapshot_both_have_their_verdict(
    server: LogIn, ledger: Ledger, plan: Plan, held: HeldRun
) -> None:
    verified(ledger, held, as_predicted=False)
    verified(ledger, started(ledger, plan.model_copy(update={"seed": 7})))
    page = server("vic").get("/pulsar-advisor/clusters/prod-eu").text
    assert re.findall(r"verified: <span[^>]*>([^<]*)</span>", page) == ["as predicted", "not as predicted"]


def test_a_broker_that_may_not_be_stopped_is_red_where_the_run_that_drained_it_is_done(
    server: LogIn, ledger: Ledger, held: HeldRun
) -> None:
    held.end("done", "1 of 1 steps confirmed")
    record_drained(ledger, held.digest, held.id, "clients use a/b")
    said = '1 of 1 steps confirmed; <span class="bad">clients use a/b</span>'
    cluster = "/pulsar-advisor/clusters/prod-eu"
    pages = (page_of(held), cluster, f"{cluster}/plans/{held.digest}")
    assert [said in server("vic").get(path).text for path in pages] == [True] * 3
    record_drained(ledger, held.digest, held.id, "")
    assert [said in server("vic").get(path).text for path in pages] == [False] * 3


def test_a_run_that_its_process_abandoned_says_so_and_what_to_press(
    server: LogIn, held: HeldRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = "/pulsar-advisor/clusters/prod-eu"
    pages = (page_of(held), cluster, f"{cluster}/plans/{held.digest}")
    assert not any("abandoned" in server("vic").get(path).text for path in pages)
    monkeypatch.setattr("pulsar_advisor.execution.ledger.runs.has_ended", lambda _process: True)
    for path in pages:
        [said] = re.findall(r'<span class="bad">abandoned: process ([^<]+)</span>', server("vic").get(path).text)
        assert said.startswith(f"{os.getpid()} on ")
        how = "clear its task apply, or trigger pulsar_rebalance with its digest"
        assert said.endswith(f"where it was begun ({how}), or press Stop for good on its page")


def test_advice_that_was_carried_out_is_history_and_what_came_of_it_is_shown(
    server: LogIn, root: Root, ledger: Ledger, held: HeldRun
) -> None:
    write_file(root.snapshot(AFTERWARDS).folder("raw") / MANIFEST, documents.manifest().content())
    verified(ledger, held, snapshot=AFTERWARDS)
    page = server("vic").get("/pulsar-advisor/clusters/prod-eu").text
    assert re.search(rf'<span class="muted">before run {held.id}: Move one bundle', page)
    assert f'<span class="good">after run {held.id}: highest usage 51.1%, as predicted</span>' in page
    assert re.search(r"1 of 1 steps confirmed; verified: <span[^>]*>as predicted</span>", page)
    assert "not validated" not in page
    for path in ("", "index"):
        page = server("vic").get(f"/pulsar-advisor/{path}").text
        assert f"after run {held.id}: highest usage 51.1%, as predicted" in page
        assert "Move one bundle" not in page


@pytest.fixture
def airflow_runs(database: None) -> Iterator[Callable[..., None]]:
    """Adds runs of DAGs to Airflow's database, the newest last; with a task that failed and what it said, if any."""
    from airflow.models.dagrun import DagRun
    from airflow.models.taskinstance import TaskInstance
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session
    from airflow.utils.types import DagRunType
    from sqlalchemy import delete, insert

    run_ids = [f"manual__{number}" for number in range(5)]
    unused = iter(run_ids)

    def add(dag: str, state: str, task: str = "", task_state: str = "failed", problem: str = "") -> None:
        key = {"dag_id": dag, "run_id": next(unused)}
        with create_session() as session:
            run = DagRun(**key, run_type=DagRunType.MANUAL, state=state)
            session.add(run)
            session.flush()
            if task:
                ended = datetime.now(UTC) - timedelta(minutes=3)
                values = {**key, "task_id": task, "state": task_state, "end_date": ended, "pool": "default_pool"}
                session.execute(insert(TaskInstance).values(**values))
            if problem:
                said = {"key": "problem", "value": json.dumps(problem), "dag_run_id": run.id}
                session.execute(insert(XComModel).values(**key, task_id=task, **said))

    yield add
    with create_session() as session:
        for rows in (XComModel, TaskInstance, DagRun):
            session.execute(delete(rows).where(rows.run_id.in_(run_ids)))


@pytest.mark.parametrize("path", ["", "clusters/prod-us"])
def test_a_cluster_that_does_not_answer_says_so_before_the_others(
    server: LogIn, root: Root, airflow_runs: Callable[..., None], path: str
) -> None:
    airflow_runs("pulsar_snapshot__prod-us", "success")
    airflow_runs("pulsar_snapshot__prod-us", "failed", "capture", problem=f"broker-1: connection refused {HOSTILE}")
    page = server("vic").get(f"/pulsar-advisor/{path}").text
    assert "<code>capture</code> failed 3 min ago: broker-1: connection refused" in page
    assert HOSTILE not in page
    assert path or page.index("prod-us") < page.index("prod-eu")


def test_what_was_dated_by_a_clock_that_is_ahead_is_not_of_negative_age(server: LogIn) -> None:
    from pulsar_advisor_airflow.pages.app import templates

    assert templates.filters["age"]("99991231T235959Z") == "0 min"


def test_a_moment_beyond_all_years_as_of_a_forged_row_is_shown_as_its_number(server: LogIn) -> None:
    from pulsar_advisor_airflow.pages.app import templates

    assert templates.filters["moment"](10**18) == "1000000000000000000 ms"


def test_a_run_during_which_the_clock_was_set_back_took_no_negative_time(server: LogIn) -> None:
    from pulsar_advisor_airflow.pages.app import templates

    assert [templates.filters["took"](milliseconds) for milliseconds in (725_999, -600_000)] == ["0:12:05", "0:00:00"]


def test_a_dag_run_that_took_too_long_has_failed_though_no_task_of_it_did(
    server: LogIn, root: Root, airflow_runs: Callable[..., None]
) -> None:
    airflow_runs("pulsar_snapshot__prod-us", "failed")
    page = server("vic").get("/pulsar-advisor/").text
    assert "<code>pulsar_snapshot__prod-us</code> failed 0 min ago: it took too long, or somebody ended it" in page
    assert page.index("prod-us") < page.index("prod-eu")


def test_a_task_that_waits_for_another_try_has_failed_until_then(
    server: LogIn, root: Root, airflow_runs: Callable[..., None]
) -> None:
    airflow_runs("pulsar_snapshot__prod-eu", "success")
    airflow_runs("pulsar_recommend__prod-eu", "running", "recommend", "up_for_retry")
    page = server("vic").get("/pulsar-advisor/").text
    assert "<code>recommend</code> failed 3 min ago and will be retried<" in page
    airflow_runs("pulsar_snapshot__prod-eu", "running")
    page = server("vic").get("/pulsar-advisor/").text
    assert "failed 3 min" not in page
    assert "A new snapshot is being captured." in page


def test_the_last_advice_stays_while_a_newer_snapshot_is_processed(
    server: LogIn, root: Root, airflow_runs: Callable[..., None]
) -> None:
    write_file(root.snapshot("20261122T083000Z").folder("raw") / MANIFEST, documents.manifest().content())
    page = server("vic").get("/pulsar-advisor/").text
    assert re.search(r"Move one bundle .*\(\S+ \w+ ago\)", page)
    assert re.search(r"The newest snapshot, \S+ \w+ old: captured; not validated\.", page)
    assert f'href="{REPORT}"' in page
    airflow_runs("pulsar_snapshot__prod-eu", "running")
    for path in ("", "clusters/prod-eu"):
        page = server("vic").get(f"/pulsar-advisor/{path}").text
        assert "Move one bundle" in page
        assert re.search(r"The newest snapshot, \S+ \w+ old, is being processed\.", page)


@pytest.mark.parametrize("path", ["", "clusters/prod-us"])
def test_a_first_snapshot_is_shown_while_it_is_processed(
    server: LogIn, root: Root, airflow_runs: Callable[..., None], path: str
) -> None:
    write_file(Root(root.url, "prod-us").snapshot(SNAPSHOT).folder("raw") / MANIFEST, documents.manifest().content())
    airflow_runs("pulsar_snapshot__prod-us", "running")
    page = server("vic").get(f"/pulsar-advisor/{path}").text
    assert re.search(r"The newest snapshot, \S+ \w+ old, is being processed\.", page)


def test_what_does_not_fit_a_page_is_on_the_next(
    server: LogIn, root: Root, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, plan: Plan, held: HeldRun
) -> None:
    for name in ("clusters.ROWS_SHOWN", "plans.STEPS_SHOWN", "runs.STEPS_SHOWN", "parts.EVENTS_SHOWN"):
        monkeypatch.setattr(f"pulsar_advisor_airflow.pages.{name}", 1)
    write_file(root.snapshot("20261120T083000Z").folder("raw") / MANIFEST, documents.manifest().content())
    older = plan.model_copy(update={"snapshot": "20261120T083000Z"})
    propose(ledger, older, ALICE)
    client = server("vic")
    cluster, of_plan = "/pulsar-advisor/clusters/prod-eu", f"/pulsar-advisor/clusters/prod-eu/plans/{held.digest}"

    def next_page(path: str, label: str) -> str:
        [address] = re.findall(rf'href="(\?[^"]+)">{label}<', client.get(path).text)
        return client.get(path + address).text

    assert f"<code>{SNAPSHOT}</code></td>\n<td class=" not in next_page(cluster, "Older snapshots")
    assert digest_of(older) in next_page(cluster, "Older plans")
    assert "step sent" not in next_page(of_plan, "Earlier events")
    assert "run started" in next_page(page_of(held), "Earlier events")
    assert "Older runs" not in client.get(cluster).text


@pytest.fixture
def rotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, registered: Callable[..., None]) -> Path:
    """A root of three clusters, of which one has all that can be rotten."""
    registered(*rotten_root.CLUSTERS)
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__ROOT", str(tmp_path / "root"))
    rotten_root.write_root(tmp_path / "root")
    rotten_root.add_strange_folders(tmp_path / "root")
    rotten_root.spoil_plan_in_ledger(tmp_path / "root")
    return tmp_path / "root"


@pytest.mark.parametrize("file", rotten_root.FILES)
def test_a_rotten_file_is_a_row_that_says_so(server: LogIn, rotten: Path, file: str) -> None:
    for how in ("half", "another document"):
        rotten_root.spoil(rotten, file, how)
        for path in ("", *(f"clusters/{name}" for name in rotten_root.CLUSTERS)):
            answer = server("vic").get(f"/pulsar-advisor/{path}")
            assert answer.status_code == 200, (path, how)
            assert not {"\u202e", "\x1b"} & set(answer.text)
            assert str(rotten) not in answer.text
    page = server("vic").get("/pulsar-advisor/").text
    assert page.count("Move one bundle.") == (2 if file in ("validation", "recommendation") else 3)


def test_a_rejected_plan_is_not_listed_as_proposed(server: LogIn, ledger: Ledger, plan: Plan) -> None:
    propose(ledger, plan, ALICE)
    record_rejection(ledger, digest_of(plan), "by bob", "airflow")
    page = server("vic").get("/pulsar-advisor/clusters/prod-eu").text
    assert '<span class="warn">rejected</span>' in page
    assert ">proposed</span>" not in page
    page = server("vic").get(f"/pulsar-advisor/clusters/prod-eu/plans/{digest_of(plan)}").text
    assert re.search(r"<h1>Plan \w+: rejected</h1>", page)
    assert re.search(r"rejected</td><td[^>]*>by bob \(airflow\)</td>", page)


def test_proposals_and_answers_are_in_the_order_of_time(
    server: LogIn, ledger: Ledger, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "now_ms", count(1_800_000_000_000, 60_000).__next__)
    propose(ledger, plan, ALICE)
    record_rejection(ledger, digest_of(plan), "by bob", "airflow")
    propose(ledger, plan, ALICE)
    page = server("vic").get(f"/pulsar-advisor/clusters/prod-eu/plans/{digest_of(plan)}").text
    answers = page.partition("<h2>Proposals and answers</h2>")[2].partition("<h2")[0]
    assert re.findall(r"<td[^>]*>(proposed|rejected)</td>", answers) == ["proposed", "rejected", "proposed"]


REPORT = f"/pulsar-advisor/clusters/prod-eu/reports/{SNAPSHOT}"


def directives(answer: Response) -> dict[str, list[str]]:
    """The parts of a page's policy."""
    return {part.split()[0]: part.split()[1:] for part in answer.headers["content-security-policy"].split(";")}


def hash_of_script(page: str) -> str:
    [script] = re.findall("<script>(.*?)</script>", page, re.DOTALL)
    return f"'sha256-{base64.b64encode(sha256(script.encode()).digest()).decode()}'"


def test_pages_escape_what_others_wrote_and_run_one_script_ours(server: LogIn, root: Root, held: HeldRun) -> None:
    plan_page = f"/pulsar-advisor/clusters/prod-eu/plans/{held.digest}"
    for path in ("/pulsar-advisor/", "/pulsar-advisor/clusters/prod-eu", plan_page, page_of(held), REPORT):
        answer = server("olive").get(path)
        assert answer.status_code == 200
        assert HOSTILE not in answer.text
        assert not set(DECEPTIVE[:2] + DECEPTIVE[-1]) & set(answer.text)
        assert directives(answer)["default-src"] == ["'none'"]
        assert directives(answer)["script-src"] == [hash_of_script(answer.text)]


def test_the_last_weeks_of_all_clusters_are_a_page_of_ours(server: LogIn, root: Root) -> None:
    write_file(root.day("20261120").result_file, b"{")
    assert 'href="/pulsar-advisor/index"' in server("vic").get("/pulsar-advisor/").text
    answer = server("vic").get("/pulsar-advisor/index")
    assert (answer.status_code, directives(answer)["default-src"]) == (200, ["'none'"])
    assert "2\u00a0Pulsar clusters, the last 28\u00a0folded days of each" in answer.text
    assert '<a href="/pulsar-advisor/">Pulsar clusters</a>' in answer.text
    assert f'href="/pulsar-advisor/clusters/prod-eu/reports/{SNAPSHOT}"' in answer.text
    assert "20261120 can&#39;t be read" in answer.text
    assert root.url not in answer.text
    assert HOSTILE not in answer.text
    assert not set(DECEPTIVE[:2] + DECEPTIVE[-1]) & set(answer.text)
    assert "<script" not in answer.text


def test_what_to_do_about_days_of_an_earlier_release_is_something_to_press(server: LogIn, root: Root) -> None:
    day = HistoryDay(cluster="prod-eu", cluster_name="live", day="20261120", columns=1, snapshots=(), tables={})
    write_file(root.day(day.day).result_file, day.content())
    page = server("vic").get("/pulsar-advisor/index").text
    assert "some days were folded by an earlier release: trigger pulsar_history, which folds them" in page


def test_a_report_has_no_part_in_airflows_origin(server: LogIn, root: Root) -> None:
    answer = server("vic").get(f"{REPORT}/report.html")
    assert HOSTILE in answer.text
    policy = directives(answer)
    assert policy["default-src"] == ["'none'"]
    assert policy["sandbox"] == ["allow-scripts"]
    assert policy["script-src"] == [hash_of_script(render_html(skewed_inputs().page()))]
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_what_is_no_file_of_the_root_is_not_shown_as_a_report(
    server: LogIn, root: Root, tmp_path: Path, kind: str
) -> None:
    report = Path(str(root.snapshot(SNAPSHOT).folder("reports") / "report.html"))
    secret = tmp_path / "elsewhere" / "report.html"
    secret.parent.mkdir()
    secret.write_text("of the web server")
    report.unlink()
    if kind == "link":
        report.symlink_to(secret)
    elif kind == "pipe":
        os.mkfifo(report)
    else:
        report.parent.rmdir()
        report.parent.symlink_to(secret.parent)
    answer = server("vic").get(f"{REPORT}/report.html")
    assert (answer.status_code, "of the web server" in answer.text) == (500, False)


@pytest.mark.parametrize(
    ("user", "path", "status"),
    [
        ("", "", 401),
        ("vic", "clusters/prod-eu", 200),
        ("vic", "clusters/prod-eu/plans/sha256:0", 404),
        ("vic", "clusters/prod-eu/reports/20260101T000000Z", 404),
        ("vic", "no/such/page", 404),
        ("vic", "clusters/prod-eu/runs/x", 422),
        ("vic", "clusters/prod-us/reports/20260101T000000Z/report.html", 500),
        ("vic", "clusters/prod-us/reports/20260101T000000Z/plans/sha256:0", 404),
        ("vic", f"clusters/prod-eu/reports/{SNAPSHOT}/report.html", 200),
    ],
)
def test_every_answer_is_a_page_with_a_policy_and_a_way_back(
    server: LogIn, root: Root, ledger: Ledger, user: str, path: str, status: int
) -> None:
    other = Root(root.url, "prod-us")
    write_file(other.snapshot("20260101T000000Z").folder("raw") / MANIFEST, documents.manifest().content())
    (other.snapshot("20260101T000000Z").folder("reports") / "report.html").mkdir(parents=True)  # can't be read
    answer = server(user).get(f"/pulsar-advisor/{path}")
    assert answer.status_code == status
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-type"].startswith("text/html")
    kept = path == "clusters/prod-eu"
    assert answer.headers["cache-control"] == ("private, no-cache" if kept else "no-store")
    if status != 200:
        assert 'href="/pulsar-advisor/"' in answer.text
        assert 'href="/" target="_top"' in answer.text
        assert f"{status}: " in answer.text
    assert root.url not in answer.text


def test_a_new_password_of_the_ledger_counts_at_once(
    root: Root, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The configuration says only where the URL is kept."""
    from pulsar_advisor_airflow.pages.places import ledger_if_any

    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__LEDGER", "env:LEDGER_URL")
    opened = []
    for url in (root.ledger_url, root.ledger_url, f"{root.ledger_url}?timeout=5"):
        monkeypatch.setenv("LEDGER_URL", url)
        with ledger_if_any() as found:
            opened.append(found)
    assert (opened[0] is opened[1], opened[1] is opened[2]) == (True, False)


def test_a_web_server_of_the_release_before_writes_nothing_into_a_migrated_ledger(
    server: LogIn, ledger: Ledger, held: HeldRun, root: Root
) -> None:
    """It has had the ledger open since before the upgrade."""
    client = server("olive")
    token = token_in(client.get(page_of(held)).text)
    with closing(connect(root.ledger_url.removeprefix("sqlite:///"))) as database, database:
        database.execute("UPDATE alembic_version SET version_num = 'of a newer release'")
    assert client.post(f"{page_of(held)}/pause", data={"token": token}).status_code == 500
    assert pause_requested(ledger, held.id) is None


def test_a_closed_folder_above_the_root_is_not_named(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    from pulsar_advisor_airflow.pages.answers import without_places

    above = str(Path(root.url).parent)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(StorageError, match=f"Permission denied: {above} belongs to ") as failure, attempting("list it"):
        raise PermissionError(errno.EACCES, "Permission denied", above)
    assert "Permission denied: … belongs to " in without_places(str(failure.value))


def test_a_root_that_the_web_server_can_not_open_is_explained(
    server: LogIn, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__ROOT", "nosuch://bucket/advisor")
    answer = server("olive").get("/pulsar-advisor/")
    assert answer.status_code == 404
    assert "can&#39;t be opened" in answer.text
    assert "bucket" not in answer.text


def test_an_order_that_is_refused_is_answered_by_a_page(server: LogIn, ledger: Ledger, held: HeldRun) -> None:
    client = server("olive")
    token = token_in(client.get(page_of(held)).text)
    held.end("done", "1 of 1 steps confirmed")
    answer = client.post(f"{page_of(held)}/pause", data={"token": token})
    assert answer.status_code == 409
    assert answer.headers["cache-control"] == "no-store"
    assert "<h1>409: Conflict</h1>" in answer.text


def test_a_run_is_shown_again_once_its_ledger_can_be_read_again(
    server: LogIn, held: HeldRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: object) -> None:
        raise StorageError("the ledger's server restarts")

    monkeypatch.setattr("pulsar_advisor_airflow.pages.app.run_content", unreachable)
    answer = server("olive").get(page_of(held))
    assert (answer.status_code, answer.headers["refresh"]) == (500, "30")


def test_a_page_that_did_not_change_is_not_sent_again(server: LogIn, root: Root) -> None:
    client = server("vic")
    shown = client.get("/pulsar-advisor/clusters/prod-us")
    again = client.get("/pulsar-advisor/clusters/prod-us", headers={"If-None-Match": shown.headers["etag"]})
    assert (again.status_code, again.text) == (304, "")
    write_file(Root(root.url, "prod-us").snapshot(SNAPSHOT).folder("raw") / MANIFEST, documents.manifest().content())
    again = client.get("/pulsar-advisor/clusters/prod-us", headers={"If-None-Match": shown.headers["etag"]})
    assert again.status_code == 200


def test_a_user_is_answered_a_few_times_at_once(server: LogIn, root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    from pulsar_advisor_airflow.pages import answers

    monkeypatch.setattr(answers, "_under_way", waiting := Counter(vic=answers.AT_ONCE))
    refused = server("vic").get("/pulsar-advisor/")
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert refused.headers["refresh"] == "1", "else the page of a run would end with it"
    assert server("olive").get("/pulsar-advisor/").status_code == 200
    assert server("olive").get("/pulsar-advisor/clusters/prod-eu/reports/x").status_code == 404
    assert waiting == {"vic": answers.AT_ONCE}


@pytest.mark.parametrize(
    ("asked", "status", "content", "of"),
    [
        ("bytes=0-3", 206, "0123", "bytes 0-3/36"),
        ("bytes=30-", 206, "uvwxyz", "bytes 30-35/36"),
        ("bytes=-2", 206, "yz", "bytes 34-35/36"),
        ("bytes=30-99999999", 206, "uvwxyz", "bytes 30-35/36"),
        ("bytes=36-", 416, "", "bytes */36"),
        ("bytes=9-3", 416, "", "bytes */36"),
        ("bytes=0-1,3-4", 200, None, None),
        ("bytes=-", 200, None, None),
        ("lines=0-3", 200, None, None),
        ("bytes=" + "9" * 5000 + "-", 200, None, None),
    ],
)
def test_a_report_is_sent_in_part(
    server: LogIn, root: Root, asked: str, status: int, content: str | None, of: str | None
) -> None:
    whole = "0123456789abcdefghijklmnopqrstuvwxyz"
    (root.snapshot(SNAPSHOT).folder("reports") / "report.html").write_text(whole)
    answer = server("vic").get(f"{REPORT}/report.html", headers={"Range": asked})
    assert (answer.status_code, answer.text) == (status, whole if content is None else content)
    assert answer.headers.get("content-range") == of
    stale = server("vic").get(f"{REPORT}/report.html", headers={"Range": asked, "If-Range": '"another"'})
    assert (stale.status_code, stale.text) == (200, whole)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "clusters/prod-eu",
        "clusters/nowhere",
        f"clusters/prod-eu/reports/{SNAPSHOT}",
        "clusters/prod-eu/runs/1",
        "clusters/prod-eu/plans/sha256:0",
        f"clusters/prod-eu/reports/{SNAPSHOT}/report.html",
        f"clusters/prod-eu/reports/{SNAPSHOT}/plans/sha256:0",
    ],
)
def test_without_a_login_nothing_is_shown(server: LogIn, root: Root, path: str) -> None:
    assert server("").get(f"/pulsar-advisor/{path}").status_code == 401
    of_a_browser = server("").get(f"/pulsar-advisor/{path}", headers={"Accept": "text/html,*/*"})
    login = f"/api/v2/auth/login?{urlencode({'next': f'/pulsar-advisor/{path}'})}"
    assert (of_a_browser.status_code, of_a_browser.headers["location"]) == (303, login)


def test_a_slash_at_the_end_makes_no_difference(server: LogIn, root: Root) -> None:
    for path in ("clusters/prod-eu", f"clusters/prod-eu/reports/{SNAPSHOT}"):
        pages = [server("vic").get(f"/pulsar-advisor/{path}{end}") for end in ("", "/")]
        assert [page.status_code for page in pages] == [200, 200]
        assert pages[0].text == pages[1].text


@pytest.mark.parametrize("order", ["pause", "go-on", "stop"])
def test_without_a_login_nothing_is_steered(server: LogIn, held: HeldRun, order: str) -> None:
    assert server("").post(f"{page_of(held)}/{order}").status_code == 401


@pytest.mark.parametrize(
    "path",
    [
        "clusters/prod-asia",
        "clusters/..%2fprod-eu",
        "clusters/prod-eu/reports/20260101T000000Z",
        "clusters/prod-eu/reports/latest2",
        "clusters/prod-eu/reports/..%2f..%2f..%2fledger.sqlite",
        "clusters/prod-eu/runs/99",
        "clusters/prod-us/runs/1",
        "clusters/prod-eu/plans/sha256:0",
        "dags/some_other_dag",
        "clusters/prod-eu/reports/20260101T000000Z/report.html",
        f"clusters/prod-eu/reports/{SNAPSHOT}/plans/sha256:1",
    ],
)
def test_what_is_not_there_or_not_ours_is_not_found(server: LogIn, root: Root, held: HeldRun, path: str) -> None:
    assert server("admin").get(f"/pulsar-advisor/{path}").status_code == 404


def test_a_user_pauses_a_run_in_their_own_name(server: LogIn, ledger: Ledger, held: HeldRun) -> None:
    client = server("olive")
    token = token_in(client.get(page_of(held)).text)
    form = {"token": token, "person": "alice", "as": "alice"}
    answer = client.post(f"{page_of(held)}/pause", data=form)
    assert (answer.status_code, answer.headers["location"]) == (303, page_of(held))
    assert pause_requested(ledger, held.id) == "paused by olive (airflow)"


def test_a_paused_run_shows_what_it_waits_for_and_goes_on(server: LogIn, ledger: Ledger, held: HeldRun) -> None:
    client = server("olive")
    client.post(f"{page_of(held)}/pause", data={"token": token_in(client.get(page_of(held)).text)})
    held.park("paused, until somebody lets it go on")
    page = client.get(page_of(held)).text
    assert "It is paused by olive (airflow), until somebody presses <i>Go on</i>, and waits since <time" in page
    assert client.post(f"{page_of(held)}/go-on", data={"token": token_in(page)}).status_code == 303
    assert pause_requested(ledger, held.id) is None
    assert client.post(f"{page_of(held)}/go-on", data={"token": token_in(page)}).status_code == 409


def test_a_run_that_ended_early_says_how_it_goes_on_and_can_be_ended_for_good(
    server: LogIn, ledger: Ledger, held: HeldRun
) -> None:
    """Until then a call whose outcome is unknown keeps other plans from that range."""
    held.end("stopped", "0 of 1 steps confirmed")
    client = server("olive")
    page = client.get(page_of(held)).text
    assert "To continue, once what ended it is over, clear its task <code>apply</code>" in page
    assert "Undo" not in page, "as it moved nothing"
    asking = f"{page_of(held)}/stop"
    assert re.search(rf"<form[^>]*{asking}", page) is None, "it asks once more"
    assert client.post(asking, data={"token": token_in(client.get(asking).text)}).status_code == 303
    page = client.get(page_of(held)).text
    assert "ATTENTION: step-001" in page
    assert "<button" not in page


def test_a_run_without_a_step_left_is_not_to_be_continued(server: LogIn, held: HeldRun) -> None:
    held.conclude("step-001", "failed", "refused by the cluster")
    held.end("stopped", "0 of 1 steps confirmed, and none is left to send")
    page = server("olive").get(page_of(held)).text
    assert "No step is left to send: to go on, make a new plan." in page
    assert "To continue" not in page


def test_only_what_moved_is_taken_back(server: LogIn, ledger: Ledger) -> None:
    def ended(step: Step) -> str:
        held = started(ledger, make_plan([step], seed=step.action == "split", cluster="prod-eu"))
        held.conclude(step.id, "confirmed", "seen")
        held.end("done", "1 of 1 steps confirmed")
        return server("olive").get(page_of(held)).text

    assert ["<i>Undo</i>" in ended(step) for step in (unload_step(1), split_step(1))] == [True, False]


def test_a_stopped_run_is_over(server: LogIn, ledger: Ledger, held: HeldRun) -> None:
    client = server("olive")
    token = token_in(client.get(page_of(held)).text)
    assert client.post(f"{page_of(held)}/stop", data={"token": token}).status_code == 303
    assert run_by_id(ledger, held.id).state == "aborted"
    assert ledger.events(held.digest)[-1].detail == "by olive (airflow)"
    assert client.post(f"{page_of(held)}/stop", data={"token": token}).status_code == 409


def test_a_viewer_sees_no_button_and_steers_nothing(server: LogIn, ledger: Ledger, held: HeldRun) -> None:
    assert "<button" not in server("vic").get(page_of(held)).text
    token = token_in(server("olive").get(page_of(held)).text)
    assert server("vic").post(f"{page_of(held)}/pause", data={"token": token}).status_code == 403
    assert pause_requested(ledger, held.id) is None


@pytest.mark.parametrize("forged", ["", "x", "of another user", "tampered", "more than an hour old"])
def test_a_form_that_was_not_shown_to_this_user_steers_nothing(
    server: LogIn, ledger: Ledger, held: HeldRun, forged: str
) -> None:
    def earlier() -> str:
        with patch.object(TimestampSigner, "get_timestamp", lambda _signer: int(time.time()) - TOKEN_LIFE_S - 2):
            return token_in(server("olive").get(page_of(held)).text)

    shown = {
        "more than an hour old": earlier,
        "of another user": lambda: token_in(server("admin").get(page_of(held)).text),
        "tampered": lambda: f"{token_in(server('olive').get(page_of(held)).text)[:-2]}xx",
    }
    token = shown[forged]() if forged in shown else forged
    answer = server("olive").post(f"{page_of(held)}/stop", data={"token": token})
    assert answer.status_code == 403
    assert run_by_id(ledger, held.id).state == "active"


def test_a_browsers_session_is_a_login_but_no_leave_for_the_forms_of_other_sites(
    server: LogIn, ledger: Ledger, held: HeldRun
) -> None:
    client = server("olive")
    client.cookies.set("_token", client.headers.pop("Authorization").removeprefix("Bearer "))
    assert client.get(page_of(held)).status_code == 200
    sent = client.post(f"{page_of(held)}/stop", headers={"Origin": "https://elsewhere.example"})
    assert sent.status_code == 403
    assert run_by_id(ledger, held.id).state == "active"


@pytest.fixture
def recommended(root: Root, plan: Plan) -> str:
    """The digest of a plan that the report advises."""
    written = write_plan(root, plan)
    reference = {"plan": written.file, "digest": written.digest}
    sentence = f"Move one bundle {HOSTILE}"
    option = Option("move", sentence, 0.6, 0.1, 0.3, Cost(unloads=1), "high", "it holds", **reference)
    document = documents.recommendation(documents.combination(**reference), sentence=sentence, **reference)
    content = document.model_copy(update={"options": (option,)}).content()
    (root.snapshot(SNAPSHOT).folder("plans") / "recommendation.json").write_bytes(content)
    return written.digest


def test_a_report_leads_to_the_form_that_proposes_its_plan(server: LogIn, root: Root, recommended: str) -> None:
    page = server("olive").get(REPORT).text
    [address] = re.findall(r'href="([^"#]*)#propose">Propose this<', page)
    assert recommended in page.replace(address, "")  # its whole digest can be read, too
    form = server("olive").get(address).text
    assert f"<h1>Plan {recommended.removeprefix('sha256:')[:8]}: not proposed</h1>" in form
    assert f'name="digest" value="{recommended}"' in form
    assert 'action="/api/v2/dags/pulsar_rebalance__prod-eu/dagRuns"' in form
    assert f"{NAMESPACE}/{LOWER}" in form
    assert "Nobody will be asked about it unless you raise the maximum age: the snapshot" in form


def test_the_form_holds_the_defaults_of_the_dags(server: LogIn, root: Root, recommended: str) -> None:
    page = server("olive").get(f"{REPORT}/plans/{recommended}").text
    shown = dict(re.findall(r'<input type="number" name="(\w+)" value="([^"]*)"', page))
    numbers = {name for name, param in RUN.items() if {"number", "integer"} & set(_types(param))}
    assert shown == {name: "" if RUN[name].value is None else str(RUN[name].value) for name in numbers}
    others = set(re.findall(r' name="(\w+)"', page)) - shown.keys() - {"viewport", "digest"}
    assert others == RUN.keys() - numbers


def test_what_explains_a_field_is_beside_it_and_read_out_with_it(server: LogIn, root: Root, recommended: str) -> None:
    page = unescape(server("olive").get(f"{REPORT}/plans/{recommended}").text)
    explained = {name: param.description for name, param in RUN.items() if param.description}
    assert explained["until"].startswith("In UTC")
    assert dict(re.findall(r'<small id="about-(\w+)">([^<]*)<', page)) == explained
    assert set(re.findall(r' name="(\w+)"[^>]* aria-describedby="about-\1"', page)) == explained.keys()


def _types(param: Param) -> list[str]:
    kinds = param.schema["type"]
    return [kinds] if isinstance(kinds, str) else list(kinds)


def test_who_may_not_propose_sees_the_plan_without_the_form(server: LogIn, root: Root, recommended: str) -> None:
    page = server("vic").get(f"{REPORT}/plans/{recommended}").text
    assert f"{NAMESPACE}/{LOWER}" in page
    assert "<form" not in page
    assert "<code>pulsar_rebalance__prod-eu</code> may propose it" in page


def test_a_plan_that_had_its_run_can_not_be_proposed_again(
    server: LogIn, root: Root, recommended: str, held: HeldRun
) -> None:
    held.end("done", "1 of 1 steps confirmed")
    page = server("olive").get(REPORT).text
    assert "Propose this" not in page
    assert 'was proposed: <span class="good">applied</span>' in page
    page = server("olive").get(f"{REPORT}/plans/{recommended}").text
    assert "<form" not in page
    assert f"It can't be proposed again: it was already carried out, in run {held.id}" in page


def test_what_is_offered_of_a_stopped_run_is_what_apply_would_accept(
    server: LogIn, ledger: Ledger, plan: Plan, held: HeldRun
) -> None:
    held.end("stopped", "0 of 1 steps confirmed")
    assert "clear its task <code>apply</code>" in server("vic").get(page_of(held)).text
    withdraw_approvals(ledger, held.digest, BOB, "")
    assert "To continue, have its plan approved again" in server("vic").get(page_of(held)).text
    back = plan.model_copy(update={"memory": {"undoes": held.digest}})
    started(ledger, back).end("done", "1 of 1 steps confirmed")
    assert "Its plan has been undone since: capture again" in server("vic").get(page_of(held)).text
    of_plan = server("olive").get(f"/pulsar-advisor/clusters/prod-eu/plans/{held.digest}").text
    assert "It can't be proposed again: it has been undone since" in of_plan
    assert "consent: Accept a worse outcome; " in of_plan
    assert "<form" not in of_plan


def test_what_to_do_about_a_run_that_is_under_way_is_something_to_press(
    server: LogIn, recommended: str, held: HeldRun
) -> None:
    page = server("olive").get(f"{REPORT}/plans/{recommended}").text
    assert f"in run {held.id}: wait for it, or press Stop for good on its page" in page


def test_steps_are_listed_as_they_are_sent(server: LogIn, root: Root, ledger: Ledger) -> None:
    steps = [unload_step(1), unload_step(2, UPPER)]
    many = steps[0].expect.model_copy(update={"topics": 99})
    plan = make_plan([steps[0].model_copy(update={"expect": many}), steps[1]], cluster="prod-eu")
    propose(ledger, plan, ALICE)
    page = server("vic").get(f"/pulsar-advisor/clusters/prod-eu/plans/{digest_of(plan)}").text
    assert re.findall(r'data-label="order">(\w+)</td>\n<td class="nowrap">([^<]+)', page) == [
        ("1", "step-002"),
        ("2", "step-001"),
    ]


def test_a_step_that_is_not_sent_has_no_confidence_as_in_the_report(server: LogIn, root: Root, ledger: Ledger) -> None:
    kept_back = unload_step(2, UPPER, executable=False, not_executable_because="isolated")
    plan = make_plan([unload_step(1), kept_back], cluster="prod-eu")
    propose(ledger, plan, ALICE)
    page = server("vic").get(f"/pulsar-advisor/clusters/prod-eu/plans/{digest_of(plan)}").text
    assert re.findall(r'data-label="confidence">(.+)</td>', page) == [
        plan.steps[0].confidence,
        '<span class="warn">not executable</span>',
    ]
