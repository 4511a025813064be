"""`history fold`: folds the snapshots of a day into tables that last. A day is folded again only if it has others."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Final

import pyarrow as pa

from pulsar_advisor.documents.history_day import FoldedSnapshot, FoldedTable, HistoryDay
from pulsar_advisor.documents.manifest import Manifest
from pulsar_advisor.history.columns import COLUMNS, DAY_TABLES
from pulsar_advisor.history.day import fold
from pulsar_advisor.history.index import index_of
from pulsar_advisor.history.moment import BROKER_COLUMNS, BUNDLE_COLUMNS, Moment, moment_of
from pulsar_advisor.history.unfold import moments_of
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.text.some_of import count
from pulsar_advisor.storage.history import day_if_any, day_path
from pulsar_advisor.storage.lease import held
from pulsar_advisor.storage.results import read_manifest, validation_if_any
from pulsar_advisor.storage.root import Root
from pulsar_advisor.storage.written import is_written, result_sha256
from pulsar_advisor.tables.days import read_day_table, write_day
from pulsar_advisor.tables.judged import settings_of
from pulsar_advisor.tables.read_table import read_table
from pulsar_advisor.tables.state import judged_view

_log = logging.getLogger(__name__)

_AFTER: Final = "T~"
"""Sorts after every snapshot of a day."""


def run(root: Root, day: str) -> HistoryDay:
    """Fold the normalized snapshots of a day (`YYYYMMDD`, UTC) of a cluster.

    A snapshot whose tables were removed since is taken from the day as it was folded before. Raises `UsageError` if
    there is none to fold, `Refused` while another process folds the day.
    """
    with held(day_path(root, day).parent, day, f"day {day} of cluster {root.cluster} is being folded") as lease:
        before = day_if_any(root, day)
        folded = {} if before is None else {one.id: one for one in before.snapshots}
        manifests = _normalized(root, day, before)
        if not folded and not manifests:
            raise UsageError(f"cluster '{root.cluster}' has no normalized snapshot of {day}: there is nothing to fold")
        seen = {**folded, **{snapshot: _seen(root, snapshot) for snapshot in manifests}}
        if before is not None and before.columns == COLUMNS and seen == folded:
            return before
        _log.info("folding %s of day %s", count(len(seen), "snapshot"), day)
        tables = fold(_moments(root, sorted(seen), manifests, before))
        tables = {**tables, "index": index_of(tables)}
        name = before.cluster_name if before else _cluster_name(manifests)
        lease.require()

        def result(files: Mapping[str, FoldedTable]) -> HistoryDay:
            snapshots = tuple(seen[snapshot] for snapshot in sorted(seen))
            return HistoryDay(
                cluster=root.cluster, cluster_name=name, day=day, columns=COLUMNS, snapshots=snapshots, tables=files
            )

        return write_day(root, day, tables, result)


def _normalized(root: Root, day: str, before: HistoryDay | None) -> dict[str, Manifest]:
    """The snapshots of a day that have tables, with their manifests, in order of time.

    Several clusters may have used one name in paths: only those of the one that was folded before count, else of the
    last one.
    """
    ids = takewhile(lambda snapshot: snapshot.startswith(day), root.newest_first(before=day + _AFTER))
    found = {id: read_manifest(root, id) for id in sorted(ids) if is_written(root, id, "normalize")}
    name = before.cluster_name if before else _cluster_name(found)
    return {id: one for id, one in found.items() if one.identity.cluster_name == name}


def _cluster_name(manifests: dict[str, Manifest]) -> str:
    return next((one.identity.cluster_name for one in reversed(manifests.values())), "")


def _seen(root: Root, snapshot: str) -> FoldedSnapshot:
    validation = validation_if_any(root, snapshot)
    return FoldedSnapshot(
        id=snapshot,
        manifest_sha256=str(result_sha256(root, snapshot, "capture")),
        validation_sha256=result_sha256(root, snapshot, "validate"),
        fit=validation is not None and validation.success,
    )


def _moments(
    root: Root, snapshots: list[str], manifests: Mapping[str, Manifest], before: HistoryDay | None
) -> Iterator[Moment]:
    """The moments of snapshots: of their tables, or as the day was folded before where those are gone."""
    kept: dict[str, Moment] = {}
    if before is not None and not manifests.keys() >= set(snapshots):
        tables = {name: read_day_table(root, before, name, schema) for name, schema in DAY_TABLES.items()}
        kept = {moment.snapshot: moment for moment in moments_of(tables)}
    for snapshot in snapshots:
        yield _moment(root, manifests[snapshot]) if snapshot in manifests else kept[snapshot]


def _moment(root: Root, manifest: Manifest) -> Moment:
    view, snapshot = judged_view(manifest), manifest.snapshot

    def rows(table: str, *columns: str) -> pa.Table:
        return read_table(root, snapshot, table, view, list(columns))

    return moment_of(
        manifest,
        validation_if_any(root, snapshot),
        settings_of(root, snapshot, {}).values,
        rows("brokers", *BROKER_COLUMNS.values()),
        rows("bundles", *BUNDLE_COLUMNS),
    )
