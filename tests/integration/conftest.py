"""A PostgreSQL server of the tests' own, and a fresh database for each test."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import create_engine, text

from harness.ports import free_port

NewLedger = Callable[[], str]
"""Makes the URL of a ledger that is not there yet."""


@pytest.fixture(params=["sqlite", "postgresql"])
def new_ledger(request: pytest.FixtureRequest, tmp_path: Path) -> NewLedger:
    """Ledgers on each database that holds them."""
    if request.param == "sqlite":
        return lambda: f"sqlite:///{tmp_path}/{uuid4().hex}.sqlite"
    new_database: NewLedger = request.getfixturevalue("new_postgresql_database")
    return new_database


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """Address of a PostgreSQL that lives as long as these tests, on a free port of loopback."""
    if shutil.which("initdb") is None or shutil.which("postgres") is None:
        pytest.skip("no PostgreSQL server programs on PATH")
    user = "postgres" if os.geteuid() == 0 else None  # the server refuses to run as root
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        data.mkdir()
        if user:
            shutil.chown(folder, user)
            shutil.chown(data, user)
        port = free_port()
        command = ["initdb", "-D", str(data), "-U", "advisor", "-A", "trust", "-E", "UTF8", "--no-sync"]
        subprocess.run(command, check=True, capture_output=True, user=user, cwd=folder)
        command = ["postgres", "-D", str(data), "-h", "127.0.0.1", "-p", str(port), "-k", folder, "-F"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, user=user, cwd=folder)
        try:
            ready = ["pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port), "-t", "1"]
            for _ in range(30):
                if subprocess.run(ready, check=False).returncode == 0:
                    break
                threading.Event().wait(0.5)
            yield f"postgresql+psycopg://advisor@127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()


@pytest.fixture
def new_postgresql_database(postgresql_server: str) -> NewLedger:
    """Makes an empty database and gives its URL."""

    def make() -> str:
        name = f"ledger_{uuid4().hex}"
        with create_engine(f"{postgresql_server}/postgres", isolation_level="AUTOCOMMIT").connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
        return f"{postgresql_server}/{name}"

    return make


@pytest.fixture
def postgresql_url(new_postgresql_database: NewLedger) -> str:
    """A database for this test alone."""
    return new_postgresql_database()
