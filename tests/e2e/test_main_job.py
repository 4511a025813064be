"""The main job on live brokers: in a real browser, and while the parts of Airflow are killed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

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
    fill_form,
    leave,
    open_form,
    open_request,
    read_again_until,
    send_form,
    tick,
    toggle_schedule,
)
from harness.request_log import unloads
from pulsar_advisor.execution.apply import go_on, pause
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.pauses import pause_requested
from pulsar_advisor.execution.ledger.plans import plan_record
from pulsar_advisor.execution.ledger.runs import runs_of_plan
from pulsar_advisor.execution.ledger.steps import steps_of_run
from pulsar_advisor.execution.ledger.tables import StepRecord
from pulsar_advisor.execution.person import Person
from pulsar_advisor.execution.run.preconditions import destinations_after, executable_steps
from pulsar_advisor.model.plans.plan import load_plan
from pulsar_advisor.storage.plans import PlanReference
from pulsar_advisor.storage.root import Root
from pulsar_advisor_airflow.operators.approval import FIELD

pytestmark = [pytest.mark.live, pytest.mark.airflow, pytest.mark.full]

RUN_PAGE = "/pulsar-advisor/clusters/live/runs/1"
BETWEEN_CALLS_S = 20
"""Enough for a person to find the button that pauses the run."""

Take = Callable[[Page, str], None]


@pytest.fixture(scope="module")
def schedule() -> str:
    return "* * * * *"


@pytest.fixture(scope="module")
def settings(settings: Mapping[str, str]) -> dict[str, str]:
    return {**settings, "AIRFLOW__PULSAR_ADVISOR__ONE_SPARK_TASK": "true"}


@pytest.fixture
def take(tmp_path: Path) -> Take:
    """Take a picture of a page, in the test's folder."""

    def picture(page: Page, name: str) -> None:
        page.screenshot(path=tmp_path / f"{name}.png", full_page=True)

    return picture


def wait_for_end(api: Api, run_path: str) -> str:
    return api.finished("pulsar_rebalance", run_path.rpartition("/")[2])


@pytest.fixture(scope="module")
def advised(person: Callable[[str], Page], user: Callable[[str], Api], root: Root) -> str:
    """The digest that the report of the first scheduled snapshot advises; the schedule is off again."""
    page = person("uma")
    toggle_schedule(page, "pulsar_snapshot", on=True)
    leave(page)
    runs = "/dags/pulsar_snapshot/dagRuns?state=success&limit=1"
    wait_for(lambda: user("uma").get(runs)["dag_runs"])
    toggle_schedule(page, "pulsar_snapshot", on=False)
    page.goto("/pulsar-advisor/dags/pulsar_snapshot")
    expect(page.locator("body")).to_contain_text("Advice", timeout=1000 * RUN_LIMIT_S)
    snapshot = root.snapshots()[0]
    found = re.search("sha256:[0-9a-f]{64}", (root.folder("reports", snapshot) / "report.html").read_text())
    assert found is not None, "the report advises nothing"
    return found[0]


def test_a_schedule_that_is_switched_on_leads_to_a_report_in_the_tab(
    person: Callable[[str], Page], advised: str, take: Take
) -> None:
    page = person("vic")
    page.goto("/dags/pulsar_snapshot")
    page.get_by_role("link", name="Pulsar report").click()
    expect(page.frame_locator("iframe").locator("body")).to_contain_text(advised, timeout=PAGE_LIMIT_MS)
    take(page, "report-tab")
    page.goto("/pulsar-advisor/")
    take(page, "clusters")
    leave(page)


def test_the_advised_plan_is_rejected_and_nothing_is_written(
    person: Callable[[str], Page], user: Callable[[str], Api], cluster: LiveCluster, advised: str, take: Take
) -> None:
    before = cluster.moves()
    proposer, approver = person("uma"), person("olive")
    open_form(proposer)
    proposer.locator("[name=element_digest]").fill(advised)
    run = send_form(proposer)
    open_request(approver, run)
    take(approver, "request")
    answer_request(approver, "Reject")
    leave(approver)
    assert wait_for_end(user("uma"), run) == "success"
    assert cluster.moves() == before
    approver.goto("/pulsar-advisor/clusters/live")
    expect(approver.locator("body")).to_contain_text("rejected by olive")
    take(approver, "cluster")


def test_the_same_plan_is_approved_paused_continued_and_verified(
    person: Callable[[str], Page],
    user: Callable[[str], Api],
    cluster: LiveCluster,
    advised: str,
    ledger: Ledger,
    take: Take,
) -> None:
    before = cluster.unloads()
    proposer, approver = person("uma"), person("olive")
    open_form(proposer)
    proposer.locator("[name=element_digest]").fill(advised)
    fill_form(proposer, "Limits", pause_s=str(BETWEEN_CALLS_S))
    take(proposer, "form")
    fill_form(proposer, "Approval", offer_undo_h="0")  # a busy machine's load may drift from what was predicted
    run = send_form(proposer)

    open_request(approver, run)
    for consent in FIELD.values():
        tick(approver, consent)
    take(approver, "approval")
    answer_request(approver, "Approve")
    leave(approver)

    apply = f"/dags/pulsar_rebalance/dagRuns/{run.rpartition('/')[2]}/taskInstances/apply"
    read_again_until(proposer, RUN_PAGE, proposer.get_by_text("while the first step holds"))
    wait_for(lambda: user("uma").get(apply)["state"] == "deferred")
    take(proposer, "run-holds")
    headline = proposer.locator("h1")
    expect(headline).to_contain_text(re.compile(r": [1-9]\d* of"), timeout=PAGE_LIMIT_MS)
    proposer.get_by_role("button", name="Pause").click()
    expect(proposer.locator("body")).to_contain_text("until somebody lets it go on", timeout=PAGE_LIMIT_MS)
    wait_for(lambda: user("uma").get(apply)["state"] == "deferred")
    take(proposer, "run-paused")
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
    proposer.goto(RUN_PAGE)
    verdict = "as predicted" if ended == "success" else "not as predicted"
    expect(proposer.locator("body")).to_contain_text(f"verified: {verdict}")
    take(proposer, "run-verified")
    proposer.goto(f"/pulsar-advisor/clusters/live/plans/{advised}")
    take(proposer, "plan")

    record = plan_record(ledger, advised)
    assert record is not None
    destinations = destinations_after(executable_steps(load_plan(record.document.encode())))
    assert destinations.items() <= cluster.admin.owners(CLUSTER_NAME).items()
    assert cluster.unloads() - before == unloads(
        event.detail for event in ledger.events(advised) if event.kind == "step sent"
    )


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
