"""What a simulation amounts to."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.simulation.scores import ENDINGS, Ending, Spread, cycle_scores, simulation_score
from pulsar_advisor.simulation.simulate import simulate
from unit.simulation.clusters import all_by_messages, cluster, situation

LEAST_RATE = "LeastLongTermMessageRate"


def score(shedder: str, usage: dict[str, list[float]], **what_if: str) -> Ending:
    """The score of a cluster with these bundles (see `clusters.cluster`), all in one namespace."""
    state = cluster(usage, in_one_namespace=True)
    simulation = all_by_messages(shedder, LEAST_RATE, situation(state, **what_if), cycles=60)
    return simulation_score(simulation, cycle_scores(simulation))


@pytest.mark.parametrize(
    ("figures", "gini"), [([], 0.0), ([0.0, 0.0], 0.0), ([5.0, 5.0], 0.0), ([0.0, 0.0, 0.0, 8.0], 0.75)]
)
def test_the_gini_coefficient_is_between_equality_and_one_for_all(figures: list[float], gini: float) -> None:
    assert Spread.of(np.array(figures)).gini == pytest.approx(gini)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=8))
def test_the_gini_coefficient_is_the_mean_difference_of_all_pairs(figures: list[float]) -> None:
    total, number = sum(figures), len(figures)
    pairs = sum(abs(one - other) for one in figures for other in figures)
    expected = pairs / (2 * number * total) if total > 0 else 0.0
    assert Spread.of(np.array(figures)).gini == pytest.approx(expected, abs=1e-9)


def test_a_spread_in_figures() -> None:
    spread = Spread.of(np.array([0.2, 0.8]))
    assert (spread.maximum, spread.range) == (0.8, pytest.approx(0.6))
    assert (spread.mean, spread.standard_deviation) == (0.5, pytest.approx(0.3))


def test_a_calm_cluster_settles_at_once_and_costs_nothing() -> None:
    found = score("OverloadShedder", {"a": [20.0, 20.0], "b": [10.0]})
    assert (found.ended, found.settles_in_cycles, found.settles_in_minutes) == ("settled", 0, 0.0)
    assert (found.unloads, found.topics, found.brokers_overshot) == (0, 0, 0)
    assert found.first_usage_maximum_ratio == found.last_usage_maximum_ratio
    assert found.first_usage_gini == found.last_usage_gini


def test_the_overshoot_seen_on_live_brokers_in_figures() -> None:
    usage = {"a": [11.4] * 5, "b": [16.4, 15.9, 7.0, 7.0, 7.0, 7.0, 6.3], "c": [10.0] * 4}
    found = score("ThresholdShedder", usage)
    assert found.highest_ratio == pytest.approx(0.723, abs=0.001)
    assert found.brokers_overshot == 2
    assert found.topics == 2 * found.unloads
    assert found.last_usage_mean_ratio == pytest.approx(found.first_usage_mean_ratio)


def test_a_bundle_that_goes_back_and_forth_counts_once_as_moved_again() -> None:
    usage = {"a": [90.0, 1.0], "b": [1.0, 1.0]}
    found = score(
        "OverloadShedder",
        usage,
        loadBalancerSheddingGracePeriodMinutes="0",
        loadBalancerDistributeBundlesEvenlyEnabled="false",
    )
    assert (found.ended, found.settles_in_cycles, found.settles_in_minutes) == ("repeats", None, None)
    assert (found.bundles, found.bundles_moved_again) == (1, 1)
    assert found.moved_throughput_bytes_per_s == pytest.approx(found.unloads * 900 * 100_000)


def test_the_range_at_the_end_covers_all_that_was_simulated_and_the_worst_ending_counts() -> None:
    state = cluster({"a": [60.0, 30.0], "b": [10.0]})
    found = simulate("OverloadShedder", LEAST_RATE, situation(state), cycles=60, both_ends=True)
    summed = simulation_score(found, cycle_scores(found))
    # The leader decides otherwise at each of them, so the likely one need not lie between the ends.
    maxima = [float(one.cycles[-1].usage.max()) for one in (found, *found.ends)]
    assert (summed.lowest_maximum_ratio, summed.highest_maximum_ratio) == (min(maxima), max(maxima))
    assert summed.worst_ended == max((one.ended for one in (found, *found.ends)), key=ENDINGS.index)


def test_without_the_ends_there_is_no_range() -> None:
    found = simulate("OverloadShedder", LEAST_RATE, situation(cluster({"a": [60.0, 30.0], "b": [10.0]})))
    summed = simulation_score(found, cycle_scores(found))
    assert (summed.lowest_maximum_ratio, summed.highest_maximum_ratio) == (None, None)
    assert summed.worst_ended == summed.ended
