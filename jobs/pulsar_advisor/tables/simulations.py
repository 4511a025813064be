"""The tables that `simulate` writes: how each simulation ends, its cycles, its moves and its splits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from pulsar_advisor.simulation.scores import cycle_scores, simulation_score
from pulsar_advisor.simulation.simulate import Simulation
from pulsar_advisor.storage.root import Root
from pulsar_advisor.tables.parquet import write_table
from pulsar_advisor.tables.schemas import SIMULATIONS, TRAFFIC

FOLDER: Final = "simulations"
Row = dict[str, str | int | float | None]
"""A row of a table, by column; one without a value may be left out."""
Rows = Mapping[str, Sequence[Row]]
"""Table -> its rows."""


def rows_of(simulation: Simulation, key: Row) -> Rows:
    """The rows of one simulation; `key` has the columns that say which."""
    cycles = cycle_scores(simulation)
    return {
        "scores": [{**key, **asdict(simulation_score(simulation, cycles))}],
        "cycles": [{**key, **one.columns()} for one in cycles],
        "moves": [{**key, **row} for row in _move_rows(simulation)],
        "splits": [{**key, **row} for row in _split_rows(simulation)],
    }


def not_simulated(error: str, key: Row) -> Rows:
    """Those of one that could not be made."""
    return {**{table.name: [] for table in SIMULATIONS}, "scores": [{**key, "error": error}]}


def write_simulations(root: Root, snapshot: str, simulations: Sequence[Rows]) -> None:
    """Write the rows of all simulations of a snapshot, a file each table. Raises `StorageError`."""
    for table in SIMULATIONS:
        rows = [row for each in simulations for row in each[table.name]]
        columns = {column.name: [row.get(column.name) for row in rows] for column in table.columns}
        write_table(root.folder(f"{FOLDER}/{table.name}", snapshot) / f"{table.name}.parquet", table, columns)


def _move_rows(simulation: Simulation) -> Iterable[Row]:
    brokers = simulation.state.brokers.ids
    for cycle in simulation.cycles:
        moves: Iterable[Sequence[Any]] = zip(
            cycle.bundle.tolist(),
            cycle.source.tolist(),
            cycle.destination.tolist(),
            cycle.traffic.tolist(),
            strict=True,
        )
        for position, (bundle, source, destination, traffic) in enumerate(moves):
            yield {
                "cycle": cycle.number,
                "position": position,
                "bundle": cycle.state.bundle_name(bundle),
                "source": brokers[source],
                "destination": brokers[destination],
                **_traffic(traffic),
            }


def _split_rows(simulation: Simulation) -> Iterable[Row]:
    for cycle in simulation.cycles:
        if cycle.division is None:
            continue
        before, after = cycle.division.before, cycle.division.state
        for position, split in enumerate(cycle.division.splits):
            for child in cycle.division.children(split):
                yield {
                    "cycle": cycle.number,
                    "position": position,
                    "bundle": before.bundle_name(split.bundle),
                    "broker": before.brokers.ids[before.bundles.owner[split.bundle]],
                    "algorithm": split.algorithm,
                    "reason": split.reason,
                    "child": after.bundle_name(child),
                    "topics": int(after.bundles.topics[child]),
                    **_traffic(after.bundles.traffic[child].tolist()),
                }


def _traffic(figures: Iterable[float]) -> dict[str, float]:
    """The columns of traffic figures in the order of FIGURES."""
    return dict(zip(TRAFFIC.values(), figures, strict=True))
