"""The tables that `simulate` writes: how each simulation ends, its cycles, its moves and its splits."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from upath import UPath

from pulsar_advisor.simulation.scores import cycle_scores, simulation_score
from pulsar_advisor.simulation.simulate import Simulation
from pulsar_advisor.storage.claim import remove_file, remove_other_files, require_no_link
from pulsar_advisor.storage.root import RESULT, Snapshot
from pulsar_advisor.tables.columns import TRAFFIC, Table
from pulsar_advisor.tables.parquet import write_table
from pulsar_advisor.tables.simulation_schemas import SIMULATIONS
from pulsar_advisor.tables.stored import stored_rows_if_any

FOLDER: Final = "simulations"
SCORES: Final = "scores"
Row = dict[str, str | int | float | None]
"""A row of a table, by column; one without a value may be left out."""
Rows = Mapping[str, Sequence[Row]]
"""Table -> its rows."""


def rows_of(simulation: Simulation, key: Row) -> Rows:
    """The rows of one simulation; `key` has the columns that identify it."""
    cycles = cycle_scores(simulation)
    return {
        SCORES: [{**key, **asdict(simulation_score(simulation, cycles))}],
        "cycles": [{**key, **one.columns()} for one in cycles],
        "moves": [{**key, **row} for row in _move_rows(simulation)],
        "splits": [{**key, **row} for row in _split_rows(simulation)],
    }


def not_simulated(error: str, key: Row) -> Rows:
    """The rows of a simulation that failed."""
    return {**{table.name: [] for table in SIMULATIONS}, SCORES: [{**key, "error": error}]}


def write_part(snapshot: Snapshot, part: str, rows: Rows) -> None:
    """Write the rows of one simulation of a snapshot, one file per table, the scores last. Raises `StorageError`."""
    for table in sorted(SIMULATIONS, key=lambda table: table.name == SCORES):
        columns = {column.name: [row.get(column.name) for row in rows[table.name]] for column in table.columns}
        write_table(_folder(snapshot, table) / part, table, columns)


def scores_of_part(snapshot: Snapshot, part: str) -> list[Row] | None:
    """The scores of a simulation that was written before; None without one, or if it failed.

    Raises `StorageError`.
    """
    found = stored_rows_if_any(snapshot.folder(f"{FOLDER}/{SCORES}") / part, "remove it and simulate again")
    if found is None:
        return None
    rows: list[Row] = found.to_pylist()
    return rows if all(row["error"] is None for row in rows) else None


def remove_simulations(snapshot: Snapshot) -> None:
    """Remove the simulations of a snapshot, their result first. Raises `StorageError`."""
    result = snapshot.folder(f"{FOLDER}/result") / RESULT
    require_no_link(snapshot.root, result)
    remove_file(result)
    remove_other_parts(snapshot, ())


def remove_other_parts(snapshot: Snapshot, parts: Collection[str]) -> None:
    """Remove the files of simulations of a snapshot other than these; no link is followed. Raises `StorageError`."""
    for table in SIMULATIONS:
        remove_other_files(snapshot.root, _folder(snapshot, table), parts)


def _folder(snapshot: Snapshot, table: Table) -> UPath:
    return snapshot.folder(f"{FOLDER}/{table.name}")


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
