"""The errors of models of CPU usage, each asked about a report that it was not fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.planning.usage.model_errors import model_errors
from states import BrokerRow, cluster_state

MINUTE_MS = 60_000


def moments(figures: Sequence[tuple[float, float, float]]) -> list[ClusterState]:
    """One broker of four cores, ten minutes apart: messages/s and bytes/s, in and out, and percent of all cores."""
    states = []
    for number, (rate, throughput, percent) in enumerate(figures):
        traffic = (rate / 2, rate / 2, throughput / 2, throughput / 2)
        state = cluster_state([BrokerRow("a:8080", cpu=(4 * percent, 400.0), traffic=traffic)], [])
        later_ms = number * 10 * MINUTE_MS
        reported = state.brokers.report_updated_at_ms + later_ms
        brokers = replace(state.brokers, report_updated_at_ms=reported)
        states.append(replace(state, captured_at_ms=state.captured_at_ms + later_ms, brokers=brokers))
    return states


def test_usage_that_follows_the_messages_is_predicted_by_every_model() -> None:
    found = model_errors(moments([(rate, 100 * rate, rate / 100) for rate in (1000, 2000, 3000, 4000, 5000, 2500)]))
    assert found is not None
    assert found.reports == 6
    assert (found.proportional_ratio, found.base_load_ratio, found.calibrated_ratio) == pytest.approx(
        (0, 0, 0), abs=1e-6
    )


def test_a_base_is_what_proportional_misses() -> None:
    found = model_errors(moments([(rate, 100 * rate, 10 + rate / 100) for rate in (1000, 2000, 3000, 4000, 5000)]))
    assert found is not None
    assert found.proportional_ratio > 0.02
    assert (found.base_load_ratio, found.calibrated_ratio) == pytest.approx((0, 0), abs=1e-6)


def test_large_messages_are_what_only_the_calibrated_model_sees() -> None:
    loads = [(1000, 9e6), (2000, 1e6), (3000, 5e6), (4000, 2e6), (5000, 8e6), (2500, 7e6)]
    found = model_errors(moments([(rate, flow, 5 + rate / 500 + flow / 1e6) for rate, flow in loads]))
    assert found is not None
    assert found.calibrated_ratio == pytest.approx(0, abs=1e-6)
    assert found.base_load_ratio > 0.01


@pytest.mark.parametrize("rates", [(), (1000,), (1000, 2000, 3000, 4000), (1000, 1010, 1020, 1030, 1040, 1050)])
def test_too_few_reports_or_too_similar_ones_say_nothing(rates: tuple[float, ...]) -> None:
    assert model_errors(moments([(rate, rate, rate / 100) for rate in rates])) is None
