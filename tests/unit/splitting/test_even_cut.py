"""The advisor's own cut divides a bundle's load as evenly as its topics allow."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.splitting.bundle_split_option import BundleTopics
from pulsar_advisor.splitting.even_cut import LEAST_RELIEF, NoCut, even_cut


def topics(rates: dict[int, float], loaded: bool = True) -> BundleTopics:
    """Topics by hash, with messages/s in."""
    traffic = np.array([[rate, 0.0, 0.0, 0.0] for rate in rates.values()]).reshape(-1, 4)
    return BundleTopics(np.array(list(rates), dtype=np.int64), np.full(len(rates), loaded), traffic)


def test_the_heavier_child_is_as_light_as_possible() -> None:
    assert even_cut(topics({10: 3.0, 20: 3.0, 30: 2.0, 40: 2.0})) == 25


def test_two_hot_topics_are_separated() -> None:
    assert even_cut(topics({10: 1.0, 20: 50.0, 21: 50.0, 30: 1.0})) == 21


def test_rate_and_throughput_count_alike() -> None:
    both = topics({10: 1.0, 20: 1.0, 30: 0.0})
    both.traffic[2, 2] = 1e6
    assert even_cut(both) == 25


@pytest.mark.parametrize("impossible", [1e300, np.inf, np.nan, -1.0])
def test_a_topic_whose_figures_no_machine_can_have_weighs_nothing(impossible: float) -> None:
    assert even_cut(topics({10: 3.0, 15: impossible, 20: 3.0})) == 15


@pytest.mark.parametrize("rates", [{}, {10: 5.0}, {10: 5.0, 20: 0.0}])
def test_a_child_without_load_is_no_use(rates: dict[int, float]) -> None:
    assert isinstance(even_cut(topics(rates)), NoCut)


def test_a_hot_topic_would_be_as_hot_as_before() -> None:
    assert even_cut(topics({10: 1.0, 20: 98.0, 30: 1.0})) == NoCut(3, pytest.approx(0.98))


def test_topics_that_are_not_loaded_have_no_load() -> None:
    assert even_cut(topics({10: 5.0, 20: 5.0}, loaded=False)) == NoCut(0, 0.0)


@given(st.dictionaries(st.integers(1, 1000), st.floats(0, 1e6), max_size=8))
def test_no_other_boundary_is_better(rates: dict[int, float]) -> None:
    cut, total = even_cut(topics(rates)), sum(rates.values())
    shares = []
    for boundary in range(2, 1001):
        below = sum(rate for position, rate in rates.items() if position < boundary)
        if 0 < below < total:
            shares.append(max(below, total - below) / total)
    best = min(shares, default=1.0)
    if isinstance(cut, NoCut):
        assert best > 1 - LEAST_RELIEF - 1e-9
        return
    below = sum(rate for position, rate in rates.items() if position < cut)
    assert max(below, total - below) / total == pytest.approx(best)
