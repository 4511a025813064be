"""The Extensible manager's LeastResourceUsageWithWeight."""

from __future__ import annotations

import numpy as np
import pytest

from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.placement.extensions_least_resource_usage_with_weight import Memory, choose, observe
from states import BrokerRow, cluster_state

SETTINGS = resolve_settings("4.0.8").values


def eligible(percents: list[float], without_data: tuple[int, ...] = ()) -> list[int]:
    state = cluster_state([BrokerRow(f"{place}:8080", cpu=(used, 100)) for place, used in enumerate(percents)], [])
    state.brokers.report_updated_at_ms[list(without_data)] = 0
    everyone = np.arange(len(percents), dtype=np.int32)
    view = observe(state, SETTINGS, state.captured_at_ms)
    return choose(view, everyone, 0, SETTINGS, Memory())[0].eligible.tolist()


@pytest.mark.parametrize(
    ("percents", "without_data", "drawn_among"),
    [
        ([20, 60, 70], (), [0]),
        ([50, 55, 60], (), [0, 1, 2]),
        ([20, 60, 0], (2,), [0]),
        ([55, 60, 0], (2,), [0, 1, 2]),
        ([0, 0], (0, 1), [0, 1]),
    ],
)
def test_brokers_far_enough_below_the_mean_of_those_with_data(
    percents: list[float], without_data: tuple[int, ...], drawn_among: list[int]
) -> None:
    assert eligible(percents, without_data) == drawn_among
