"""Airflow's pages, and ours inside them, as a person uses them in Chromium."""

from __future__ import annotations

import re
import time
from typing import Final
from urllib.parse import unquote

from playwright.sync_api import Browser, Locator, Page, ViewportSize, expect

from harness.airflow_api import PARKED_S, RUN_LIMIT_S
from harness.standalone import Airflow

PAGE_LIMIT_MS: Final = 120_000
RENEW_MS: Final = 10_000
WINDOW: Final[ViewportSize] = {"width": 1280, "height": 900}


def logged_in_page(browser: Browser, airflow: Airflow, name: str) -> Page:
    """The page that follows Airflow's login form."""
    page = browser.new_context(base_url=airflow.url, viewport=WINDOW).new_page()
    page.set_default_timeout(PAGE_LIMIT_MS)
    page.goto("/")
    page.locator("input[name=username]").fill(name)
    page.locator("input[name=password]").fill(airflow.passwords[name])
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "login" not in url)
    return page


def leave(page: Page) -> None:
    """Open an empty page: while Airflow works, its pages keep a processor busy."""
    page.goto("about:blank")


def read_again_until(page: Page, path: str, shown: Locator) -> None:
    """Load a page until it shows something: Airflow's don't renew themselves while nothing runs."""
    deadline = time.monotonic() + RUN_LIMIT_S
    while True:
        page.goto(path)
        try:
            return expect(shown.first).to_be_visible(timeout=RENEW_MS)
        except AssertionError:
            assert time.monotonic() < deadline, f"{path} never shows {shown}"


def toggle_schedule(page: Page, dag: str, *, on: bool) -> None:
    """Switch a DAG on that is off, or off that is on."""
    before, after = ("unchecked", "checked") if on else ("checked", "unchecked")
    page.goto(f"/dags/{dag}")
    switch = page.get_by_test_id("toggle-pause").first
    expect(switch).to_have_attribute("data-state", before, timeout=PAGE_LIMIT_MS)
    with page.expect_response(lambda answer: answer.request.method == "PATCH"):  # a reload would take it back
        switch.click()
    expect(switch).to_have_attribute("data-state", after, timeout=PAGE_LIMIT_MS)
    page.reload()
    expect(switch).to_have_attribute("data-state", after, timeout=PAGE_LIMIT_MS)


def open_form(page: Page) -> None:
    """Open the form of `pulsar_rebalance`."""
    page.goto("/dags/pulsar_rebalance")
    page.get_by_role("button", name="Trigger").first.click()
    page.locator("[name=element_digest]").wait_for()


def send_form(page: Page) -> str:
    """Send the form; the path of the DAG run that it triggers."""
    page.get_by_test_id("trigger-dag-submit").click()
    return _run_shown(page)


def propose_this(page: Page, report: str, **limits: str) -> str:
    """Propose the plan that a report advises, with its button; the path of the DAG run that it triggers."""
    page.goto(report)
    page.get_by_role("link", name="Propose this").click()
    for name, text in limits.items():
        page.locator(f"[name={name}]").fill(text)
    page.get_by_role("button", name="Propose this").click()
    return _run_shown(page)


def _run_shown(page: Page) -> str:
    page.wait_for_url("**/dags/pulsar_rebalance/runs/**")
    run = unquote(page.url[page.url.index("/dags/") :])  # as Airflow's own links have it
    leave(page)
    return run


def open_request(page: Page, run: str) -> None:
    """Open the request for approval of a DAG run, by its path, from the list of required actions.

    Until a task that asks again has begun, both show the request that was answered, and don't renew themselves.
    """
    link = page.locator(f'a[href*="{run}/tasks/approve"]')
    deadline = time.monotonic() + RUN_LIMIT_S
    while True:
        read_again_until(page, "/required_actions", link)
        link.first.click()
        try:
            return expect(page.get_by_test_id("hitl-option-Reject")).to_be_enabled(timeout=RENEW_MS)
        except AssertionError:
            assert time.monotonic() < deadline, f"{run} never asks"


def tick(page: Page, field: str) -> None:
    """Tick a box of the form, or of the request, that is open."""
    box = page.locator(f"[name=element_{field}]")
    page.locator("label", has=box).last.click()  # the box itself is invisible
    expect(box).to_be_checked(timeout=PAGE_LIMIT_MS)


def answer_request(page: Page, option: str) -> None:
    """Answer the request that is open."""
    page.wait_for_timeout(1000 * PARKED_S)
    button = page.get_by_test_id(f"hitl-option-{option}")
    button.click()
    expect(button).to_be_disabled(timeout=PAGE_LIMIT_MS)


def switch_theme(page: Page, theme: str) -> None:
    """Choose Airflow's theme, in the user's menu."""
    page.get_by_role("button", name="User").first.click()
    page.get_by_role("menuitem", name="Appearance").click()
    page.get_by_text("Dark Mode" if theme == "dark" else "Light Mode").click()
    expect(page.locator("html")).to_have_class(re.compile(rf"\b{theme}\b"), timeout=PAGE_LIMIT_MS)
    page.keyboard.press("Escape")
