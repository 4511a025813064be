"""Positions by small keys, as a stable sort orders them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.java.stable_order import stable_order

KEYS = st.integers(0, 3) | st.integers(0, 2**32 - 1)


@given(st.lists(st.tuples(KEYS, KEYS)))
def test_positions_are_ordered_as_sorted_orders_them(pairs: list[tuple[int, int]]) -> None:
    one, other = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    assert stable_order(one).tolist() == sorted(range(len(pairs)), key=lambda place: pairs[place][0])
    assert stable_order(one, other).tolist() == sorted(range(len(pairs)), key=lambda place: pairs[place])
