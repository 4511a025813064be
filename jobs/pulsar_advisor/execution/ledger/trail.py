"""The events of a ledger, followed once from first to last, and what they say about its rows.

A ledger of years has a million events, which would take gigabytes as objects of SQLAlchemy's: rows pass by as plain
values, and what stays of them is one hash for each row that they wrote.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol

import msgspec
from sqlalchemy import ColumnElement, inspect, select
from sqlalchemy.orm import Session

from pulsar_advisor.execution.ledger.chain import START, ChainHead, chained, hash_of_rows
from pulsar_advisor.execution.ledger.tables import Base, Event

EMPTY: Final = ChainHead(0, START)

_AT_A_TIME: Final = 5_000
_WRITTEN_ROWS: Final = msgspec.json.Decoder(dict[str, str])


class Row(Protocol):
    """A row of any table."""

    @property
    def name(self) -> str:
        """`<table>/<primary key>`."""

    @property
    def hash(self) -> str:
        """`row_hash` of its columns."""


class StoredRow(NamedTuple):
    """A row as the database holds it."""

    name: str
    hash: str


def stored_rows(session: Session, table: type[Base]) -> Iterator[StoredRow]:
    """The rows of a table in the order of their keys, a few at a time in memory."""
    columns = table.hashed_column_names()
    hashed = hash_of_rows(columns)
    (key,) = (columns.index(column.name) for column in inspect(table).primary_key)
    for values in _stored(session, table, columns):
        yield StoredRow(f"{table.__tablename__}/{values[key]}", hashed(values))


def _stored(
    session: Session, table: type[Base], columns: Iterable[str], *where: ColumnElement[bool]
) -> Iterator[Sequence[Any]]:
    query = select(*(table.__table__.c[column] for column in columns)).where(*where)
    ordered = query.order_by(*inspect(table).primary_key).execution_options(yield_per=_AT_A_TIME)
    for part in session.connection().execute(ordered).partitions():
        yield from part


class _Written(msgspec.Struct, gc=False):
    """What the last event that wrote a row left of it. A million of these would keep the garbage collector busy."""

    row_hash: str
    event: int


_NEVER_WRITTEN: Final = _Written("", 0)


class Trail:
    """All events after a head."""

    def __init__(self, session: Session, after: ChainHead = EMPTY, marks: Collection[int] = ()) -> None:
        """`marks`: the numbers of events whose chain hashes are to be kept."""
        self.broken: list[str] = []
        """Events that don't follow the one before, and those that don't say which rows they wrote."""
        self.marked = {after.event: after.chain}
        self.newest: dict[str, int] = {}
        """The number of the newest event of each plan, by digest."""
        self._written: dict[str, _Written] = {}
        wanted, number, previous = frozenset(marks), after.event, after.chain
        columns = Event.hashed_column_names()
        hashed = hash_of_rows(columns)
        place, kind, plan, written = map(columns.index, ("id", "kind", "digest", "rows"))
        for event in _stored(session, Event, (*columns, "chain"), Event.id > after.event):
            *row, chain = event
            if chained(previous, hashed(row)) != chain:
                self.broken.append(_broken(row[place], row[kind], number))
            previous, number = str(chain), row[place]
            self.newest[row[plan]] = number
            if number in wanted:
                self.marked[number] = previous
            rows = str(row[written])
            try:
                for name, digest in _WRITTEN_ROWS.decode(rows).items():
                    self._written[name] = _Written(digest, number)
            except msgspec.MsgspecError:
                self.broken.append(f"event {number} does not say which rows it wrote: '{rows[:40]}'")
        self.head: Final = ChainHead(number, previous)

    def unlike(self, rows: Iterable[Row]) -> Iterator[str]:
        """Rows that differ from what the last event that wrote them left; they count as seen."""
        for row in rows:
            written = self._written.pop(row.name, _NEVER_WRITTEN)
            if written is _NEVER_WRITTEN:
                yield f"{row.name} was added by no event"
            elif row.hash != written.row_hash:
                yield f"{row.name} is not as event {written.event} left it"

    def unseen(self) -> Iterator[str]:
        """Rows that events wrote and that were not seen."""
        for name, written in self._written.items():
            yield f"{name}, which event {written.event} wrote, was removed"


def _broken(event: int, kind: str, before: int) -> str:
    """Gaps that the chain spans date from before the chain existed."""
    if event != before + 1:
        return f"event {before + 1} is missing: the next one there is has number {event}"
    return f"event {event} ('{kind}') was changed, moved or put in: its chain hash is another"
