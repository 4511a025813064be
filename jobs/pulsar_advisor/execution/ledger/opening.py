"""Opens a ledger: locates it, creates or migrates its database, and chooses the clock it goes by."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.exc import DBAPIError, NoSuchModuleError
from upath import UPath

from pulsar_advisor.execution.ledger.address import ledger_url, without_secrets
from pulsar_advisor.execution.ledger.ledger import READS, VERSIONS, WRITE_LOCK, Ledger, named_errors, sqlstate
from pulsar_advisor.execution.ledger.migrations import HEAD
from pulsar_advisor.execution.ledger.runs import LEASE_MS, may_work
from pulsar_advisor.model.errors import StorageError, UsageError, refusal
from pulsar_advisor.storage.process import Process
from pulsar_advisor.storage.store_clock import carried_on, store_time

ABANDONED_MS: Final = 30_000
"""PostgreSQL ends a transaction that is idle for this long; ours last milliseconds."""

_LIBPQ: Final = {
    "client_encoding": "utf8",
    "connect_timeout": "10",
    "tcp_user_timeout": "30000",
    "keepalives_idle": "20",
    "keepalives_interval": "5",
    "keepalives_count": "3",
}
"""Options of libpq: text comes back as it was hashed, whatever encoding the database or role prefers, and a PostgreSQL
that the network has lost is given up within a minute (s; `tcp_user_timeout` in ms).

Without these limits a run waits for a quarter of an hour and more, maybe with the cluster's own balancer off.
"""

_SQLITE_HEADER: Final = b"SQLite format 3\0"
_OLDEST_SQLITE: Final = (3, 35)
_NOT_PERMITTED: Final = "42501"
"""PostgreSQL's `insufficient_privilege`."""


def open_ledger(url: str, now_ms: Callable[[], int] | None = None) -> Ledger:
    """Open a ledger (SQLite, PostgreSQL) by its address, see `ledger_url`; create or upgrade its tables.

    Its clock is that of the database server or file system that holds it, the same for every host; `now_ms` is for
    tests. Raises `UsageError` if the URL is not one, `StorageError` if the database can't be used, is from a newer
    release, or must be migrated while a process carries out a run.
    """
    parsed = ledger_url(url)
    try:
        if _is_file(parsed):
            _require_sqlite()
            _make_private(Path(str(parsed.database)))
        driver = parsed.get_driver_name()
        options = _LIBPQ if driver.startswith("psycopg") else {}
        # A pooler may run each transaction on another server, without what was prepared on the first.
        arguments = {"prepare_threshold": None} if driver == "psycopg" else {}
        # Options in the URL count. The ping, as a page may reuse a connection hours later.
        engine = create_engine(
            parsed.set(query={**options, **parsed.query}), pool_pre_ping=True, connect_args=arguments
        )
    except (NoSuchModuleError, ImportError) as error:
        raise UsageError(
            f"no driver for ledger {without_secrets(parsed)}: {error}; use sqlite:///FILE or postgresql://…"
        ) from error
    except ValueError as error:
        raise UsageError(f"ledger {without_secrets(parsed)}: an option in its URL has an invalid value") from error
    except OSError as error:
        raise StorageError(
            f"can't open or create ledger {without_secrets(parsed)}: {refusal(error)}: check its disk and "
            "permissions; to read a ledger that can't be written, copy it first"
        ) from error
    if engine.dialect.name == "sqlite":
        _make_sqlite_transactional(engine)
    if engine.dialect.name == "postgresql":
        _make_postgresql_transactional(engine)
    now_ms = now_ms or carried_on(lambda: _store_time_ms(engine))
    try:
        _bring_up_to_date(engine, now_ms)
    except BaseException:
        engine.dispose()  # not only once it is garbage: whoever waits for a ledger tries again every few seconds
        raise
    return Ledger(engine, now_ms)


def _bring_up_to_date(engine: Engine, now_ms: Callable[[], int]) -> None:
    """Create or upgrade the tables, if they aren't this release's."""
    with named_errors(engine):
        # Takes no lock: pages, and runs that wait, ask every few seconds.
        with engine.connect().execution_options(**{READS: True}) as connection:
            if _revision(connection) == HEAD:
                return
        try:
            with engine.begin() as connection:
                _upgrade(connection, now_ms)
        except DBAPIError as error:
            if sqlstate(error) != _NOT_PERMITTED:
                raise
            raise StorageError(
                f"ledger {without_secrets(engine.url)} must be migrated, which its user may not do: open it once as "
                "the owner of its tables (`pulsar-advisor audit verify --ledger …`)"
            ) from error


def is_current(ledger: Ledger) -> bool:
    """Whether an open ledger's tables are still this release's: another release may have migrated them since."""
    with ledger.reading() as session:
        return _revision(session.connection()) == HEAD


def ledger_exists(url: str) -> bool:
    """False only if a SQLite file is missing; other ledgers are checked when opened.

    Raises `UsageError` if the URL is not one.
    """
    parsed = ledger_url(url)
    return not _is_file(parsed) or Path(str(parsed.database)).exists()


@contextmanager
def ledger_if_any(url: str | None) -> Iterator[Ledger | None]:
    """The ledger at an address, open within the block; None if there isn't one. It is never created."""
    if url is None or not ledger_exists(url):
        yield None
        return
    with closing(open_ledger(url)) as ledger:
        yield ledger


def _is_file(url: URL) -> bool:
    return url.get_backend_name() == "sqlite"


