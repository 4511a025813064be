from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.cluster.bundle_range import FULL_UPPER_BOUND
from pulsar_advisor.model.errors import DataNotFit, UsageError
from pulsar_advisor.splitting.boundaries import can_split, split_bundles

FULL = (0, FULL_UPPER_BOUND)


def test_halving_the_full_range_cuts_below_its_middle():
    assert split_bundles(FULL, *FULL) == ((0, 0x7FFFFFFF, 0xFFFFFFFF), ((0, 0x7FFFFFFF), (0x7FFFFFFF, 0xFFFFFFFF)))


def test_only_the_named_bundle_is_cut():
    boundaries, children = split_bundles((0, 100, 200, FULL_UPPER_BOUND), 100, 200, positions=(170, 120))
    assert boundaries == (0, 100, 120, 170, 200, FULL_UPPER_BOUND)
    assert children == ((100, 120), (120, 170), (170, 200))


def test_a_range_one_wide_can_not_be_split():
    assert not can_split(7, 8)
    with pytest.raises(UsageError, match="not wider than 1"):
        split_bundles((0, 7, 8, FULL_UPPER_BOUND), 7, 8)


def test_a_range_two_wide_can():
    assert split_bundles((0, 7, 9, FULL_UPPER_BOUND), 7, 9)[1] == ((7, 8), (8, 9))


@pytest.mark.parametrize("position", [0, FULL_UPPER_BOUND, FULL_UPPER_BOUND + 1])
def test_a_position_on_or_beyond_a_bound_is_refused(position):
    with pytest.raises(UsageError, match="strictly inside"):
        split_bundles(FULL, *FULL, positions=(5, position))


def test_a_position_given_twice_is_refused_before_it_can_hang_a_broker():
    with pytest.raises(UsageError, match="empty child at 5"):
        split_bundles(FULL, *FULL, positions=(5, 5))


def test_more_children_than_positions_are_refused():
    with pytest.raises(UsageError, match="empty child"):
        split_bundles((0, 3, FULL_UPPER_BOUND), 0, 3, count=4)


def test_fewer_than_one_child_is_refused():
    with pytest.raises(UsageError, match="0 children"):
        split_bundles(FULL, *FULL, count=0)


def test_a_bundle_that_is_gone_is_named():
    with pytest.raises(DataNotFit, match="0x00000000_0x80000000 is not among the namespace's 1 bundles"):
        split_bundles(FULL, 0, 0x80000000)


@st.composite
def namespaces(draw):
    inner = draw(st.sets(st.integers(1, FULL_UPPER_BOUND - 1), max_size=12))
    return (0, *sorted(inner), FULL_UPPER_BOUND)


@given(namespaces(), st.data())
def test_bundles_tile_the_ring_after_any_split(boundaries, data):
    bundles = [bundle for bundle in pairwise(boundaries) if can_split(*bundle)]
    lower, upper = data.draw(st.sampled_from(bundles))
    if data.draw(st.booleans()):
        inside = st.integers(lower + 1, upper - 1)
        after, children = split_bundles(
            boundaries, lower, upper, positions=data.draw(st.lists(inside, min_size=1, max_size=5, unique=True))
        )
    else:
        count = data.draw(st.integers(2, min(9, upper - lower)))
        after, children = split_bundles(boundaries, lower, upper, count)
    assert after[0] == 0
    assert after[-1] == FULL_UPPER_BOUND
    assert all(below < above for below, above in pairwise(after))
    assert set(boundaries) <= set(after)
    assert set(pairwise(after)) - set(pairwise(boundaries)) == set(children)
