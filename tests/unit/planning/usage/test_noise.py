"""How much usage differs between snapshots although nothing was moved."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.planning.usage.noise import DEFAULT_RATIO, NoiseFloor, noise_floor
from states import WHOLE, BrokerRow, BundleRow, cluster_state

SETTINGS = resolve_settings("4.0.8").values
MINUTE_MS = 60_000


def moment(
    number: int, *percents: float, minutes: int = 5, moved: bool = False, idle: frozenset[int] = frozenset()
) -> ClusterState:
    """The snapshot after `number` intervals, with the CPU usage of its brokers; `idle` ones serve health checks."""
    ids = [f"b{row}:8080" for row in range(len(percents))]
    state = cluster_state(
        [BrokerRow(name, cpu=(percent, 100.0)) for name, percent in zip(ids, percents, strict=True)],
        [
            BundleRow(f"pulsar/{ids[row]}" if row in idle else f"t/{row}", WHOLE, ids[row - moved], topics=1)
            for row in range(len(ids))
        ],
    )
    at_ms = state.captured_at_ms + number * minutes * MINUTE_MS
    reported = state.brokers.report_updated_at_ms + number * minutes * MINUTE_MS
    return replace(state, captured_at_ms=at_ms, brokers=replace(state.brokers, report_updated_at_ms=reported))


def test_the_floor_is_the_median_difference() -> None:
    usages = [(50.0, 40.0, 30.0), (51.0, 42.0, 33.0), (50.0, 40.0, 30.0), (51.0, 42.0, 33.0), (50.0, 40.0, 30.0)]
    floor = noise_floor([moment(number, *each) for number, each in enumerate(usages)], SETTINGS)
    assert floor.origin == "history"
    assert floor.ratio == pytest.approx(0.02, abs=1e-6)


def test_without_enough_pairs_of_reports_it_is_the_default() -> None:
    default = NoiseFloor(DEFAULT_RATIO, "default")
    assert noise_floor([moment(0, 50.0)], SETTINGS) == default
    assert noise_floor([moment(0, 50.0, 40.0), moment(1, 60.0, 50.0)], SETTINGS) == default


def test_what_was_moved_or_not_reported_anew_or_is_long_ago_does_not_count() -> None:
    usages = (50.0, 40.0, 30.0)
    moved = [moment(number, *usages, moved=bool(number % 2)) for number in range(9)]
    assert noise_floor(moved, SETTINGS).origin == "default"
    old = [replace(one, brokers=moved[0].brokers) for one in (moment(number, *usages) for number in range(9))]
    assert noise_floor(old, SETTINGS).origin == "default"
    far_apart = [moment(number, *usages, minutes=40) for number in range(9)]
    assert noise_floor(far_apart, SETTINGS).origin == "default"
    half_an_hour_apart = [moment(number, *usages, minutes=30) for number in range(9)]
    assert noise_floor(half_an_hour_apart, SETTINGS).origin == "history"


def test_a_broker_whose_figures_are_unfit_does_not_count() -> None:
    usages = [(50.0, 40.0, 30.0), (51.0, 42.0, 90.0)] * 5
    moments = [moment(number, *each) for number, each in enumerate(usages)]
    for one in moments:
        one.brokers.complete[2] = False
    assert noise_floor(moments, SETTINGS).ratio == pytest.approx(0.015, abs=1e-6)


def test_brokers_without_load_make_it_no_lower() -> None:
    usages = [(50.0, 40.0, 1.0, 1.0, 1.0), (51.0, 42.0, 1.0, 1.0, 1.0)] * 5
    moments = [moment(number, *each, idle=frozenset({2, 3, 4})) for number, each in enumerate(usages)]
    assert noise_floor(moments, SETTINGS).ratio == pytest.approx(0.015, abs=1e-6)


def test_a_usage_that_reads_the_same_is_never_a_gain() -> None:
    frozen = [moment(number, 50.0, 40.0, 30.0) for number in range(9)]
    assert noise_floor(frozen, SETTINGS) == NoiseFloor(0.0005, "history")
