"""Lines without axes: where they go, where they break, and what they say to those who can't see them."""

from __future__ import annotations

import re

from pulsar_advisor_airflow.pages.sparkline import sparkline


def heights(drawn: str) -> list[list[float]]:
    """The points of each piece of the line, as the share of the height that they are above the ground."""
    pieces = re.findall(r'points="([^"]+)"', drawn)
    return [[round((17.5 - float(point.split(",")[1])) / 15, 2) for point in piece.split()] for piece in pieces]


def test_a_line_begins_at_zero_so_that_small_changes_look_small() -> None:
    assert heights(sparkline([0.5, 0.75, 1.0], "usage")) == [[0.5, 0.75, 1.0]]


def test_a_missing_value_is_a_gap() -> None:
    assert heights(sparkline([1.0, 1.0, None, 0.5, 0.5], "usage")) == [[1.0, 1.0], [0.5, 0.5]]


def test_one_value_is_a_dot_and_none_is_nothing() -> None:
    assert sparkline([3], "checks").count("<circle") == 1
    assert "polyline" not in sparkline([3], "checks")
    assert sparkline([None, None], "checks") == ""


def test_zeros_lie_on_the_ground() -> None:
    assert heights(sparkline([0, 0], "checks")) == [[0.0, 0.0]]


def test_the_label_is_text() -> None:
    assert "<b>" not in sparkline([1], "<b>")
