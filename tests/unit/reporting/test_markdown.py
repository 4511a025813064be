"""The report as Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pulsar_advisor.lint.judge import LintFinding
from pulsar_advisor.planning.proposals.fitness import Refusal
from pulsar_advisor.reporting.markdown import code, render_markdown, text
from pulsar_advisor.reporting.page import ReportPage
from pulsar_advisor.reporting.upgrade import upgrade_section
from pulsar_advisor.reporting.whats_next import WhatsNext
from pulsar_advisor.simulation.foresight import CycleSeen
from states import QUARTERS
from unit.recommendation.test_upgrade import preview
from unit.reporting.skewed import balanced_inputs, hostile_inputs, skewed_inputs


def test_it_opens_with_the_verdict() -> None:
    page = skewed_inputs().page()
    assert render_markdown(page).startswith(f"# {page.verdict.headline}\n")


def test_all_rows_of_a_table_have_the_width_of_its_head() -> None:
    for document in (render_markdown(skewed_inputs().page()), render_markdown(hostile_inputs().page())):
        for table in re.findall(r"(?:^\|.*\n)+", document, re.MULTILINE):
            widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
            assert len(widths) == 1, table


def test_steps_and_splits_have_tables_of_their_own() -> None:
    document = render_markdown(skewed_inputs().page())
    assert "## Unloads" in document
    assert "## Splits (can't be undone)" in document
    assert f"| step-001 | `shop/orders/{QUARTERS[0]}` |" in document


def test_each_step_says_when_it_is_sent() -> None:
    page = skewed_inputs().page()
    document = render_markdown(page).replace("\u00a0", " ")
    sent = sum(view.step.executable for view in (*page.unloads.shown, *page.splits.shown))
    assert document.count("Sent only if its source still owns it and its namespace still has the same") == sent


def test_without_advice_there_are_no_steps_and_no_commands() -> None:
    document = render_markdown(balanced_inputs().page())
    assert "## Unloads" not in document
    assert "pulsar-advisor" not in document


@pytest.mark.parametrize(
    ("value", "escaped"),
    [
        ("range_equally_divide of 0x00_0x40", "range_equally_divide of 0x00_0x40"),
        ("_x_ *y*", "\\_x\\_ \\*y\\*"),
        ("__a__/_b", "\\_\\_a\\_\\_/\\_b"),
        ("[a](http://b)", "\\[a\\](http:\\//b)"),
        ("<b>&amp;|", "\\<b\\>\\&amp;\\|"),
        ("a\nb", "a\\\\nb"),
    ],
)
def test_sentences_hold_no_markup(value: str, escaped: str) -> None:
    assert text(value) == escaped


def test_whoever_proposes_puts_no_markup_into_a_ticket() -> None:
    inputs = skewed_inputs()
    made = inputs.recommendation.model_copy(update={"proposer": "<img src=x>"})
    assert r"as somebody other than \<img src=x\>, from" in render_markdown(replace(inputs, recommendation=made).page())


@pytest.mark.parametrize(("value", "span"), [("a", "`a`"), ("a`b", "``a`b``"), ("`a", "`` `a ``"), ("a|b", "`a\\|b`")])
def test_names_are_code_whatever_they_hold(value: str, span: str) -> None:
    assert code(value) == span


def with_verdict(page: ReportPage, **changes: Any) -> ReportPage:
    return replace(page, verdict=replace(page.verdict, **changes))


CYCLES = (CycleSeen(0, 0, 0.9, 0.2), CycleSeen(2, 1200, 0.7, 0.1, splits=3))
FINDING = LintFinding("rule", "warning", "a is 1", "a is at most 0", "It counts", "Set a to 0", {"a": "0"}, "code")
LACKS = Refusal("ThresholdShedder", "shedder", "broker_usage", "no broker was read", "It lacks usage")
UPGRADE = replace(upgrade_section(preview()), findings=("a is 1.",), pins=("a=1",))


@pytest.mark.parametrize(
    ("changed", "shown"),
    [
        (lambda p: p, "## Settings"),
        (lambda p: with_verdict(p, goal="Only in part"), "**Only in part**"),
        (lambda p: with_verdict(p, confidence="medium"), "* **Confidence:** medium"),
        (lambda p: with_verdict(p, pulsar="It would act"), "* **Own balancer:** It would act."),
        (
            lambda p: replace(
                p, answers=replace(p.answers, strategies=(replace(p.answers.strategies[0], near_ties_total=3),))
            ),
            "3\u00a0decisions decided by a near-tie.",
        ),
        (lambda p: with_verdict(p, warnings=("It rises.",)), "* **Worse outcome:** It rises."),
        (
            lambda p: replace(p, refusals=(LACKS,)),
            "## What could not be judged\n\n"
            "* ThresholdShedder as shedder: `broker_usage` is missing (no broker was read).",
        ),
        (lambda p: replace(p, drift=("b1 left.",)), "## Drift since the last good snapshot\n\n* b1 left."),
        (lambda p: replace(p, drift=()), "## Drift since the last good snapshot\n\n* Nothing changed."),
        (
            lambda p: replace(p, lint=(FINDING,), lint_effects={"rule": "better than today"}, settings=()),
            "* **Warning:** a is 1. Remedy: Set a to 0. Simulated: better than today.\n\n"
            "No what-if or dynamic value is in effect.",
        ),
        (
            lambda p: replace(p, next=WhatsNext(("It settles.",), CYCLES)),
            "* It settles.\n\n| Cycle | Unloads | Splits | Highest usage | Standard deviation |\n"
            "|---:|---:|---:|---:|---:|\n| now | 0 | 0 | 90.0% | 20.0% |\n| 2 | 1,200 | 3 | 70.0% | 10.0% |",
        ),
        (
            lambda p: replace(p, upgrade=UPGRADE),
            "What `lint` would find afterwards:\n\n* a is 1.\n\n"
            "To keep today's values, add these lines to every broker's configuration before its restart:\n\n"
            "```\na=1\n```",
        ),
    ],
)
def test_whatever_a_page_holds_a_ticket_shows(changed: Callable[[ReportPage], ReportPage], shown: str) -> None:
    assert f"\n{shown}\n" in render_markdown(changed(skewed_inputs().page()))


def test_a_page_of_an_earlier_release_has_no_options() -> None:
    page = skewed_inputs().page()
    assert page.options is not None
    without = (None, replace(page.options, rows=()))
    assert "## Options" in render_markdown(page)
    assert not any("## Options" in render_markdown(replace(page, options=options)) for options in without)


def test_a_ticket_says_how_many_strategies_it_leaves_out() -> None:
    page = skewed_inputs().page()
    [strategy] = page.answers.strategies[:1]
    answers = replace(page.answers, strategies=(strategy,) * 30, strategies_total=30)
    assert "\n24 of 30 strategies shown.\n" in render_markdown(replace(page, answers=answers))


def test_brokers_without_traffic_have_no_empty_table() -> None:
    page = skewed_inputs().page()
    idle = tuple(replace(hot, bundles=(), bundles_total=0) for hot in page.hot)
    assert "## What makes each broker hot\n\nNo bundle with traffic.\n" in render_markdown(replace(page, hot=idle))


def test_of_a_brokers_bundles_that_are_not_listed_the_number_is() -> None:
    page = skewed_inputs().page()
    assert sum(hot.bundles_total for hot in page.hot) == 11
    assert "\n10 of these brokers' 11\u00a0bundles shown: the largest of each.\n" in render_markdown(page)
