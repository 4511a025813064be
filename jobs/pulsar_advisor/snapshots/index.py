"""The newest snapshots of a cluster, and what became of each: one small file, so that lists read no other.

The files of the stages decide what exists; the index only repeats them. Each stage brings it up to date at its end, and
so does `snapshots prune`. Without one, as in roots of earlier releases, the files themselves are read.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, Final

import msgspec

from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.storage.files import read_file, shaped, write_json
from pulsar_advisor.storage.plans import PLANS, RECOMMENDATION, read_recommendation
from pulsar_advisor.storage.root import RESULT, Root, is_snapshot_id
from pulsar_advisor.storage.shapes import SNAPSHOT_INDEX_SCHEMA, SnapshotIndex, SnapshotRow
from pulsar_advisor.storage.validation import read_validation

INDEXED: Final = 100
"""Snapshots in the index; pages show fewer at a time."""

_LONGEST_SENTENCE: Final = 500
_READ_AT_ONCE: Final = 16
"""Snapshots read in parallel: on an object store each file is a round trip."""

_log = logging.getLogger(__name__)


def update_index(root: Root, changed: str | None = None) -> None:
    """Write the index anew if it isn't as the files are; `changed` is a snapshot whose results may be other ones.

    Two processes may do this at once: each looks again after it has written, so what the last one leaves is complete.
    A failure is logged, as nothing depends on the index.
    """
    try:
        known = _read(root)
        while (rows := _rows(root, known or (), changed)) != known:
            document = SnapshotIndex(rows)
            write_json(_path(root), {"schema": SNAPSHOT_INDEX_SCHEMA, **msgspec.to_builtins(document)})
            known = rows
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
        return list(pool.map(lambda id: _row(root, id), islice(root.newest_first(before), count)))


def has_report(root: Root, snapshot: str) -> bool:
    """Whether a snapshot has a report."""
    return (root.folder("reports", snapshot) / "report.html").exists()


def _path(root: Root) -> Any:
    return root.path / "index" / f"cluster={root.cluster}" / "snapshots.json"


def _read(root: Root) -> list[SnapshotRow] | None:
    """None without an index, or with one that can't be read."""
    try:
        path = _path(root)
        index: SnapshotIndex = shaped(read_file(path, "capture"), str(path), "capture", [SNAPSHOT_INDEX_SCHEMA])
    except AdvisorError:
        return None
    return index.rows if all(is_snapshot_id(row.id) for row in index.rows) else None


def _rows(root: Root, known: Sequence[SnapshotRow], changed: str | None) -> list[SnapshotRow]:
    """The rows as the files are now; a known one of a snapshot that every stage has worked on is taken as it is."""
    settled = {row.id: row for row in known if row.has_report and row.is_settled and row.id != changed}
    ids = islice(root.newest_first(known=settled), INDEXED)
    with ThreadPoolExecutor(_READ_AT_ONCE) as pool:
        return list(pool.map(lambda id: settled.get(id) or _row(root, id), ids))


def _row(root: Root, snapshot: str) -> SnapshotRow:
    """A row from the files; one that can't be read says so."""
    try:
        return _read_row(root, snapshot)
    except (AdvisorError, OSError) as error:
        sentence = str(error).replace(str(root.location), "…")
        return SnapshotRow(snapshot, "unreadable", sentence[:_LONGEST_SENTENCE], None, None, has_report=False)


def _read_row(root: Root, snapshot: str) -> SnapshotRow:
    row = SnapshotRow(snapshot, "unfinished", "captured; not validated", None, None, has_report(root, snapshot))
    if not (root.folder("validation", snapshot) / RESULT).exists():
        return row
    judged = read_validation(root, snapshot)
    failed = [check for check in judged["results"] if not check["success"]]
    row = msgspec.structs.replace(row, sentence="validated; no recommendation", failed_checks=len(failed))
    if not judged["success"]:
        critical = "; ".join(check["title"] for check in failed if check["severity"] == "critical")
        sentence = f"must not be used: {critical}"[:_LONGEST_SENTENCE]
        return msgspec.structs.replace(row, verdict="unfit", sentence=sentence)
    if not (root.folder(PLANS, snapshot) / RECOMMENDATION).exists():
        return row
    made = read_recommendation(root, snapshot)
    too_little = made.coverage is not None and made.coverage.decides
    spreads = (one.standard_deviation_before for one in made.combinations)
    return msgspec.structs.replace(
        row,
        verdict="act" if made.advice.plan else "unfit" if too_little else "nothing",
        sentence=made.advice.sentence[:_LONGEST_SENTENCE],
        imbalance_ratio=next((spread for spread in spreads if spread is not None), None),
    )
