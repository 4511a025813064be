"""A folded day: which snapshots it holds, and the files of its tables, written last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pulsar_advisor.documents.document import Count, Document, Part
from pulsar_advisor.model.text.some_of import count, some_of


class FoldedSnapshot(Part):
    """A snapshot of the day, as it was when it was folded."""

    id: str
    manifest_sha256: str
    """Empty for a moment of an imported day, which has no manifest."""
    validation_sha256: str | None
    """None: it was never validated, or the day is under pseudonyms."""
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
    """The same in the last fit snapshot."""
    excess: float | None
    """0..1; the median, over the fit snapshots, of how far the busiest broker was above the mean."""
    brokers: Count
    """Available ones in the last snapshot."""
    bundles: Count
    moves: Mapping[str, Count]
    """Cause -> how many bundles moved for it."""
    splits: Count
    restarts: Count
    settings: Count
    """Changes of a setting."""


class Gap(Part):
    """A period without figures, both ends (epoch ms) included."""

    from_ms: Count
    to_ms: Count


class Imported(Part):
    """How a day was taken from a monitoring system that scraped the brokers, and what that leaves out."""

    server: str
    """Its address."""
    level: str
    """What had figures there: `topic`, `bundle` or `namespace`, whose figures are spread evenly over its bundles."""
    step_s: Count
    """Seconds between two moments."""
    moments: Count
    """How many were asked for, those without figures included."""
    points_per_question: Count
    """At most this many samples were asked for at once."""
    clock_ahead_s: int
    """How far its clock is ahead of ours; 0 for less than two seconds."""
    snapshot: str
    """The snapshot whose bundle boundaries, broker ids and settings are taken for those of the time."""
    gaps: tuple[Gap, ...]
    """When no broker's figures were scraped."""
    unusable_samples: Count
    """Samples of the load that aren't a number, or are infinite or negative."""
    unknown_brokers: tuple[str, ...]
    """Instances that are no broker of that snapshot, under their own names."""
    unbounded_namespaces: tuple[str, ...]
    """Namespaces that the snapshot lacks, each taken as one bundle."""
    missing: tuple[str, ...]
    """What a day can't have this way."""
    confidence: str
    """`medium`, or `low` where owners or bundles are guesses."""

    @property
    def line(self) -> str:
        """The source in a list of days, and what was left out or guessed."""
        without = sum((gap.to_ms - gap.from_ms) // (1000 * self.step_s) + 1 for gap in self.gaps)
        doubts = (
            (without, f"{without:,} of {count(self.moments, 'moment')} without figures"),
            (self.unusable_samples, count(self.unusable_samples, "unusable sample")),
            (self.unknown_brokers, f"no brokers of {self.snapshot}: {some_of(self.unknown_brokers)}"),
            (self.unbounded_namespaces, f"one bundle each: {some_of(self.unbounded_namespaces)}"),
        )
        named = (doubt for found, doubt in doubts if found)
        return "; ".join((f"imported by {self.level} with {self.confidence} confidence", *named))


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
    """Steps of plans that were known to be carried out since that day began; they are causes of events."""
    summary: DaySummary | None = None
    """None in days of earlier releases."""
    tables: Mapping[str, FoldedTable]
    imported: Imported | None = None
    """For a day, or the part of it before its first snapshot, that comes from a monitoring system."""
    is_sealed: bool = False
    """Whether a ledger has its hash; days of earlier releases don't say."""

    @property
    def is_only_imported(self) -> bool:
        """Whether no snapshot has joined it, so that an import may still replace it."""
        return self.imported is not None and not any(one.manifest_sha256 for one in self.snapshots)

    @property
    def line(self) -> str:
        """The day in a list."""
        fit = sum(one.fit for one in self.snapshots)
        size = sum(table.bytes for table in self.tables.values())
        shown = f"{size / 2**20:.1f} MiB" if size >= 2**20 else f"{size / 2**10:.0f} KiB"
        source = f", {self.imported.line}" if self.imported else ""
        return f"{self.day}: {count(len(self.snapshots), 'snapshot')}, {fit:,} fit, {shown}{source}"
