"""Airflow's pages in a real browser: what a person can click, on the files of an earlier run; no brokers, no Spark."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from harness import standalone
from harness.accessibility import TELEPHONE, is_too_wide, violations
from harness.pages import (
    PAGE_LIMIT_MS,
    WINDOW,
    answer_request,
    open_form,
    open_request,
    propose_this,
    read_again_until,
    send_form,
    switch_theme,
    toggle_schedule,
)
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.stages.report import run as write_report
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.plans import PlanReference, read_recommendation, write_plan
from pulsar_advisor.storage.root import Root
from unit.execution.roll.doubles import drained

pytestmark = [pytest.mark.airflow, pytest.mark.full]

REPOSITORY = Path(__file__).parents[2]
EARLIER = REPOSITORY / "tests" / "data" / "earlier"
SNAPSHOT = "20261122T093126Z"
TEN_YEARS_H = "87600"
"""A limit to the age of a snapshot that was recorded long ago."""
APPLIED = "sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03"

CLUSTER = "/pulsar-advisor/clusters/live"
REPORT = f"{CLUSTER}/reports/{SNAPSHOT}"
HALF_A_SCREEN: ViewportSize = {"width": 960, "height": 900}
THEMES: tuple[Literal["dark", "light"], ...] = ("dark", "light")
PAGES = {
    "clusters": "/pulsar-advisor/",
    "cluster": CLUSTER,
    "report": REPORT,
    "report-itself": f"{REPORT}/report.html",
    "recommended-plan": f"{REPORT}/plans/{{advised}}",
    "plan": f"{CLUSTER}/plans/{APPLIED}",
    "run": f"{CLUSTER}/runs/1",
    "not-found": f"{CLUSTER}/runs/9",
    "not-an-address": f"{CLUSTER}/runs/none",
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Root:
    folder = tmp_path_factory.mktemp("earlier") / "root"
    shutil.copytree(EARLIER / "root", folder)
    with closing(sqlite3.connect(folder / "ledger.sqlite")) as connection:
        connection.executescript((EARLIER / "ledger.sql").read_text())
    return Root(str(folder), "live")


@pytest.fixture(scope="module")
def advised(root: Root) -> str:
    """The digest of a plan that nobody proposed, and that the report, written anew, advises: the one that was applied
    without its last step, and unsure about its first."""
    made = read_recommendation(root.snapshot(SNAPSHOT))
    applied = PlanReference(SNAPSHOT, str(made.advice.plan), APPLIED).load(root)
    unsure = applied.steps[0].model_copy(update={"confidence": "low"})
    plan = write_plan(root, applied.model_copy(update={"steps": (unsure, *applied.steps[1:-1])}))
    now = {"digest": plan.digest, "plan": plan.file}
    combinations = (*made.combinations, replace(made.combinations[0], **now))
    update = {"advice": made.advice.model_copy(update=now), "combinations": combinations}
    document = made.model_copy(update=update)
    write_file(root.snapshot(SNAPSHOT).result_file("recommend"), document.content())
    write_report(root.snapshot(SNAPSHOT), dag="pulsar_rebalance")
    return plan.digest


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    return {}


@pytest.fixture(autouse=True)
def picture(request: pytest.FixtureRequest, person: Callable[[str], Page], tmp_path: Path) -> Iterator[None]:
    """A picture of every user's page at the end of each test, in the test's folder."""
    yield
    for name in ("olive", "uma", "vic"):
        person(name).screenshot(path=tmp_path / f"{name}.png", full_page=True)


def test_a_stranger_is_led_to_the_login_and_from_there_to_the_page(
    browser: Browser, airflow: standalone.Airflow
) -> None:
    page = browser.new_context(base_url=airflow.url).new_page()
    page.goto(f"{CLUSTER}/runs/1")
    page.wait_for_url("**/auth/login**", timeout=PAGE_LIMIT_MS)
    page.locator("input[name=username]").fill("vic")
    page.locator("input[name=password]").fill(airflow.passwords["vic"])
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("Run 1", timeout=PAGE_LIMIT_MS)


def test_the_schedule_is_switched_on_with_one_click(person: Callable[[str], Page]) -> None:
    toggle_schedule(person("uma"), "pulsar_snapshot", on=True)


def test_the_pages_lead_from_the_clusters_to_the_run_and_the_report(person: Callable[[str], Page]) -> None:
    page = person("vic")
    page.goto("/pulsar-advisor/")
    page.get_by_role("link", name="live").first.click()
    page.get_by_role("link", name="run 1", exact=True).click()
    expect(page.locator("h1")).to_contain_text("5 of 5 steps confirmed")
    assert page.get_by_role("button").count() == 0
    page.goto(REPORT)
    expect(page.frame_locator("iframe").locator("body")).to_contain_text("broker-3:8080")


def test_the_reports_button_leads_to_a_proposal_whose_approval_without_a_tick_is_asked_for_again(
    person: Callable[[str], Page], root: Root, advised: str
) -> None:
    proposer, approver = person("uma"), person("olive")
    run = propose_this(proposer, REPORT, max_age_h=TEN_YEARS_H)

    open_request(approver, run)
    expect(approver.locator("body")).to_contain_text(advised)
    answer_request(approver, "Approve")
    open_request(approver, run)
    answer_request(approver, "Reject")

    read_again_until(proposer, "/dags/pulsar_rebalance/runs", proposer.get_by_text("Failed"))
    with closing(open_ledger(root.ledger_url)) as ledger:
        *_, forgotten, rejected = ledger.events(advised)
    assert forgotten.detail == (
        "olive approved it without ticking: Accept a worse outcome, Accept steps of low confidence"
    )
    assert (rejected.kind, rejected.detail[:8]) == ("rejected", "by olive")
    proposer.goto(CLUSTER)
    expect(proposer.locator("body")).to_contain_text("rejected")


def test_a_plan_that_was_applied_is_not_proposed_again(person: Callable[[str], Page], root: Root) -> None:
    page = person("uma")
    page.goto(f"{CLUSTER}/plans/{APPLIED}")
    expect(page.locator("body")).to_contain_text("It can't be proposed again")
    assert page.get_by_role("button", name="Propose this").count() == 0
    open_form(page)
    page.locator("[name=element_digest]").fill(APPLIED[:16])
    run = send_form(page)
    read_again_until(page, run, page.get_by_text("Failed"))
    with closing(open_ledger(root.ledger_url)) as ledger:
        assert ledger.events(APPLIED)[-1].kind == "verified", "nothing was proposed"


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_wrong_with_a_page_light_dark_or_on_a_telephone(
    name: str, person: Callable[[str], Page], advised: str, tmp_path: Path
) -> None:
    assert wrong_with(person("uma"), PAGES[name].format(advised=advised), tmp_path / name) == []


def wrong_with(page: Page, path: str, pictures: Path) -> list[str]:
    """What is wrong with a page, and where; pictures of it are left behind."""
    found = []
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        page.goto("/pulsar-advisor/")
        page.evaluate("theme => localStorage.setItem('theme', theme)", theme)
        for kind, size in (("wide", WINDOW), ("narrow", TELEPHONE)):
            page.set_viewport_size(size)
            page.goto(path)
            where = f"{theme} {kind}"
            found += [f"{where}: {line}" for frame in page.frames for line in violations(frame)]
            found += [f"{where}: too wide: {frame.url}" for frame in page.frames if is_too_wide(frame)]
            page.screenshot(path=f"{pictures}-{theme}-{kind}.png", full_page=True)
    return found


def test_a_window_beside_another_shows_every_column_of_all_clusters_and_of_a_plan_whose_brokers_have_long_names(
    person: Callable[[str], Page],
) -> None:
    page = person("uma")
    page.set_viewport_size(HALF_A_SCREEN)
    page.goto("/pulsar-advisor/")
    assert not is_too_wide(page)
    page.goto(f"{CLUSTER}/plans/{APPLIED}")
    table = page.get_by_role("region", name="Steps")
    name = (
        "table => table.innerHTML = table.innerHTML.replaceAll(/broker-[0-9]/g, each => each + '.' + 'b'.repeat(200))"
    )
    table.evaluate(name)
    assert "bbb" in table.inner_text()
    assert not is_too_wide(page)


def test_the_pages_follow_airflows_switch(person: Callable[[str], Page], advised: str, tmp_path: Path) -> None:
    page = person("vic")
    page.goto("/plugin/pulsar-clusters")
    framed = page.frame_locator("iframe")
    framed.get_by_role("link", name="report").first.click()
    report = framed.frame_locator("iframe").locator("body")
    expect(report).to_be_visible(timeout=PAGE_LIMIT_MS)
    for theme, paper in (("dark", "rgb(21, 24, 27)"), ("light", "rgb(253, 253, 252)")):
        switch_theme(page, theme)
        for shown in (framed.locator("body"), report):
            expect(shown).to_have_css("background-color", paper)
        page.screenshot(path=tmp_path / f"framed-{theme}.png")


def test_the_pages_of_the_tutorial_can_be_pictured(person: Callable[[str], Page], tmp_path: Path) -> None:
    """`docs/pictures` are copies of these."""
    page = person("uma")
    page.set_viewport_size({"width": 1280, "height": 840})
    page.goto("/dags")
    expect(page.get_by_text("pulsar_snapshot").first).to_be_visible(timeout=PAGE_LIMIT_MS)
    page.screenshot(path=tmp_path / "dags.png")
    page.set_viewport_size({"width": 960, "height": 900})
    open_form(page)
    page.get_by_role("button", name="What to recommend", exact=True).click()
    page.get_by_text("Goal", exact=True).first.evaluate("label => label.scrollIntoView({block: 'start'})")
    page.screenshot(path=tmp_path / "form.png")
    page.set_viewport_size({"width": 930, "height": 570})
    page.goto(CLUSTER)
    page.screenshot(path=tmp_path / "cluster.png")
    page.get_by_role("link", name="run 1", exact=True).click()
    expect(page.locator("h1")).to_contain_text("5 of 5 steps confirmed")
    page.screenshot(path=tmp_path / "run.png", full_page=True)
    assert {picture.stem for picture in (REPOSITORY / "docs" / "pictures").glob("*.png")} == {
        picture.stem for picture in tmp_path.iterdir()
    }


def test_a_viewer_cannot_trigger(person: Callable[[str], Page]) -> None:
    page = person("vic")
    page.goto("/dags/pulsar_rebalance")
    page.get_by_role("button", name="Trigger").first.click()
    page.get_by_test_id("trigger-dag-submit").click()
    expect(page.locator("body")).to_contain_text("Forbidden", timeout=PAGE_LIMIT_MS)


def test_nothing_is_wrong_with_the_page_of_a_roll_nor_with_its_buttons(
    person: Callable[[str], Page], root: Root, tmp_path: Path
) -> None:
    with closing(open_ledger(root.ledger_url)) as ledger:
        roll = drained(ledger, "live")
        page, path = person("uma"), f"{CLUSTER}/rolls/{roll.digest}"
        assert wrong_with(page, path, tmp_path / "roll") == []
        for button, said in (
            ("Confirm restart", "uma confirmed the restart"),
            ("Pause", "It is paused by uma"),
            ("Go on", "uma confirmed the restart"),
        ):
            page.get_by_role("button", name=button).click()
            expect(page.locator("body")).to_contain_text(said, timeout=PAGE_LIMIT_MS)
        page.get_by_role("link", name="End for good").click()
        page.get_by_role("button", name="End for good").click()
        expect(page.locator("body")).to_contain_text("It is over: ended by uma", timeout=PAGE_LIMIT_MS)
        assert wrong_with(page, path, tmp_path / "roll-over") == []
