"""`history export`: copies folded days into another root to share them, under pseudonyms on request."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import pyarrow as pa

from pulsar_advisor.documents.history_day import FoldedTable, HistoryDay, Imported
from pulsar_advisor.history.columns import DAY_TABLES
from pulsar_advisor.history.pseudonyms import Pseudonyms, pseudonyms_of
from pulsar_advisor.model.errors import StorageError, UsageError
from pulsar_advisor.storage.history import days_between
from pulsar_advisor.storage.lease import held
from pulsar_advisor.storage.root import Root
from pulsar_advisor.tables.days import read_day_tables, write_day

_ALL: Final = ("00000000", "99999999")
_CLUSTER: Final = "cluster"
"""The cluster's pseudonym in paths; with a number, also in place of Pulsar's name."""


def run(root: Root, to: str, *, pseudonyms: bool) -> Iterator[HistoryDay]:
    """Write all folded days of a cluster into the root `to`, oldest first; yields each once it is written.

    Raises `UsageError` if no day was folded, or if `to` has days of this cluster, whose pseudonyms may differ;
    `Refused` while another process writes some there; `StorageError` for a day that isn't as it was written, or that
    was folded again after pseudonyms were chosen.
    """
    target, days = Root(to, _CLUSTER if pseudonyms else root.cluster), days_between(root, *_ALL)
    if not days:
        raise UsageError(f"no day of cluster '{root.cluster}' was folded yet: run `history fold`")
    with held(target.of_cluster("history/result"), _CLUSTER, f"days are being exported to {target.path}") as lease:
        if days_between(target, *_ALL):
            raise UsageError(
                f"{target.path} has days of cluster '{target.cluster}': choose another folder, or remove them"
            )
        names = pseudonyms_of(_tables(root, day)[1] for day in days) if pseudonyms else None
        clusters = dict.fromkeys(day.cluster_name for day in days)
        numbers = {name: f"{_CLUSTER}-{number}" for number, name in enumerate(clusters, 1)}
        for day in days:
            now, tables = _tables(root, day)
            if names is not None and now != day:
                raise StorageError(
                    f"day {day.day} was folded again meanwhile, with new names: export into another folder"
                )
            yield _write(target, now, tables, names, numbers, lease.require)


def _write(
    target: Root,
    day: HistoryDay,
    tables: Mapping[str, pa.Table],
    names: Pseudonyms | None,
    numbers: Mapping[str, str],
    require: Callable[[], None],
) -> HistoryDay:
    called: dict[str, object] = {"cluster": target.cluster}
    if names is not None:
        tables, called["cluster_name"] = names.renamed(tables), numbers[day.cluster_name]
        called["is_sealed"] = False  # the ledger has the hash of the day with its names
        # If all checks passed, only the cluster's name is secret in a validation: its hash would confirm a guess.
        called["snapshots"] = tuple(one.model_copy(update={"validation_sha256": None}) for one in day.snapshots)
        called["imported"] = None if day.imported is None else _without_names(day.imported)

    def result(files: Mapping[str, FoldedTable]) -> HistoryDay:
        return day.model_copy(update={**called, "tables": files})

    return write_day(target.day(day.day), tables, result, require)


def _without_names(imported: Imported) -> Imported:
    """How a day was imported, without anything that names a server, brokers or namespaces."""
    return imported.model_copy(update={"server": "", "unknown_brokers": (), "unbounded_namespaces": ()})


def _tables(root: Root, day: HistoryDay) -> tuple[HistoryDay, dict[str, pa.Table]]:
    """The tables of a day, and the day they belong to."""
    now, tables = read_day_tables(root, day, DAY_TABLES)
    return now, {name: rows for name, rows in tables.items() if name in now.tables}
