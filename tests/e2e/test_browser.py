"""Airflow's pages in a real browser: what a person can click, on the files of an earlier run; no brokers, no Spark."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from harness import standalone
from pulsar_advisor.execution.ledger import default_ledger_url, open_ledger
from pulsar_advisor.storage.root import Root

pytestmark = [pytest.mark.airflow, pytest.mark.full]

REPOSITORY = Path(__file__).parents[2]
EARLIER = REPOSITORY / "tests" / "data" / "earlier"
SNAPSHOT = "20261122T093126Z"
DIGEST = "sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03"
PAGE_LIMIT_MS = 120_000
RENEW_MS = 10_000
RUN_LIMIT_S = 300


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Root:
    folder = tmp_path_factory.mktemp("earlier") / "root"
    shutil.copytree(EARLIER / "root", folder)
    with closing(sqlite3.connect(folder / "ledger.sqlite")) as connection:
        connection.executescript((EARLIER / "ledger.sql").read_text())
    return Root(str(folder), "live")


@pytest.fixture(scope="module")
def airflow(root: Root, tmp_path_factory: pytest.TempPathFactory) -> Iterator[standalone.Airflow]:
    environment = {"AIRFLOW__PULSAR_ADVISOR__SNAPSHOT_SCHEDULE": "0 0 29 2 *"}
    home = tmp_path_factory.mktemp("airflow")
    with standalone.running(REPOSITORY, home, Path(root.url), environment=environment) as airflow:
        yield airflow


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium isn't installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def person(browser: Browser, airflow: standalone.Airflow) -> Callable[[str], Page]:
    """The browser of a user, logged in through Airflow's form."""
    pages: dict[str, Page] = {}

    def log_in(name: str) -> Page:
        if name not in pages:
            page = browser.new_context(base_url=airflow.url, viewport={"width": 1280, "height": 900}).new_page()
            page.set_default_timeout(PAGE_LIMIT_MS)
            page.goto("/")
            page.locator("input[name=username]").fill(name)
            page.locator("input[name=password]").fill(airflow.passwords[name])
            page.keyboard.press("Enter")
            page.wait_for_url(lambda url: "login" not in url)
            pages[name] = page
        return pages[name]

    return log_in


@pytest.fixture(autouse=True)
def picture(request: pytest.FixtureRequest, person: Callable[[str], Page], tmp_path: Path) -> Iterator[None]:
    """A picture of every user's page at the end of each test, in the test's folder."""
    yield
    for name in ("olive", "uma", "vic"):
        person(name).screenshot(path=tmp_path / f"{name}.png", full_page=True)


def read_again_until(page: Page, path: str, text: str) -> None:
    """Load a page until it shows a text: these pages don't renew themselves while nothing runs."""
    deadline = time.monotonic() + RUN_LIMIT_S
    while True:
        page.goto(path)
        try:
            return expect(page.locator("body")).to_contain_text(text, timeout=RENEW_MS)
        except AssertionError:
            assert time.monotonic() < deadline, f"{path} never shows {text!r}"


def test_a_stranger_sees_the_login_only(browser: Browser, airflow: standalone.Airflow) -> None:
    page = browser.new_context(base_url=airflow.url).new_page()
    page.goto("/dags")
    page.wait_for_url("**/auth/login**", timeout=PAGE_LIMIT_MS)
    assert page.goto("/pulsar-advisor/").status == 401  # type: ignore[union-attr]


def test_the_schedule_is_switched_on_with_one_click(person: Callable[[str], Page]) -> None:
    page = person("uma")
    page.goto("/dags/pulsar_snapshot")
    switch = page.get_by_test_id("toggle-pause").first
    expect(switch).to_have_attribute("data-state", "unchecked")
    switch.click()
    page.reload()
    expect(switch).to_have_attribute("data-state", "checked", timeout=PAGE_LIMIT_MS)


def test_the_pages_lead_from_the_clusters_to_the_run_and_the_report(person: Callable[[str], Page]) -> None:
    page = person("vic")
    page.goto("/pulsar-advisor/")
    page.get_by_role("link", name="live").first.click()
    page.get_by_role("link", name="1", exact=True).click()
    expect(page.locator("h1")).to_contain_text("5 of 5 steps confirmed")
    assert page.get_by_role("button").count() == 0
    page.goto(f"/pulsar-advisor/clusters/live/reports/{SNAPSHOT}")
    expect(page.locator("body")).to_contain_text("broker-3:8080")


def test_a_plan_is_proposed_with_the_form_and_rejected_by_another_person(
    person: Callable[[str], Page], root: Root
) -> None:
    proposer, approver = person("uma"), person("olive")
    proposer.goto("/dags/pulsar_rebalance")
    proposer.get_by_role("button", name="Trigger").first.click()
    form = proposer.get_by_role("dialog")
    form.locator("[name=element_digest]").fill(DIGEST)
    form.get_by_test_id("trigger-dag-submit").click()
    form.wait_for(state="hidden")

    read_again_until(approver, "/required_actions", "Rebalance Pulsar cluster live")
    approver.get_by_role("link", name="Rebalance Pulsar cluster live").first.click()
    expect(approver.locator("body")).to_contain_text(DIGEST, timeout=PAGE_LIMIT_MS)
    approver.wait_for_timeout(3_000)  # an answer within the same second can meet the scheduler half-way
    approver.get_by_test_id("hitl-option-Reject").click()

    read_again_until(proposer, "/dags/pulsar_rebalance/runs", "Success")
    with closing(open_ledger(default_ledger_url(root))) as ledger:
        assert "rejected by olive" in ledger.events(DIGEST)[-1].detail


def test_a_viewer_cannot_trigger(person: Callable[[str], Page]) -> None:
    page = person("vic")
    page.goto("/dags/pulsar_rebalance")
    page.get_by_role("button", name="Trigger").first.click()
    page.get_by_test_id("trigger-dag-submit").click()
    expect(page.locator("body")).to_contain_text("Forbidden", timeout=PAGE_LIMIT_MS)
