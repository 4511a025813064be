"""A snapshot in a list: its results, and what the ledger has recorded since.

Advice from before a run is outdated; a snapshot with which `verify` judged a run shows the run's effect.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Self

from pulsar_advisor.documents.runs import RunState
from pulsar_advisor.documents.snapshot_index import SnapshotRow, SnapshotVerdict
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.lists import AfterRun, newest_after_run, newest_runs
from pulsar_advisor.execution.ledger.tables import Run
from pulsar_advisor.model.cluster.snapshot_id import snapshot_moment

CARRIED_OUT: Final[Collection[RunState]] = ("active", "done")
"""The states of a run that makes earlier advice history."""

ShownVerdict = Literal[SnapshotVerdict, "history", "verified", "unjudged", "deviates"]
"""Of a snapshot with which `verify` judged a run: verified, unjudged (the bundles are as predicted, and no usage was
judged), deviates."""


@dataclass(frozen=True)
class SnapshotLine:
    """The fields of a `SnapshotRow`, as they are now."""

    id: str
    verdict: ShownVerdict
    sentence: str
    failed_checks: int | None
    imbalance_ratio: float | None
    has_report: bool


@dataclass(frozen=True)
class Recorded:
    """What a ledger has recorded since the snapshots of all its clusters; by default nothing."""

    carried_out: Mapping[str, Run] = field(default_factory=dict)
    """The newest run of each cluster, finished or in progress."""
    after: Mapping[tuple[str, str], AfterRun] = field(default_factory=dict)
    """As `newest_after_run`."""

    @classmethod
    def of(cls, ledger: Ledger | None) -> Self:
        """What this ledger has, if there is one."""
        return cls() if ledger is None else cls(newest_runs(ledger, CARRIED_OUT), newest_after_run(ledger))

    def lines(self, cluster: str, rows: Sequence[SnapshotRow]) -> Sequence[SnapshotLine]:
        """As `snapshot_lines`, of a cluster."""
        after = {snapshot: one for (owner, snapshot), one in self.after.items() if owner == cluster}
        return snapshot_lines(rows, after, self.carried_out.get(cluster))


def last_and_unfinished(lines: Iterable[SnapshotLine]) -> tuple[SnapshotLine | None, SnapshotLine | None]:
    """The newest snapshot with a verdict, and the newest one of all if a stage has yet to run on it, or failed.

    `lines` are a cluster's, newest first.
    """
    unfinished = None
    for line in lines:
        if line.verdict != "unfinished":
            return line, unfinished
        unfinished = unfinished or line
    return None, unfinished


def snapshot_lines(
    rows: Sequence[SnapshotRow], after: Mapping[str, AfterRun], newest_run: Run | None
) -> Sequence[SnapshotLine]:
    """The lines of some rows; `newest_run` is the cluster's newest run, finished or in progress."""
    return [_line(row, after.get(row.id), newest_run) for row in rows]


def _line(row: SnapshotRow, after: AfterRun | None, newest_run: Run | None) -> SnapshotLine:
    verdict: ShownVerdict = row.verdict
    sentence, imbalance_ratio = row.sentence, row.imbalance_ratio
    if row.verdict == "unfinished" and after is not None:
        verdict, sentence = _after(after)
        imbalance_ratio = after.imbalance_ratio
    elif row.verdict == "act" and newest_run is not None and began_after(newest_run, row.id):
        verdict, sentence = "history", f"before run {newest_run.id}: {row.sentence}"
    return SnapshotLine(row.id, verdict, sentence, row.failed_checks, imbalance_ratio, row.has_report)


def _after(after: AfterRun) -> tuple[ShownVerdict, str]:
    known = "" if after.maximum_ratio is None else f": highest usage {after.maximum_ratio:.1%}"
    if not after.as_predicted:
        return "deviates", f"after run {after.run}{known}, not as predicted"
    if after.maximum_ratio is None:
        return "unjudged", f"after run {after.run}: bundles as predicted, usage not judged"
    return "verified", f"after run {after.run}{known}, as predicted"


def began_after(run: Run, snapshot: str) -> bool:
    """Whether a run began after a snapshot, so that the snapshot's figures are from before the run."""
    return run.started_at_ms > snapshot_moment(snapshot).timestamp() * 1000
