"""The pages over HTTP, in Airflow's own web server, as its users see them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient

import documents
import rotten_root
from pulsar_advisor.execution.consent.approval import approve, propose
from pulsar_advisor.execution.consent.policy import ApprovalPolicy
from pulsar_advisor.execution.ledger.approvals import record_rejection
from pulsar_advisor.execution.ledger.held_run import HeldRun, start_run
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.execution.ledger.pauses import pause_requested
from pulsar_advisor.execution.ledger.runs import run_by_id
from pulsar_advisor.execution.ledger.switches import record_switched_back, record_switching_off, switched_off
from pulsar_advisor.execution.ledger.tables import Verification, VerifiedBroker
from pulsar_advisor.execution.ledger.verifications import record_verification
from pulsar_advisor.execution.run.guard import OFF
from pulsar_advisor.model.plans.plan import Plan, digest_of
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.root import MANIFEST, RESULT, Root
from unit.execution.actors import ALICE, BOB, EVERY_CONSENT
from unit.execution.doubles import LOWER, NAMESPACE, SNAPSHOT, make_plan, unload_step

pytestmark = pytest.mark.airflow

USERS = {"admin": "admin", "olive": "user", "vic": "viewer"}
AFTERWARDS = "20991231T083000Z"
FOUND = {"b1": 0.511, "b2": 0.305}
HOSTILE = "<script>alert(1)</script>"
DECEPTIVE = "\u202e\x1b[2J\u3164"
"""Reverses the direction, clears a terminal, shows nothing."""

LogIn = Callable[[str], TestClient]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, database: None) -> Iterator[LogIn]:
    """Airflow's web server with our plugin; gives a client with the login of a user, or without one."""
    from airflow.api_fastapi.app import create_app, purge_cached_app

    passwords = tmp_path_factory.mktemp("passwords") / "passwords.json"
    passwords.write_text(json.dumps({name: f"password of {name}" for name in USERS}))
    with pytest.MonkeyPatch.context() as patch:
        roles = ",".join(f"{name}:{role}" for name, role in USERS.items())
        patch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS", roles)
        patch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE", str(passwords))
        purge_cached_app()
        app = create_app(apps="core")

        def log_in(name: str) -> TestClient:
            client = TestClient(app, base_url="http://127.0.0.1", follow_redirects=False)
            if name:
                login = {"username": name, "password": f"password of {name}"}
                client.headers["Authorization"] = (
                    f"Bearer {client.post('/auth/token', json=login).json()['access_token']}"
                )
            return client

        yield log_in
        purge_cached_app()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Root:
    """Two clusters in one root: one with a plan to carry out, one that was never captured."""
    registry = tmp_path / "clusters.yaml"
    entries = [{"name": name, "pulsar_conn_id": "p"} for name in ("prod-eu", "prod-us")]
    registry.write_text(json.dumps({"schema": "pulsar-advisor/clusters/1", "clusters": entries}))
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__CLUSTERS", str(registry))
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__ROOT", str(tmp_path / "root"))
    root = Root(str(tmp_path / "root"), "prod-eu")
    write_file(root.folder("raw", SNAPSHOT) / MANIFEST, documents.manifest().content())
    failed = documents.check(success=False, title="Ranges tile")
    write_file(root.folder("validation", SNAPSHOT) / RESULT, documents.validation(failed).content())
    sentence = f"Move one bundle {HOSTILE}{DECEPTIVE}."
    document = documents.recommendation(plan="a.json", digest="sha256:0", sentence=sentence)
    write_file(root.folder("plans", SNAPSHOT) / "recommendation.json", document.content())
    report = root.folder("reports", SNAPSHOT) / "report.html"
    report.parent.mkdir(parents=True)
    report.write_text(f"<html>{HOSTILE}</html>")
    return root


@pytest.fixture
def plan() -> Plan:
    return make_plan([unload_step()]).model_copy(update={"cluster": "prod-eu"})


@pytest.fixture
def ledger(root: Root) -> Iterator[Ledger]:
    ledger = open_ledger(root.ledger_url)
    yield ledger
    ledger.close()


@pytest.fixture
def held(ledger: Ledger, plan: Plan) -> HeldRun:
    """A run that has sent its first step."""
    propose(ledger, plan, ALICE)
    policy = ApprovalPolicy()
    approval = approve(ledger, plan, digest=digest_of(plan), approver=BOB, policy=policy, consents=EVERY_CONSENT)
    held = start_run(ledger, plan, approval)
    held.sent("step-001", "PUT /unload", None)
    return held


def page_of(held: HeldRun) -> str:
    return f"/pulsar-advisor/clusters/prod-eu/runs/{held.id}"


