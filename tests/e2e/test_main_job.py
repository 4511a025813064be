"""The main job on live brokers: in a real browser, from the report's button to the verified figure, with those who are
called; and while the parts of Airflow are killed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from playwright.sync_api import Page, expect

from harness import standalone
from harness.airflow_api import Api, wait_for
from harness.cluster import LiveCluster
from harness.configuration import CLUSTER_NAME
from harness.pages import (
    PAGE_LIMIT_MS,
    RUN_LIMIT_S,
    answer_request,
    leave,
    open_form,
    open_request,
    propose_this,
    read_again_until,
    send_form,
    tick,
    toggle_schedule,
)
from harness.receivers import Mailbox, mailbox
from harness.request_log import unloads
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.pauses import pause_requested
from pulsar_advisor.execution.ledger.plans import plan_record
from pulsar_advisor.execution.ledger.runs import runs_of_plan
from pulsar_advisor.execution.ledger.steps import steps_of_run
from pulsar_advisor.execution.ledger.tables import StepRecord
from pulsar_advisor.execution.person import Person
from pulsar_advisor.execution.run.preconditions import destinations_after
from pulsar_advisor.execution.run.steering import go_on, pause
from pulsar_advisor.model.plans.sealed import load_plan
from pulsar_advisor.storage.index import has_report
from pulsar_advisor.storage.plans import PlanReference, advised_plan
from pulsar_advisor.storage.root import Root
from pulsar_advisor_airflow.operators.approval import FIELD
from web_server import HTTPServer

pytestmark = [pytest.mark.live, pytest.mark.airflow, pytest.mark.full]

CLUSTER_PAGE = "/pulsar-advisor/clusters/live"
RUN_PAGE = f"{CLUSTER_PAGE}/runs/1"
BETWEEN_CALLS_S = 20
"""Enough for a person to find the button that pauses the run."""

NOTIFIERS = """
from airflow.providers.smtp.notifications.smtp import SmtpNotifier

def on_call():
    subject, text = "{{ call.event }} on {{ call.cluster }}", "{{ call.sentence }} {{ call.link }}"
    return SmtpNotifier(to="on-call@example.org", subject=subject, html_content=text)
"""

Take = Callable[[Page, str], None]


@pytest.fixture(scope="module")
def schedule() -> str:
    return "* * * * *"


@pytest.fixture(scope="module")
def mails() -> Iterator[Mailbox]:
    """What `call_notifiers` sends."""
    with mailbox() as box:
        yield box


@pytest.fixture(scope="module")
def hook() -> Iterator[HTTPServer]:
    """Receives the webhook."""
    with HTTPServer(host="127.0.0.1", port=0) as receiver:
        receiver.expect_request("/hook").respond_with_data("", status=204)
        yield receiver


@pytest.fixture(scope="module")
def settings(
    settings: Mapping[str, str], mails: Mailbox, hook: HTTPServer, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("configuration")
    (folder / "our_notifiers.py").write_text(NOTIFIERS)
    sender = {"disable_ssl": True, "disable_tls": True, "from_email": "airflow@example.org"}
    smtp = {"conn_type": "smtp", "host": "127.0.0.1", "port": mails.port, "extra": sender}
    return {
        **settings,
        "PYTHONPATH": os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH")))),
        "AIRFLOW_CONN_SMTP_DEFAULT": json.dumps(smtp),
        "AIRFLOW__PULSAR_ADVISOR__CALL_NOTIFIERS": "our_notifiers.on_call",
        "AIRFLOW__PULSAR_ADVISOR__ONE_SPARK_TASK": "true",
        "AIRFLOW__PULSAR_ADVISOR__WEBHOOK": hook.url_for("/hook"),
    }


@pytest.fixture
def take(tmp_path: Path) -> Take:
    """Take a picture of a page, in the test's folder."""

    def picture(page: Page, name: str) -> None:
        page.screenshot(path=tmp_path / f"{name}.png", full_page=True)

    return picture


def wait_for_end(api: Api, run_path: str) -> str:
    return api.finished("pulsar_rebalance", run_path.rpartition("/")[2])


def sent(hook: HTTPServer, event: str) -> list[dict[str, Any]]:
    """What the webhook's receiver was sent about an event."""
    messages = [json.loads(request.get_data()) for request, _ in hook.log]
    return [message["data"] for message in messages if message["type"] == event]


