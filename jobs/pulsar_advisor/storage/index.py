"""The newest snapshots of a cluster with their results, in one small file, so that lists need no other.

The files of the stages decide what exists; the index only repeats them. Each stage brings it up to date at its end, and
so does `snapshots prune`. Without an index, as in roots of earlier releases, the files themselves are read.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from upath import UPath

from pulsar_advisor.documents.snapshot_index import SnapshotIndex, SnapshotRow, SnapshotVerdict
from pulsar_advisor.model.cluster.snapshot_id import is_snapshot_id, snapshot_id
from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.model.text.some_of import beginning
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.plans import read_recommendation
from pulsar_advisor.storage.results import read_document, read_validation
from pulsar_advisor.storage.root import Root, Snapshot

INDEXED: Final = 100
"""Snapshots in the index; pages show fewer at a time."""

CLOCK_TOLERANCE: Final = timedelta(minutes=1)
"""How far behind or ahead of this machine's clock that of the capturing one, which names the snapshot, may be."""

_LONGEST_SENTENCE: Final = 500
_READ_AT_ONCE: Final = 16
"""Snapshots read in parallel: on an object store each file is a round trip."""

_log = logging.getLogger(__name__)


def update_index(root: Root, changed: str | None = None) -> None:
    """Rewrite the index if it doesn't match the files; `changed` is a snapshot whose results may have changed.

    Two processes may do this at once: each begins anew if another one has written since, and checks again after
    writing, so the last one leaves a complete index. A failure is logged, as nothing depends on the index.
    """
    try:
        known = _read(root)
        while (rows := _rows(root, known or (), changed)) != known:
            if (now := _read(root)) == known:
                write_file(_path(root), SnapshotIndex(rows=rows).content())
                now = rows
            known = now
    except (AdvisorError, OSError) as error:
        _log.warning("the index of the snapshots of cluster %s is not up to date: %s", root.cluster, error)


def newest(root: Root, count: int, before: str | None = None) -> Sequence[SnapshotRow]:
    """The newest snapshots, or those before one, newest first. Raises `AdvisorError` if they can't be listed."""
    indexed = _read(root)
    if indexed is not None:
        found = [row for row in indexed if before is None or row.id < before][:count]
        if len(found) == count or len(indexed) < INDEXED:
            return found
    with ThreadPoolExecutor(_READ_AT_ONCE) as pool:
        return list(pool.map(_row, islice(root.newest_first(before), count)))


def newest_advised(root: Root, now: datetime) -> str | None:
    """A cluster's newest snapshot that passed validation and was recommended on. Raises `AdvisorError`.

    Not one of the future, which a clock that was set wrong has named: it would hide for as long that no other comes.
    """
    latest = snapshot_id(now + CLOCK_TOLERANCE)
    rows = (row for row in newest(root, INDEXED) if row.id <= latest)
    return next((row.id for row in rows if row.verdict in ("act", "nothing")), None)


def why_no_advice(since: datetime, advised: str | None, though: str = "") -> str:
    """That no snapshot since a moment led to advice, though it should have, and which was the last that did."""
    last = f"the last that did is {advised}" if advised else f"none of the newest {INDEXED} did"
    return f"no snapshot since {since:%Y-%m-%d %H:%M} UTC led to advice{though}: {last}"


def has_report(snapshot: Snapshot) -> bool:
    """Whether a snapshot has a report."""
    return (snapshot.folder("reports") / "report.html").exists()


def _path(root: Root) -> UPath:
    return root.of_cluster("index") / "snapshots.json"


def _read(root: Root) -> tuple[SnapshotRow, ...] | None:
    """The index; None if there is none, or it can't be read."""
    try:
        index = read_document(_path(root), SnapshotIndex)
    except AdvisorError:
        return None
    return index.rows if all(is_snapshot_id(row.id) for row in index.rows) else None


def _rows(root: Root, known: Sequence[SnapshotRow], changed: str | None) -> tuple[SnapshotRow, ...]:
    """The rows according to the files now; the known row of a snapshot that every stage has finished is reused."""
    settled = {row.id: row for row in known if row.has_report and row.is_settled and row.id != changed}
    found = islice(root.newest_first(known=settled), INDEXED)
    with ThreadPoolExecutor(_READ_AT_ONCE) as pool:
        return tuple(pool.map(lambda snapshot: settled.get(snapshot.id) or _row(snapshot), found))


def _row(snapshot: Snapshot) -> SnapshotRow:
    """A row from the files; one that can't be read says so."""
    try:
        return _read_row(snapshot)
    except (AdvisorError, OSError) as error:
        sentence = str(error).replace(str(snapshot.root.location), "…")
        return SnapshotRow(id=snapshot.id, verdict="unreadable", sentence=beginning(sentence, _LONGEST_SENTENCE))


def _read_row(snapshot: Snapshot) -> SnapshotRow:
    def row(
        verdict: SnapshotVerdict, sentence: str, failed: int | None = None, imbalance: float | None = None
    ) -> SnapshotRow:
        return SnapshotRow(
            id=snapshot.id,
            verdict=verdict,
            sentence=beginning(sentence, _LONGEST_SENTENCE),
            failed_checks=failed,
            imbalance_ratio=imbalance,
            has_report=has_report(snapshot),
        )

    if not snapshot.is_written("validate"):
        return row("unfinished", "captured; not validated")
    judged = read_validation(snapshot)
    failed = [check for check in judged.results if not check.success]
    if not judged.success:
        return row("unfit", f"must not be used; {judged.stopped_by}", len(failed))
    if not snapshot.is_written("recommend"):
        return row("unfinished", "validated; no recommendation", len(failed))
    made = read_recommendation(snapshot)
    unadvised: SnapshotVerdict = "unfit" if made.is_unjudged else "nothing"
    return row("act" if made.advice.plan else unadvised, made.advice.sentence, len(failed), made.imbalance_ratio)
