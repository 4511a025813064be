"""Moving a bundle moves its share of its broker's load, and nothing gets lost on the way."""

import numpy as np
import pytest

from pulsar_advisor.model.base_load import BaseLoad, base_load
from pulsar_advisor.model.cluster_state import ClusterState
from pulsar_advisor.model.settings import ResolvedSettings
from pulsar_advisor.planning.forecast import Outlook, after_move, forecast, loads_of, usage_ratios

HOTTEST, IDLEST = 0, 1


def test_cpu_moves_by_the_share_of_the_message_rate(state: ClusterState, settings: ResolvedSettings) -> None:
    origin = loads_of(state)
    after = after_move(origin, origin, state.bundles, 0, HOTTEST, IDLEST)
    # 1,000 of the broker's 1,800 msg/s: 200 of its 360 CPU points.
    assert after.usage[HOTTEST, 0] == pytest.approx(160.0)
    assert after.usage[IDLEST, 0] == pytest.approx(240.0)
    assert usage_ratios(after, settings.values)[[HOTTEST, IDLEST]] == pytest.approx([0.4, 0.6])


def test_load_is_conserved_over_any_sequence_of_moves(state: ClusterState) -> None:
    origin = loads_of(state)
    once = after_move(origin, origin, state.bundles, 0, HOTTEST, IDLEST)
    twice = after_move(once, origin, state.bundles, 1, HOTTEST, 2)
    assert twice.usage.sum() == pytest.approx(origin.usage.sum())
    assert twice.traffic.sum() == pytest.approx(origin.traffic.sum())
    assert twice.bundles.sum() == origin.bundles.sum()


def test_the_order_of_moves_does_not_matter(state: ClusterState) -> None:
    origin = loads_of(state)
    first = after_move(after_move(origin, origin, state.bundles, 0, HOTTEST, 1), origin, state.bundles, 1, HOTTEST, 2)
    second = after_move(after_move(origin, origin, state.bundles, 1, HOTTEST, 2), origin, state.bundles, 0, HOTTEST, 1)
    np.testing.assert_allclose(first.usage, second.usage)


def test_direct_memory_stays_where_it_is(state: ClusterState) -> None:
    origin = loads_of(state)
    after = after_move(origin, origin, state.bundles, 0, HOTTEST, IDLEST)
    np.testing.assert_array_equal(after.usage[:, 2], origin.usage[:, 2])


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_figures_that_are_no_numbers_are_left_out_of_the_forecast(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    state.bundles.traffic[0] = np.inf
    state.brokers.traffic[HOTTEST] = np.inf
    state.brokers.usage[HOTTEST, 0] = np.inf
    origin = Outlook.of(state, base_load(state))
    once = origin.after_move(origin, state.bundles, 0, HOTTEST, IDLEST)
    found = forecast(state, once.after_move(origin, state.bundles, 0, HOTTEST, IDLEST), settings.values)
    assert found.brokers["a:8080"].msg_rate_per_s is None
    assert found.brokers["c:8080"].msg_rate_per_s == 400.0


def test_the_spread_counts_available_brokers_only(state: ClusterState, settings: ResolvedSettings) -> None:
    state.brokers.available[2] = False
    found = forecast(state, Outlook.of(state, base_load(state)), settings.values)
    assert found.maximum_ratio == pytest.approx(0.9)
    assert found.mean_ratio == pytest.approx(0.5)


def test_the_base_of_a_broker_stays_when_its_bundles_leave(state: ClusterState, settings: ResolvedSettings) -> None:
    base = BaseLoad(np.zeros(3), np.full(3, 36.0), np.full(3, 40.0), ("least_loaded",) * 3)
    origin = Outlook.of(state, base)
    after = origin
    for bundle in (0, 1, 2):
        after = after.after_move(origin, state.bundles, bundle, HOTTEST, IDLEST)
    found = forecast(state, after, settings.values).brokers
    hottest, idlest = found["a:8080"], found["b:8080"]
    # All its messages left: what remains is 36 of 400 points, at least nothing and at most 40.
    assert (hottest.lowest_usage_ratio, hottest.usage_ratio) == pytest.approx((0.0, 0.09))
    assert hottest.highest_usage_ratio == pytest.approx(0.1)
    # The other one had 10 %, and gets between 80 and 90 % more.
    assert (idlest.lowest_usage_ratio, idlest.usage_ratio) == pytest.approx((0.9, 0.91))
    assert idlest.highest_usage_ratio == pytest.approx(1.0)
