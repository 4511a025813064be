"""Java's conversions and the order of its doubles."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pulsar_advisor.model.java.numbers import to_int, to_long, total_order, wrap_int


@pytest.mark.parametrize(
    ("value", "converted"),
    [(1.9, 1), (-1.9, -1), (math.nan, 0), (1e10, 2147483647), (-math.inf, -2147483648)],
)
def test_a_double_becomes_an_int_by_truncating_and_saturating(value: float, converted: int) -> None:
    assert to_int(value) == converted


def test_doubles_become_longs_likewise() -> None:
    assert to_long(np.array([1.9, -1.9, math.nan, 1e30, -math.inf])).tolist() == [1, -1, 0, 2.0**63, -(2.0**63)]


def test_an_int_addition_wraps() -> None:
    assert wrap_int(2147483647 + 1000) == -2147482649


def test_nan_is_above_everything_and_minus_zero_below_zero() -> None:
    ascending = [-math.inf, -1.0, -0.0, 0.0, 1.0, math.inf, math.nan]
    keys = total_order(np.array(ascending)).tolist()
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)
