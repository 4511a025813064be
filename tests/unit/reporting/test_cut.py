from __future__ import annotations

from dataclasses import replace

import pytest

from pulsar_advisor.reporting.cut import (
    BROKERS_SHOWN,
    EXCLUDED_SHOWN,
    HOT_BROKERS_SHOWN,
    STRATEGIES_SHOWN,
    cut_for_readers,
)
from pulsar_advisor.reporting.html import render_html
from pulsar_advisor.reporting.markdown import render_markdown
from pulsar_advisor.reporting.page import ReportPage
from unit.reporting.skewed import huge_inputs, skewed_inputs


@pytest.fixture(scope="module")
def many_steps() -> ReportPage:
    page = skewed_inputs().page()
    return replace(page, unloads=replace(page.unloads, shown=page.unloads.shown[:1] * 500, total=500))


def test_of_many_brokers_the_touched_and_the_hottest_are_kept() -> None:
    inputs = huge_inputs(brokers=120, bundles_per_broker=10)
    page = cut_for_readers(inputs.page())
    assert (len(page.brokers.rows), page.brokers.total) == (BROKERS_SHOWN, 120)
    assert len(page.hot) == HOT_BROKERS_SHOWN
    sources = {step.source for step in inputs.plans[0].steps}
    assert sources <= {row.id for row in page.brokers.rows}
    assert sources <= {hot.broker.id for hot in page.hot}


def test_the_busiest_broker_is_kept_before_those_that_the_plan_touches() -> None:
    page = skewed_inputs().page()
    row = page.brokers.rows[0]
    busiest = replace(row, id="busiest", before_ratio=0.9, after_ratio=0.9, bundles_after=row.bundles_before)
    touched = [replace(row, id=f"b{i}", before_ratio=0.5, after_ratio=0.4) for i in range(BROKERS_SHOWN)]
    later = replace(row, id="later", before_ratio=0.3, after_ratio=0.95)
    brokers = replace(page.brokers, rows=(busiest, *touched, later), total=BROKERS_SHOWN + 2)
    rows = cut_for_readers(replace(page, brokers=brokers)).brokers.rows
    assert (rows[0].id, rows[-1].id, len(rows)) == ("busiest", "later", BROKERS_SHOWN)


def test_strategies_and_excluded_names_are_cut_and_counted() -> None:
    page = skewed_inputs().page()
    answers = replace(page.answers, strategies=page.answers.strategies[:1] * 30, strategies_total=30)
    check = replace(page.trust.passed[0], excluded=tuple(map(str, range(100))), excluded_total=100)
    page = cut_for_readers(replace(page, answers=answers, trust=replace(page.trust, failed=(check,))))
    assert (len(page.answers.strategies), page.answers.strategies_total) == (STRATEGIES_SHOWN, 30)
    assert (len(page.trust.failed[0].excluded), page.trust.failed[0].excluded_total) == (EXCLUDED_SHOWN, 100)


def test_what_people_read_says_by_how_much_it_is_cut(many_steps: ReportPage) -> None:
    assert "200 of 500\u00a0unloads shown" in render_markdown(many_steps)
    assert "200 of 500\u00a0unloads shown" in render_html(many_steps)
