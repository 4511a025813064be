"""The steps as CSV."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest

from pulsar_advisor.reporting.csv import COLUMNS, csv_lines
from states import QUARTERS
from unit.reporting.skewed import balanced_inputs, hostile_inputs, skewed_inputs


def test_each_step_is_a_line_with_the_plans_figures() -> None:
    inputs = skewed_inputs()
    rows = list(csv.DictReader(io.StringIO("".join(csv_lines(inputs.page())))))
    assert [row["step"] for row in rows] == [step.id for step in inputs.plans[0].steps]
    first = inputs.plans[0].steps[0]
    assert float(rows[0]["msg_rate_per_s"]) == first.expect.msg_rate_per_s
    assert float(rows[0]["source_usage_after_ratio"]) == first.predicted.brokers[first.source]
    assert (rows[0]["bundle"], rows[2]["executable"]) == (QUARTERS[0], "false")
    assert rows[1]["doubts"] == "A near-tie decided."
    assert (rows[1]["checks_passed"], rows[1]["checks_failed"]) == ("0", "")


def test_no_steps_is_a_header_alone() -> None:
    assert "".join(csv_lines(balanced_inputs().page())) == ",".join(COLUMNS) + "\n"


@pytest.mark.parametrize("name", ["=cmd()/b", "+1/b", "-1/b", "@f/b", " =1/b", "\uff1d1/b"])
def test_a_name_is_no_formula(name: str) -> None:
    page = hostile_inputs().page()
    (view,) = page.unloads.shown
    hostile = replace(view, step=view.step.model_copy(update={"namespace": name}))
    page = replace(page, unloads=replace(page.unloads, shown=[hostile]))
    (row,) = csv.DictReader(io.StringIO("".join(csv_lines(page))))
    assert row["namespace"] == f"'{name}"


def test_every_step_has_its_line_however_many_there_are() -> None:
    page = skewed_inputs().page()
    many = replace(page.unloads, shown=page.unloads.shown[:1] * 500, total=500)
    assert len(list(csv_lines(replace(page, unloads=many)))) == 1 + 500 + page.splits.total


def test_a_step_that_can_not_be_carried_out_has_no_effect_and_no_confidence() -> None:
    rows = list(csv.DictReader(io.StringIO("".join(csv_lines(skewed_inputs().page())))))
    left_out = next(row for row in rows if row["executable"] == "false")
    assert {text for column, text in left_out.items() if column.endswith(("_ratio", "confidence"))} == {""}


def test_a_split_that_comes_before_unloads_has_its_line_before_theirs() -> None:
    page = skewed_inputs().page()
    first, second = page.unloads.shown[0], page.splits.shown[0]
    split, unload = (
        replace(view, step=view.step.model_copy(update={"id": id}))
        for view, id in ((second, "step-001"), (first, "step-002"))
    )
    swapped = replace(page, unloads=replace(page.unloads, shown=(unload,)), splits=replace(page.splits, shown=(split,)))
    assert [line.partition(",")[0] for line in csv_lines(swapped)] == ["step", "step-001", "step-002"]
