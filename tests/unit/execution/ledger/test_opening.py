from __future__ import annotations

import errno
import logging
import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DatabaseError, InternalError, OperationalError

from ledgers import by_revisions
from pulsar_advisor.execution.consent.approval import propose
from pulsar_advisor.execution.ledger import upgrading
from pulsar_advisor.execution.ledger.approvals import approvals_of_plan
from pulsar_advisor.execution.ledger.audit import audit
from pulsar_advisor.execution.ledger.ledger import Ledger, named_errors
from pulsar_advisor.execution.ledger.migrations import HEAD
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.execution.ledger.proposals import proposals_of_plan
from pulsar_advisor.execution.ledger.runs import LEASE_MS, abort_runs, runs_of_plan
from pulsar_advisor.execution.ledger.steps import steps_of_run
from pulsar_advisor.execution.ledger.tables import Base
from pulsar_advisor.execution.ledger.upgrading import revisions
from pulsar_advisor.execution.throttle import ApplyThrottle
from pulsar_advisor.model.errors import StorageError, UsageError
from pulsar_advisor.model.plans.sealed import digest_of
from unit.execution.actors import ALICE
from unit.execution.doubles import make_plan, unload_step

PLAN = make_plan([unload_step()])
DIGEST = digest_of(PLAN)


@pytest.fixture(autouse=True)
def tables_are_made_by_the_revisions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrading, "upgrade", by_revisions)