@pytest.fixture(scope="module")
def advised(person: Callable[[str], Page], root: Root) -> PlanReference:
    """The plan that the report of the first scheduled snapshot advises; the schedule is off again."""
    page = person("uma")
    toggle_schedule(page, "pulsar_snapshot", on=True)
    leave(page)
    first = wait_for(lambda: next((one for one in root.snapshots()[:1] if has_report(root.snapshot(one))), None))
    toggle_schedule(page, "pulsar_snapshot", on=False)
    leave(page)
    plan, sentence = advised_plan(root.snapshot(first))
    assert plan is not None, f"the report advises nothing: {sentence}"
    return plan


def test_a_schedule_that_is_switched_on_leads_to_a_report_and_a_changed_advice_is_told(
    person: Callable[[str], Page], advised: PlanReference, hook: HTTPServer, take: Take
) -> None:
    page = person("vic")
    page.goto("/pulsar-advisor/")
    take(page, "clusters")
    page.goto(f"{CLUSTER_PAGE}/reports/{advised.snapshot}")
    expect(page.frame_locator("iframe").locator("body")).to_contain_text(advised.digest, timeout=PAGE_LIMIT_MS)
    take(page, "report")
    leave(page)
    assert advised.digest in [message["digest"] for message in sent(hook, "advice.changed")]


def test_the_advised_plan_goes_from_the_reports_button_to_the_verified_figure_on_the_clusters_page(
    person: Callable[[str], Page],
    user: Callable[[str], Api],
    airflow: standalone.Airflow,
    cluster: LiveCluster,
    advised: PlanReference,
    ledger: Ledger,
    hook: HTTPServer,
    mails: Mailbox,
    take: Take,
) -> None:
    before = cluster.unloads()
    proposer, approver = person("uma"), person("olive")
    # No undo: a busy machine's load may drift from what was predicted.
    report = f"{CLUSTER_PAGE}/reports/{advised.snapshot}"
    run = propose_this(proposer, report, pause_s=str(BETWEEN_CALLS_S), offer_undo_h="0")

    open_request(approver, run)
    [call] = sent(hook, "approval.waiting")
    assert advised.digest in call["sentence"]
    assert unquote(call["link"]).startswith(f"{airflow.url}{run}/")
    mail = wait_for(lambda: next((mail for mail in mails.mails if mail["subject"] == "approval.waiting on live"), None))
    body = mail.get_body()
    assert body is not None
    assert call["link"] in body.get_content()
    approver.goto(call["link"])
    approver.get_by_test_id("hitl-option-Approve").wait_for()
    for consent in FIELD.values():
        if approver.locator(f"[name=element_{consent}]").count():
            tick(approver, consent)
    take(approver, "approval")
    answer_request(approver, "Approve")
    leave(approver)

    apply = f"/dags/pulsar_rebalance/dagRuns/{run.rpartition('/')[2]}/taskInstances/apply"
    read_again_until(proposer, RUN_PAGE, proposer.get_by_text("while the first step holds"))
    wait_for(lambda: user("uma").get(apply)["state"] == "deferred")
    take(proposer, "run-holds")
    assert sent(hook, "run.parked") == []
    headline = proposer.locator("h1")
    expect(headline).to_contain_text(re.compile(r": [1-9]\d* of"), timeout=PAGE_LIMIT_MS)
    proposer.get_by_role("button", name="Pause").click()
    expect(proposer.locator("body")).to_contain_text("until somebody presses Go on", timeout=PAGE_LIMIT_MS)
    wait_for(lambda: user("uma").get(apply)["state"] == "deferred")
    take(proposer, "run-paused")
    assert len(sent(hook, "run.parked")) == 1
    expect(proposer.locator("body")).to_contain_text("paused by uma")
    steps = steps_of_run(ledger, 1)
    assert 0 < sum(step.state == "confirmed" for step in steps.values()) < len(steps)

    proposer.get_by_role("button", name="Go on").click()
    expect(headline).to_contain_text(f"{len(steps)} of {len(steps)} steps confirmed", timeout=1000 * RUN_LIMIT_S)
    take(proposer, "run-done")
    ended = wait_for_end(user("uma"), run)
    proposer.goto(run)
    expect(proposer.locator("body")).to_contain_text("as_predicted", timeout=PAGE_LIMIT_MS)
    proposer.wait_for_load_state("networkidle")
    take(proposer, "dag-run")
    verdict = "as predicted" if ended == "success" else "not as predicted"
    proposer.goto(RUN_PAGE)
    expect(proposer.locator("body")).to_contain_text(f"verified: {verdict}")
    take(proposer, "run-verified")
    proposer.goto(f"{CLUSTER_PAGE}/plans/{advised.digest}")
    take(proposer, "plan")
    proposer.goto(CLUSTER_PAGE)
    expect(proposer.locator("body")).to_contain_text(
        re.compile(rf"after run 1: highest usage \d+\.\d%, {verdict}"), timeout=PAGE_LIMIT_MS
    )
    expect(proposer.locator("body")).to_contain_text("before run 1: ")
    take(proposer, "cluster")

    record = plan_record(ledger, advised.digest)
    assert record is not None
    destinations = destinations_after(load_plan(record.document.encode()).executable_steps)
    assert destinations.items() <= cluster.admin.owners(CLUSTER_NAME).items()
    assert cluster.unloads() - before == unloads(
        event.detail for event in ledger.events(advised.digest) if event.kind == "step sent"
    )


