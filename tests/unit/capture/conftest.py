from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pulsar_advisor.storage import Root
from unit.capture.fake_cluster import FakeCluster, fake_cluster


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with fake_cluster() as running:
        yield running


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return Root(str(tmp_path / "root"), "test")
