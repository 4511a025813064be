"""What a row for each snapshot says about weeks."""

import math
import tracemalloc
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from published import faults
from pulsar_advisor.documents.document import as_json
from pulsar_advisor.history.columns import EVENTS, INDEX
from pulsar_advisor.history.trend import (
    FEWEST_DAYS,
    HOUR_MS,
    HOURS,
    Slope,
    Trend,
    slope_of,
    slope_text,
    trend_lines,
    trend_of,
)
from pulsar_advisor.recommendation.endings import minutes

DAY_MS = HOURS * HOUR_MS


def index(days: int, per_day: float, *, noise: float = 0.0, unfit: int = 0, an_hour: int = 4) -> pa.Table:
    """Days whose busiest broker begins at half its limit and gains `per_day`; the last `unfit` snapshots aren't fit."""
    number = days * 24 * an_hour
    at_ms = np.arange(number) * (3_600_000 // an_hour) + 20_000 * DAY_MS
    busiest = 0.5 + per_day * (at_ms // DAY_MS - 20_000) + np.random.default_rng(1).normal(0, noise, number)
    columns = {
        "snapshot": [str(at) for at in at_ms],
        "at_ms": at_ms,
        "fit": np.arange(number) < number - unfit,
        "failed_checks": np.zeros(number),
        "brokers": np.full(number, 3),
        "bundles": np.arange(number) // number + 64,
        "busiest": busiest,
        "mean": busiest - 0.125,
        "deviation": np.full(number, 0.1),
        "moves": np.ones(number),
        "restarts": np.zeros(number),
        "leader_changed": np.zeros(number, bool),
    }
    return pa.table(columns).cast(INDEX, safe=False)


def trend_of_index(rows: pa.Table, *causes: str) -> Trend:
    """The trend of these, in which bundles moved for these causes."""
    events = [{"t": 0, "kind": "move", "subject": "t/n/0x00000000_0x40000000", "cause": cause} for cause in causes]
    return trend_of(rows, pa.Table.from_pylist(events, EVENTS))


@pytest.mark.parametrize("per_day", [0.002, -0.004, 0.0])
def test_a_planted_slope_lies_within_its_range(per_day: float) -> None:
    slope = trend_of_index(index(28, per_day, noise=0.02)).slope
    assert slope is not None
    assert slope.lowest <= per_day <= slope.highest
    assert slope.highest - slope.lowest < 0.002


def test_the_range_holds_the_slope_in_nine_of_ten_cases_even_of_the_fewest_days() -> None:
    days, random = np.arange(FEWEST_DAYS), np.random.default_rng(1)
    slopes = [slope_of(HOURS * days, 0.5 + 0.002 * days + random.normal(0, 0.05, FEWEST_DAYS)) for _ in range(1_000)]
    held = sum(slope is not None and slope.lowest <= 0.002 <= slope.highest for slope in slopes)
    assert held >= 870


def test_the_range_allows_for_days_that_resemble_the_one_before() -> None:
    number, random = 28, np.random.default_rng(1)
    held, days = 0, np.arange(number)
    for _ in range(60):
        level = random.normal(0, 0.05, number)
        for day in days[1:].tolist():
            level[day] = 0.5 * level[day - 1] + math.sqrt(0.75) * level[day]
        slope = slope_of(HOURS * days, 0.5 + 0.002 * days + level)
        held += slope is not None and slope.lowest <= 0.002 <= slope.highest
    assert held >= 50  # 37 if days counted as independent


def test_one_bad_day_does_not_bend_the_slope() -> None:
    quiet = index(28, 0.0)
    spike = np.where(np.arange(len(quiet)) // 96 == 27, 1.5, quiet["busiest"].to_numpy())
    bent = quiet.set_column(
        quiet.schema.get_field_index("busiest"), INDEX.field("busiest"), pa.array(spike, pa.float32())
    )
    slope = trend_of_index(bent).slope
    assert slope is not None
    assert slope.per_day == 0.0


def test_a_day_that_has_only_begun_says_what_its_hours_are_like_and_does_not_count() -> None:
    hours = np.arange((FEWEST_DAYS + 1) * HOURS - 16)
    quiet_until_morning = np.where(hours % HOURS < 8, 0.2, 0.6)
    over = slope_of(hours[:-8], quiet_until_morning[:-8])
    assert over is not None
    assert slope_of(hours, quiet_until_morning) == over
    assert (over.lowest, over.per_day, over.highest) == (0, 0, 0)


def test_days_of_one_snapshot_each_have_a_slope() -> None:
    slope = slope_of(HOURS * np.arange(FEWEST_DAYS) + 3, np.linspace(0.5, 0.54, FEWEST_DAYS))
    assert slope is not None
    assert slope.per_day == pytest.approx(0.01)


@pytest.mark.slow
def test_the_slope_of_a_year_takes_little_memory() -> None:
    days = np.arange(400)
    tracemalloc.start()
    try:
        slope = slope_of(HOURS * days, 0.5 + 0.001 * days)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert slope is not None
    assert slope.per_day == pytest.approx(0.001)
    assert peak < 128 << 20


def test_four_days_have_levels_and_no_slope_yet() -> None:
    trend = trend_of_index(index(4, 0.1))
    assert trend.slope is None
    assert trend.busiest is not None
    assert trend.busiest.now == pytest.approx(0.8)
    assert (
        "no slope yet: it takes 5 days with fit snapshots in half the usual hours or more"
        in trend_lines(trend, "c", 2)[1]
    )


def test_snapshots_that_are_not_fit_count_but_say_nothing() -> None:
    assert trend_lines(trend_of_index(index(1, 0.0, unfit=96)), "c", 1) == [
        "c: 1 day, 0 of 96 snapshots fit (longest gap 15 min)",
        "no snapshot of these days is fit for use, so nothing can be said about its load",
    ]


def test_levels_are_of_the_busiest_broker_and_of_what_it_has_above_the_mean() -> None:
    assert trend_lines(trend_of_index(index(5, 0.1)), "prod", 5)[1:4] == [
        "  busiest broker   median  70.0%   p95  90.0%   now  90.0%   +10.00 points/day (90%: +10.00 to +10.00)",
        "  above the mean   median  12.5%   p95  12.5%   now  12.5%",
        "  moves            480: 480 unexplained",
    ]


def test_moves_are_counted_by_who_made_them() -> None:
    trend = trend_of_index(index(1, 0.0), "own", "own", "plan:c8b31b82", "plan:d9c42c93", "operator", "unknown")
    assert trend_lines(trend, "c", 1)[3:5] == [
        "  moves            96: 2 by the leader, 1 by hand, 2 by 2 plans, 91 unexplained",
        "  also             0 splits, 0 restarts, 0 changes of the leader",
    ]


@pytest.mark.parametrize("days", [1, 28])
def test_a_trend_keeps_to_its_schema(days: int) -> None:
    assert not faults(as_json(trend_of_index(index(days, 0.1), "own")))


def test_a_slope_that_reads_as_zero_has_no_sign_of_a_loss() -> None:
    assert slope_text(Slope(-1e-5, -1e-4, 0.0)) == "+0.00 points/day (90%: -0.01 to +0.00)"


def test_a_gap_of_days_is_in_minutes_as_in_simulations() -> None:
    [first, *_] = trend_lines(replace(trend_of_index(index(1, 0.0)), longest_gap_ms=9 * DAY_MS), "c", 1)
    assert first.endswith(f"(longest gap {minutes(9 * 24 * 60)})")
