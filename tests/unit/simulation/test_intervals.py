"""Time is Pulsar's: every interval comes from a setting."""

from __future__ import annotations

import pytest

from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.errors import DataNotFit
from pulsar_advisor.simulation.intervals import Intervals

MINUTE = 60_000


def test_the_defaults_of_a_release() -> None:
    assert Intervals.of(resolve_settings("4.0.8").values) == Intervals(
        shedding=MINUTE,
        grace=30 * MINUTE,
        report_check=5_000,
        report_at_latest=15 * MINUTE,
        host_usage=MINUTE,
        statistics=MINUTE,
        bundle_data=15 * MINUTE,
        split=MINUTE,
    )


def test_a_cycle_of_years_is_not_simulated() -> None:
    for minutes in ("8334", "525600", "2147483647"):
        of_never = resolve_settings("4.0.8", runtime={"loadBalancerSheddingIntervalMinutes": minutes}).values
        with pytest.raises(DataNotFit, match=f"a cycle of {int(minutes):,} min can't be simulated"):
            Intervals.of(of_never)
    within = resolve_settings("4.0.8", runtime={"loadBalancerSheddingIntervalMinutes": "8333"}).values
    assert Intervals.of(within).shedding == 8333 * MINUTE


def test_the_least_that_brokers_start_with_is_no_interval_of_zero() -> None:
    least = {
        "loadBalancerSheddingIntervalMinutes": "0",
        "loadBalancerReportUpdateMinIntervalMillis": "1",
        "statsUpdateFrequencyInSecs": "1",
    }
    intervals = Intervals.of(resolve_settings("4.0.8", runtime=least).values)
    assert (intervals.shedding, intervals.report_check, intervals.statistics) == (MINUTE, 1_000, 1_000)
