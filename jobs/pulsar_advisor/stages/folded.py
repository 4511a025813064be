"""Which snapshots may be removed because their day is over and holds them, according to a cluster's folded days."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Final

from pulsar_advisor.documents.history_day import HistoryDay
from pulsar_advisor.history.columns import DAY_TABLES, EVENTS
from pulsar_advisor.history.events import OWN, UNKNOWN
from pulsar_advisor.model.cluster.snapshot_id import day_of
from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.storage.history import folded_days
from pulsar_advisor.storage.results import read_manifest, result_sha256
from pulsar_advisor.storage.root import Root
from pulsar_advisor.tables.days import damage, read_day_tables

_ROUTINE_CAUSES: Final = (OWN, UNKNOWN)
"""Causes of moves that nearly every snapshot of a self-balancing cluster shows."""

_log = logging.getLogger(__name__)


class FoldedDays:
    """The folded days before today."""

    def __init__(self, root: Root, today: str) -> None:
        """`today` is `YYYYMMDD`, in UTC. Raises `StorageError` if the days can't be listed."""
        self._root = root
        days, unreadable = folded_days(root)
        for line in unreadable:
            _log.warning("day %s", line)
        self._days = {day.day: day for day in days if day.day < today}
        self._snapshots = {one.id: one for day in self._days.values() for one in day.snapshots}

    @property
    def fit(self) -> frozenset[str]:
        """The snapshots that validation found fit."""
        return frozenset(one.id for one in self._snapshots.values() if one.fit)

    def hold(self, id: str) -> bool:
        """Whether a snapshot's day is over and was folded with the snapshot as it is now.

        Also true, once its day was folded, for a snapshot that no day can hold: one without tables, or of another
        cluster that used this name in paths. False if its cluster can't be read.
        """
        folded, day = self._snapshots.get(id), self._days.get(day_of(id))
        if day is None:
            return False
        snapshot = self._root.snapshot(id)
        if not snapshot.is_written("normalize"):
            return True
        if folded is None:
            try:
                return read_manifest(snapshot).identity.cluster_name != day.cluster_name
            except AdvisorError as error:
                _log.warning("snapshot %s can't be read, so it is kept: %s", id, error)
                return False
        now = result_sha256(snapshot, "capture"), result_sha256(snapshot, "validate")
        return (folded.manifest_sha256, folded.validation_sha256) == now

    def damaged(self, snapshots: Collection[str]) -> set[str]:
        """The snapshots whose day isn't as it was written: only their tables allow the day to be folded again."""
        asked = {day_of(snapshot) for snapshot in snapshots}
        days = {day.day for day in self._days.values() if day.day in asked and self._is_damaged(day)}
        return {snapshot for snapshot in snapshots if day_of(snapshot) in days}

    def _is_damaged(self, day: HistoryDay) -> bool:
        found = list(damage(self._root, day, DAY_TABLES))
        for why in found:
            _log.warning("%s, so the snapshots of day %s are kept", why, day.day)
        return bool(found)

    def of_events(self, snapshots: Collection[str]) -> set[str]:
        """The snapshots that are the first to show an event, or the last before it.

        Moves that the cluster made by itself don't count. If a day's events can't be read, all its snapshots are
        included.
        """
        asked, found = {day_of(snapshot) for snapshot in snapshots}, set[str]()
        for day in self._days.values():
            if {day.day, day_of(day.follows or "")} & asked:
                found |= self._around_events(day)
        return found.intersection(snapshots)

    def _around_events(self, day: HistoryDay) -> set[str]:
        try:
            day, tables = read_day_tables(self._root, day, {"events": EVENTS})
        except AdvisorError as error:
            _log.warning("the events of day %s can't be read, so its snapshots are kept: %s", day.day, error)
            return set(_ids(day))
        events, ids = tables["events"], _ids(day)
        shown = {
            t
            for t, kind, cause in zip(*(events[name].to_pylist() for name in ("t", "kind", "cause")), strict=True)
            if kind != "move" or cause not in _ROUTINE_CAUSES
        }
        return {ids[place] for t in shown for place in (t, t + 1)}


def _ids(day: HistoryDay) -> list[str]:
    """The snapshots of a day, preceded by the one that it follows."""
    return [day.follows or "", *(one.id for one in day.snapshots)]
