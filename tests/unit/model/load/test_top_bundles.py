"""How bundles compare, and which a broker reports as its top ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.top_bundles import (
    NamespaceBundleStats,
    comparisons,
    greatest,
    natural_comparison,
    partially_sort,
    top_bundles,
)

NEW, OLD = resolve_settings("4.0.8").values, resolve_settings("3.3.6").values


def bundle(throughput_in: float, **others: float) -> NamespaceBundleStats:
    return NamespaceBundleStats(msg_throughput_in=throughput_in, **others)


def test_figures_within_a_step_are_equal_after_rounding() -> None:
    compare = comparisons(NEW)["byBandwidthIn"]
    assert compare(bundle(140_000), bundle(60_000)) == 0
    assert compare(bundle(150_000), bundle(149_999)) == 1


def test_up_to_3_3_the_distance_decided() -> None:
    compare = comparisons(OLD)["byBandwidthIn"]
    assert compare(bundle(150_000), bundle(149_999)) == 0
    assert compare(bundle(250_001), bundle(150_000)) == 1


def test_the_first_criterion_that_differs_decides() -> None:
    compare = natural_comparison(NEW)
    assert compare(bundle(0, msg_rate_in=1000), bundle(0, msg_rate_in=500, topics=9000)) == 1
    assert compare(bundle(0, topics=400, consumers=200), bundle(0, topics=499)) == 1
    assert compare(bundle(0, cache_size_bytes=99_999), bundle(0)) == 0


def test_the_lightest_of_the_busiest_comes_first() -> None:
    stats = [bundle(3e6), bundle(9e6), bundle(1e6), bundle(5e6)]
    assert top_bundles(stats, [True] * 4, 3, NEW) == [0, 3, 1]


def test_idle_and_hidden_bundles_are_left_out() -> None:
    stats = [bundle(3e6), bundle(0.0), bundle(1e6)]
    assert top_bundles(stats, [True, True, False], 3, NEW) == [0]
    assert top_bundles(stats, [True, True, False], 3, OLD) == [1, 0]


@pytest.mark.parametrize("count", [0, -1])
def test_none_asked_for_means_none(count: int) -> None:
    assert top_bundles([bundle(1e6)], [True], count, NEW) == []


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.integers(1, 40))
def test_the_partial_sort_brings_the_largest_to_the_front(values: list[int], count: int) -> None:
    items = list(range(len(values)))
    count = min(count, len(items))
    partially_sort(items, count, lambda one, other: values[one] - values[other])
    assert sorted(items) == list(range(len(values)))
    assert [values[item] for item in items[:count]] == sorted(values, reverse=True)[:count]


@given(st.lists(st.sampled_from([0.0, 99_999.0, 1e5, 149_999.0, 15e4, 250_001.0, 1e12, float("inf")]), min_size=1))
def test_the_greatest_is_the_first_that_no_later_one_exceeds(figures: list[float]) -> None:
    compare, best = comparisons(NEW)["byBandwidthIn"], 0
    for place, figure in enumerate(figures):
        best = place if compare(bundle(figure), bundle(figures[best])) > 0 else best
    assert greatest("byBandwidthIn", np.array(figures), NEW) == best


def test_before_the_figures_were_rounded_the_shape_of_a_tree_decided() -> None:
    figures = np.array([0.0, 9e4, 8e4, 1.5e5])
    assert [greatest("byBandwidthIn", figures, of) for of in (NEW, OLD)] == [3, 0]


@pytest.mark.parametrize(("of", "place"), [(NEW, 1), (OLD, 0)])
def test_counts_are_rounded_down(of: LoadBalancerSettings, place: int) -> None:
    assert greatest("byTopicConnections", np.array([499, 500, 501]), of) == place
