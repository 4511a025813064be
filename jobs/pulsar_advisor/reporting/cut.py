"""Shortens a page for readers: long lists are cut, and the page keeps the full count of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from pulsar_advisor.reporting.page import ReportPage
from pulsar_advisor.reporting.steps import StepList
from pulsar_advisor.reporting.trust import Check

BROKERS_SHOWN: Final = 40
TENANTS_SHOWN: Final = 40
HOT_BROKERS_SHOWN: Final = 20
STEPS_SHOWN: Final = 200
STRATEGIES_SHOWN: Final = 24
EXCLUDED_SHOWN: Final = 20

Row = TypeVar("Row")


def cut_for_readers(page: ReportPage, brokers: int = BROKERS_SHOWN) -> ReportPage:
    """The page as HTML and Markdown show it, with this many brokers.

    The busiest before and after are always among them. Brokers that the plan touches take precedence over the hottest
    ones, and its source brokers over other hot ones.
    """
    busiest = {row.id for row in page.brokers.busiest}
    rows = _first(page.brokers.rows, brokers, lambda row: 2 * (row.id in busiest) + row.touched)
    sources = {view.step.source for steps in (page.unloads, page.splits) for view in steps.shown}
    trust = page.trust
    return replace(
        page,
        brokers=replace(page.brokers, rows=rows),
        hot=_first(page.hot, HOT_BROKERS_SHOWN, lambda hot: hot.broker.id in sources),
        tenants=page.tenants[:TENANTS_SHOWN],
        unloads=_steps(page.unloads),
        splits=_steps(page.splits),
        answers=replace(page.answers, strategies=page.answers.strategies[:STRATEGIES_SHOWN]),
        trust=replace(
            trust,
            failed=tuple(map(_check, trust.failed)),
            not_evaluated=tuple(map(_check, trust.not_evaluated)),
            passed=tuple(map(_check, trust.passed)),
        ),
    )


def _first(rows: Sequence[Row], number: int, preference: Callable[[Row], int]) -> tuple[Row, ...]:
    """At most this many rows, those of the highest preference first, in their original order."""
    chosen = sorted(range(len(rows)), key=lambda i: (-preference(rows[i]), i))[:number]
    return tuple(rows[i] for i in sorted(chosen))


def _steps(steps: StepList) -> StepList:
    return replace(steps, shown=steps.shown[:STEPS_SHOWN])


def _check(check: Check) -> Check:
    return replace(check, excluded=check.excluded[:EXCLUDED_SHOWN])