def test_only_a_task_that_failed_has_an_error_in_its_log(
    airflow: standalone.Airflow, user: Callable[[str], Api]
) -> None:
    failed = {
        (dag, run["dag_run_id"], task)
        for dag in ("pulsar_snapshot", "pulsar_recommend", "pulsar_rebalance")
        for run in user("admin").get(f"/dags/{dag}/dagRuns")["dag_runs"]
        for task, state in user("admin").tasks(dag, run["dag_run_id"]).items()
        if state in ("failed", "up_for_retry")
    }
    errors = {place: lines for place, lines in airflow.errors_of_tasks().items() if place not in failed}
    assert errors == {}


def test_the_applied_plan_is_not_proposed_a_second_time_and_somebody_is_called(
    person: Callable[[str], Page],
    user: Callable[[str], Api],
    cluster: LiveCluster,
    advised: PlanReference,
    ledger: Ledger,
    hook: HTTPServer,
    take: Take,
) -> None:
    before = cluster.moves()
    page = person("uma")
    page.goto(f"{CLUSTER_PAGE}/reports/{advised.snapshot}")
    expect(page.locator("main")).to_contain_text("It is from before run 1")
    assert page.get_by_role("link", name="Propose this").count() == 0
    take(page, "report-after")
    open_form(page)
    page.locator("[name=element_digest]").fill(advised.digest.removeprefix("sha256:")[:8])
    run = send_form(page)
    assert wait_for_end(user("uma"), run) == "failed"
    assert user("uma").tasks("pulsar_rebalance", run.rpartition("/")[2])["propose"] == "failed"
    assert cluster.moves() == before
    assert len(runs_of_plan(ledger, advised.digest)) == 1
    [call] = [call for call in sent(hook, "task.failed") if "propose" in call["sentence"]]
    assert run in unquote(call["link"])


def test_a_run_whose_airflow_is_killed_part_by_part_is_finished_without_a_repeated_step(
    user: Callable[[str], Api], airflow: standalone.Airflow, cluster: LiveCluster, ledger: Ledger, root: Root
) -> None:
    before = cluster.unloads()
    run = user("uma").trigger(
        "pulsar_rebalance", goal="drain", goal_brokers=[cluster.broker_ids[2]], pause_s=40, canary_hold_s=3
    )
    user("olive").request(run)
    reference = PlanReference(**user("olive").result("pulsar_rebalance", run, "propose"))
    assert user("olive").answer(run, "Approve", **dict.fromkeys(FIELD.values(), True), comment="") == 200

    def steps() -> dict[str, StepRecord]:
        started = runs_of_plan(ledger, reference.digest)
        return dict(steps_of_run(ledger, started[0].id)) if started else {}

    def confirmed() -> int:
        return sum(step.state == "confirmed" for step in steps().values())

    wait_for(confirmed)
    for part in ("scheduler", "api-server"):
        done = confirmed()
        airflow.kill(part)
        airflow.start(part)
        wait_for(lambda: confirmed() > done)  # noqa: B023 - called in this turn only
    uma, plan = Person("uma", "airflow"), reference.load(root)

    def parked() -> bool:
        if (
            pause_requested(ledger, runs_of_plan(ledger, reference.digest)[0].id) is None
        ):  # not yet, or a new try has lifted it
            pause(ledger, plan, uma)
        return airflow.is_healthy() and user("uma").tasks("pulsar_rebalance", run)["apply"] == "deferred"

    wait_for(parked)
    airflow.kill("triggerer")
    airflow.start("triggerer")
    assert confirmed() < len(steps()), "nothing was left to do"
    go_on(ledger, plan, uma)

    user("uma").finished("pulsar_rebalance", run)  # not "success": it judges usage too, which may have drifted
    assert user("uma").tasks("pulsar_rebalance", run)["apply"] == "success"
    assert confirmed() == len(steps())
    events = ledger.events(reference.digest)
    assert cluster.unloads() - before == unloads(event.detail for event in events if event.kind == "step sent")
    for name in steps():
        kinds = [event.kind for event in events if event.step_id == name]
        assert kinds[-1] == "step confirmed"
        assert kinds.count("step sent") == 1 + kinds.count("missed")
