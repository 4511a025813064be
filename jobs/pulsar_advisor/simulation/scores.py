"""What a simulation amounts to: how evenly the load is spread in each cycle, what that cost, and whether it settles."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Final, Literal, Self

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import Booleans, Floats, throughput_bytes_per_s
from pulsar_advisor.planning.usage.merit import Cost, Merit
from pulsar_advisor.simulation.simulate import Cycle, Ended, Simulation

ENDINGS: Final[tuple[Ended, ...]] = ("settled", "unfinished", "repeats")
"""The best first."""

_MINUTE_MS: Final = 60_000


@dataclass(frozen=True)
class Spread:
    """How a figure is spread over the brokers, in its unit; the Gini coefficient is 0 where all have the same and
    approaches 1 where one has everything."""

    maximum: float
    mean: float
    standard_deviation: float
    range: float
    gini: float

    @classmethod
    def of(cls, figures: Floats) -> Self:
        """The spread of finite, non-negative figures; all zero without any."""
        if not len(figures):
            return cls(0.0, 0.0, 0.0, 0.0, 0.0)
        ascending = np.sort(figures)
        number, total = len(figures), float(figures.sum())
        ranks = np.arange(1, number + 1)
        gini = 2 * float((ranks * ascending).sum()) / (number * total) - (number + 1) / number if total > 0 else 0.0
        return cls(
            maximum=float(ascending[-1]),
            mean=total / number,
            standard_deviation=float(figures.std()),
            range=float(ascending[-1] - ascending[0]),
            gini=gini,
        )


@dataclass(frozen=True)
class CycleScore:
    """One cycle: the spread right after its splits and unloads, over the available brokers."""

    cycle: int
    """From 1; 0 is the snapshot itself."""
    at_ms: int
    splits: int
    unloads: int
    moved_throughput_bytes_per_s: float
    usage: Spread
    """Weighted maximum usage, ratio."""
    throughput: Spread
    """Bytes/s in and out."""

    def columns(self) -> dict[str, float]:
        """The columns of the table `cycles`, without its key."""
        return {
            "cycle": self.cycle,
            "at_ms": self.at_ms,
            "splits": self.splits,
            "unloads": self.unloads,
            "moved_throughput_bytes_per_s": self.moved_throughput_bytes_per_s,
            **self.spread_columns(""),
        }

    def spread_columns(self, prefix: str) -> dict[str, float]:
        """Both spreads, a column for each figure, with its unit."""
        spreads = (("usage", "_ratio", self.usage), ("throughput", "_bytes_per_s", self.throughput))
        return {
            f"{prefix}{figure}_{name}{'' if name == 'gini' else unit}": value
            for figure, unit, spread in spreads
            for name, value in asdict(spread).items()
        }


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How a simulation ends, and what it costs until then: a row of the table `scores` without its key.

    What is disturbed is counted once for each unload. `first_` is the snapshot, `last_` the last cycle; usage is the
    weighted maximum, throughput is in and out.
    """

    ended: Ended
    worst_ended: Ended | None = None
    """At the worst of what is known of the base loads; null in earlier releases."""
    cycles: int
    """How many were simulated."""
    repeats_cycle: int | None
    settles_in_cycles: int | None
    """The last cycle with an unload or a split, 0 without any; None if the simulation did not settle."""
    settles_in_minutes: float | None
    """From the snapshot until then."""
    splits: int = 0
    """Bundles split."""
    unloads: int
    bundles: int
    """Bundles that were unloaded at least once."""
    bundles_moved_again: int
    """Bundles that were unloaded more than once."""
    topics: int
    """Topics closed, once for each unload; likewise producers and consumers that had to connect again."""
    producers: int
    consumers: int
    moved_throughput_bytes_per_s: float
    """Of the unloaded bundles, once for each unload."""
    brokers_overshot: int
    """Brokers carried from one side of the mean usage to the other, and further from it than they were at first."""
    highest_ratio: float
    """The highest usage of a broker in any cycle."""
    lowest_maximum_ratio: float | None = None
    """The range of the busiest broker at the end; null where only the likely base loads were simulated."""
    highest_maximum_ratio: float | None = None
    first_usage_maximum_ratio: float
    first_usage_mean_ratio: float
    first_usage_standard_deviation_ratio: float
    first_usage_range_ratio: float
    first_usage_gini: float
    first_throughput_maximum_bytes_per_s: float
    first_throughput_mean_bytes_per_s: float
    first_throughput_standard_deviation_bytes_per_s: float
    first_throughput_range_bytes_per_s: float
    first_throughput_gini: float
    last_usage_maximum_ratio: float
    last_usage_mean_ratio: float
    last_usage_standard_deviation_ratio: float
    last_usage_range_ratio: float
    last_usage_gini: float
    last_throughput_maximum_bytes_per_s: float
    last_throughput_mean_bytes_per_s: float
    last_throughput_standard_deviation_bytes_per_s: float
    last_throughput_range_bytes_per_s: float
    last_throughput_gini: float

    @property
    def happens(self) -> bool:
        """Whether anything is unloaded or split."""
        return bool(self.unloads or self.splits)

    @property
    def worst(self) -> Ended:
        """How it ends at the worst of what is known of the base loads."""
        return self.worst_ended or self.ended

    @property
    def merit(self) -> Merit:
        """What it is worth."""
        cost = Cost(
            self.unloads, self.splits, self.topics, self.producers, self.consumers, self.moved_throughput_bytes_per_s
        )
        reached = (self.last_usage_maximum_ratio, self.highest_maximum_ratio, self.last_usage_standard_deviation_ratio)
        return Merit(*reached, cost)

    @property
    def maximum_range_ratio(self) -> tuple[float, float]:
        """Least and greatest usage of the busiest broker at the end."""
        likely = self.last_usage_maximum_ratio
        lowest, highest = self.lowest_maximum_ratio, self.highest_maximum_ratio
        return likely if lowest is None else lowest, likely if highest is None else highest


