"""The moment of a snapshot, which outlasts it: read from its tables, or from its folded day."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import replace
from itertools import takewhile

import pyarrow as pa

from pulsar_advisor.documents.history_day import HistoryDay
from pulsar_advisor.documents.manifest import Manifest
from pulsar_advisor.history.columns import DAY_TABLES
from pulsar_advisor.history.events import LastSeen
from pulsar_advisor.history.moment import BROKER_COLUMNS, BUNDLE_COLUMNS, Moment, moment_of
from pulsar_advisor.history.policies import ISOLATION_COLUMNS, NAMESPACE_COLUMNS, UNKNOWN, policies_of
from pulsar_advisor.history.unfold import moments_of
from pulsar_advisor.model.cluster.cluster_state import View
from pulsar_advisor.model.errors import AdvisorError, UsageError
from pulsar_advisor.storage.history import day_if_any, day_with
from pulsar_advisor.storage.results import read_manifest, validation_if_any
from pulsar_advisor.storage.root import Root, Snapshot
from pulsar_advisor.tables.days import damage, read_day_tables
from pulsar_advisor.tables.judged import settings_of
from pulsar_advisor.tables.read_table import read_table
from pulsar_advisor.tables.state import judged_view


def moment_at(snapshot: Snapshot) -> Moment:
    """The moment of a snapshot. Raises `UsageError` if it has no tables and no folded day holds it."""
    if snapshot.is_written("normalize"):
        return normalized_moment(snapshot, read_manifest(snapshot))
    if (day := day_with(snapshot)) is not None:
        return next(folded_moments(snapshot.root, day, [snapshot.id]))
    raise UsageError(
        f"snapshot {snapshot} of cluster '{snapshot.root.cluster}' is neither normalized nor folded into a day"
    )


def last_seen(snapshot: Snapshot, cluster_name: str) -> LastSeen:
    """A snapshot, with what its day had seen, for comparison with a later day's first one. Raises as `moment_at`."""
    last = moment_at(snapshot)
    seen = None
    if last.owners.null_count or not (last.leader and last.settings and len(last.policies)):
        for moment in _earlier_of_day(snapshot, cluster_name):
            seen = LastSeen.of(moment, seen)
    return LastSeen.of(last, seen)


def _earlier_of_day(snapshot: Snapshot, cluster_name: str) -> Iterator[Moment]:
    """The earlier moments of a snapshot's day, in order of time; from the folded day, if that is undamaged.

    Otherwise only those that still have tables.
    """
    root, day = snapshot.root, day_if_any(snapshot.day)
    is_whole = day is not None and not any(damage(root, day, DAY_TABLES))
    folded = {one.id for one in day.snapshots if one.id < snapshot.id} if day and is_whole else set()
    there = takewhile(lambda one: one.day == snapshot.day, root.newest_first(before=snapshot.id))
    with_tables = {one.id for one in there if one.id not in folded and one.is_written("normalize")}
    of_day = folded_moments(root, day, folded) if day and folded else iter(())
    for id in sorted(folded | with_tables):
        if id in folded:
            yield next(of_day)
        elif (moment := _moment_if_readable(root.snapshot(id), cluster_name)) is not None:
            yield moment


def _moment_if_readable(snapshot: Snapshot, cluster_name: str) -> Moment | None:
    """None for a snapshot that is of another cluster or can't be read."""
    try:
        manifest = read_manifest(snapshot)
        return normalized_moment(snapshot, manifest) if manifest.identity.cluster_name == cluster_name else None
    except AdvisorError:
        return None


def folded_moments(root: Root, day: HistoryDay, wanted: Container[str]) -> Iterator[Moment]:
    """The moments of a folded day, in order of time: those of these snapshots."""
    day, tables = read_day_tables(root, day, DAY_TABLES)
    imported = {one.id for one in day.snapshots if not one.manifest_sha256}
    ids = tables["moments"]["snapshot"].to_pylist()
    places = {t for t, snapshot in enumerate(ids) if snapshot in wanted}
    return (replace(one, imported=one.snapshot in imported) for one in moments_of(tables, places))


def normalized_moment(snapshot: Snapshot, manifest: Manifest) -> Moment:
    """The moment of a snapshot that has tables."""
    view = judged_view(manifest)

    def rows(table: str, *columns: str, view: View | None = None) -> pa.Table:
        return read_table(snapshot, table, view, list(columns))

    return moment_of(
        manifest,
        validation_if_any(snapshot),
        settings_of(snapshot, {}),
        rows("brokers", *BROKER_COLUMNS.values(), view=view),
        rows("bundles", *BUNDLE_COLUMNS, view=view),
        policies_of(rows("namespaces", *NAMESPACE_COLUMNS), rows("policies", *ISOLATION_COLUMNS))
        if knows_policies(manifest)
        else UNKNOWN,
    )


def knows_policies(manifest: Manifest) -> bool:
    """Whether policies could be read; if not, they would look as if somebody had removed them."""
    return "isolation_policies" not in manifest.unread_surfaces
