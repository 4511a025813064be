from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import hypothesis
import pytest
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from sqlalchemy import Engine, event

from ledgers import new_ledgers_are_copies as new_ledgers_are_copies
from pulsar_advisor.storage.archive import import_snapshot
from pulsar_advisor.storage.root import Root, Snapshot
from unit.capture.fake_cluster import FakeCluster, fake_cluster
from unit.properties import SAMPLED

# A test says what is right, not how fast: on a busy machine any example may take long.
hypothesis.settings.register_profile("untimed", deadline=None)
if hypothesis.settings.get_current_profile_name() == "default":
    hypothesis.settings.load_profile("untimed")
hypothesis.settings.register_profile(SAMPLED, hypothesis.settings.get_profile("ci"), max_examples=25)

RECORDED = Path(__file__).parents[1] / "data/recorded/modular-4.0.8.tar"


@event.listens_for(Engine, "connect")
def _trust_the_machine(connection: object, _record: object) -> None:
    """No test outlives its machine: what it writes to a ledger needn't reach the disk."""
    if isinstance(connection, sqlite3.Connection):
        with suppress(sqlite3.Error):  # a test may open a file that isn't a database on purpose
            connection.execute("PRAGMA synchronous = OFF")


@pytest.fixture(scope="session")
def measured() -> InMemoryMetricReader:
    """Reads what was measured so far; a process has one provider."""
    reader = InMemoryMetricReader()
    metrics.set_meter_provider(MeterProvider([reader]))
    return reader


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with fake_cluster() as running:
        yield running


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return Root(str(tmp_path / "root"), "test")


@pytest.fixture
def recorded(root: Root) -> Snapshot:
    """A recorded snapshot of three real brokers, taken into the root."""
    return import_snapshot(RECORDED, root)
