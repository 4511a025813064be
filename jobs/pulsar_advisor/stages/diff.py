"""`diff`: what differs between two snapshots of a cluster, however far apart."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from pulsar_advisor.history.columns import EVENTS, MOMENTS
from pulsar_advisor.history.difference import Difference, difference
from pulsar_advisor.model.cluster.snapshot_id import day_of, is_snapshot_id
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.stages.moments import moment_at
from pulsar_advisor.storage.history import day_if_any, day_with, days_between, folded_days, read_day
from pulsar_advisor.storage.results import read_manifest
from pulsar_advisor.storage.root import LATEST, Root, Snapshot
from pulsar_advisor.tables.days import read_day_tables

_log = logging.getLogger(__name__)


def run(root: Root, earlier: str, later: str) -> Difference:
    """Compare two snapshots, each an id, `latest`, or a day (its last folded snapshot).

    Raises `UsageError` if one isn't known, if the first isn't the earlier one, or if they are of different clusters
    (several may have used one name in paths).
    """
    first, last = _snapshot(root, earlier), _snapshot(root, later)
    if first == last:
        raise UsageError(f"both are snapshot {first}: name two different ones")
    if first.id > last.id:
        raise UsageError(f"{first} isn't before {last}: give the earlier one first")
    moments = moment_at(first), moment_at(last)
    was, is_ = _cluster_name(first), _cluster_name(last)
    if was != is_:
        raise UsageError(f"{first} is of cluster '{was}', {last} of '{is_}': they can't be compared")
    for moment in moments:
        day = day_with(root.snapshot(moment.snapshot)) if moment.imported else None
        if day is not None and day.imported is not None:
            _log.warning("%s is %s", moment.snapshot, day.imported.line)
        elif moment.failed_checks and not moment.fit:
            _log.warning("%s did not pass validation: its figures may be wrong", moment.snapshot)
    return difference(*moments, dict(_causes(root, first.id, last.id)))


def _cluster_name(snapshot: Snapshot) -> str:
    """Pulsar's cluster name in a known snapshot."""
    if snapshot.is_written("normalize"):
        return read_manifest(snapshot).identity.cluster_name
    return read_day(snapshot.day).cluster_name


def _snapshot(root: Root, name: str) -> Snapshot:
    if name == LATEST:
        return _latest(root)
    if is_snapshot_id(name):
        return root.snapshot(name)
    day = day_if_any(root.day(name)) if is_snapshot_id(f"{name}T000000Z") else None
    if day is None or not day.snapshots:
        raise UsageError(
            f"'{name}' is neither a snapshot id, a folded day such as 20261121, nor 'latest': `history show` lists the "
            "days, `snapshots list` the snapshots"
        )
    return root.snapshot(day.snapshots[-1].id)


def _latest(root: Root) -> Snapshot:
    """The newest snapshot, or the last folded one if there are only days, as in an export."""
    days = [] if next(root.newest_first(), None) else folded_days(root, 1)[0]
    return root.snapshot(days[-1].snapshots[-1].id) if days else root.resolve(LATEST)


def _causes(root: Root, first: str, last: str) -> Iterator[tuple[str, str]]:
    """The bundles that moved or were split between two snapshots, each with its cause, in order."""
    for day in days_between(root, day_of(first), day_of(last)):
        _, tables = read_day_tables(root, day, {"moments": MOMENTS, "events": EVENTS})
        moments = tables["moments"]["snapshot"].to_pylist()
        for event in tables["events"].to_pylist():
            if event["cause"] is not None and first < moments[event["t"]] <= last:
                yield event["subject"], event["cause"]
