"""The report for programs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from pulsar_advisor.reporting.json import json_chunks
from pulsar_advisor.reporting.page import ReportPage
from unit.reporting.skewed import balanced_inputs, hostile_inputs, huge_inputs, skewed_inputs


def report_of(page: ReportPage) -> Any:
    return json.loads("".join(json_chunks(page)))


def test_the_document_is_json_and_names_its_schema() -> None:
    for inputs in (skewed_inputs(), balanced_inputs(), hostile_inputs()):
        document = report_of(inputs.page())
        assert document["schema"] == "pulsar-advisor/report/1"


def test_it_holds_the_plans_own_figures_and_names() -> None:
    inputs = skewed_inputs()
    document = report_of(inputs.page())
    forecast = inputs.plans[0].predicted.after.brokers
    assert {row["id"]: row["after_ratio"] for row in document["brokers"]["rows"]} == {
        broker: row.usage_ratio for broker, row in forecast.items()
    }
    assert document["unloads"]["shown"][0]["step"]["id"] == "step-001"


def test_a_figure_that_is_not_finite_is_null() -> None:
    page = skewed_inputs().page()
    row = replace(page.brokers.rows[0], msg_rate_per_s=float("nan"))
    document = report_of(replace(page, brokers=replace(page.brokers, rows=(row,))))
    assert document["brokers"]["rows"][0]["msg_rate_per_s"] is None


def test_its_lists_are_whole() -> None:
    inputs = huge_inputs(brokers=120, bundles_per_broker=10)
    page = inputs.page()
    many = replace(page.unloads, shown=page.unloads.shown[:1] * 500, total=500)
    document = report_of(replace(page, unloads=many))
    lengths = len(document["brokers"]["rows"]), len(document["hot"]), len(document["unloads"]["shown"])
    assert lengths == (120, 120, 500)