def _store_time_ms(engine: Engine) -> int:
    """The time (epoch milliseconds) of the database server, or of the file system that holds the file.

    If the file system is read-only, nothing will be recorded, so this machine's clock will do.
    """
    if engine.dialect.name == "postgresql":
        with named_errors(engine), engine.connect() as connection:
            return int(connection.execute(text("SELECT extract(epoch FROM clock_timestamp()) * 1000")).scalar_one())
    folder = Path(str(engine.url.database)).parent
    if not _is_file(engine.url) or not os.access(folder, os.W_OK):
        return time.time_ns() // 1_000_000
    return round(1000 * store_time(UPath(folder)).timestamp())


def _require_sqlite() -> None:
    """Raises `UsageError` if this Python comes with an SQLite that lacks `RETURNING`, which runs need."""
    import sqlite3  # a Python may have none

    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        raise UsageError(
            f"this Python has SQLite {sqlite3.sqlite_version}, too old for a ledger in a file, which needs "
            f"{'.'.join(map(str, _OLDEST_SQLITE))}: use another Python, or a ledger in PostgreSQL"
        )


def _make_private(file: Path) -> None:
    """Restrict the ledger's file to its owner, and create it if missing.

    A group with write permission keeps its access: it was granted on purpose, to share the ledger. A folder or another
    kind of file, named by mistake, is left alone; the database then says what is wrong.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    target = file.resolve()  # whose name the journal has
    if (journal := target.with_name(f"{target.name}-journal")).is_fifo():  # SQLite would wait for its writer for ever
        raise OSError(errno.EINVAL, f"{journal} is a pipe; remove it")
    if not file.exists():
        file.touch(mode=0o600)
    if not file.is_file():
        return
    with file.open("rb") as content:
        if content.read(len(_SQLITE_HEADER)) not in (b"", _SQLITE_HEADER):
            return
    mode = stat.S_IMODE(file.stat().st_mode)
    private = mode & (0o660 if mode & stat.S_IWGRP else 0o600)
    if private != mode and file.stat().st_uid == os.getuid():
        try:
            file.chmod(private)
        except OSError as error:
            if error.errno != errno.EROFS:  # on a read-only disk it stays as it is
                raise


def _make_sqlite_transactional(engine: Engine) -> None:
    # Python's driver opens transactions late, and none before CREATE TABLE. With BEGIN IMMEDIATE, two processes that
    # open a new ledger, or write to an old one, wait for each other instead of failing halfway. Readers don't wait.
    @event.listens_for(engine, "connect")
    def configure(connection, _record):  # type: ignore[no-untyped-def]
        connection.isolation_level = None
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA busy_timeout = 30000")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        reads = connection.get_execution_options().get(READS)
        connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


def _make_postgresql_transactional(engine: Engine) -> None:
    # For each transaction, as a pooler may run the next one on another server, and this server for somebody else; and
    # whatever the database's or role's defaults are.
    #
    # A reader sees one moment: an audit during a run would find rows newer than the events it has read. A writer sees
    # what was committed while it waited for its turn. A process that is suspended during a write, or whose host is
    # lost, keeps its rows locked until the server notices, which may take hours with TCP: until then, no other process
    # could take over its run. With fewer digits or other quotes than PostgreSQL's own, an audit would find changes.
    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        reads = connection.get_execution_options().get(READS)
        connection.exec_driver_sql(
            f"SET TRANSACTION ISOLATION LEVEL {'REPEATABLE READ' if reads else 'READ COMMITTED'};"
            f"SET LOCAL idle_in_transaction_session_timeout = {ABANDONED_MS};"
            f"SET LOCAL lock_timeout = {2 * ABANDONED_MS};"
            "SET LOCAL extra_float_digits = 1; SET LOCAL quote_all_identifiers = off"
        )


def _revision(connection: Connection) -> str | None:
    """The newest revision of the tables, empty if they don't say; None if there are none yet."""
    if not inspect(connection).has_table(VERSIONS):
        return None
    return str(connection.scalar(text(f"SELECT version_num FROM {VERSIONS}")) or "")


def _upgrade(connection: Connection, now_ms: Callable[[], int]) -> None:
    from pulsar_advisor.execution.ledger.upgrading import upgrade

    if connection.dialect.name == "postgresql":
        connection.execute(WRITE_LOCK)  # a writer of the earlier release may be about to start a run
    revision = _revision(connection)
    if revision == "":
        raise StorageError(
            f"ledger {without_secrets(connection.engine.url)} does not say which revision its tables are "
            f"({VERSIONS} is empty): put back a copy of it"
        )
    if revision is None and _is_file(connection.engine.url) and (others := inspect(connection).get_table_names()):
        raise StorageError(
            f"ledger {without_secrets(connection.engine.url)} is a database of something else: it has a table "
            f"{others[0]}; name a ledger, or a new file"
        )
    if revision is not None and revision < HEAD:
        _require_no_held_run(connection, now_ms)
    upgrade(connection)


def _require_no_held_run(connection: Connection, now_ms: Callable[[], int]) -> None:
    """Raise `StorageError` if a process of an earlier release may be carrying out a run.

    It would go on writing as the earlier tables demand: events that break the chain for good, so that no approval
    before them could be proved, and none of its runs resumed.
    """
    for run in connection.execute(text("SELECT * FROM runs WHERE state = 'active'")).mappings():
        # The first revisions have no columns that identify the process.
        holder = Process(run["host"], run["pid"], run.get("process_namespace", ""), run.get("process_began", ""))
        if may_work(holder, run["heartbeat_at_ms"], now_ms()):
            raise StorageError(
                f"ledger {without_secrets(connection.engine.url)} must be migrated, but run {run['id']} is still held "
                f"by process {run['pid']} on {run['host']}, which is of an earlier release: wait until it ends, or end "
                f"it with that release; if it crashed, try again {LEASE_MS // 1000} s after it was last active"
            )
