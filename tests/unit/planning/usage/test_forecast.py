"""Moving a bundle moves its share of its broker's load, and nothing gets lost on the way."""

import numpy as np
import pytest

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, ClusterState
from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings, resolve_settings
from pulsar_advisor.model.load.base_load import BaseLoad, base_load
from pulsar_advisor.model.load.resource_usage import usage_ratios
from pulsar_advisor.planning.usage.forecast import Outlook, forecast
from states import WHOLE, BrokerRow, BundleRow, cluster_state, without_base

HOTTEST, IDLEST = 0, 1


def after(outlook: Outlook, origin: Outlook, state: ClusterState, *moves: tuple[int, int, int]) -> Outlook:
    """After moves of a bundle from a source to a destination."""
    return outlook.along(origin, state.bundles, moves, resolve_settings("4.0.8").values)[0]


def test_cpu_moves_by_the_share_of_the_message_rate(state: ClusterState, settings: ResolvedSettings) -> None:
    origin = without_base(state)
    loads = after(origin, origin, state, (0, HOTTEST, IDLEST)).likely
    # 1,000 of the broker's 1,800 msg/s: 200 of its 360 CPU points.
    assert loads.usage[HOTTEST, 0] == pytest.approx(160.0)
    assert loads.usage[IDLEST, 0] == pytest.approx(240.0)
    assert usage_ratios(loads, settings.values)[[HOTTEST, IDLEST]] == pytest.approx([0.4, 0.6])


def test_the_ratios_are_those_right_after_each_move(state: ClusterState, settings: ResolvedSettings) -> None:
    origin = without_base(state)
    moves = [(0, HOTTEST, IDLEST), (1, HOTTEST, 2)]
    _, ratios = origin.along(origin, state.bundles, moves, settings.values)
    once = after(origin, origin, state, (0, HOTTEST, IDLEST))
    twice = after(once, origin, state, (1, HOTTEST, 2))
    for number, outlook in enumerate((once, twice)):
        expected = usage_ratios(outlook.likely, settings.values)[list(moves[number][1:])]
        np.testing.assert_array_equal(ratios[:, 1, number], expected)


def test_load_is_conserved_over_any_sequence_of_moves(state: ClusterState) -> None:
    origin = without_base(state)
    loads, before = after(origin, origin, state, (0, HOTTEST, IDLEST), (1, HOTTEST, 2)).likely, origin.likely
    assert loads.usage.sum() == pytest.approx(before.usage.sum())
    assert loads.traffic.sum() == pytest.approx(before.traffic.sum())
    assert loads.bundles.sum() == before.bundles.sum()


def test_the_order_of_moves_does_not_matter(state: ClusterState) -> None:
    origin = without_base(state)
    first = after(origin, origin, state, (0, HOTTEST, 1), (1, HOTTEST, 2)).likely
    second = after(origin, origin, state, (1, HOTTEST, 2), (0, HOTTEST, 1)).likely
    np.testing.assert_allclose(first.usage, second.usage)


def test_direct_memory_stays_where_it_is(state: ClusterState) -> None:
    origin = without_base(state)
    loads = after(origin, origin, state, (0, HOTTEST, IDLEST)).likely
    np.testing.assert_array_equal(loads.usage[:, 2], origin.likely.usage[:, 2])


