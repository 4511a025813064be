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


@pytest.fixture
def ledger(tmp_path: Path, time: FakeTime) -> Iterator[Ledger]:
    opened = open_ledger(f"sqlite:///{tmp_path}/ledger.sqlite", time.now_ms)
    yield opened
    opened.close()
