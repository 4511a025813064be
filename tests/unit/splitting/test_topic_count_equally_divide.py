"""`topic_count_equally_divide` as its page describes it; the vectors in tests/parity hold it to the Java class."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.cluster.bundle_range import FULL_UPPER_BOUND
from pulsar_advisor.model.errors import DataNotFit
from pulsar_advisor.splitting import topic_count_equally_divide
from unit.splitting.options import option, topics


def test_cuts_midway_between_the_two_middle_topics():
    assert topic_count_equally_divide.split_boundary(option(topics(400, 100, 200, 300))) == (250,)


def test_cuts_three_topics_between_the_first_two():
    assert topic_count_equally_divide.split_boundary(option(topics(100, 200, 900))) == (150,)


@pytest.mark.parametrize("hashes", [(), (7,)])
def test_finds_nothing_to_do_below_two_topics(hashes):
    assert topic_count_equally_divide.split_boundary(option(topics(*hashes))) is None


def test_leaves_neighbouring_hashes_together_in_the_upper_child():
    assert topic_count_equally_divide.split_boundary(option(topics(7, 8))) == (7,)


def test_gives_the_hash_itself_when_two_topics_collide():
    assert topic_count_equally_divide.split_boundary(option(topics(7, 7))) == (7,)


def test_counts_topics_that_are_not_loaded():
    known = topics(100, 200, 300, 400, rates=[1, 1, 1, 1])
    known.loaded[:3] = False
    assert topic_count_equally_divide.split_boundary(option(known)) == (250,)


def test_refuses_without_the_complete_listing():
    with pytest.raises(DataNotFit, match="0x00000000_0xffffffff are not completely known"):
        topic_count_equally_divide.split_boundary(option(None))


@given(st.lists(st.integers(0, FULL_UPPER_BOUND - 1), min_size=2, max_size=50, unique=True))
def test_leaves_at_most_half_of_distinct_topics_below_the_boundary_and_one_more_above(hashes):
    (boundary,) = topic_count_equally_divide.split_boundary(option(topics(*hashes)))
    below = sum(position < boundary for position in hashes)
    assert len(hashes) // 2 - 1 <= below <= len(hashes) // 2
