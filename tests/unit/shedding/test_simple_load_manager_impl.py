"""The Simple manager's own shedding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from conformance import codes
from pulsar_advisor.model.cluster.cluster_state import RESOURCES, ClusterState
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.shedding.simple_load_manager_impl import Memory, decide, observe
from states import BrokerRow, BundleRow, cluster_state

SETTINGS = resolve_settings("4.0.8").values
QUARTERS = ("0x00000000_0x40000000", "0x40000000_0x80000000", "0x80000000_0xffffffff")


def state(cold_percent: float = 20, unloaded_at_ms: int = 0) -> ClusterState:
    return cluster_state(
        [BrokerRow("cold:8080", cpu=(cold_percent, 100)), BrokerRow("hot:8080", cpu=(90, 100), bandwidth_in=(70, 100))],
        [
            BundleRow("t/n", QUARTERS[0], "hot:8080", (0, 0, 9e6, 0), topics=1),
            BundleRow("t/n", QUARTERS[1], "hot:8080", (900, 0, 0, 0), topics=1, last_unloaded_at_ms=unloaded_at_ms),
            BundleRow("t/n", QUARTERS[2], "cold:8080", (5, 0, 0, 0), topics=1),
        ],
        load_manager="simple",
    )


def answers(of: ClusterState) -> tuple[list[str], dict[str, str], dict[str, str]]:
    decision, _ = decide(observe(of, SETTINGS, of.captured_at_ms), SETTINGS, Memory())
    return (
        [of.bundle_range(row) for row in decision.bundle.tolist()],
        {of.brokers.ids[row]: code for row, code in codes(decision.brokers).items()},
        {of.bundle_range(row): code for row, code in codes(decision.bundles).items()},
    )


def test_the_first_bundle_by_the_bottleneck_goes() -> None:
    unloads, brokers, bundles = answers(state())
    assert unloads == [QUARTERS[1]]
    assert brokers == {"cold:8080": "not_overloaded", "hot:8080": "overloaded"}
    assert bundles == {QUARTERS[0]: "not_first", QUARTERS[1]: "first"}


@pytest.mark.parametrize(
    ("usage", "first"),
    [
        ({"cpu": (99, 100)}, 0),
        ({"memory": (95, 100)}, 1),
        ({"bandwidth_in": (95, 100)}, 2),
        ({"bandwidth_out": (95, 100)}, 3),
    ],
)
def test_what_a_broker_has_least_of_decides_which_bundle_is_the_first(usage: dict[str, Any], first: int) -> None:
    ranges = [f"0x{number:08x}_0x{number + 1:08x}" for number in range(4)]
    bundles = [
        BundleRow("t/n", ranges[0], "hot:8080", (900, 0, 0, 0), topics=1),
        BundleRow("t/n", ranges[1], "hot:8080", topics=1, consumers=900),
        BundleRow("t/n", ranges[2], "hot:8080", (0, 0, 9e6, 0), topics=1),
        BundleRow("t/n", ranges[3], "hot:8080", (0, 0, 0, 9e6), topics=1),
    ]
    hot = BrokerRow("hot:8080", **{"cpu": (90, 100), **usage})
    of = cluster_state([BrokerRow("cold:8080"), hot], bundles, load_manager="simple")
    assert answers(of)[0] == [ranges[first]]


def test_nothing_goes_if_nobody_is_comfortable() -> None:
    unloads, brokers, bundles = answers(state(cold_percent=70))
    assert unloads == []
    assert brokers["hot:8080"] == "nobody_comfortable"
    assert bundles[QUARTERS[1]] == "nobody_comfortable"


def test_a_broker_whose_usage_is_no_number_is_not_comfortable() -> None:
    of = state()
    of.brokers.usage[0, RESOURCES.index("bandwidthIn")] = np.nan
    _, brokers, _ = answers(of)
    assert brokers["hot:8080"] == "nobody_comfortable"


def test_among_equals_the_first_in_the_order_of_the_reports_map_goes() -> None:
    ranges = [f"0x{number:08x}_0x{number + 1:08x}" for number in range(12)]
    of = cluster_state(
        [BrokerRow("cold:8080"), BrokerRow("hot:8080", cpu=(90, 100))],
        [BundleRow("t/n", text, "hot:8080", (900, 0, 0, 0), topics=1) for text in ranges],
        load_manager="simple",
    )
    reports = observe(of, SETTINGS, of.captured_at_ms).reports
    assert reports.rows[0] != 0
    assert answers(of)[0] == [ranges[reports.rows[0]]]
