"""The report as axe, the checker for screen readers and keyboards, and real Chromium see it: light, dark, narrow."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ViewportSize, sync_playwright

from pulsar_advisor.reporting.html import render_html
from unit.reporting.skewed import Inputs, balanced_inputs, hostile_inputs, huge_inputs, skewed_inputs

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [pytest.mark.full, pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium on PATH")]

WIDE: ViewportSize = {"width": 1280, "height": 900}
PAPER: ViewportSize = {"width": 1588, "height": 2246}
"""A4 twice as wide and high: what Chromium shrinks onto a sheet, at most."""
NARROW: ViewportSize = {"width": 320, "height": 844}
"""A small telephone, or a large window enlarged four times."""
TARGETS_ARE_LARGE_ENOUGH = {"rules": {"target-size": {"enabled": True}}}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


def long_inputs() -> Inputs:
    """An option whose name has no space where a narrow line ends."""
    inputs = skewed_inputs()
    first, *others = inputs.recommendation.options
    named = replace(first, sentence="act as extensions.LeastResourceUsageWithWeight would")
    return replace(inputs, recommendation=inputs.recommendation.model_copy(update={"options": (named, *others)}))


PAGES = {
    "skewed": skewed_inputs,
    "balanced": balanced_inputs,
    "hostile names": hostile_inputs,
    "long name": long_inputs,
    "1,000 brokers": huge_inputs,
}


def _file(inputs: Inputs, folder: Path) -> str:
    path = folder / "report.html"
    path.write_text(render_html(inputs.page()), encoding="utf-8")
    return path.as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_wrong(name: str, scheme: Literal["light", "dark"], browser: Browser, tmp_path: Path) -> None:
    with browser.new_context(color_scheme=scheme, viewport=WIDE) as context:
        page = context.new_page()
        page.goto(_file(PAGES[name](), tmp_path))
        page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")

        found = Axe().run(page, options=TARGETS_ARE_LARGE_ENOUGH)

        assert not found.response["violations"], found.generate_report()


def test_a_click_on_a_heading_sorts_its_table_and_rows_that_explain_others_follow_them(
    browser: Browser, tmp_path: Path
) -> None:
    with browser.new_context(viewport=WIDE) as context:
        page = context.new_page()
        page.goto(_file(skewed_inputs(), tmp_path))
        unloads = page.get_by_role("group", name="Unloads", exact=True)
        found = [
            (unloads.get_by_role("button", name=heading).click(), unloads.locator("tbody").inner_text())[1]
            for heading in ("Messages", "Messages", "Step")
        ]
        assert unloads.get_by_role("columnheader", name="Step").get_attribute("aria-sort") == "ascending"

    steps = [re.findall(r"step-\d+(?=\t)", text) for text in found]
    rates = [[float(rate.replace(",", "")) for rate in re.findall(r"\t([\d.,]+)\s*msg/s", text)] for text in found]
    assert rates[0] == sorted(rates[0], reverse=True)
    assert rates[1] == sorted(rates[1])
    assert steps[2] == sorted(steps[2])
    assert len({*map(tuple, steps)}) > 1
    assert all(len(re.findall("Sent only if|Can't be carried out", text)) == len(steps[2]) for text in found)


def test_what_the_screen_folds_away_is_on_paper(browser: Browser, tmp_path: Path) -> None:
    folded = "each => each.filter(one => !one.checkVisibility()).length"
    with browser.new_context(viewport=WIDE) as context:
        page = context.new_page()
        page.goto(_file(skewed_inputs(), tmp_path))
        parts = page.locator("details > :not(summary)")
        assert parts.evaluate_all(folded) > 0
        page.emulate_media(media="print")
        assert parts.evaluate_all(folded) == 0


def test_paper_cuts_no_command_and_no_table_off(browser: Browser, tmp_path: Path) -> None:
    with browser.new_context(viewport=PAPER) as context:
        page = context.new_page()
        page.set_content(render_html(skewed_inputs().page()).replace("shop/orders", f"shop/{'o' * 255}"))
        page.emulate_media(media="print")
        cut_off = "each => each.filter(one => one.scrollWidth > one.clientWidth).map(one => one.ariaLabel)"
        assert page.locator(".scroll").evaluate_all(cut_off) == []


def test_the_keys_of_charts_keep_their_colours_where_a_reader_chooses_the_others(
    browser: Browser, tmp_path: Path
) -> None:
    drawn = (
        "each => each.map(one => getComputedStyle(one))"
        ".map(style => style.borderTopWidth === '0px' ? style.backgroundColor : style.borderTopColor)"
    )
    found = []
    for forced in ("none", "active"):
        with browser.new_context(viewport=WIDE, forced_colors=forced) as context:
            page = context.new_page()
            page.goto(_file(skewed_inputs(), tmp_path))
            found.append(page.locator(".key").evaluate_all(drawn))
    assert len(set(found[0])) > 1
    assert found[1] == found[0]


def test_numbers_in_a_text_sort_as_numbers(browser: Browser, tmp_path: Path) -> None:
    with browser.new_context(viewport=WIDE) as context:
        page = context.new_page()
        page.goto(_file(balanced_inputs(), tmp_path))
        table = page.get_by_role("group", name="Strategies compared")
        cells = table.locator("tbody tr:not(.why) td:nth-child(5)")
        cells.first.evaluate("cell => { cell.textContent = '10.0%'; }")
        cells.last.evaluate("cell => { cell.textContent = '9.5%'; }")
        table.get_by_role("button", name="Highest usage").click()

        assert cells.all_inner_texts() == ["9.5%", "10.0%"]


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_loaded_no_script_fails_and_a_telephone_need_not_scroll_sideways(
    name: str, browser: Browser, tmp_path: Path
) -> None:
    asked: list[str] = []
    failed: list[str] = []
    with browser.new_context(viewport=NARROW) as context:
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: failed.append(str(error)))
        page.on("dialog", lambda dialog: failed.append(dialog.message))
        address = _file(PAGES[name](), tmp_path)
        page.goto(address)

        width = page.evaluate("document.documentElement.scrollWidth")

    assert asked == [address]
    assert not failed
    assert width <= NARROW["width"]


def test_a_long_table_is_filtered_by_what_its_rows_say_and_a_short_one_is_not(browser: Browser, tmp_path: Path) -> None:
    with browser.new_context(viewport=WIDE) as context:
        page = context.new_page()
        page.goto(_file(huge_inputs(), tmp_path))
        brokers = page.locator('section[aria-labelledby="brokers"]')
        box = brokers.locator("label.filter input")
        rows = brokers.locator('[aria-label="Brokers"] tbody tr')
        every = rows.count()
        name = rows.nth(every // 2).locator("code").inner_text()
        box.fill(f"  {name.upper()} ")
        shown = [row for row in range(every) if rows.nth(row).is_visible()]
        assert 0 < len(shown) < every
        assert all(name in rows.nth(row).inner_text() for row in shown)
        assert brokers.locator("label.filter output").inner_text() == f"{len(shown)} of {every}"
        box.fill("")
        assert rows.last.is_visible()

        page.goto(_file(skewed_inputs(), tmp_path))
        assert page.locator('section[aria-labelledby="brokers"] label.filter').count() == 0
