"""Recorded cycles beside simulated ones: from the snapshot before each decision until the recording's load changes.

Ends by writing the recordings' rows of docs/results/simulated-decisions.tsv.

PYTHONPATH=tests python -m decisions.simulated [RECORDING...]
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from decisions.recording import Cycle, Recording
from decisions.replay import HISTORY, NEAR_RATIO, recordings, state_of
from pulsar_advisor.model.cluster.cluster_state import Floats
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.load.resource_usage import usage_ratios
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.simulation.simulate import Simulation, simulate
from pulsar_advisor.stages.normalize import run as normalize
from pulsar_advisor.storage.root import Root
from pulsar_advisor.tables.earlier import comparable_before
from pulsar_advisor.tables.session import spark_session
from pulsar_advisor.tables.settings_inputs import settings_inputs
from results import RESULTS, record, today

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEEDS: Final = 5
"""How often each start is simulated: the destinations drawn are the candidates."""
MINUTE_MS: Final = 60_000


@dataclass
class Tally:
    """How often something was so, of how many times."""

    right: int = 0
    of: int = 0

    def add(self, right: int, of: int) -> None:
        """Count more."""
        self.right, self.of = self.right + right, self.of + of

    def __str__(self) -> str:
        return f"{self.right} of {self.of}"


@dataclass
class Comparison:
    """All starts of one recording, cycle by cycle."""

    title: str
    starts: int = 0
    cycles: int = 0
    """Recorded ones that were compared."""
    named_first: Tally = field(default_factory=Tally)
    """Bundles unloaded in the first cycle of a start that the simulation unloads in it; likewise later."""
    named_later: Tally = field(default_factory=Tally)
    named_in_time: Tally = field(default_factory=Tally)
    """Bundles unloaded in later cycles that the simulation unloads at any time until the load changes."""
    superfluous: Tally = field(default_factory=Tally)
    """Simulated unloads of bundles that the brokers left alone all the time."""
    inside: Tally = field(default_factory=Tally)
    """Bundles unloaded in the same cycle whose destination was drawn by one of the seeds."""
    near: Tally = field(default_factory=Tally)
    """Usages that brokers had published before a later cycle, within five points."""
    last: Tally = field(default_factory=Tally)
    """Starts after which the last unload came at most one cycle earlier or later than simulated."""

    def row(self) -> tuple[str, ...]:
        """The recording's row of the table."""
        tallies = (self.named_first, self.named_later, self.named_in_time, self.superfluous)
        return (
            self.title,
            f"{self.starts} ({self.cycles})",
            *map(str, (*tallies, self.inside, self.near, self.last)),
        )


HEAD: Final = (
    *("recording", "starts (cycles)", "named in the first cycle", "in the same later cycle", "in any later cycle"),
    *("simulated only", "destinations drawn", "usage within 5 points", "last unload within a cycle"),
)


def until_the_load_changes(recording: Recording, start: int) -> tuple[Cycle, ...]:
    """The recorded cycles from one (an index) on to which the snapshot before it leads."""
    cycles = recording.cycles[start:]
    end = next((number for number, cycle in enumerate(cycles, 1) if cycle.after is None), len(cycles))
    return cycles[:end]


