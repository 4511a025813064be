"""A folded day: which snapshots it holds, and the files of its tables, written last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pulsar_advisor.documents.document import Count, Document, Part
from pulsar_advisor.model.text.some_of import count


class FoldedSnapshot(Part):
    """A snapshot of the day, as it was when it was folded."""

    id: str
    manifest_sha256: str
    validation_sha256: str | None
    """None: it was never validated."""
    fit: bool


class FoldedTable(Part):
    """The one file of a table of the day."""

    file: str
    rows: Count
    bytes: Count
    sha256: str


class DaySummary(Part):
    """A day in a few figures, so that a list of clusters reads no table."""

    busiest: float | None
    """0..1; the median, over the fit snapshots, of the busiest broker's usage; None without one."""
    busiest_last: float | None
    """The same of the last fit snapshot."""
    excess: float | None
    """0..1; the median of what the busiest broker had above the mean."""
    brokers: Count
    """Available ones, at last."""
    bundles: Count
    moves: Mapping[str, Count]
    """Cause -> how many bundles moved for it."""
    splits: Count
    restarts: Count
    settings: Count
    """Changes of a setting."""


class HistoryDay(Document):
    """What is kept of one day of a cluster."""

    SCHEMA: ClassVar = "pulsar-advisor/history-day/1"
    MADE_BY: ClassVar = "history fold"

    cluster: str
    """The name in paths."""
    cluster_name: str
    """Pulsar's name; two days with different ones are of different clusters."""
    day: str
    """UTC, `YYYYMMDD`."""
    columns: int
    """Version of the tables' columns."""
    snapshots: tuple[FoldedSnapshot, ...]
    """In order of time; the position of each is its `t` in the tables."""
    follows: str | None = None
    """The last snapshot before the day, with which the first one is compared; None: nothing is known of one."""
    steps: Count = 0
    """Steps of plans that were known to be carried out since then; they are causes of events."""
    summary: DaySummary | None = None
    """None in days of earlier releases."""
    tables: Mapping[str, FoldedTable]

    @property
    def line(self) -> str:
        """The day in a list."""
        fit = sum(one.fit for one in self.snapshots)
        size = sum(table.bytes for table in self.tables.values())
        return f"{self.day}: {count(len(self.snapshots), 'snapshot')}, {fit:,} fit, {size / 2**20:.1f} MiB"