def token_in(page: str) -> str:
    return re.findall(r'name="token" value="([^"]+)"', page)[0]


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
    record_switched_back(ledger, *switched_off(ledger, "live"), "restored: not overridden")
    assert [red(path) for path in ("/pulsar-advisor/", cluster, page_of(held))] == [[], [], []]


def test_a_cluster_shows_its_trends_and_a_snapshot_that_was_not_judged_is_a_gap(server: LogIn, root: Root) -> None:
    for number, spread in enumerate((0.21, None, 0.07)):
        snapshot = f"2026112{number}T083000Z"
        write_file(root.folder("raw", snapshot) / MANIFEST, documents.manifest().content())
        if spread is not None:
            write_file(root.folder("validation", snapshot) / RESULT, documents.validation().content())
            rows = (documents.combination(standard_deviation_before=each) for each in (None, spread))
            document = documents.recommendation(*rows)
            write_file(root.folder("plans", snapshot) / "recommendation.json", document.content())
    for path in ("/pulsar-advisor/", "/pulsar-advisor/clusters/prod-eu"):
        page = server("vic").get(path).text
        assert "standard deviation of usage, last 3 snapshots" in page
        assert "7%" in page


def test_a_plan_has_its_steps_who_approved_it_its_runs_and_its_events(
    server: LogIn, root: Root, plan: Plan, held: HeldRun
) -> None:
    page = server("vic").get(f"/pulsar-advisor/clusters/prod-eu/plans/{digest_of(plan)}").text
    for part in (f"{NAMESPACE}/{LOWER}", "alice", "bob", "step sent", 'id="ledger"', f"/runs/{held.id}"):
        assert part in page


@pytest.mark.parametrize(("as_predicted", "said"), [(True, "as predicted"), (False, "not as predicted")])
def test_a_verified_run_says_whether_it_went_as_predicted(
    server: LogIn, ledger: Ledger, held: HeldRun, as_predicted: bool, said: str
) -> None:
    held.end("done", "1 of 1 steps confirmed")
    verdict = Verification(
        run_id=held.id, snapshot=SNAPSHOT, at_ms=ledger.now_ms(), usage_judged=True, as_predicted=as_predicted
    )
    record_verification(ledger, verdict, [], [])
    for path in (page_of(held), f"/pulsar-advisor/clusters/prod-eu/plans/{held.digest}"):
        assert re.search(rf"1 of 1 steps confirmed; verified: <span[^>]*>{said}</span>", server("vic").get(path).text)


def test_advice_that_was_carried_out_is_history_and_what_came_of_it_is_shown(
    server: LogIn, root: Root, ledger: Ledger, held: HeldRun
) -> None:
    write_file(root.folder("raw", AFTERWARDS) / MANIFEST, documents.manifest().content())
    held.end("done", "1 of 1 steps confirmed")
    verdict = Verification(
        run_id=held.id, snapshot=AFTERWARDS, at_ms=ledger.now_ms(), usage_judged=True, as_predicted=True
    )
    usage = [VerifiedBroker(broker=name, actual_usage_ratio=ratio, as_predicted=True) for name, ratio in FOUND.items()]
    record_verification(ledger, verdict, [], usage)
    page = server("vic").get("/pulsar-advisor/clusters/prod-eu").text
    assert re.search(rf'<span class="muted">before run {held.id}: Move one bundle', page)
    assert f'<span class="good">after run {held.id}: maximum usage 51.1%, as predicted</span>' in page
    assert re.search(r"1 of 1 steps confirmed; verified: <span[^>]*>as predicted</span>", page)
    assert "not validated" not in page
    page = server("vic").get("/pulsar-advisor/").text
    assert f"after run {held.id}: maximum usage 51.1%, as predicted" in page
    assert "Move one bundle" not in page