def test_a_move_of_no_bundle_changes_nothing(state: ClusterState) -> None:
    origin = without_base(state)
    loads = after(origin, origin, state, (NO_ROW, HOTTEST, IDLEST)).likely
    for figure in ("usage", "traffic", "bundles"):
        np.testing.assert_array_equal(getattr(loads, figure), getattr(origin.likely, figure))


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_figures_that_are_no_numbers_are_left_out_of_the_forecast(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    state.bundles.traffic[0] = np.inf
    state.brokers.traffic[HOTTEST] = np.inf
    state.brokers.usage[HOTTEST, 0] = np.inf
    origin = Outlook.of(state, base_load(state))
    twice = after(origin, origin, state, (0, HOTTEST, IDLEST), (0, HOTTEST, IDLEST))
    found = forecast(state, twice, settings.values)
    assert found.brokers["a:8080"].msg_rate_per_s is None
    assert found.brokers["c:8080"].msg_rate_per_s == 400.0


def test_the_spread_counts_available_brokers_only(state: ClusterState, settings: ResolvedSettings) -> None:
    state.brokers.available[2] = False
    found = forecast(state, Outlook.of(state, base_load(state)), settings.values)
    assert found.maximum_ratio == pytest.approx(0.9)
    assert found.mean_ratio == pytest.approx(0.5)


def test_the_base_of_a_broker_stays_when_its_bundles_leave(state: ClusterState, settings: ResolvedSettings) -> None:
    base = BaseLoad(np.zeros(3), np.full(3, 36.0), np.full(3, 40.0), ("peers",) * 3)
    origin = Outlook.of(state, base)
    moved = after(origin, origin, state, *((bundle, HOTTEST, IDLEST) for bundle in (0, 1, 2)))
    found = forecast(state, moved, settings.values).brokers
    hottest, idlest = found["a:8080"], found["b:8080"]
    # All its messages left: what remains is 36 of 400 points, at least nothing and at most 40.
    assert (hottest.lowest_usage_ratio, hottest.usage_ratio) == pytest.approx((0.0, 0.09))
    assert hottest.highest_usage_ratio == pytest.approx(0.1)
    # The other one had 10 %, and gets between 80 and 90 % more.
    assert (idlest.lowest_usage_ratio, idlest.usage_ratio) == pytest.approx((0.9, 0.91))
    assert idlest.highest_usage_ratio == pytest.approx(1.0)


def test_no_range_is_narrower_than_noise(state: ClusterState, settings: ResolvedSettings) -> None:
    found = forecast(state, without_base(state), settings.values, noise_ratio=0.03).brokers["a:8080"]
    assert (found.lowest_usage_ratio, found.highest_usage_ratio) == pytest.approx((0.87, 0.93))
    assert found.usage_ratio == pytest.approx(0.9)


def by_cores(cores: float, rate: float, base: float = 0.0) -> tuple[ClusterState, Outlook]:
    """`a` uses 80 of 100 points for 2,000 messages/s in four bundles, `b` 30 points for this rate, with these cores."""
    state = cluster_state(
        [
            BrokerRow("a:8080", cpu=(80.0, 100.0), traffic=(1000.0, 1000.0, 1.0, 1.0)),
            BrokerRow("b:8080", cpu=(30.0, 100.0 * cores), traffic=(rate / 2, rate / 2, 1.0, 1.0)),
        ],
        [BundleRow(f"t/{n}", WHOLE, "a:8080", (250.0, 250.0, 0.0, 0.0), topics=1) for n in range(4)],
    )
    none, greatest = np.zeros(2), np.array([base, base])
    return state, Outlook.of(state, BaseLoad(none, none, greatest, ("history", "history")))


def arriving(cores: float, rate: float, base: float = 0.0) -> list[float]:
    """What one bundle adds to `b`, in points of a core: at least, probably, at most."""
    state, origin = by_cores(cores, rate, base)
    moved = after(origin, origin, state, (0, 0, 1))
    return [float(loads.usage[1, 0]) - 30.0 for loads in (moved.lowest, moved.likely, moved.highest)]


def test_where_messages_cost_more_the_range_of_the_destination_holds_its_own_cost() -> None:
    # 20 points at the source; at the destination 1,000 messages/s cost 30 points, so that 500 cost 15; 500, 30.
    assert arriving(cores=2, rate=1000) == pytest.approx([15.0, 20.0, 20.0])
    assert arriving(cores=2, rate=500) == pytest.approx([20.0, 20.0, 30.0])
    # 10 of them may be base: then it is 20 points for 1,000 messages/s, and 17.5 at the source.
    assert arriving(cores=2, rate=1000, base=10.0) == pytest.approx([10.0, 20.0, 20.0])


def test_messages_cost_the_same_on_machines_that_are_alike() -> None:
    assert arriving(cores=1, rate=500) == pytest.approx([20.0, 20.0, 20.0])


def test_a_broker_that_serves_hardly_anything_does_not_show_what_messages_cost_there() -> None:
    assert arriving(cores=2, rate=100) == pytest.approx([20.0, 20.0, 20.0])