def compare(
    found: Comparison, recorded: Sequence[Cycle], simulations: Sequence[Simulation], published: Sequence[Floats | None]
) -> None:
    """Add one start; `published` is the usage of each broker before every recorded cycle, None where unknown.

    Recorded cycles are numbered by the minutes since the first: the leader's are a little more than one apart.
    """
    first, *_ = simulations
    numbers = [1 + round((cycle.at_ms - recorded[0].at_ms) / MINUTE_MS) for cycle in recorded]
    of_cycle = {cycle.number: _destinations(cycle.number, simulations) for cycle in first.cycles}
    simulated = {cycle.number: _names(first, cycle.number) for cycle in first.cycles}
    ever = set().union(*simulated.values())
    found.starts, found.cycles = found.starts + 1, found.cycles + len(recorded)
    for number, cycle, usage in zip(numbers, recorded, published, strict=True):
        unloaded = {unload.bundle: unload.destination for unload in cycle.unloads}
        named = unloaded.keys() & simulated.get(number, set())
        (found.named_first if number == 1 else found.named_later).add(len(named), len(unloaded))
        if number > 1:
            found.named_in_time.add(len(unloaded.keys() & ever), len(unloaded))
        known = [bundle for bundle in named if unloaded[bundle] is not None]
        found.inside.add(sum(unloaded[one] in of_cycle[number].get(one, ()) for one in known), len(known))
        if number > 1 and usage is not None and number < len(first.cycles):
            near = np.abs(first.cycles[number].seen_usage - usage) <= NEAR_RATIO
            found.near.add(int(near.sum()), len(near))
    really = {unload.bundle for cycle in recorded for unload in cycle.unloads}
    found.superfluous.add(len(ever - really), len(ever))
    last_simulated = max((number for number, names in simulated.items() if names), default=0)
    last = max(number for number, cycle in zip(numbers, recorded, strict=True) if cycle.unloads)
    found.last.add(abs(last - last_simulated) <= 1, 1)


def _names(simulation: Simulation, number: int) -> set[str]:
    cycle = simulation.cycles[number]
    return {cycle.state.bundle_name(row) for row in cycle.bundle.tolist()}


def _destinations(number: int, simulations: Iterable[Simulation]) -> dict[str, set[str]]:
    """Bundle -> the brokers that it goes to in this cycle, in any of the simulations."""
    drawn: dict[str, set[str]] = {}
    for simulation in simulations:
        if number < len(simulation.cycles):
            cycle = simulation.cycles[number]
            for bundle, broker in zip(cycle.bundle.tolist(), cycle.destination.tolist(), strict=True):
                drawn.setdefault(cycle.state.bundle_name(bundle), set()).add(simulation.state.brokers.ids[broker])
    return drawn


def simulated(recording: Recording, spark: SparkSession, folder: Path) -> Comparison:
    """Normalize the recording's snapshots, and simulate from the one before every decision."""
    root = Root(str(folder), "recorded")
    for snapshot in recording.snapshots.values():
        normalize(spark, snapshot.write(root))
    found = Comparison(f"{recording.shedder} {recording.release} {recording.load_manager}")
    for start, cycle in enumerate(recording.cycles):
        if not cycle.unloads:
            continue
        recorded = until_the_load_changes(recording, start)
        snapshot = root.snapshot(cycle.before)
        earlier = [state_of(one) for one in islice(comparable_before(snapshot), HISTORY)][::-1]
        settings = resolve_settings(*settings_inputs(snapshot))
        situation = Situation.of_fit(state_of(snapshot), settings, earlier)
        last = 1 + round((recorded[-1].at_ms - recorded[0].at_ms) / MINUTE_MS)
        futures = [simulate(*situation.configured, situation, cycles=last, seed=seed) for seed in range(SEEDS)]
        compare(found, recorded, futures, [_published(root, situation, one.before) for one in recorded])
    return found


def _published(root: Root, first: Situation, snapshot: str) -> Floats | None:
    """The usage ratios in a later snapshot, of the same brokers."""
    state = state_of(root.snapshot(snapshot))
    if state.brokers.ids != first.fit.brokers.ids:
        return None
    return usage_ratios(state.brokers, first.settings.values)


def table(found: Iterable[Comparison]) -> str:
    """All recordings as a Markdown table."""
    rows = [HEAD, tuple("--" for _ in HEAD), *(one.row() for one in found)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main(names: Sequence[str]) -> None:
    """Simulate the recordings of these names, or all, print the table, and keep its rows."""
    spark = spark_session("local[2]", "simulated")
    found = []
    for name, recording in recordings(names):
        with tempfile.TemporaryDirectory() as folder:
            found.append(simulated(recording, spark, Path(folder)))
        print(table(found[-1:]).rpartition("\n")[2], flush=True)
        figures = dict(zip(HEAD, found[-1].row(), strict=True))
        record(RESULTS / "simulated-decisions.tsv", [{**figures, "recording": name, "measured": today()}])
    spark.stop()
    print(f"\n{table(found)}")


if __name__ == "__main__":
    main(sys.argv[1:])
