"""Airflow's pages in a real browser: what a person can click, on the files of an earlier run; no brokers, no Spark."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from harness import standalone
from harness.pages import (
    PAGE_LIMIT_MS,
    answer_request,
    open_form,
    open_request,
    read_again_until,
    send_form,
    toggle_schedule,
)
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.storage.root import Root

pytestmark = [pytest.mark.airflow, pytest.mark.full]

REPOSITORY = Path(__file__).parents[2]
EARLIER = REPOSITORY / "tests" / "data" / "earlier"
SNAPSHOT = "20261122T093126Z"
DIGEST = "sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Root:
    folder = tmp_path_factory.mktemp("earlier") / "root"
    shutil.copytree(EARLIER / "root", folder)
    with closing(sqlite3.connect(folder / "ledger.sqlite")) as connection:
        connection.executescript((EARLIER / "ledger.sql").read_text())
    return Root(str(folder), "live")


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    return {}


@pytest.fixture(autouse=True)
def picture(request: pytest.FixtureRequest, person: Callable[[str], Page], tmp_path: Path) -> Iterator[None]:
    """A picture of every user's page at the end of each test, in the test's folder."""
    yield
    for name in ("olive", "uma", "vic"):
        person(name).screenshot(path=tmp_path / f"{name}.png", full_page=True)


def test_a_stranger_sees_the_login_only(browser: Browser, airflow: standalone.Airflow) -> None:
    page = browser.new_context(base_url=airflow.url).new_page()
    page.goto("/dags")
    page.wait_for_url("**/auth/login**", timeout=PAGE_LIMIT_MS)
    assert page.goto("/pulsar-advisor/").status == 401  # type: ignore[union-attr]


def test_the_schedule_is_switched_on_with_one_click(person: Callable[[str], Page]) -> None:
    toggle_schedule(person("uma"), "pulsar_snapshot", on=True)


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
    open_form(proposer)
    proposer.locator("[name=element_digest]").fill(DIGEST)
    run = send_form(proposer)

    open_request(approver, run)
    expect(approver.locator("body")).to_contain_text(DIGEST)
    answer_request(approver, "Reject")

    read_again_until(proposer, "/dags/pulsar_rebalance/runs", proposer.get_by_text("Success"))
    with closing(open_ledger(root.ledger_url)) as ledger:
        rejection = ledger.events(DIGEST)[-1]
        assert (rejection.kind, rejection.detail[:8]) == ("rejected", "by olive")


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
    page.goto("/pulsar-advisor/clusters/live")
    page.screenshot(path=tmp_path / "cluster.png")
    page.get_by_role("link", name="1", exact=True).click()
    expect(page.locator("h1")).to_contain_text("5 of 5 steps confirmed")
    page.screenshot(path=tmp_path / "run.png", full_page=True)
    assert {picture.stem for picture in (REPOSITORY / "docs" / "pictures").iterdir()} == {
        picture.stem for picture in tmp_path.iterdir()
    }


def test_a_viewer_cannot_trigger(person: Callable[[str], Page]) -> None:
    page = person("vic")
    page.goto("/dags/pulsar_rebalance")
    page.get_by_role("button", name="Trigger").first.click()
    page.get_by_test_id("trigger-dag-submit").click()
    expect(page.locator("body")).to_contain_text("Forbidden", timeout=PAGE_LIMIT_MS)