@pytest.fixture
def dag_run(database: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """Makes a DAG run, with what one of its tasks returned; gives the address of the run's tab."""
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from airflow.utils.types import DagRunType
    from sqlalchemy import delete

    run_id = "manual__2026-11-21T08:30:00+00:00"

    def make(dag: str, task: str, returned: Any, **conf: Any) -> str:
        with create_session() as session:
            session.add(DagRun(dag_id=dag, run_id=run_id, run_type=DagRunType.MANUAL, conf=conf))
        values = {(dag, run_id, task): returned}
        monkeypatch.setattr("pulsar_advisor_airflow.pages.dag_runs._returned", lambda *asked: values.get(asked))
        return f"/pulsar-advisor/dags/{dag}/runs/{quote(run_id, safe='')}"

    yield make
    with create_session() as session:
        session.execute(delete(DagRun).where(DagRun.run_id == run_id))


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


def test_a_task_that_waits_for_another_try_has_failed_until_then(
    server: LogIn, root: Root, airflow_runs: Callable[..., None]
) -> None:
    airflow_runs("pulsar_snapshot__prod-eu", "success")
    airflow_runs("pulsar_recommend__prod-eu", "running", "recommend", "up_for_retry")
    page = server("vic").get("/pulsar-advisor/").text
    assert "<code>recommend</code> failed 3 min ago and will be tried again<" in page
    airflow_runs("pulsar_snapshot__prod-eu", "running")
    page = server("vic").get("/pulsar-advisor/").text
    assert "failed 3 min" not in page
    assert "A new snapshot is being captured." in page


def test_the_last_advice_stays_while_a_newer_snapshot_is_processed(
    server: LogIn, root: Root, airflow_runs: Callable[..., None]
) -> None:
    write_file(root.folder("raw", "20261122T083000Z") / MANIFEST, documents.manifest().content())
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
    write_file(Root(root.url, "prod-us").folder("raw", SNAPSHOT) / MANIFEST, documents.manifest().content())
    airflow_runs("pulsar_snapshot__prod-us", "running")
    page = server("vic").get(f"/pulsar-advisor/{path}").text
    assert re.search(r"The newest snapshot, \S+ \w+ old, is being processed\.", page)


def test_what_does_not_fit_a_page_is_on_the_next(
    server: LogIn, root: Root, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, plan: Plan, held: HeldRun
) -> None:
    from pulsar_advisor_airflow.pages import content

    for name in ("ROWS_SHOWN", "STEPS_SHOWN", "EVENTS_SHOWN"):
        monkeypatch.setattr(content, name, 1)
    write_file(root.folder("raw", "20261120T083000Z") / MANIFEST, documents.manifest().content())
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
def rotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root of three clusters, of which one has all that can be rotten."""
    entries = [{"name": name, "pulsar_conn_id": "p"} for name in rotten_root.CLUSTERS]
    registry = tmp_path / "clusters.yaml"
    registry.write_text(json.dumps({"schema": "pulsar-advisor/clusters/1", "clusters": entries}))
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__CLUSTERS", str(registry))
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__ROOT", str(tmp_path / "root"))
    rotten_root.write_root(tmp_path / "root")
    rotten_root.add_strange_folders(tmp_path / "root")
    rotten_root.spoil_plan_in_ledger(tmp_path / "root")
    return tmp_path / "root"


@pytest.mark.parametrize("file", rotten_root.FILES)
def test_a_rotten_file_is_a_row_that_says_so(server: LogIn, rotten: Path, file: str) -> None:
    for how in ("half", "another document"):
        rotten_root.spoil(rotten, file, how)
        for path in ("", *(f"clusters/{name}" for name in rotten_root.CLUSTERS), "dags/pulsar_recommend__prod-us"):
            answer = server("vic").get(f"/pulsar-advisor/{path}")
            assert answer.status_code in (200, 303), (path, how)
            assert not {"\u202e", "\x1b"} & set(answer.text)
            assert str(rotten) not in answer.text
    page = server("vic").get("/pulsar-advisor/").text
    assert page.count("Move one bundle.") == (2 if file in ("validation", "recommendation") else 3)


def test_a_rejected_plan_is_not_listed_as_proposed(server: LogIn, ledger: Ledger, plan: Plan) -> None:
    propose(ledger, plan, ALICE)
    record_rejection(ledger, digest_of(plan), "by bob (airflow)")
    page = server("vic").get("/pulsar-advisor/clusters/prod-eu").text
    assert "<td>rejected</td>" in page
    assert "<td>proposed</td>" not in page
    page = server("vic").get(f"/pulsar-advisor/clusters/prod-eu/plans/{digest_of(plan)}").text
    assert re.search(r"<h1>Plan \w+: rejected</h1>", page)
    assert re.search(r"<td>rejected</td><td[^>]*>by bob \(airflow\)</td>", page)


def test_proposals_and_answers_are_in_the_order_of_time(
    server: LogIn, ledger: Ledger, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "now_ms", count(1_800_000_000_000, 60_000).__next__)
    propose(ledger, plan, ALICE)
    record_rejection(ledger, digest_of(plan), "by bob (airflow)")
    propose(ledger, plan, ALICE)
    page = server("vic").get(f"/pulsar-advisor/clusters/prod-eu/plans/{digest_of(plan)}").text
    assert re.findall(r"<td>(proposed|rejected)</td>", page) == ["proposed", "rejected", "proposed"]


REPORT = f"/pulsar-advisor/clusters/prod-eu/reports/{SNAPSHOT}"


@pytest.mark.parametrize(
    ("dag", "task", "returned", "conf"),
    [
        ("pulsar_snapshot__prod-eu", "capture", SNAPSHOT, {}),
        ("pulsar_recommend__prod-eu", "snapshot", SNAPSHOT, {}),
        (
            "pulsar_rebalance",
            "propose",
            {"snapshot": SNAPSHOT, "file": "a.json", "digest": "d"},
            {"cluster": "prod-eu"},
        ),
    ],
    ids=["snapshot", "recommend", "rebalance"],
)
def test_the_tab_of_a_dag_run_is_the_report_of_its_snapshot(
    server: LogIn, root: Root, dag_run: Callable[..., str], dag: str, task: str, returned: Any, conf: dict[str, str]
) -> None:
    answer = server("vic").get(dag_run(dag, task, returned, **conf))
    assert (answer.status_code, answer.headers["location"]) == (303, REPORT)


@pytest.mark.parametrize(
    ("stored", "value"), [('"x"', "x"), ("20261121T083000Z", "20261121T083000Z"), ({"a": 1}, {"a": 1}), (None, None)]
)
def test_what_a_task_returned_is_read_as_a_task_or_the_rest_api_stores_it(
    database: None, monkeypatch: pytest.MonkeyPatch, stored: object, value: object
) -> None:
    from pulsar_advisor_airflow.pages import dag_runs

    rows = SimpleNamespace(first=lambda: SimpleNamespace(value=stored))
    monkeypatch.setattr(dag_runs, "create_session", lambda: nullcontext(SimpleNamespace(execute=lambda _query: rows)))
    assert dag_runs._returned("dag", "run", "task") == value


def test_the_tab_of_a_dag_is_the_newest_report_of_its_cluster(server: LogIn, root: Root) -> None:
    answer = server("vic").get("/pulsar-advisor/dags/pulsar_recommend__prod-eu")
    assert (answer.status_code, answer.headers["location"]) == (303, REPORT)


def test_a_tab_without_a_report_looks_for_it_again(server: LogIn, root: Root, dag_run: Callable[..., str]) -> None:
    answer = server("vic").get("/pulsar-advisor/dags/pulsar_recommend__prod-us")
    assert (answer.status_code, answer.headers["refresh"]) == (200, "5")


@pytest.mark.parametrize("snapshot", ["20260101T000000Z", "../../prod-us", ["x"]])
def test_a_tab_shows_nothing_but_reports(
    server: LogIn, root: Root, dag_run: Callable[..., str], snapshot: object
) -> None:
    answer = server("admin").get(dag_run("pulsar_recommend__prod-eu", "snapshot", snapshot))
    assert answer.status_code == (404 if isinstance(snapshot, str) else 200)
    assert "location" not in answer.headers


def test_pages_escape_what_others_wrote_and_run_no_script(server: LogIn, root: Root, held: HeldRun) -> None:
    plan_page = f"/pulsar-advisor/clusters/prod-eu/plans/{held.digest}"
    for path in ("/pulsar-advisor/", "/pulsar-advisor/clusters/prod-eu", plan_page, page_of(held)):
        answer = server("olive").get(path)
        assert answer.status_code == 200
        assert HOSTILE not in answer.text
        assert not set(DECEPTIVE[:2] + DECEPTIVE[-1]) & set(answer.text)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src" not in policy


def test_a_report_has_no_part_in_airflows_origin(server: LogIn, root: Root) -> None:
    answer = server("vic").get(f"/pulsar-advisor/clusters/prod-eu/reports/{SNAPSHOT}")
    assert HOSTILE in answer.text
    directives = {part.split()[0]: part.split()[1:] for part in answer.headers["content-security-policy"].split(";")}
    assert directives["default-src"] == ["'none'"]
    assert directives["sandbox"] == []
    assert "script-src" not in directives
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("user", "path", "status"),
    [
        ("", "", 401),
        ("vic", "clusters/prod-eu", 200),
        ("vic", "clusters/prod-eu/plans/sha256:0", 404),
        ("vic", "clusters/prod-eu/reports/20260101T000000Z", 404),
        ("vic", "no/such/page", 404),
        ("vic", "clusters/prod-eu/runs/x", 422),
        ("vic", "clusters/prod-us/reports/20260101T000000Z", 500),
        ("vic", f"clusters/prod-eu/reports/{SNAPSHOT}", 200),
    ],
)
def test_every_answer_is_a_page_with_a_policy_and_a_way_back(
    server: LogIn, root: Root, ledger: Ledger, user: str, path: str, status: int
) -> None:
    other = Root(root.url, "prod-us")
    write_file(other.folder("raw", "20260101T000000Z") / MANIFEST, documents.manifest().content())
    (other.folder("reports", "20260101T000000Z") / "report.html").mkdir(parents=True)  # can't be read
    answer = server(user).get(f"/pulsar-advisor/{path}")
    assert answer.status_code == status
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-type"].startswith("text/html")
    kept = path == "clusters/prod-eu"
    assert answer.headers["cache-control"] == ("private, no-cache" if kept else "no-store")
    if status != 200:
        assert 'href="/pulsar-advisor/"' in answer.text
        assert f"{status}: " in answer.text
    assert root.url not in answer.text


def test_an_order_that_is_refused_is_answered_by_a_page(server: LogIn, ledger: Ledger, held: HeldRun) -> None:
    client = server("olive")
    token = token_in(client.get(page_of(held)).text)
    held.end("done", "1 of 1 steps confirmed")
    answer = client.post(f"{page_of(held)}/pause", data={"token": token})
    assert answer.status_code == 409
    assert answer.headers["cache-control"] == "no-store"
    assert "<h1>409: Conflict</h1>" in answer.text


def test_a_page_that_did_not_change_is_not_sent_again(server: LogIn, root: Root) -> None:
    client = server("vic")
    shown = client.get("/pulsar-advisor/clusters/prod-us")
    again = client.get("/pulsar-advisor/clusters/prod-us", headers={"If-None-Match": shown.headers["etag"]})
    assert (again.status_code, again.text) == (304, "")
    write_file(Root(root.url, "prod-us").folder("raw", SNAPSHOT) / MANIFEST, documents.manifest().content())
    again = client.get("/pulsar-advisor/clusters/prod-us", headers={"If-None-Match": shown.headers["etag"]})
    assert again.status_code == 200


def test_a_user_is_answered_a_few_times_at_once(server: LogIn, root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    from pulsar_advisor_airflow.pages import answers

    monkeypatch.setattr(answers, "_under_way", waiting := Counter(vic=answers.AT_ONCE))
    refused = server("vic").get("/pulsar-advisor/")
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
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
    (root.folder("reports", SNAPSHOT) / "report.html").write_text(whole)
    answer = server("vic").get(REPORT, headers={"Range": asked})
    assert (answer.status_code, answer.text) == (status, whole if content is None else content)
    assert answer.headers.get("content-range") == of
    stale = server("vic").get(REPORT, headers={"Range": asked, "If-Range": '"another"'})
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
        "dags/pulsar_recommend__prod-eu",
        "dags/pulsar_rebalance/runs/manual__1",
    ],
)
def test_without_a_login_nothing_is_shown(server: LogIn, root: Root, path: str) -> None:
    assert server("").get(f"/pulsar-advisor/{path}").status_code == 401


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
        "dags/some_other_dag/runs/manual__1",
        "dags/pulsar_recommend__prod-asia",
        "dags/pulsar_maintenance",
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
    assert "It is paused by olive (airflow), until somebody lets it go on" in page
    assert client.post(f"{page_of(held)}/go-on", data={"token": token_in(page)}).status_code == 303
    assert pause_requested(ledger, held.id) is None
    assert client.post(f"{page_of(held)}/go-on", data={"token": token_in(page)}).status_code == 409


def test_a_stopped_run_is_over(server: LogIn, ledger: Ledger, held: HeldRun) -> None:
    client = server("olive")
    token = token_in(client.get(page_of(held)).text)
    assert client.post(f"{page_of(held)}/stop", data={"token": token}).status_code == 303
    assert run_by_id(ledger, held.id).state == "aborted"
    assert ledger.events(held.digest)[-1].detail == "by olive (airflow)"
    assert client.post(f"{page_of(held)}/stop", data={"token": token}).status_code == 409


def test_a_viewer_sees_no_button_and_steers_nothing(server: LogIn, ledger: Ledger, held: HeldRun) -> None:
    assert "token" not in server("vic").get(page_of(held)).text
    token = token_in(server("olive").get(page_of(held)).text)
    assert server("vic").post(f"{page_of(held)}/pause", data={"token": token}).status_code == 403
    assert pause_requested(ledger, held.id) is None


@pytest.mark.parametrize("forged", ["", "x", "of another user", "tampered"])
def test_a_form_that_was_not_shown_to_this_user_steers_nothing(
    server: LogIn, ledger: Ledger, held: HeldRun, forged: str
) -> None:
    shown = {
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
