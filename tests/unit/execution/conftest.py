from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.opening import open_ledger
from unit.execution.doubles import FakeCluster, FakeTime


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


@pytest.fixture
def cluster(time: FakeTime) -> FakeCluster:
    return FakeCluster(time)


@pytest.fixture(scope="session")
def empty_ledger(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a ledger that has its tables and no row: a copy spares a test the migrations."""
    file = tmp_path_factory.mktemp("ledger") / "ledger.sqlite"
    open_ledger(f"sqlite:///{file}").close()
    return file.read_bytes()


@pytest.fixture
def ledger(tmp_path: Path, time: FakeTime, empty_ledger: bytes) -> Iterator[Ledger]:
    (tmp_path / "ledger.sqlite").write_bytes(empty_ledger)
    opened = open_ledger(f"sqlite:///{tmp_path}/ledger.sqlite", time.now_ms)
    yield opened
    opened.close()
