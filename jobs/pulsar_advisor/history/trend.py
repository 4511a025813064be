"""How a cluster's balance developed over days: levels, their slope with its range, and what moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pulsar_advisor.documents.history_day import DaySummary
from pulsar_advisor.history.events import OPERATOR, OWN, PLAN, RESTART
from pulsar_advisor.model.cluster.cluster_state import Floats
from pulsar_advisor.model.text.some_of import count

HOUR_MS: Final = 60 * 60 * 1000
HOURS: Final = 24
"""Hours of a day."""
FEWEST_DAYS: Final = 5
"""Minimum number of days with fit snapshots for a slope: resampling fewer varies too little. With three, the range
holds the true slope in six of ten cases, not in nine."""
_SAMPLES: Final = 400
_SEED: Final = 1
IN_WORDS: Final[Mapping[str, str]] = {OWN: "by the leader", OPERATOR: "by hand", RESTART: "by restarts"}
"""Causes of moves that need a word of their own."""
_PAIRS_AT_ONCE: Final = 1 << 20
"""Pairs of days in memory: all pairs of four hundred days, in all samples, would take a gigabyte."""
_MOST_CORRELATION: Final = 0.9
"""The highest correlation of successive days that counts: a higher one looks like a slope."""
_RANGE: Final = (5, 95)
"""Percentiles of a range that holds nine of ten resampled slopes."""


@dataclass(frozen=True)
class Level:
    """A figure (ratio) over the fit snapshots: its median, 95th percentile and last value."""

    median: float
    high: float
    now: float


@dataclass(frozen=True)
class Slope:
    """Change of the daily median per day (ratio), with the range of nine of ten resampled periods, the wider the more
    each day resembles the one before."""

    per_day: float
    lowest: float
    highest: float


@dataclass(frozen=True)
class Trend:
    """What a period of days shows."""

    SCHEMA: ClassVar = "pulsar-advisor/trend/1"

    snapshots: int
    fit: int
    """Snapshots that could be used, on which the levels and the slope are based."""
    longest_gap_ms: int
    """The longest time between two snapshots in a row."""
    busiest: Level | None
    """None without a fit snapshot."""
    excess: Level | None
    """Usage of the busiest broker above the mean."""
    slope: Slope | None
    """Slope of the busiest broker; None for fewer than five days (`FEWEST_DAYS`)."""
    moves: int
    causes: Mapping[str, int]
    """Cause of moves, as in a day's table `events` -> their number; empty for days of the first version of columns."""
    splits: int
    restarts: int
    leader_changes: int
    brokers: tuple[int, int]
    """Number of available brokers at the beginning and at the end."""
    bundles: tuple[int, int]


