"""What a broker's CPU usage may be without messages: all of it or none, as far as history and its peers don't show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.cluster.cluster_state import CPU, ClusterState
from pulsar_advisor.model.load.base_load import DEFAULT_RATIO, base_load, non_negative_line, with_usage_of_rates
from states import BrokerRow, cluster_state


def brokers(**of: tuple[float, float]) -> ClusterState:
    """Brokers of four cores, each with its CPU usage (points of one core) and message rate (in and out)."""
    return cluster_state(
        [
            BrokerRow(f"{name}:8080", cpu=(cpu, 400.0), traffic=(rate / 2, rate / 2, 0.0, 0.0))
            for name, (cpu, rate) in of.items()
        ],
        [],
    )


def test_one_snapshot_of_few_brokers_shows_neither_end() -> None:
    found = base_load(brokers(a=(340.0, 3000.0), b=(200.0, 1500.0), c=(70.0, 300.0)))
    assert (found.least == 0.0).all()
    assert found.greatest == pytest.approx([340.0, 200.0, 70.0])
    assert found.likely == pytest.approx([DEFAULT_RATIO * 400] * 3)
    assert found.origin == ("default",) * 3


def test_peers_whose_usage_follows_their_messages_show_how_much_base_there_is_at_most() -> None:
    found = base_load(brokers(a=(340.0, 3000.0), b=(190.0, 1500.0), c=(90.0, 500.0), d=(70.0, 300.0)))
    assert found.origin == ("peers",) * 4
    assert found.likely == pytest.approx([40.0] * 4)
    assert found.greatest == pytest.approx([40.0] * 4)
    assert (found.least == 0.0).all()  # what they have in common may still go with the messages


def test_a_broker_whose_usage_does_not_follow_its_messages_may_be_all_base() -> None:
    # As many messages as the others, and much more CPU: compaction, functions, a neighbour.
    found = base_load(brokers(a=(360.0, 1000.0), b=(100.0, 1000.0), c=(60.0, 600.0), d=(140.0, 1400.0)))
    assert found.greatest[0] == 360.0
    assert found.least[0] == 0.0


def test_a_broker_with_far_more_messages_than_its_peers_does_not_show_by_itself_that_usage_follows_them() -> None:
    # 200 points of its usage are a neighbour's; a line through all brokers would be drawn by this one.
    peers = {"b": (68.0, 900.0), "c": (53.0, 700.0), "d": (62.0, 800.0), "e": (48.0, 600.0), "f": (47.0, 500.0)}
    assert base_load(brokers(a=(350.0, 3000.0), **peers)).greatest[0] >= 200.0
    idle = {"b": (22.0, 1.0), "c": (18.0, 2.0), "d": (20.0, 0.0)}
    assert base_load(brokers(a=(350.0, 3000.0), **idle)).greatest[0] == 350.0


def test_brokers_of_other_machines_are_no_peers() -> None:
    state = brokers(a=(340.0, 3000.0), b=(190.0, 1500.0), c=(90.0, 500.0), d=(70.0, 300.0))
    limit = state.brokers.limit.copy()
    limit[0, CPU] = 3200.0
    found = base_load(replace(state, brokers=replace(state.brokers, limit=limit)))
    assert found.origin == ("default",) * 4


def test_brokers_with_the_same_load_say_nothing_about_it() -> None:
    found = base_load(brokers(a=(200.0, 1000.0), b=(210.0, 1100.0), c=(205.0, 1050.0), d=(190.0, 1000.0)))
    assert found.origin == ("default",) * 4
    assert (found.least[0], found.likely[0], found.greatest[0]) == pytest.approx((0.0, DEFAULT_RATIO * 400, 200.0))


def test_a_brokers_own_history_shows_it_best() -> None:
    history = [brokers(a=(40.0 + rate / 10, rate), b=(300.0, 5000.0)) for rate in (500.0, 1500.0, 2500.0)]
    found = base_load(brokers(a=(140.0, 1000.0), b=(300.0, 5000.0)), history)
    assert found.origin[0] == "history"
    assert found.likely[0] == pytest.approx(40.0)
    assert found.greatest[0] == pytest.approx(found.least[0], abs=1e-6)
    # The other one never changed: history shows nothing.
    assert found.origin[1] == "default"


def a_minute_apart(moments: Sequence[ClusterState]) -> list[ClusterState]:
    """The states with their reports written a minute after each other."""
    return [
        replace(
            moment,
            brokers=replace(
                moment.brokers, report_updated_at_ms=np.full(len(moment.brokers), NOW_MS + 60_000 * number)
            ),
        )
        for number, moment in enumerate(moments)
    ]


NOW_MS = 1_795_250_000_000


def test_what_a_broker_uses_above_the_line_of_its_history_may_all_be_base() -> None:
    history = [brokers(a=(40.0 + rate / 10, rate)) for rate in np.linspace(500.0, 2500.0, 96).tolist()]
    before, neighbour = 140.0, 150.0
    found = base_load(brokers(a=(before + neighbour, 1000.0)), history)
    assert found.likely[0] < 60.0
    assert found.greatest[0] >= 40.0 + neighbour


def test_a_usage_sampled_before_the_rate_changed_does_not_count() -> None:
    # The second and the fourth report have the new rate beside the usage of the old one.
    figures = ((110.0, 500.0), (110.0, 1500.0), (310.0, 1500.0), (310.0, 1000.0), (210.0, 1000.0), (110.0, 500.0))
    *history, now = a_minute_apart([brokers(a=pair) for pair in (*figures, (110.0, 500.0), (112.0, 510.0))])
    found = base_load(now, history)
    assert found.origin == ("history",)
    assert found.likely[0] == pytest.approx(10.0, abs=1.0)


def test_peers_are_compared_by_figures_that_belong_together() -> None:
    before = brokers(a=(340.0, 3000.0), b=(70.0, 300.0), c=(190.0, 1500.0), d=(90.0, 500.0))
    after = brokers(a=(340.0, 600.0), b=(70.0, 2700.0), c=(190.0, 1500.0), d=(90.0, 500.0))
    history, now = a_minute_apart([before, after])
    assert base_load(now, [history]).likely == pytest.approx([40.0] * 4)


def test_a_usage_sampled_before_the_rate_changed_becomes_that_of_the_new_rate() -> None:
    # 10 points of base, 20 for 100 messages; at the end 500 messages came, of which the usage shows nothing yet.
    seen = ((60.0, 250.0), (110.0, 500.0), (210.0, 1000.0), (160.0, 750.0))
    figures = (*(pair for pair in seen for _ in range(2)), (160.0, 1500.0))
    *history, now = a_minute_apart([brokers(a=pair, b=(50.0, 200.0)) for pair in figures])
    settled = with_usage_of_rates(now, history, base_load(now, history))
    assert settled.brokers.usage[:, CPU] == pytest.approx([310.0, 50.0], abs=2.0)
    assert now.brokers.usage[0, CPU] == 160.0


def test_a_usage_stays_as_reported_where_the_rate_is_steady_or_was_never_seen_steady() -> None:
    now = brokers(a=(210.0, 1500.0))
    assert with_usage_of_rates(now, (), base_load(now, ())).brokers.usage[0, CPU] == 210.0
    before, steady = a_minute_apart([brokers(a=(180.0, 1450.0)), now])
    assert with_usage_of_rates(steady, [before], base_load(steady, [before])).brokers.usage[0, CPU] == 210.0


def test_a_usage_is_a_mean_over_both_rates_so_it_is_a_bound_for_that_of_the_new_one() -> None:
    for reported, rate, expected in ((380.0, 1500.0, 380.0), (70.0, 500.0, 70.0)):
        before, now = a_minute_apart([brokers(a=(160.0, 1000.0)), brokers(a=(reported, rate))])
        assert with_usage_of_rates(now, [before], base_load(now, [before])).brokers.usage[0, CPU] == expected


@pytest.mark.parametrize("first", [0.0, 6e-7])
def test_the_first_sample_after_a_start_says_nothing(first: float) -> None:
    figures = ((first, 1000.0), (200.0, 1000.0), (first, 500.0))
    unsampled, sampled, now = a_minute_apart([brokers(a=pair) for pair in figures])
    settled = with_usage_of_rates(now, [unsampled, sampled], base_load(now, [unsampled, sampled]))
    assert settled.brokers.usage[0, CPU] == pytest.approx(100.0)
    assert with_usage_of_rates(now, [unsampled], base_load(now, [unsampled])).brokers.usage[0, CPU] == first


def test_no_broker_uses_more_than_it_has_at_its_new_rate() -> None:
    before, now = a_minute_apart([brokers(a=(350.0, 1000.0)), brokers(a=(350.0, 3000.0))])
    assert with_usage_of_rates(now, [before], base_load(now, [before])).brokers.usage[0, CPU] == 400.0


def test_a_base_is_never_above_the_usage() -> None:
    found = base_load(brokers(a=(1.0, 1000.0)))
    assert (found.likely[0], found.greatest[0]) == (1.0, 1.0)


def test_a_broker_without_a_report_is_no_peer() -> None:
    state = brokers(a=(340.0, 3000.0), b=(190.0, 1500.0), c=(90.0, 500.0), d=(70.0, 300.0))
    silent = replace(state.brokers, report_updated_at_ms=np.array([1, 1, 1, 0]))
    assert base_load(replace(state, brokers=silent)).origin == ("default",) * 4


@given(
    st.lists(
        st.tuples(st.floats(0, 1e5), st.floats(0, 400)), min_size=3, max_size=8, unique_by=lambda sample: sample[0]
    )
)
def test_no_other_line_with_coefficients_of_zero_or_more_is_nearer(samples: list[tuple[float, float]]) -> None:
    rates, usages = np.array(samples).T
    if rates.max() - rates.min() < 1.0:
        return
    (intercept, slope), _ = non_negative_line(rates, usages)
    assert intercept >= 0 and slope >= 0

    def error(line: tuple[float, float]) -> float:
        return float(((usages - line[0] - line[1] * rates) ** 2).sum())

    least = error((intercept, slope))
    for other in (
        (intercept * 1.01 + 0.1, slope),
        (max(intercept - 0.1, 0), slope),
        (intercept, slope * 1.01 + 1e-6),
        (intercept, max(slope - 1e-6, 0.0)),
    ):
        assert least <= error(other) + 1e-6 * (1 + least)
