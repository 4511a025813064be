"""The newest snapshots of a cluster, and what became of each: an index for lists, which may be removed at any time."""

from __future__ import annotations

from typing import ClassVar, Literal

from pulsar_advisor.documents.document import Document, Part

SnapshotVerdict = Literal["act", "nothing", "unfit", "unfinished", "unreadable"]
"""act: a plan is advised. unfit: validation failed, or too little could be judged. unfinished: a stage has yet to run,
or failed."""


class SnapshotRow(Part):
    """A snapshot and what became of it."""

    id: str
    verdict: SnapshotVerdict
    sentence: str
    failed_checks: int | None = None
    """None: not validated yet."""
    imbalance_ratio: float | None = None
    """Standard deviation of the brokers' usage; None: not known yet."""
    has_report: bool = False

    @property
    def is_settled(self) -> bool:
        """Whether no stage has yet to run on it."""
        return self.verdict not in ("unfinished", "unreadable")


class SnapshotIndex(Document):
    """The newest snapshots of a cluster, newest first."""

    SCHEMA: ClassVar = "pulsar-advisor/snapshot-index/1"
    MADE_BY: ClassVar = "capture"

    rows: tuple[SnapshotRow, ...]
