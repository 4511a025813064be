"""A PostgreSQL server of the tests' own, and a fresh database for each test."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import create_engine, text

from harness.ports import free_port
from ledgers import new_ledgers_are_copies as new_ledgers_are_copies

NewLedger = Callable[[], str]
"""Makes the URL of a ledger that is not there yet."""


@pytest.fixture(params=["sqlite", "postgresql"])
def new_ledger(request: pytest.FixtureRequest, tmp_path: Path) -> NewLedger:
    """Ledgers on each kind of database."""
    if request.param == "sqlite":
        return lambda: f"sqlite:///{tmp_path}/{uuid4().hex}.sqlite"
    new_database: NewLedger = request.getfixturevalue("new_postgresql_database")
    return new_database


class PostgreSQL:
    """A server on a free port of loopback, with its data in a folder."""

    def __init__(self, folder: Path) -> None:
        self._user = "postgres" if os.geteuid() == 0 else None  # the server refuses to run as root
        self._folder, self.port = folder, free_port()
        data = folder / "data"
        data.mkdir()
        if self._user:
            shutil.chown(folder, self._user)
            shutil.chown(data, self._user)
        command = ["initdb", "-D", str(data), "-U", "advisor", "-A", "trust", "-E", "UTF8", "--no-sync"]
        subprocess.run(command, check=True, capture_output=True, user=self._user, cwd=folder)
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://advisor@127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Of the process whose death ends all others of the server."""
        return self._process.pid

    def start(self) -> None:
        """Start it, also after it was killed, and wait until it answers."""
        place = ["-D", str(self._folder / "data"), "-k", str(self._folder)]
        command = ["postgres", *place, "-h", "127.0.0.1", "-p", str(self.port), "-F"]
        ready = ["pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port), "-t", "1"]
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(command, stdout=quiet, stderr=quiet, user=self._user, cwd=self._folder)
        for _ in range(60):
            if subprocess.run(ready, check=False).returncode == 0:
                return
            if self._process.poll() is not None:  # processes of the one that was killed still hold its memory
                self._process = subprocess.Popen(command, stdout=quiet, stderr=quiet, user=self._user, cwd=self._folder)
            threading.Event().wait(0.5)
        raise AssertionError("PostgreSQL does not answer")

    def kill(self) -> None:
        """SIGKILL, as a machine that lost it would see it."""
        self._process.kill()
        self._process.wait()

    def new_database(self) -> str:
        """The URL of an empty database."""
        name = f"ledger_{uuid4().hex}"
        with create_engine(f"{self.url}/postgres", isolation_level="AUTOCOMMIT").connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
        return f"{self.url}/{name}"


@contextmanager
def postgresql() -> Iterator[PostgreSQL]:
    """A server that lives as long as the block."""
    if shutil.which("initdb") is None or shutil.which("postgres") is None:
        pytest.skip("no PostgreSQL server programs on PATH")
    with tempfile.TemporaryDirectory() as folder:
        server = PostgreSQL(Path(folder))
        try:
            yield server
        finally:
            server.kill()


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[PostgreSQL]:
    """The server that all tests share."""
    with postgresql() as server:
        yield server


@pytest.fixture
def own_postgresql() -> Iterator[PostgreSQL]:
    """A server of one test, which may kill it."""
    with postgresql() as server:
        yield server


@pytest.fixture
def new_postgresql_database(postgresql_server: PostgreSQL) -> NewLedger:
    """Makes an empty database and gives its URL."""
    return postgresql_server.new_database


@pytest.fixture
def postgresql_url(new_postgresql_database: NewLedger) -> str:
    """A database for this test alone."""
    return new_postgresql_database()
