"""Java's sort: an order like any other where the comparison is one, Java's own steps where it isn't."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.errors import DataNotFit
from pulsar_advisor.model.java.sort import java_sort

RECORDED: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[3] / "data" / "java_sort.json").read_text(encoding="utf-8")
)
"""Answers of `java.util.List.sort` (JDK 17) about figures that count as equal up to a tolerance; null: it refuses."""


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: f"{len(case['figures'])}-within-{case['tolerance']}")
def test_figures_that_are_about_equal_end_where_java_leaves_them(case: dict[str, Any]) -> None:
    figures = case["figures"]

    def compare(one: int, other: int) -> int:
        apart: int = figures[one] - figures[other]
        return 0 if abs(apart) <= case["tolerance"] else apart

    if case["sorted"] is None:
        with pytest.raises(DataNotFit, match="Comparison method violates its general contract!"):
            java_sort(range(len(figures)), compare)
    else:
        assert java_sort(range(len(figures)), compare) == case["sorted"]


@given(st.lists(st.integers(0, 20), max_size=200))
def test_an_order_is_kept_to_and_equals_stay_as_they_were(numbers: list[int]) -> None:
    def by_number(one: int, other: int) -> int:
        return numbers[one] - numbers[other]

    assert java_sort(range(len(numbers)), by_number) == sorted(range(len(numbers)), key=numbers.__getitem__)