def cycle_scores(simulation: Simulation) -> tuple[CycleScore, ...]:
    """Every cycle, the snapshot first."""
    available = simulation.state.brokers.available
    return tuple(_cycle_score(cycle, available) for cycle in simulation.cycles)


def _cycle_score(cycle: Cycle, available: Booleans) -> CycleScore:
    return CycleScore(
        cycle=cycle.number,
        at_ms=cycle.at_ms,
        splits=len(cycle.division.splits) if cycle.division is not None else 0,
        unloads=len(cycle.bundle),
        moved_throughput_bytes_per_s=float(throughput_bytes_per_s(cycle.traffic).sum()),
        usage=Spread.of(_finite(cycle.usage[available])),
        throughput=Spread.of(_finite(throughput_bytes_per_s(cycle.broker_traffic[available]))),
    )


def _finite(figures: Floats) -> Floats:
    """The figures that can be added; rounding may leave an idle broker slightly below zero."""
    return np.maximum(figures[np.isfinite(figures)], 0.0)


def simulation_score(simulation: Simulation, cycles: tuple[CycleScore, ...]) -> Ending:
    """How a simulation with these cycles ends."""
    unloading = [cycle for cycle in simulation.cycles if len(cycle.bundle)]
    unloads = Counter(cycle.state.bundle_name(bundle) for cycle in unloading for bundle in cycle.bundle.tolist())
    settled = simulation.ended == "settled"
    available = simulation.state.brokers.available
    at_ends = [_cycle_score(one.cycles[-1], available).usage.maximum for one in simulation.ends]
    maxima = [*at_ends, cycles[-1].usage.maximum]
    last_acting = max((one.cycle for one in cycles if one.splits or one.unloads), default=0)

    def disturbed(column: Literal["topics", "producers", "consumers"]) -> int:
        return sum(int(getattr(cycle.state.bundles, column)[cycle.bundle].sum()) for cycle in unloading)

    return Ending(
        ended=simulation.ended,
        cycles=len(simulation.cycles) - 1,
        repeats_cycle=simulation.repeats_cycle,
        settles_in_cycles=last_acting if settled else None,
        settles_in_minutes=max(last_acting - 1, 0) * simulation.interval_ms / _MINUTE_MS if settled else None,
        splits=sum(one.splits for one in cycles),
        unloads=unloads.total(),
        bundles=len(unloads),
        bundles_moved_again=sum(number > 1 for number in unloads.values()),
        topics=disturbed("topics"),
        producers=disturbed("producers"),
        consumers=disturbed("consumers"),
        moved_throughput_bytes_per_s=sum(cycle.moved_throughput_bytes_per_s for cycle in cycles),
        brokers_overshot=_overshot(simulation),
        **cycles[0].spread_columns("first_"),
        **cycles[-1].spread_columns("last_"),
        highest_ratio=max(cycle.usage.maximum for cycle in cycles),
        lowest_maximum_ratio=min(maxima) if at_ends else None,
        highest_maximum_ratio=max(maxima) if at_ends else None,
        worst_ended=max((one.ended for one in (simulation, *simulation.ends)), key=ENDINGS.index),
    )


def _overshot(simulation: Simulation) -> int:
    """Constant load keeps the mean nearly where it is, so each cycle is compared with its own."""
    available = simulation.state.brokers.available
    if not available.any():
        return 0
    with np.errstate(invalid="ignore"):
        distances = np.array([cycle.usage[available] - cycle.usage[available].mean() for cycle in simulation.cycles])
        crossed = (distances * distances[0] < 0) & (np.abs(distances) > np.abs(distances[0]))
    return int(crossed.any(axis=0).sum())
