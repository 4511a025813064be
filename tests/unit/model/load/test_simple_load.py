"""The Simple manager's view: what bundles are reckoned to need."""

from __future__ import annotations

import pytest

from pulsar_advisor.model.cluster.cluster_state import MEMORY, NO_ROW, ClusterState
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.load.simple_load import simple_load
from states import LOWER_HALF, UPPER_HALF, BrokerRow, BundleRow, cluster_state

SETTINGS = resolve_settings("4.0.8").values


def test_a_quota_is_the_bundles_own_figures_within_the_limits() -> None:
    state = cluster_state(
        [BrokerRow("a:8080")],
        [
            BundleRow("t/n", LOWER_HALF, "a:8080", (1, 300, 50, 5e7), topics=1),
            BundleRow("t/n", UPPER_HALF, "a:8080", (40, 60, 2e5, 3e5), topics=600),
        ],
    )
    view = simple_load(state, SETTINGS, state.captured_at_ms)
    assert view.quota.tolist() == [[5, 300, 10_000, 1_000_000, 25], [40, 60, 200_000, 300_000, 50]]
    assert view.broker_quota.tolist() == [[45, 360, 210_000, 1_300_000, 75]]


def test_a_bundle_nobody_reports_needs_nothing() -> None:
    state = cluster_state([BrokerRow("a:8080")], [BundleRow("t/n", LOWER_HALF, None)])
    assert state.bundles.owner[0] == NO_ROW
    assert simple_load(state, SETTINGS, state.captured_at_ms).quota.tolist() == [[0, 0, 0, 0, 0]]


@pytest.mark.parametrize(
    ("cpu", "rate", "groups", "factor"),
    [(50, 500, 40, 0.025), (50, 2000, 20, 0.025), (80, 2000, 40, 0.04), (1, 2000, 40, 0.01), (900, 2000, 40, 0.1)],
)
def test_cpu_per_message_is_measured_on_a_cluster_with_enough_of_both(
    cpu: float, rate: float, groups: int, factor: float
) -> None:
    state = cluster_state(
        [BrokerRow("a:8080", cpu=(cpu, 1000))],
        [BundleRow("t/n", LOWER_HALF, "a:8080", (rate, 0, 0, 0), topics=(groups - 1) * 500)],
    )
    assert simple_load(state, SETTINGS, state.captured_at_ms).cpu_factor == pytest.approx(factor)


def of_many(number: int, traffic: tuple[float, float, float, float]) -> ClusterState:
    bundles = [
        BundleRow("t/n", f"0x{lower:08x}_0x{lower + 1:08x}", "a:8080", traffic, topics=1) for lower in range(number)
    ]
    return cluster_state([BrokerRow("a:8080")], bundles)


@pytest.mark.parametrize(
    ("bundles", "traffic", "quota"),
    [
        (30, (1000, 0, 0, 0), [40, 120, 100_000, 300_000, 80]),
        (31, (1000, 0, 0, 5e6), [1000, 5, 10_000, 1_000_000, 2]),
    ],
)
def test_the_default_quota_follows_the_average_of_more_than_30_bundles(
    bundles: int, traffic: tuple[float, float, float, float], quota: list[float]
) -> None:
    state = of_many(bundles, traffic)
    assert simple_load(state, SETTINGS, state.captured_at_ms).default_quota.tolist() == quota


def test_an_average_near_the_initial_quota_is_not_written() -> None:
    state = of_many(40, (41, 121, 299_000, 299_000))
    state.brokers.usage[0, MEMORY] = 40 * 79.0
    assert simple_load(state, SETTINGS, state.captured_at_ms).default_quota.tolist() == [40, 120, 100_000, 300_000, 80]


def test_a_broker_that_left_counts_for_nothing() -> None:
    state = cluster_state(
        [BrokerRow("a:8080", cpu=(80, 1000), available=False), BrokerRow("b:8080")],
        [BundleRow("t/n", LOWER_HALF, "a:8080", (2000, 0, 0, 0), topics=20_000)],
    )
    assert simple_load(state, SETTINGS, state.captured_at_ms).cpu_factor == 0.025
