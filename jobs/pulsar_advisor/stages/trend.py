"""`trend`: the trend over a cluster's last folded days."""

from __future__ import annotations

import logging

import pyarrow as pa

from pulsar_advisor.history.columns import DAY_TABLES
from pulsar_advisor.history.trend import Trend, trend_of
from pulsar_advisor.model.errors import StorageError, UsageError
from pulsar_advisor.model.text.reader import reader
from pulsar_advisor.model.text.some_of import count
from pulsar_advisor.storage.history import folded_days
from pulsar_advisor.storage.root import Root
from pulsar_advisor.tables.days import read_day_tables

_log = logging.getLogger(__name__)


def run(root: Root, days: int) -> tuple[int, Trend]:
    """The number of days read, at most the last `days` folded ones, and their trend.

    Several clusters may have used one name in paths: only the last one's days count. Raises `UsageError` without a
    folded day.
    """
    folded, unreadable = folded_days(root, days)
    for why in unreadable:
        _log.warning("day %s", why)
    if not folded:
        root.require_known()
        raise UsageError(f"no day of cluster '{root.cluster}' was folded yet: run `history fold`")
    same = [day for day in folded if day.cluster_name == folded[-1].cluster_name]
    if imported := [day.imported for day in same if day.imported is not None]:
        unsure = sum(one.confidence == "low" for one in imported)
        _log.warning(
            "imported: %d of %s, %d with low confidence; `history show` says what was guessed or left out",
            *(len(imported), count(len(same), "day"), unsure),
        )
    if silent := sum("events" not in day.tables for day in same):
        _log.warning(
            "folded by an earlier release: %d of %s, without splits and without who moved what; %s",
            *(silent, count(len(same), "day"), reader().fold_days),
        )
    schemas = {table: DAY_TABLES[table] for table in ("index", "events")}
    tables = [read_day_tables(root, day, schemas)[1] for day in same]
    index, events = (pa.concat_tables([of_day[table] for of_day in tables]) for table in schemas)
    if not len(index):
        raise StorageError(f"the folded days of cluster '{root.cluster}' hold no snapshot: fold them again")
    return len(same), trend_of(index, events)
