"""The report as Markdown."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from pulsar_advisor.reporting.markdown import code, render_markdown, text
from states import QUARTERS
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


def test_without_advice_there_are_no_steps_and_no_commands() -> None:
    document = render_markdown(balanced_inputs().page())
    assert "## Unloads" not in document
    assert "pulsar-advisor" not in document


@pytest.mark.parametrize(
    ("value", "escaped"),
    [
        ("range_equally_divide of 0x00_0x40", "range_equally_divide of 0x00_0x40"),
        ("_x_ *y*", "\\_x\\_ \\*y\\*"),
        ("[a](http://b)", "\\[a\\](http:\\//b)"),
        ("<b>&amp;|", "\\<b\\>\\&amp;\\|"),
        ("a\nb", "a\\\\nb"),
    ],
)
def test_sentences_hold_no_markup(value: str, escaped: str) -> None:
    assert text(value) == escaped


@pytest.mark.parametrize(("value", "span"), [("a", "`a`"), ("a`b", "``a`b``"), ("`a", "`` `a ``"), ("a|b", "`a\\|b`")])
def test_names_are_code_whatever_they_hold(value: str, span: str) -> None:
    assert code(value) == span


def test_brokers_without_traffic_have_no_empty_table() -> None:
    page = skewed_inputs().page()
    idle = tuple(replace(hot, bundles=(), bundles_total=0) for hot in page.hot)
    assert "## What makes each broker hot\n\nNo bundle with traffic.\n" in render_markdown(replace(page, hot=idle))


def test_of_a_brokers_bundles_that_are_not_listed_the_number_is() -> None:
    page = skewed_inputs().page()
    assert sum(hot.bundles_total for hot in page.hot) == 11
    assert "\n10 of these brokers' 11\u00a0bundles shown: the largest of each.\n" in render_markdown(page)
