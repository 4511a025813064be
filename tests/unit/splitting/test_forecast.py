from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.bundle_range import FULL_UPPER_BOUND
from pulsar_advisor.splitting.bundle_split_option import BundleTopics
from pulsar_advisor.splitting.forecast import balancing_position, forecast_children

BUNDLE = np.array([100.0, 200.0, 1000.0, 2000.0])


def topics(rates: dict[int, float], loaded: bool = True) -> BundleTopics:
    traffic = np.zeros((len(rates), 4))
    traffic[:, 0] = list(rates.values())
    return BundleTopics(np.array(list(rates), dtype=np.int64), np.full(len(rates), loaded), traffic)


def test_children_share_a_figure_as_their_loaded_topics_do():
    children = forecast_children(0, 100, (50,), topics({10: 3.0, 60: 1.0}), BUNDLE)
    assert children.traffic[:, 0].tolist() == [75.0, 25.0]


def test_a_topic_on_the_boundary_goes_to_the_upper_child():
    assert forecast_children(0, 100, (50,), topics({50: 1.0}), BUNDLE).topics.tolist() == [0, 1]


def test_a_figure_no_topic_accounts_for_goes_by_the_number_of_loaded_topics():
    children = forecast_children(0, 100, (50,), topics({10: 1.0, 20: 1.0, 60: 2.0}), BUNDLE)
    assert children.traffic[:, 1] == pytest.approx([400 / 3, 200 / 3])


def test_without_loaded_topics_it_goes_by_all_of_them():
    children = forecast_children(0, 100, (50,), topics({10: 0.0, 20: 0.0, 30: 0.0, 60: 0.0}, loaded=False), BUNDLE)
    assert children.traffic[:, 0].tolist() == [75.0, 25.0]
    assert children.loaded_topics.tolist() == [0, 0]


def test_without_any_topic_it_goes_by_width():
    assert forecast_children(0, 100, (25,), topics({}), BUNDLE).traffic[:, 0].tolist() == [25.0, 75.0]


HASHES = st.integers(0, FULL_UPPER_BOUND)
RATES = st.dictionaries(HASHES, st.floats(0, 1e9), max_size=30)


@given(RATES, st.sets(st.integers(1, FULL_UPPER_BOUND - 1), max_size=5), st.booleans())
def test_load_and_topics_are_conserved(rates, boundaries, loaded):
    children = forecast_children(0, FULL_UPPER_BOUND, sorted(boundaries), topics(rates, loaded), BUNDLE)
    assert children.traffic.sum(axis=0) == pytest.approx(BUNDLE)
    assert (children.traffic >= 0).all()
    assert children.topics.sum() == len(rates)
    assert children.lower.tolist() == [0, *sorted(boundaries)]
    assert children.upper.tolist() == [*sorted(boundaries), FULL_UPPER_BOUND]


def test_two_hot_topics_are_parted():
    position = balancing_position(0, 1000, topics({100: 1.0, 300: 500.0, 310: 500.0, 900: 1.0}))
    assert position == 306


def test_the_heavier_child_is_as_light_as_can_be():
    assert balancing_position(0, 1000, topics({100: 4.0, 200: 3.0, 300: 2.0, 400: 1.0})) == 151


def test_neighbouring_hashes_can_be_parted():
    assert balancing_position(0, 1000, topics({100: 1.0, 101: 1.0})) == 101


def test_without_traffic_topics_are_parted_by_number():
    assert balancing_position(0, 1000, topics({100: 0.0, 200: 0.0, 300: 0.0, 400: 0.0})) == 251


@pytest.mark.parametrize("rates", [{}, {7: 5.0}])
def test_fewer_than_two_topics_can_not_be_parted(rates):
    assert balancing_position(0, 1000, topics(rates)) is None


def test_topics_of_one_hash_can_not_be_parted():
    same = BundleTopics(np.array([7, 7]), np.ones(2, dtype=np.bool_), np.ones((2, 4)))
    assert balancing_position(0, 1000, same) is None


def test_the_last_position_of_the_ring_is_no_boundary():
    assert balancing_position(0, FULL_UPPER_BOUND, topics({FULL_UPPER_BOUND - 1: 1.0, FULL_UPPER_BOUND: 1.0})) is None


@given(st.dictionaries(st.integers(10, 999), st.floats(0, 1e9) | st.just(float("nan")), min_size=2, max_size=20))
def test_a_position_parts_topics_strictly_inside_the_bundle_and_no_other_does_it_better(rates):
    known = topics(rates)
    position = balancing_position(10, 1000, known)
    assert 10 < position < 1000

    def heavier(cut: int) -> float:
        weights = {place: rate if np.isfinite(rate) else 0.0 for place, rate in rates.items()}
        weights = weights if any(weights.values()) else dict.fromkeys(weights, 1.0)
        below = sum(rate for place, rate in weights.items() if place < cut)
        return max(below, sum(weights.values()) - below) / sum(weights.values())

    others = [above for _, above in pairwise(sorted(rates))]
    assert any(place < position for place in rates)
    assert any(place >= position for place in rates)
    assert heavier(position) <= min(map(heavier, others)) + 1e-8


@given(
    st.dictionaries(st.integers(10, 999), st.integers(0, 100), max_size=20),
    st.lists(st.integers(10, 999), min_size=2, max_size=2, unique=True),
)
def test_two_topics_heavier_than_all_others_come_apart(others, hot):
    most = sum(rate for place, rate in others.items() if place not in hot) + 1
    rates = {**{place: float(rate) for place, rate in others.items()}, hot[0]: float(most), hot[1]: 2.0 * most}
    position = balancing_position(10, 1000, topics(rates))
    assert min(hot) < position <= max(hot)


@given(st.dictionaries(st.integers(10, 999), st.integers(0, 1000), min_size=2, max_size=20), st.randoms())
def test_the_order_of_topics_does_not_matter(rates, random):
    shuffled = list(rates.items())
    random.shuffle(shuffled)
    assert balancing_position(10, 1000, topics(dict(shuffled))) == balancing_position(10, 1000, topics(rates))
