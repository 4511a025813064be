"""The four algorithms as their docs pages describe them; the vectors in tests/parity hold them to the Java classes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.bundle_range import FULL_UPPER_BOUND
from pulsar_advisor.model.errors import DataNotFit, UsageError
from pulsar_advisor.splitting import (
    flow_or_qps_equally_divide,
    range_equally_divide,
    specified_positions_divide,
    topic_count_equally_divide,
)
from pulsar_advisor.splitting.bundle_split_option import BundleSplitOption, BundleTopics, Quotas

MEBIBYTE = 1 << 20


def topics(*hashes: int, rates: list[float] | None = None, throughputs: list[float] | None = None) -> BundleTopics:
    traffic = np.zeros((len(hashes), 4))
    traffic[:, 0] = rates or 0.0
    traffic[:, 3] = throughputs or 0.0
    loaded = np.full(len(hashes), rates is not None or throughputs is not None)
    return BundleTopics(np.array(hashes, dtype=np.int64), loaded, traffic)


def option(known: BundleTopics | None = None, **rest: object) -> BundleSplitOption:
    return BundleSplitOption(**{"lower": 0, "upper": FULL_UPPER_BOUND, "topics": known, **rest})


class TestRangeEquallyDivide:
    def test_cuts_in_the_middle_whatever_lies_in_the_bundle(self):
        assert range_equally_divide.split_boundary(option(lower=0x40000000, upper=0x80000000)) == (0x60000000,)

    def test_rounds_down(self):
        assert range_equally_divide.split_boundary(option(lower=5, upper=8)) == (6,)


class TestTopicCountEquallyDivide:
    def test_cuts_midway_between_the_two_middle_topics(self):
        assert topic_count_equally_divide.split_boundary(option(topics(400, 100, 200, 300))) == (250,)

    def test_cuts_three_topics_between_the_first_two(self):
        assert topic_count_equally_divide.split_boundary(option(topics(100, 200, 900))) == (150,)

    @pytest.mark.parametrize("hashes", [(), (7,)])
    def test_finds_nothing_to_do_below_two_topics(self, hashes):
        assert topic_count_equally_divide.split_boundary(option(topics(*hashes))) is None

    def test_leaves_neighbouring_hashes_together_in_the_upper_child(self):
        assert topic_count_equally_divide.split_boundary(option(topics(7, 8))) == (7,)

    def test_gives_the_hash_itself_when_two_topics_collide(self):
        assert topic_count_equally_divide.split_boundary(option(topics(7, 7))) == (7,)

    def test_counts_topics_that_are_not_loaded(self):
        known = topics(100, 200, 300, 400, rates=[1, 1, 1, 1])
        known.loaded[:3] = False
        assert topic_count_equally_divide.split_boundary(option(known)) == (250,)

    def test_refuses_without_the_complete_listing(self):
        with pytest.raises(DataNotFit, match="0x00000000_0xffffffff are not completely known"):
            topic_count_equally_divide.split_boundary(option(None))

    @given(st.lists(st.integers(0, FULL_UPPER_BOUND - 1), min_size=2, max_size=50, unique=True))
    def test_leaves_at_most_half_of_distinct_topics_below_the_boundary_and_one_more_above(self, hashes):
        (boundary,) = topic_count_equally_divide.split_boundary(option(topics(*hashes)))
        below = sum(position < boundary for position in hashes)
        assert len(hashes) // 2 - 1 <= below <= len(hashes) // 2


class TestSpecifiedPositionsDivide:
    def test_keeps_the_positions_inside_the_bundle_in_order(self):
        given_positions = option(topics(1, 2), lower=10, upper=100, positions=(100, 60, 10, 20, 500))
        assert specified_positions_divide.split_boundary(given_positions) == (20, 60)

    def test_keeps_duplicates_as_pulsar_does(self):
        assert specified_positions_divide.split_boundary(option(topics(1, 2), positions=(9, 9))) == (9, 9)

    def test_finds_nothing_to_do_when_no_position_is_inside(self):
        assert specified_positions_divide.split_boundary(option(topics(1, 2), positions=(0, FULL_UPPER_BOUND))) is None

    def test_finds_nothing_to_do_with_one_topic(self):
        assert specified_positions_divide.split_boundary(option(topics(1), positions=(9,))) is None

    def test_does_not_look_at_topics_when_forced(self):
        assert specified_positions_divide.forced_split_boundary(option(None, positions=(9,))) == (9,)

    @pytest.mark.parametrize(
        "algorithm", [specified_positions_divide.split_boundary, specified_positions_divide.forced_split_boundary]
    )
    def test_refuses_without_positions(self, algorithm):
        with pytest.raises(UsageError, match="needs positions"):
            algorithm(option(topics(1)))


class TestFlowOrQpsEquallyDivide:
    def divide(
        self, known: BundleTopics, rate: int = 100, mbytes: int = 1, percent: int = 10
    ) -> tuple[int, ...] | None:
        return flow_or_qps_equally_divide.split_boundary(option(known, quotas=Quotas(rate, mbytes, percent)))

    def test_starts_a_child_where_the_next_topic_would_overfill_it(self):
        assert self.divide(topics(10, 20, 30, 40, rates=[60, 40, 1, 99])) == (26,)

    def test_takes_topics_by_hash_not_by_listing_order(self):
        assert self.divide(topics(40, 10, 30, 20, rates=[99, 60, 1, 40])) == (26,)

    def test_a_child_filled_exactly_is_not_overfilled(self):
        assert self.divide(topics(10, 20, 30, rates=[50, 50, 50])) == (26,)

    def test_cuts_by_throughput_as_well(self):
        assert self.divide(topics(10, 20, throughputs=[MEBIBYTE, MEBIBYTE])) == (16,)

    def test_parts_neighbouring_hashes(self):
        assert self.divide(topics(10, 11, rates=[80, 80])) == (11,)

    def test_stays_below_the_quota_and_its_margin(self):
        assert self.divide(topics(10, 20, rates=[54.9, 55.0])) is None

    def test_acts_at_exactly_the_quota_and_its_margin(self):
        # 30000 * (1 + 10 / 100) is 33000 to the last bit in binary64; most products are not that round.
        assert self.divide(topics(10, 20, rates=[16_500.0, 16_500.0]), rate=30_000) == (16,)

    def test_leaves_out_topics_that_are_not_loaded(self):
        known = topics(10, 20, rates=[90, 90])
        known.loaded[0] = False
        assert self.divide(known) is None

    def test_leaves_out_topics_without_traffic(self):
        assert self.divide(topics(10, 20, 30, rates=[90, 0, 90])) == (21,)

    def test_needs_two_distinct_hashes(self):
        assert self.divide(topics(10, 10, rates=[90, 90])) is None

    def test_the_later_of_two_colliding_topics_speaks_for_both_in_the_walk(self):
        assert self.divide(topics(10, 10, 20, rates=[90, 30, 40])) == ()

    def test_a_collision_between_heavy_topics_gives_a_boundary_above_the_hash(self):
        assert self.divide(topics(10, 20, 20, rates=[90, 90, 90])) == (16, 21)

    def test_the_bandwidth_quota_does_not_wrap_at_two_gibibytes(self):
        heavy = topics(10, 20, throughputs=[2048.0 * MEBIBYTE, 1024.0 * MEBIBYTE])
        assert self.divide(heavy, mbytes=2048, percent=0) == (16,)

    def test_a_figure_that_is_no_number_passes_the_threshold_and_overfills_nothing(self):
        assert self.divide(topics(10, 20, rates=[float("nan"), 5])) == ()

    def test_refuses_without_quotas(self):
        with pytest.raises(UsageError, match="only to its default algorithm"):
            flow_or_qps_equally_divide.split_boundary(option(topics(1, 2)))

    def test_refuses_without_the_complete_listing(self):
        with pytest.raises(DataNotFit, match="not completely known"):
            flow_or_qps_equally_divide.split_boundary(option(None, quotas=Quotas(1, 1, 1)))

    @given(
        st.dictionaries(st.integers(1, FULL_UPPER_BOUND - 1), st.integers(1, 90), min_size=2, max_size=40),
        st.randoms(use_true_random=False),
    )
    def test_no_child_of_several_topics_is_above_the_quota_and_listing_order_does_not_matter(self, rates, random):
        hashes = list(rates)
        boundaries = self.divide(topics(*hashes, rates=[float(rates[position]) for position in hashes]))
        random.shuffle(hashes)
        assert self.divide(topics(*hashes, rates=[float(rates[position]) for position in hashes])) == boundaries
        for lower, upper in pairwise((0, *(boundaries or ()), FULL_UPPER_BOUND)):
            inside = [rates[position] for position in hashes if lower <= position < upper]
            assert inside
            assert boundaries is None or len(inside) == 1 or sum(inside) <= 100
