"""Usage after moves on live brokers: what came, beside the range that is predicted from the snapshot before them.

A recording has one cycle for each plan that was carried out: its unloads, and the snapshots before and after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import takewhile
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Final

from decisions.recording import Recording
from decisions.replay import settings_of
from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.load.base_load import base_load, with_usage_of_rates
from pulsar_advisor.model.load.resource_usage import usage_ratios
from pulsar_advisor.model.plans.plan import BrokerForecast
from pulsar_advisor.planning.usage.forecast import Outlook, forecast
from pulsar_advisor.planning.usage.noise import noise_floor
from pulsar_advisor.stages.normalize import run as normalize
from pulsar_advisor.storage.root import Root, Snapshot
from pulsar_advisor.tables.state import cluster_state

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Figure:
    """One broker after one plan; usage ratios."""

    broker: str
    before: float
    lowest: float
    likely: float
    highest: float
    actual: float

    @classmethod
    def of(cls, broker: str, before: BrokerForecast, after: BrokerForecast, actual: float) -> Figure:
        """The figure of a broker by a plan's forecasts before and after it."""
        figures = (before.usage_ratio, after.lowest_usage_ratio, after.usage_ratio, after.highest_usage_ratio)
        return cls(broker, *(nan if figure is None else figure for figure in figures), actual)

    @property
    def inside(self) -> bool:
        """Whether the range has what came."""
        return self.lowest <= self.actual <= self.highest

    def row(self) -> str:
        """The broker's row of the table."""
        figures = (self.before, self.lowest, self.likely, self.highest, self.actual)
        return (
            f"| {' | '.join((self.broker, *(f'{figure:.1%}' for figure in figures), 'yes' if self.inside else 'no'))} |"
        )


HEAD: Final = "| broker | before | lowest | likely | highest | came | inside |\n| -- | -- | -- | -- | -- | -- | -- |"


def inside_ratio(figures: Iterable[Figure]) -> float:
    """The share of brokers whose range has what came."""
    inside = [figure.inside for figure in figures]
    return sum(inside) / len(inside)


def usage_of(snapshot: Snapshot) -> dict[str, float]:
    """The usage (ratio) of each broker in a snapshot, as the brokers answer it."""
    state = cluster_state(snapshot, "fresh")
    return dict(zip(state.brokers.ids, usage_ratios(state.brokers, settings_of(snapshot)).tolist(), strict=True))


def replayed_usage(recording: Recording, spark: SparkSession, folder: Path) -> list[list[Figure]]:
    """The figures of every cycle, each predicted from its snapshot and those before it."""
    root = Root(str(folder), "recorded")
    for snapshot in recording.snapshots.values():
        normalize(spark, snapshot.write(root))
    found = []
    for cycle in recording.cycles:
        assert cycle.after is not None
        states = [
            cluster_state(root.snapshot(one), "fresh") for one in takewhile(cycle.before.__ge__, recording.snapshots)
        ]
        destinations = {unload.bundle: unload.destination for unload in cycle.unloads}
        found.append(_figures(root, states, destinations, usage_of(root.snapshot(cycle.after))))
    return found


def _figures(
    root: Root, states: list[ClusterState], destinations: Mapping[str, str | None], actual: Mapping[str, float]
) -> list[Figure]:
    """Of all brokers once the bundles have moved; the last state is the one that it is predicted from."""
    *earlier, state = states
    settings, base = settings_of(root.snapshot(state.snapshot)), base_load(state, earlier)
    outlook = Outlook.of(state, base, with_usage_of_rates(state, earlier, base))
    row_of = {broker: row for row, broker in enumerate(state.brokers.ids)}
    moves = [
        (row, int(state.bundles.owner[row]), row_of[broker])
        for row in range(len(state.bundles))
        if (broker := destinations.get(state.bundle_name(row))) is not None
    ]
    before = forecast(state, outlook, settings).brokers
    moved, _ = outlook.along(outlook, state.bundles, moves, settings)
    after = forecast(state, moved, settings, noise_floor([*earlier, state], settings).ratio).brokers
    return [Figure.of(broker, before[broker], after[broker], actual[broker]) for broker in actual]
