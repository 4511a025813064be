"""The events of a ledger, followed once from first to last, and what they say about its rows.

After years, a ledger has a million events, which would take gigabytes as SQLAlchemy objects. So rows are streamed as
plain values, and only one hash stays in memory for each row that events wrote.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Float, inspect, select
from sqlalchemy.orm import Session

from pulsar_advisor.execution.ledger.chain import START, ChainHead, chained, hashes_of
from pulsar_advisor.execution.ledger.tables import Base, Event

EMPTY: Final = ChainHead(0, START)

_AT_A_TIME: Final = 200
"""More rows than these leave the processor's cache before they are hashed."""

_WRITTEN_ROWS: Final = msgspec.json.Decoder(dict[str, str])

NameAndHash = tuple[str, str]
"""A row's name, `<table>/<primary key>`, and the `row_hash` of its columns."""


def stored_rows(session: Session, table: type[Base]) -> Iterator[NameAndHash]:
    """The rows of a table as the database holds them, in the order of their keys, a few at a time in memory."""
    columns = table.hashed_column_names()
    fractions = any(isinstance(column.type, Float) for column in table.__table__.c)
    hashes = hashes_of(columns, fractions)
    (key,) = (columns.index(column.name) for column in inspect(table).primary_key)
    for rows in _stored(session, table, columns):
        yield from zip((f"{table.__tablename__}/{row[key]}" for row in rows), hashes(rows), strict=True)


def _stored(
    session: Session, table: type[Base], columns: Iterable[str], *where: ColumnElement[bool]
) -> Iterator[Sequence[Sequence[Any]]]:
    query = select(*(table.__table__.c[column] for column in columns)).where(*where)
    ordered = query.order_by(*inspect(table).primary_key).execution_options(yield_per=_AT_A_TIME)
    return session.connection().execute(ordered).partitions()


def rows_written(rows: str | None) -> Mapping[str, str]:
    """The hashes of the rows that an event wrote, by name; none if it doesn't say which, see `Trail.broken`."""
    with suppress(msgspec.MsgspecError):
        return _WRITTEN_ROWS.decode(str(rows))
    return {}


def names_written(session: Session, digest: str, table: type[Base]) -> set[str]:
    """The rows of a table that the events of a plan wrote."""
    names = set[str]()
    for rows in session.scalars(select(Event.rows).where(Event.digest == digest)):
        names.update(rows_written(rows))
    return {name for name in names if name.startswith(f"{table.__tablename__}/")}


class Trail:
    """All events after a head."""

    def __init__(self, session: Session, after: ChainHead = EMPTY, marks: Collection[int] = ()) -> None:
        """`marks`: the numbers of events whose chain hashes are to be kept."""
        self.broken: list[str] = []
        """Events that don't follow the one before, and those that don't say which rows they wrote."""
        self.marked = {after.event: after.chain}
        self.newest: dict[str, int] = {}
        """The number of the newest event of each plan, by digest."""
        # Each row's last event and its hash by then. Two dictionaries: a million pairs would keep the garbage collector
        # busy.
        self._hashes: dict[str, str] = {}
        self._events: dict[str, int] = {}
        self.head = after
        wanted = frozenset(marks)
        columns = Event.hashed_column_names()
        hashes = hashes_of(columns, fractions=False)
        place, kind, plan, written = map(columns.index, ("id", "kind", "digest", "rows"))
        for part in _stored(session, Event, (*columns, "chain"), Event.id > after.event):
            # By column: a call per event would double the time.
            *values, chains = zip(*part, strict=True)
            numbers = values[place]
            links = (self.head.chain, *map(str, chains))
            expected = list(map(chained, links, hashes(zip(*values, strict=True))))
            if expected != list(chains):
                those_before = (self.head.event, *numbers[:-1])
                of_each = zip(numbers, values[kind], those_before, expected, chains, strict=True)
                self.broken += (_broken(*event) for *event, link, stored in of_each if link != stored)
            self.newest.update(zip(values[plan], numbers, strict=True))
            self.marked.update((number, links[numbers.index(number) + 1]) for number in wanted.intersection(numbers))
            self.head = ChainHead(numbers[-1], links[-1])
            for number, rows in zip(numbers, map(str, values[written]), strict=True):
                try:
                    for name, row_hash in _WRITTEN_ROWS.decode(rows).items():
                        self._hashes[name] = row_hash
                        self._events[name] = number
                except msgspec.MsgspecError:
                    self.broken.append(f"event {number} does not say which rows it wrote: '{rows[:40]}'")

    def unlike(self, rows: Iterable[NameAndHash]) -> Iterator[str]:
        """Rows that differ from what the last event about them recorded; all count as seen."""
        for name, row_hash in rows:
            written = self._hashes.pop(name, None)
            if written is None:
                yield f"{name} was added by no event"
            elif row_hash != written:
                yield f"{name} is not as event {self._events[name]} left it"

    def unseen(self, among: Collection[str] | None = None) -> Iterator[str]:
        """Rows that events wrote and that were not seen: all of them, or those with these names."""
        for name in self._hashes if among is None else sorted(self._hashes.keys() & among):
            yield f"{name}, which event {self._events[name]} wrote, was removed"


def _broken(event: int, kind: str, before: int) -> str:
    """Why the chain breaks here. A gap that the chain spans isn't a break: it dates from before the chain existed."""
    if event != before + 1:
        return f"event {before + 1} is missing: the next event has number {event}"
    return f"event {event} ('{kind}') was changed, moved or inserted: its chain hash differs"
