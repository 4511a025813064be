from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.cluster.bundle_range import FULL_UPPER_BOUND
from pulsar_advisor.model.errors import DataNotFit, UsageError
from pulsar_advisor.splitting.boundaries import can_split, split_bundles

FULL = (0, FULL_UPPER_BOUND)


def test_only_the_named_bundle_is_cut():
    boundaries = split_bundles((0, 100, 200, FULL_UPPER_BOUND), 100, 200, (170, 120))
    assert boundaries == (0, 100, 120, 170, 200, FULL_UPPER_BOUND)


def test_a_range_one_wide_can_not_be_split():
    assert not can_split(7, 8)
    with pytest.raises(UsageError, match="not wider than 1"):
        split_bundles((0, 7, 8, FULL_UPPER_BOUND), 7, 8, (7,))


def test_a_range_two_wide_can():
    assert split_bundles((0, 7, 9, FULL_UPPER_BOUND), 7, 9, (8,)) == (0, 7, 8, 9, FULL_UPPER_BOUND)


@pytest.mark.parametrize("position", [0, FULL_UPPER_BOUND, FULL_UPPER_BOUND + 1])
def test_a_position_on_or_beyond_a_bound_is_refused(position):
    with pytest.raises(UsageError, match="strictly inside"):
        split_bundles(FULL, *FULL, (5, position))


def test_a_position_given_twice_is_refused_before_it_can_hang_a_broker():
    with pytest.raises(UsageError, match="empty child at 5"):
        split_bundles(FULL, *FULL, (5, 5))


def test_a_bundle_that_is_gone_is_named():
    with pytest.raises(DataNotFit, match="0x00000000_0x80000000 is not among the namespace's 1 bundles"):
        split_bundles(FULL, 0, 0x80000000, (5,))


@st.composite
def namespaces(draw):
    inner = draw(st.sets(st.integers(1, FULL_UPPER_BOUND - 1), max_size=12))
    return (0, *sorted(inner), FULL_UPPER_BOUND)


@given(namespaces(), st.data())
def test_bundles_tile_the_ring_after_any_split(boundaries, data):
    bundles = [bundle for bundle in pairwise(boundaries) if can_split(*bundle)]
    lower, upper = data.draw(st.sampled_from(bundles))
    inside = st.integers(lower + 1, upper - 1)
    cuts = data.draw(st.lists(inside, min_size=1, max_size=5, unique=True))
    after = split_bundles(boundaries, lower, upper, cuts)
    assert after[0] == 0
    assert after[-1] == FULL_UPPER_BOUND
    assert all(below < above for below, above in pairwise(after))
    assert set(boundaries) <= set(after)
    assert set(after) - set(boundaries) == set(cuts)