def test_the_migrations_make_exactly_the_tables(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.sqlite"
    open_ledger(url).close()
    with create_engine(url).connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []


def test_the_newest_revision_is_named() -> None:
    with create_engine("sqlite://").connect() as connection:
        assert ScriptDirectory.from_config(revisions(connection)).get_current_head() == HEAD


def test_an_sqlite_that_is_too_old_is_named_and_no_file_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    monkeypatch.setattr(sqlite3, "sqlite_version", "3.34.1")
    with pytest.raises(UsageError, match=r"this Python has SQLite 3\.34\.1, too old .* needs 3\.35"):
        open_ledger(f"sqlite:///{tmp_path}/ledger.sqlite")
    assert not (tmp_path / "ledger.sqlite").exists()


def test_a_ledger_is_migrated_once_however_often_it_is_opened(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "alembic")
    url = f"sqlite:///{tmp_path}/ledger.sqlite"
    open_ledger(url).close()
    assert any("Running upgrade" in message for message in caplog.messages)
    caplog.clear()
    with create_engine(url).connect() as other:
        other.execute(text("BEGIN IMMEDIATE"))  # opening a ledger doesn't wait for a writer
        with closing(open_ledger(url)) as ledger:
            assert proposals_of_plan(ledger, DIGEST) == []
    assert caplog.messages == []


def test_an_approval_of_an_earlier_release_accepts_no_low_confidence(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.sqlite"
    with create_engine(url).begin() as connection:
        command.upgrade(revisions(connection), "0001")
        connection.execute(text("INSERT INTO plans VALUES (:digest, 'demo', 'live', '', '', 0)"), {"digest": DIGEST})
        connection.execute(
            text("INSERT INTO approvals VALUES (1, :digest, 'bob', 'airflow', 0, 1, '', 1, 1, NULL)"),
            {"digest": DIGEST},
        )
    [approval] = approvals_of_plan(open_ledger(url), DIGEST)
    assert approval.consents == {"splits", "worse"}


def test_a_ledger_can_be_opened_again_and_by_many_at_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/new/ledger.sqlite"
    threads = [threading.Thread(target=lambda: propose(open_ledger(url), PLAN, ALICE)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(proposals_of_plan(open_ledger(url), DIGEST)) == 4


def test_a_ledger_in_a_folder_that_can_only_be_read_has_a_clock_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_ledger(f"sqlite:///{tmp_path}/ledger.sqlite")) as ledger:

        def refuse(**_: object) -> None:
            raise PermissionError("read-only")

        monkeypatch.setattr("tempfile.TemporaryFile", refuse)
        with pytest.raises(StorageError, match="can't write to"):  # a full disk stops whoever could write
            ledger.now_ms()
        monkeypatch.setattr("os.access", lambda *_: False)
        assert ledger.now_ms() > 0


def test_a_new_ledger_is_for_its_user_alone(tmp_path: Path) -> None:
    open_ledger(f"sqlite:///{tmp_path}/ledger.sqlite").close()
    assert (tmp_path / "ledger.sqlite").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("before", "after"), [(0o644, 0o600), (0o640, 0o600), (0o664, 0o660), (0o660, 0o660)])
def test_others_are_kept_out_and_a_group_that_writes_is_not(tmp_path: Path, before: int, after: int) -> None:
    file = tmp_path / "ledger.sqlite"
    file.touch()
    file.chmod(before)
    open_ledger(f"sqlite:///{file}").close()
    assert file.stat().st_mode & 0o777 == after


def test_where_nothing_can_be_written_a_ledger_that_others_can_read_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a copy on a disk that is mounted to be read only."""

    def refused(_file: Path, _mode: int) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    file = tmp_path / "ledger.sqlite"
    open_ledger(f"sqlite:///{file}").close()
    file.chmod(0o444)
    monkeypatch.setattr(Path, "chmod", refused)
    with closing(open_ledger(f"sqlite:///{file}")) as ledger:
        assert ledger.head().event >= 0


def test_of_a_ledger_that_is_kept_from_a_user_it_is_said_whose_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "ledger.sqlite"

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(file))

    monkeypatch.setattr(Path, "touch", refused)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(StorageError, match=f"Permission denied: {tmp_path} belongs to "):
        open_ledger(f"sqlite:///{file}")


def test_a_folder_or_another_file_named_by_mistake_keeps_its_permissions(tmp_path: Path) -> None:
    folder, file = tmp_path / "root", tmp_path / "notes"
    folder.mkdir()
    folder.chmod(0o755)
    file.write_text("not a ledger")
    file.chmod(0o644)
    for path, mode in ((folder, 0o755), (file, 0o644)):
        with pytest.raises(StorageError, match="can't be used"):
            open_ledger(f"sqlite:///{path}")
        assert path.stat().st_mode & 0o777 == mode


@pytest.fixture
def earlier(tmp_path: Path) -> str:
    """A ledger as a release before the hash chain left it: one plan done, another half-way, an approval withdrawn."""
    script = (Path(__file__).parents[3] / "data" / "ledger" / "revision-0002.sql").read_text()
    with closing(sqlite3.connect(tmp_path / "earlier.sqlite")) as connection:
        connection.executescript(script)
    return f"sqlite:///{tmp_path}/earlier.sqlite"


def test_a_ledger_of_an_earlier_release_is_chained_as_it_was_found(earlier: str) -> None:
    with closing(open_ledger(earlier)) as ledger:
        assert (audit(ledger).findings, ledger.head().event) == ((), 17)
        done, half = (runs_of_plan(ledger, digest)[0] for digest in ledger_digests(ledger))
        assert (done.state, half.state) == ("done", "stopped")
        (first, *_) = approvals_of_plan(ledger, done.digest)
        assert (first.withdrawn_at_ms is None, first.throttle) == (False, ApplyThrottle())


def test_an_approval_of_an_earlier_release_can_be_withdrawn(earlier: str) -> None:
    with closing(open_ledger(earlier)) as ledger:
        half = ledger_digests(ledger)[1]
        assert [step.state for step in steps_of_run(ledger, runs_of_plan(ledger, half)[0].id).values()] == [
            "confirmed",
            "pending",
        ]
        abort_runs(ledger, half, ALICE)
        assert audit(ledger).findings == ()


HEARD_MS = 1_795_250_530_000
"""The last sign of life of the earlier ledger's run that is half-way."""


def test_a_process_that_had_a_ledger_open_while_another_release_migrated_it_writes_nothing_more(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.sqlite"
    with closing(open_ledger(url)) as ledger:
        with create_engine(url).begin() as of_a_newer_release:
            of_a_newer_release.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        with pytest.raises(StorageError, match=r"a newer release has migrated ledger .* try again with that release"):
            propose(ledger, PLAN, ALICE)
        assert ledger.head().event == 0


def test_a_ledger_is_not_migrated_under_a_run_of_an_earlier_release(earlier: str) -> None:
    with create_engine(earlier).begin() as connection:
        connection.execute(text("UPDATE runs SET state = 'active' WHERE id = 2"))
    with pytest.raises(StorageError, match=r"must be migrated, but run 2 is still held by process 1401 on vm"):
        open_ledger(earlier, lambda: HEARD_MS + LEASE_MS)
    with create_engine(earlier).connect() as connection:
        assert MigrationContext.configure(connection).get_current_revision() == "0002"
    with closing(open_ledger(earlier, lambda: HEARD_MS + LEASE_MS + 1)) as ledger:
        assert audit(ledger).findings == ()


def ledger_digests(ledger: Ledger) -> list[str]:
    with ledger.reading() as session:
        return list(session.scalars(text("SELECT digest FROM plans ORDER BY recorded_at_ms")))


@pytest.mark.parametrize("url", ["", "nonsense"])
def test_a_ledger_url_must_be_one(url: str) -> None:
    with pytest.raises(UsageError, match="is not a ledger URL"):
        open_ledger(url)


def test_a_file_that_is_no_ledger_is_named(tmp_path: Path) -> None:
    (tmp_path / "ledger.sqlite").write_text("not a database, but long enough to be taken for one" * 100)
    with pytest.raises(StorageError, match=r"ledger sqlite:///.*ledger\.sqlite can't be used: file is not a database"):
        open_ledger(f"sqlite:///{tmp_path}/ledger.sqlite")


def test_a_pipe_in_the_place_of_a_ledger_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ledger.sqlite")
    with pytest.raises(StorageError, match="can't be used: disk I/O error"):
        open_ledger(f"sqlite:///{tmp_path}/ledger.sqlite")


@pytest.mark.parametrize("is_linked", [False, True])
def test_a_pipe_in_the_place_of_a_ledgers_journal_is_refused(tmp_path: Path, *, is_linked: bool) -> None:
    if is_linked:
        (tmp_path / "there").mkdir()
        (tmp_path / "ledger.sqlite").symlink_to(tmp_path / "there" / "ledger.sqlite")
    os.mkfifo(tmp_path / ("there" if is_linked else "") / "ledger.sqlite-journal")
    with pytest.raises(StorageError, match=r"ledger\.sqlite-journal is a pipe; remove it"):
        open_ledger(f"sqlite:///{tmp_path}/ledger.sqlite")


def test_a_database_of_something_else_such_as_a_link_in_the_root_leads_to_gets_no_tables(tmp_path: Path) -> None:
    theirs = create_engine(f"sqlite:///{tmp_path}/theirs.db")
    with theirs.begin() as connection:
        connection.execute(text("CREATE TABLE theirs (id INTEGER)"))
    (tmp_path / "ledger.sqlite").symlink_to(tmp_path / "theirs.db")
    with pytest.raises(StorageError, match=r"ledger\.sqlite is a database of something else: it has a table theirs"):
        open_ledger(f"sqlite:///{tmp_path}/ledger.sqlite")
    with theirs.connect() as connection:
        assert connection.execute(text("SELECT name FROM sqlite_master")).scalars().all() == ["theirs"]


def test_a_ledger_of_a_newer_release_is_left_alone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.sqlite"
    open_ledger(url).close()
    with create_engine(url).begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StorageError, match=r"by a newer release .*'9999'.*: use that .*, or restore .* backup"):
        open_ledger(url)


@pytest.mark.parametrize("change", ["UPDATE alembic_version SET version_num = ''", "DELETE FROM alembic_version"])
def test_a_ledger_that_does_not_say_its_revision_is_named(tmp_path: Path, change: str) -> None:
    url = f"sqlite:///{tmp_path}/ledger.sqlite"
    open_ledger(url).close()
    with create_engine(url).begin() as connection:
        connection.execute(text(change))
    with pytest.raises(StorageError, match="does not say which revision its tables are"):
        open_ledger(url)


def test_a_ledger_that_can_not_be_used_stays_open_nowhere(tmp_path: Path) -> None:
    file = tmp_path / "ledger.sqlite"
    file.write_bytes(b"SQLite format 3\0, but no more")
    with pytest.raises(StorageError, match=r"can't be used: .*: put back a copy of it") as refused:
        open_ledger(f"sqlite:///{file}")
    still_open = {os.path.realpath(descriptor) for descriptor in Path("/proc/self/fd").iterdir()}
    assert str(file) not in still_open, refused


def test_a_ledger_that_another_process_keeps_locked_has_nothing_wrong_with_its_disk() -> None:
    locked = OperationalError("BEGIN IMMEDIATE", None, sqlite3.OperationalError("database is locked"))
    said = pytest.raises(StorageError, match=r"locked: another process .* can be resumed")
    with said as raised, named_errors(create_engine("sqlite:///ledger.sqlite")):
        raise locked
    assert "disk" not in str(raised.value)


@pytest.mark.parametrize(
    "error",
    [
        DatabaseError("SELECT 1", None, Exception("an error of an unknown kind")),
        OperationalError("SELECT 1", None, Exception('connection to server at "unlocked.example" failed')),
    ],
    ids=["unknown", "host name"],
)
def test_a_server_that_fails_is_neither_a_spoiled_nor_a_locked_file(error: DatabaseError) -> None:
    with (
        pytest.raises(StorageError) as raised,
        named_errors(create_engine("postgresql+psycopg://pulsar@ledger.example/advisor")),
    ):
        raise error
    assert "copy" not in str(raised.value) and "another process" not in str(raised.value)


@pytest.mark.parametrize(
    ("code", "error", "to_do"),
    [
        ("25006", InternalError, "name the server and the user that may write"),
        ("55P03", OperationalError, "another process keeps it locked"),
        ("53300", OperationalError, "check its server and its address"),
    ],
    ids=["a standby", "locked by others", "no connection left"],
)
@pytest.mark.parametrize("attribute", ["sqlstate", "pgcode"])
def test_what_to_do_about_a_server_is_not_about_files(
    code: str, error: type[DatabaseError], to_do: str, attribute: str
) -> None:
    cause = Exception("in the server's language")
    setattr(cause, attribute, code)
    named = named_errors(create_engine("postgresql+psycopg://pulsar@ledger.example/advisor"))
    with pytest.raises(StorageError, match=f"language: {to_do}.* can be resumed") as raised, named:
        raise error("UPDATE runs", None, cause)
    assert "folder" not in str(raised.value)


def test_a_ledger_that_may_only_be_read_names_its_folder_too(ledger: Ledger) -> None:
    with ledger.reading() as session:
        session.execute(text("PRAGMA query_only = ON"))  # as for whoever may write the file, but no journal beside it
    with pytest.raises(StorageError, match=r"readonly database: check .* permissions of the file and its folder"):
        propose(ledger, PLAN, ALICE)


def test_an_option_of_a_url_that_is_no_number_is_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="an option in its URL has an invalid value"):
        open_ledger(f"sqlite:///{tmp_path}/ledger.sqlite?timeout=abc")


def test_a_database_without_a_driver_is_named() -> None:
    with pytest.raises(UsageError, match=r"no driver for ledger nosuchdatabase://advisor:\*\*\*@db"):
        open_ledger("nosuchdatabase://advisor:hunter2@db")
