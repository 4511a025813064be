"""An open ledger: a database of plans, proposals, approvals, runs and steps, and the chain of its events.

Nothing in this package talks to a cluster. Each function that takes a `Ledger` is one transaction; treat the rows it
returns as read-only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import msgspec
from sqlalchemy import BigInteger, Engine, Row, Select, cast, func, select, text, update
from sqlalchemy.exc import DatabaseError, OperationalError, SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker

from pulsar_advisor.execution.ledger.address import without_secrets
from pulsar_advisor.execution.ledger.chain import START, ChainHead, chained
from pulsar_advisor.execution.ledger.migrations import HEAD
from pulsar_advisor.execution.ledger.tables import Base, Event, PlanSummary
from pulsar_advisor.execution.telemetry import log_event
from pulsar_advisor.model.errors import StorageError
from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor.model.text.reader import reader

READS: Final = "only reads"
"""Option of a transaction."""
VERSIONS: Final = "alembic_version"
"""The table that holds the revision of the tables."""
_ADDED: Final = "events to be logged once they are committed"

WRITE_LOCK: Final = text("SELECT pg_advisory_xact_lock(7074216)")  # arbitrary, but the same for every advisor
"""What a writer to a ledger in PostgreSQL begins with, and a migration: one at a time, as in SQLite."""

_READ_ONLY: Final = "25006"
_LOCKED: Final = "55P03"
"""PostgreSQL's `read_only_sql_transaction`, as of a standby, and `lock_not_available`."""
_KEPT: Final = "what it has recorded is kept, and a run that ended because of this can be resumed"

_NEWEST: Final = 1000

_Kind = TypeVar("_Kind")


@contextmanager
def named_errors(engine: Engine) -> Iterator[None]:
    """Turn the database's errors within the block into a `StorageError` that names the ledger without its secrets."""
    place = without_secrets(engine.url)
    try:
        yield
    except SQLAlchemyError as error:
        cause = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        raise StorageError(
            f"ledger {place} can't be used: {cause}{_todo(error, cause, engine.dialect.name)}"
        ) from error


def sqlstate(error: SQLAlchemyError) -> str | None:
    """PostgreSQL's code of an error, whatever the driver calls it; None for an error that isn't the server's."""
    cause = getattr(error, "orig", None)
    return getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)


def _todo(error: SQLAlchemyError, cause: str, database: str) -> str:
    if type(error) is DatabaseError and database == "sqlite":  # what it raises for a file that is spoiled
        return ": put back a copy of it"
    code = sqlstate(error)
    if code == _READ_ONLY:
        return f": name the server and the user that may write; {_KEPT}"
    if not isinstance(error, OperationalError):
        return ""
    if "is locked" in cause or code == _LOCKED:
        return f": another process keeps it locked, so try again, or end that one; {_KEPT}"
    if database == "sqlite":
        return f": check its disk's space and the permissions of the file and its folder; {_KEPT}"
    return f": check its server and its address; {_KEPT}"


class Ledger:
    """The record of plans and their execution. Create one with `open_ledger`."""

    def __init__(self, engine: Engine, now_ms: Callable[[], int]) -> None:
        self._engine = engine
        self._sessions = sessionmaker(engine, expire_on_commit=False)
        self.now_ms = now_ms

    def close(self) -> None:
        """Close the database."""
        self._engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A read transaction; on SQLite, any number of them at once."""
        with self._transaction(READS) as session:
            yield session

    def all(self, query: Select[_Kind]) -> Sequence[_Kind]:
        """What a query finds, in a read transaction of its own."""
        with self.reading() as session:
            return session.scalars(query).all()

    @contextmanager
    def _transaction(self, *options: str) -> Iterator[Session]:
        with named_errors(self._engine), self._sessions.begin() as session:
            session.connection(execution_options=dict.fromkeys(options, True))
            yield session
        for added in session.info.pop(_ADDED, ()):
            log_event(added)

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """A write transaction; one at a time, since each event follows the one before it.

        Raises `StorageError` if another release has migrated the ledger since it was opened: rows without that
        release's columns would break the chain for good.
        """
        self.now_ms()  # asked within, the server would have to answer on a second connection, which a pool may lack
        with self._transaction() as session:
            if self._engine.dialect.name == "postgresql":
                session.execute(WRITE_LOCK)
            if session.scalar(text(f"SELECT version_num FROM {VERSIONS}")) != HEAD:
                raise StorageError(
                    f"a newer release has migrated ledger {without_secrets(self._engine.url)} while this process had "
                    "it open: nothing was recorded; try again with that release"
                )
            yield session

    def add_event(
        self,
        session: Session,
        digest: str,
        kind: str,
        detail: str,
        rows: Iterable[Base] = (),
        run: int | None = None,
        step: str | None = None,
    ) -> None:
        """Add an event to the chain; `rows` are written with it."""
        detail = plain(detail, keep="\n")  # topics, reasons and comments may contain anything
        session.flush()  # assigns keys to new rows
        hashes = {row.name: row.hash for row in rows}
        last = _last_event(session)
        added = Event(
            id=last.event + 1,
            at_ms=self.now_ms(),
            digest=digest,
            run_id=run,
            step_id=step,
            kind=kind,
            detail=detail,
            rows=json.dumps(hashes, sort_keys=True),
        )
        added.chain = chained(last.chain, added.hash)
        session.add(added)
        session.flush()
        session.execute(update(PlanSummary).where(PlanSummary.digest == digest).values(last_event=added.id))
        session.info.setdefault(_ADDED, []).append(added)

    def head(self) -> ChainHead:
        """The last event."""
        with self.reading() as session:
            return _last_event(session)

    def latest_ms(self) -> int:
        """The current time, or the latest of the last events' times if the clock was set back since."""
        newest, now_ms = select(Event.at_ms).order_by(Event.id.desc()).limit(_NEWEST).subquery(), self.now_ms()
        with self.reading() as session:
            # To SQLite, text and bytes are greater than any number.
            return max(now_ms, session.scalar(select(func.max(cast(newest.c.at_ms, BigInteger)))) or 0)

    def events(
        self, digest: str, run: int | None = None, before: int | None = None, count: int | None = None
    ) -> Sequence[Event]:
        """The events of a plan, oldest first; optionally of one run, before a number, or only the newest."""
        query = select(Event).where(Event.digest == digest).order_by(Event.id.desc()).limit(count)
        if run is not None:
            query = query.where(Event.run_id == run)
        if before is not None:
            query = query.where(Event.id < before)
        return self.all(query)[::-1]


def recorded(event: Event | Row[Any], kind: type[_Kind], /, **known: str | int) -> _Kind:
    """What an event of a guard or a roll says in JSON, with what is `known` of it as other fields.

    Raises `StorageError` for what no release writes.
    """
    try:
        return msgspec.convert({**msgspec.json.decode(str(event.detail), type=dict), **known}, kind)
    except msgspec.MsgspecError as error:
        raise StorageError(f"event {event.id} ('{event.kind}') can't be read ({error}): {reader().audit}") from error


def _last_event(session: Session) -> ChainHead:
    last = session.execute(select(Event.id, Event.chain).order_by(Event.id.desc()).limit(1)).first()
    return ChainHead(last.id, last.chain) if last else ChainHead(0, START)
