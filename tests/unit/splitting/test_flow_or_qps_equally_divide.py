"""`flow_or_qps_equally_divide` as its page describes it; the vectors in tests/parity hold it to the Java class."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.cluster.bundle_range import FULL_UPPER_BOUND
from pulsar_advisor.model.errors import DataNotFit, UsageError
from pulsar_advisor.splitting import flow_or_qps_equally_divide
from pulsar_advisor.splitting.bundle_split_option import BundleTopics, Quotas
from unit.splitting.options import option, topics

MEBIBYTE = 1 << 20


def divide(known: BundleTopics, rate: int = 100, mbytes: int = 1, percent: int = 10) -> tuple[int, ...] | None:
    return flow_or_qps_equally_divide.split_boundary(option(known, quotas=Quotas(rate, mbytes, percent)))


def test_starts_a_child_where_the_next_topic_would_overfill_it():
    assert divide(topics(10, 20, 30, 40, rates=[60, 40, 1, 99])) == (26,)


def test_takes_topics_by_hash_not_by_listing_order():
    assert divide(topics(40, 10, 30, 20, rates=[99, 60, 1, 40])) == (26,)


def test_a_child_filled_exactly_is_not_overfilled():
    assert divide(topics(10, 20, 30, rates=[50, 50, 50])) == (26,)


def test_cuts_by_throughput_as_well():
    assert divide(topics(10, 20, throughputs=[MEBIBYTE, MEBIBYTE])) == (16,)


def test_parts_neighbouring_hashes():
    assert divide(topics(10, 11, rates=[80, 80])) == (11,)


def test_stays_below_the_quota_and_its_margin():
    assert divide(topics(10, 20, rates=[54.9, 55.0])) is None


def test_acts_at_exactly_the_quota_and_its_margin():
    # 30000 * (1 + 10 / 100) is 33000 to the last bit in binary64; most products are not that round.
    assert divide(topics(10, 20, rates=[16_500.0, 16_500.0]), rate=30_000) == (16,)


def test_leaves_out_topics_that_are_not_loaded():
    known = topics(10, 20, rates=[90, 90])
    known.loaded[0] = False
    assert divide(known) is None


def test_leaves_out_topics_without_traffic():
    assert divide(topics(10, 20, 30, rates=[90, 0, 90])) == (21,)


def test_needs_two_distinct_hashes():
    assert divide(topics(10, 10, rates=[90, 90])) is None


def test_the_later_of_two_colliding_topics_speaks_for_both_in_the_walk():
    assert divide(topics(10, 10, 20, rates=[90, 30, 40])) == ()


def test_a_collision_between_heavy_topics_gives_a_boundary_above_the_hash():
    assert divide(topics(10, 20, 20, rates=[90, 90, 90])) == (16, 21)


def test_the_bandwidth_quota_does_not_wrap_at_two_gibibytes():
    heavy = topics(10, 20, throughputs=[2048.0 * MEBIBYTE, 1024.0 * MEBIBYTE])
    assert divide(heavy, mbytes=2048, percent=0) == (16,)


def test_a_figure_that_is_no_number_passes_the_threshold_and_overfills_nothing():
    assert divide(topics(10, 20, rates=[float("nan"), 5])) == ()


def test_leaves_a_single_topic_whole():
    assert divide(topics(10, rates=[999])) is None


def test_refuses_without_quotas():
    with pytest.raises(UsageError, match="only to its default algorithm"):
        flow_or_qps_equally_divide.split_boundary(option(topics(1, 2)))


def test_refuses_without_the_complete_listing():
    with pytest.raises(DataNotFit, match="not completely known"):
        flow_or_qps_equally_divide.split_boundary(option(None, quotas=Quotas(1, 1, 1)))


@given(
    st.dictionaries(st.integers(1, FULL_UPPER_BOUND - 1), st.integers(1, 90), min_size=2, max_size=40),
    st.randoms(use_true_random=False),
)
def test_no_child_of_several_topics_is_above_the_quota_and_listing_order_does_not_matter(rates, random):
    hashes = list(rates)
    boundaries = divide(topics(*hashes, rates=[float(rates[position]) for position in hashes]))
    random.shuffle(hashes)
    assert divide(topics(*hashes, rates=[float(rates[position]) for position in hashes])) == boundaries
    for lower, upper in pairwise((0, *(boundaries or ()), FULL_UPPER_BOUND)):
        inside = [rates[position] for position in hashes if lower <= position < upper]
        assert inside
        assert boundaries is None or len(inside) == 1 or sum(inside) <= 100
