"""The events of a ledger, followed once from first to last, and what they say about its rows.

A ledger of years has a million events, which would take gigabytes as objects of SQLAlchemy's: rows pass by as plain
mappings, and what stays of them is one hash for each row that they wrote.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import msgspec
from sqlalchemy import inspect, select
from sqlalchemy.orm import Session

from pulsar_advisor.execution.ledger.chain import START, ChainHead, Value, chained, row_hash
from pulsar_advisor.execution.ledger.tables import Base, Event

EMPTY: Final = ChainHead(0, START)

_AT_A_TIME: Final = 5_000
_WRITTEN_ROWS: Final = msgspec.json.Decoder(dict[str, str])


class Row(Protocol):
    """A row of any table, with what its hash is taken of."""

    @property
    def name(self) -> str:
        """`<table>/<primary key>`."""

    @property
    def hashed_columns(self) -> dict[str, Value]:
        """By column name."""


@dataclass(slots=True)
class StoredRow:
    """A row as the database holds it."""

    name: str
    hashed_columns: dict[str, Value]


def stored_rows(session: Session, table: type[Base]) -> Iterator[StoredRow]:
    """The rows of a table in the order of their keys, a few at a time in memory."""
    (key,) = (column.name for column in inspect(table).primary_key)
    for row in _stored(session, table):
        name = f"{table.__tablename__}/{row[key]}"
        for column in table._not_hashed:
            del row[column]
        yield StoredRow(name, row)


def _stored(session: Session, table: type[Base], *where: Any) -> Iterator[dict[str, Value]]:
    columns = [attribute.columns[0] for attribute in inspect(table).column_attrs]
    names = [column.name for column in columns]
    query = select(*columns).where(*where).order_by(*inspect(table).primary_key)
    for part in session.connection().execute(query.execution_options(yield_per=_AT_A_TIME)).partitions():
        for values in part:
            yield dict(zip(names, values, strict=True))


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
        self._written: dict[str, _Written] = {}
        wanted, number, previous = frozenset(marks), after.event, after.chain
        for event in _stored(session, Event, Event.id > after.event):
            chain = str(event.pop("chain"))
            if chained(previous, event) != chain:
                self.broken.append(_broken(event, number))
            previous, number = chain, _number(event)
            if number in wanted:
                self.marked[number] = chain
            rows = str(event["rows"])
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
            elif row_hash(row.hashed_columns) != written.row_hash:
                yield f"{row.name} is not as event {written.event} left it"

    def unseen(self) -> Iterator[str]:
        """Rows that events wrote and that were not seen."""
        for name, written in self._written.items():
            yield f"{name}, which event {written.event} wrote, was removed"


def _number(event: Mapping[str, Value]) -> int:
    number = event["id"]
    assert isinstance(number, int), "the key of the table"
    return number


def _broken(event: Mapping[str, Value], number: int) -> str:
    """Gaps that the chain spans date from before the chain existed."""
    if event["id"] != number + 1:
        return f"event {number + 1} is missing: the next one there is has number {event['id']}"
    return f"event {event['id']} ('{event['kind']}') was changed, moved or put in: its chain hash is another"
