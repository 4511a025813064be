"""Folds a cluster's snapshots of one day into its tables in one pass; the bytes are always the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pulsar_advisor.history.columns import BROKERS, EVENTS, HOSTS, LOAD, MOMENTS, NAMES, POLICIES, SETTINGS
from pulsar_advisor.history.events import ConfirmedStep, Event, LastSeen, events_between
from pulsar_advisor.history.index import index_of
from pulsar_advisor.history.moment import Moment
from pulsar_advisor.history.policies import UNKNOWN, changes
from pulsar_advisor.model.errors import UsageError

MOST_SNAPSHOTS: Final = 2**16 - 1
"""Limit for a day: almost one a second."""

Positions = npt.NDArray[np.int32]
_Columns = tuple[npt.NDArray[Any], ...]


def fold(
    moments: Iterable[Moment], before: LastSeen | None = None, steps: Sequence[ConfirmedStep] = ()
) -> Mapping[str, pa.Table]:
    """The tables of a day by name, see `columns`, from its snapshots (at least one) in order of time.

    `before` is what was last seen before the day, `steps` are the plan steps carried out in the meantime. Only the
    figures of each moment stay in memory: 27 bytes per bundle. Raises `UsageError` for more than `MOST_SNAPSHOTS`.
    """
    bundles, brokers = _Numbered(), _Numbered()
    heads: list[tuple[Any, ...]] = []
    hosts: list[pa.Table] = []
    loads: list[_Columns] = []
    events: list[tuple[int, Event]] = []
    settings: list[tuple[int, str, str]] = []
    policies: list[tuple[int, str, str, str | None]] = []
    known: Mapping[str, str] = {}
    known_policies = UNKNOWN
    seen = before
    for t, moment in enumerate(moments):
        if t == MOST_SNAPSHOTS:
            raise UsageError(f"more than {MOST_SNAPSHOTS:,} snapshots of one day can't be folded")
        ids = moment.hosts["id"].combine_chunks()
        leader = brokers.numbers(pa.array([moment.leader], pa.string()))[0]
        heads.append((t, leader, *(getattr(moment, name) for name in _OF_MOMENT)))
        hosts.append(_with(moment.hosts.drop_columns("id"), t=np.full(len(ids), t), broker=brokers.numbers(ids)))
        numbers, owners = bundles.numbers(moment.bundles), brokers.numbers(moment.owners)
        times = np.full(len(numbers), t, np.uint16)
        loads.append((numbers, times, owners.astype(np.int16), *moment.traffic.T, moment.connections, moment.flags))
        if seen is not None:
            events += ((t, event) for event in events_between(seen.moment, moment, steps, seen.waiting))
        settings += [(t, key, value) for key, value in moment.settings.items() if known.get(key) != value]
        seen = LastSeen.of(moment, seen)
        policies_now = moment.policies if len(moment.policies) else known_policies
        policies += [(t, one.kind, one.subject, one.after) for one in changes(known_policies, policies_now)]
        known, known_policies = moment.settings or known, policies_now
    names, bundle_positions = bundles.sorted()
    ids, broker_positions = brokers.sorted()
    heads = [(t, broker_positions[leader], *rest) for t, leader, *rest in heads]
    load = _load(loads, bundle_positions, broker_positions)
    tables = {
        "moments": _table(heads, _HEADS).select(MOMENTS.names),
        "brokers": numbered(ids, BROKERS),
        "hosts": _hosts(hosts, broker_positions),
        "names": numbered(names, NAMES),
        "load": load,
        "settings": _table(settings, SETTINGS),
        "policies": _table(policies, POLICIES),
        "events": event_table(events),
    }
    return {**tables, "index": index_of(tables)}


_OF_MOMENT: Final = tuple(name for name in MOMENTS.names if name not in ("t", "leader"))
_HEADS: Final = pa.schema([MOMENTS.field(name) for name in ("t", "leader", *_OF_MOMENT)])


def event_table(events: Iterable[tuple[int, Event]]) -> pa.Table:
    """The table of a day's events, each with the position of the first snapshot that shows it."""
    return pa.Table.from_pylist([{"t": t, **vars(event)} for t, event in events], EVENTS)


class _Numbered:
    """Names, numbered in the order in which they were first met."""

    def __init__(self) -> None:
        self._names = pa.array([], pa.string())

    def numbers(self, names: pa.Array) -> Positions:
        """The number of each name, assigning numbers to new names; -1 for null."""
        found = pc.index_in(names, value_set=self._names, skip_nulls=True)
        if found.null_count > names.null_count:
            new = names.filter(pc.and_(found.is_null(), names.is_valid())).unique()
            self._names = pa.concat_arrays([self._names, new])
            found = pc.index_in(names, value_set=self._names, skip_nulls=True)
        numbers: Positions = found.fill_null(-1).to_numpy(zero_copy_only=False)
        return numbers

    def sorted(self) -> tuple[pa.Array, Positions]:
        """The sorted names, and the position of each number among them; the last position, for number -1, is -1."""
        order = pc.sort_indices(self._names)
        positions = np.full(len(order) + 1, -1, np.int32)
        positions[order.to_numpy()] = np.arange(len(order), dtype=np.int32)
        return self._names.take(order), positions


def _with(table: pa.Table, **columns: npt.NDArray[Any]) -> pa.Table:
    for name, values in columns.items():
        table = table.append_column(name, pa.array(values))
    return table


def _table(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def _hosts(moments: Sequence[pa.Table], positions: Positions) -> pa.Table:
    rows = pa.concat_tables(moments)
    numbers = rows["broker"].to_numpy()
    rows = rows.set_column(rows.schema.get_field_index("broker"), "broker", pa.array(positions[numbers]))
    return rows.select(HOSTS.names).sort_by([("t", "ascending"), ("broker", "ascending")]).cast(HOSTS)


def _load(moments: Sequence[_Columns], bundle_positions: Positions, broker_positions: Positions) -> pa.Table:
    """Bundle by bundle, each in order of time, so that a bundle's history is read in one piece and compresses best."""
    bundle, t, owner, *figures = (np.concatenate(parts) for parts in zip(*moments, strict=True))
    bundle, owner = bundle_positions[bundle], broker_positions[owner].astype(np.int16)
    order = np.argsort(bundle, kind="stable")
    columns = [pa.array(column[order]) for column in (bundle, t, owner, *figures)]
    return pa.table(columns, LOAD)


def numbered(names: pa.Array, schema: pa.Schema) -> pa.Table:
    """A table of names in order with their positions."""
    return pa.table([pa.array(np.arange(len(names)), schema.types[0]), names], schema)
