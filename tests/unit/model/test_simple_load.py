"""The Simple manager's view: what bundles are reckoned to need."""

from __future__ import annotations

import pytest

from pulsar_advisor.model.cluster_state import NO_ROW
from pulsar_advisor.model.settings import resolve_settings
from pulsar_advisor.model.simple_load import simple_load
from states import BrokerRow, BundleRow, cluster_state

SETTINGS = resolve_settings("4.0.8").values
HALF, OTHER_HALF = "0x00000000_0x80000000", "0x80000000_0xffffffff"


def test_a_quota_is_the_bundles_own_figures_within_the_limits() -> None:
    state = cluster_state(
        [BrokerRow("a:8080")],
        [
            BundleRow("t/n", HALF, "a:8080", (1, 300, 50, 5e7), topics=1),
            BundleRow("t/n", OTHER_HALF, "a:8080", (40, 60, 2e5, 3e5), topics=600),
        ],
    )
    view = simple_load(state, SETTINGS, state.captured_at_ms)
    assert view.quota.tolist() == [[305, 10_000, 1_000_000, 25], [100, 200_000, 300_000, 50]]
    assert view.broker_quota.tolist() == [[405, 210_000, 1_300_000, 75]]


def test_a_bundle_nobody_reports_needs_nothing() -> None:
    state = cluster_state([BrokerRow("a:8080")], [BundleRow("t/n", HALF, None)])
    assert state.bundles.owner[0] == NO_ROW
    assert simple_load(state, SETTINGS, state.captured_at_ms).quota.tolist() == [[0, 0, 0, 0]]


@pytest.mark.parametrize(
    ("cpu", "rate", "groups", "factor"),
    [(50, 500, 40, 0.025), (50, 2000, 20, 0.025), (80, 2000, 40, 0.04), (1, 2000, 40, 0.01), (900, 2000, 40, 0.1)],
)
def test_cpu_per_message_is_measured_on_a_cluster_with_enough_of_both(
    cpu: float, rate: float, groups: int, factor: float
) -> None:
    state = cluster_state(
        [BrokerRow("a:8080", cpu=(cpu, 1000))],
        [BundleRow("t/n", HALF, "a:8080", (rate, 0, 0, 0), topics=(groups - 1) * 500)],
    )
    assert simple_load(state, SETTINGS, state.captured_at_ms).cpu_factor == pytest.approx(factor)