def trend_of(index: pa.Table, events: pa.Table) -> Trend:
    """The trend of snapshots (at least one; rows of `columns.INDEX` in order of time), and of the events among them.

    The slope is Theil-Sen's over daily medians, so a bad day doesn't bend it. Its range comes from resampling whole
    days, because snapshots of one day aren't independent; neither are days that resemble each other, so it is widened.
    """
    at_ms = index["at_ms"].to_numpy()
    fit, busiest, mean = levels_of(index)
    return Trend(
        snapshots=len(index),
        fit=len(fit),
        longest_gap_ms=int(np.diff(at_ms).max(initial=0)),
        busiest=_level(busiest),
        excess=_level(busiest - mean),
        slope=slope_of(fit["at_ms"].to_numpy() // HOUR_MS, busiest),
        moves=_sum(index["moves"]),
        causes=causes_of(events),
        splits=int(pc.sum(pc.equal(events["kind"], "split")).as_py() or 0),
        restarts=_sum(index["restarts"]),
        leader_changes=_sum(index["leader_changed"]),
        brokers=(index["brokers"][0].as_py(), index["brokers"][-1].as_py()),
        bundles=(index["bundles"][0].as_py(), index["bundles"][-1].as_py()),
    )


def summary_of(index: pa.Table, events: pa.Table) -> DaySummary:
    """The few figures of a folded day that a list of clusters needs, from its tables `index` and `events`."""
    fit, busiest, mean = levels_of(index)
    kinds = Counter(events["kind"].to_pylist())
    known = len(fit) > 0
    return DaySummary(
        busiest=float(np.median(busiest)) if known else None,
        busiest_last=float(busiest[-1]) if known else None,
        excess=float(np.median(busiest - mean)) if known else None,
        brokers=index["brokers"][-1].as_py(),
        bundles=index["bundles"][-1].as_py(),
        moves=causes_of(events),
        splits=kinds["split"],
        restarts=kinds["broker_restarted"],
        settings=kinds["setting"],
    )


def levels_of(index: pa.Table) -> tuple[pa.Table, Floats, Floats]:
    """The fit snapshots, with the busiest broker's usage and the mean of each."""
    fit = index.filter(pc.and_(index["fit"], pc.is_finite(index["busiest"])))
    busiest, mean = (fit[name].to_numpy().astype(np.float64) for name in ("busiest", "mean"))
    return fit, busiest, mean


def causes_of(events: pa.Table) -> Mapping[str, int]:
    """Cause -> the number of moves."""
    moves = events.filter(pc.field("kind") == "move")
    return dict(sorted(Counter(moves["cause"].to_pylist()).items()))


def trend_lines(trend: Trend, of: str, days: int) -> list[str]:
    """The trend for a reader; `of` names the cluster."""
    period = f"{count(days, 'day')}, {trend.fit:,} of {count(trend.snapshots, 'snapshot')} fit"
    lines = [f"{of}: {period} (longest gap {_minutes(trend.longest_gap_ms)})"]
    if trend.busiest is None or trend.excess is None:
        return [*lines, "no snapshot of these days is fit for use, so nothing can be said about its load"]
    lines.append(f"  busiest broker   {_levels(trend.busiest)}   {slope_text(trend.slope)}")
    lines.append(f"  above the mean   {_levels(trend.excess)}")
    lines.append(f"  moves            {moves_text(trend.moves, trend.causes)}")
    others = count(trend.splits, "split"), count(trend.restarts, "restart"), count(trend.leader_changes, "change")
    lines.append(f"  also             {', '.join(others)} of the leader")
    for name, (first, last) in {"brokers": trend.brokers, "bundles": trend.bundles}.items():
        lines.append(f"  {name:<16} {last:,}" + (f", {first:,} at first" if first != last else ""))
    return lines


def _level(figures: Floats) -> Level | None:
    if not len(figures):
        return None
    return Level(float(np.median(figures)), float(np.percentile(figures, 95)), float(figures[-1]))


def slope_of(hours: npt.NDArray[np.int64], figures: Floats) -> Slope | None:
    """The slope of figures (ratios), given the hour (since any midnight) of each, see `trend_of`.

    A day with figures for fewer than half the usual hours, such as today, isn't representative and doesn't count. None
    for fewer than `FEWEST_DAYS`.
    """
    days, covered = np.unique(np.unique(hours) // HOURS, return_counts=True)
    found = days[2 * covered >= np.median(covered)] if len(days) else days
    if len(found) < FEWEST_DAYS:
        return None
    medians = np.array([np.median(figures[hours // HOURS == day]) for day in found])
    drawn = np.random.default_rng(_SEED).integers(0, len(found), (_SAMPLES, len(found)))
    parts = np.array_split(drawn, -(-_SAMPLES * len(found) ** 2 // (2 * _PAIRS_AT_ONCE)))
    slopes = np.concatenate([_theil_sen(found[part], medians[part]) for part in parts])
    per_day = float(_theil_sen(found[None], medians[None])[0])
    least, most = np.percentile(slopes[np.isfinite(slopes)], _RANGE)
    wider = _widening(found, medians - per_day * found)
    return Slope(per_day, per_day - wider * (per_day - float(least)), per_day + wider * (float(most) - per_day))


def _widening(days: npt.NDArray[np.int64], levels: Floats) -> float:
    """By how much the range of a slope is wider than that of independent days, given the levels without the slope.

    Of an autoregressive series with the correlation r of successive days, by the root of (1 + r) / (1 - r). Few days
    show r too low, around a line by (2 + 4r) / n.
    """
    off = levels - levels.mean()
    spread = float(off @ off)
    successive = np.diff(days) == 1
    found = float(off[1:][successive] @ off[:-1][successive]) / spread if spread > 0 else 0.0
    correlation = min(max(found + (2 + 4 * found) / len(days), 0.0), _MOST_CORRELATION)
    return sqrt((1 + correlation) / (1 - correlation))


def _theil_sen(at: npt.NDArray[np.int64], figures: Floats) -> Floats:
    """For each row, the median slope of all pairs at different times; NaN without such a pair."""
    first, second = np.triu_indices(at.shape[1], 1)
    apart = at[:, second] - at[:, first]
    slopes = np.full(apart.shape, np.nan)
    np.divide(figures[:, second] - figures[:, first], apart, out=slopes, where=apart != 0)
    slopes.sort(axis=1)  # NaN last
    number = np.isfinite(slopes).sum(axis=1)
    rows = np.arange(len(slopes))
    middle = slopes[rows, np.maximum(number - 1, 0) // 2] + slopes[rows, np.minimum(number // 2, apart.shape[1] - 1)]
    return np.where(number > 0, middle / 2, np.nan)


def _sum(column: pa.ChunkedArray) -> int:
    return int(pc.sum(column).as_py() or 0)


def _levels(level: Level) -> str:
    return f"median {level.median:>6.1%}   p95 {level.high:>6.1%}   now {level.now:>6.1%}"


def slope_text(slope: Slope | None) -> str:
    """A slope for a reader."""
    if slope is None:
        return f"no slope yet: it takes {FEWEST_DAYS} days with fit snapshots in half the usual hours or more"
    points = (f"{round(100 * one, 2) + 0.0:+.2f}" for one in (slope.per_day, slope.lowest, slope.highest))
    return "{} points/day (90%: {} to {})".format(*points)


def moves_text(moves: int, causes: Mapping[str, int]) -> str:
    """The number of moves by cause; moves without one, as in days of the first columns, are unexplained."""
    plans = {cause: number for cause, number in causes.items() if cause.startswith(PLAN)}
    named = {cause: causes.get(cause, 0) for cause in IN_WORDS}
    unexplained = moves - sum(plans.values()) - sum(named.values())
    parts = [f"{number:,} {IN_WORDS[cause]}" for cause, number in named.items() if number]
    parts += [f"{sum(plans.values()):,} by {count(len(plans), 'plan')}"] if plans else []
    parts += [f"{unexplained:,} unexplained"] if unexplained else []
    return f"{moves:,}" + (f": {', '.join(parts)}" if parts else "")


def _minutes(ms: int) -> str:
    return f"{round(ms / 60_000):,} min"
