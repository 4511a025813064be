"""`history import`: imports past days from a Prometheus that scraped the brokers, with today's bundle boundaries.

A day is read in parts, each written as it arrives, so a killed import continues where it was.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import numpy as np
import pyarrow as pa

from pulsar_advisor.admin.prometheus import POINTS, Prometheus, Window
from pulsar_advisor.documents.history_day import FoldedSnapshot, FoldedTable, HistoryDay, Imported
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.opening import ledger_if_any
from pulsar_advisor.history.columns import COLUMNS, DAY_TABLES
from pulsar_advisor.history.exported import BUNDLES, NAMESPACES, TOPICS, Labels, Level, groups
from pulsar_advisor.history.imported import MISSING, day_tables, gaps
from pulsar_advisor.history.ring import Ring, namespace_of
from pulsar_advisor.history.scraped_cluster import ScrapedCluster, labels_on
from pulsar_advisor.history.trend import summary_of
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.text.some_of import count
from pulsar_advisor.stages.moments import last_seen
from pulsar_advisor.stages.seal import seal_day, was_sealed
from pulsar_advisor.storage.files import sha256_hex
from pulsar_advisor.storage.history import day_if_any, last_before
from pulsar_advisor.storage.lease import held
from pulsar_advisor.storage.results import read_manifest
from pulsar_advisor.storage.root import LATEST, Day, Root
from pulsar_advisor.tables.days import damage, read_part, remove_parts, write_day, write_part
from pulsar_advisor.tables.judged import settings_of
from pulsar_advisor.tables.read_table import read_table
from pulsar_advisor.tables.state import judged_view

_log = logging.getLogger(__name__)

DAY_S: Final = 24 * 60 * 60
MOST_ROWS: Final = 20_000_000
"""Limit for one day, bundles times moments: this many take 600 MB of memory."""


@dataclass(frozen=True)
class _Source:
    """What the queries for all days share."""

    scraped: ScrapedCluster
    clock_ahead_s: int
    snapshot: str
    bundles: tuple[str, ...]
    settings: LoadBalancerSettings


def run(
    root: Root,
    server: Prometheus,
    *,
    days: int,
    step_s: int,
    labels: Labels,
    begun: Callable[[str], None] = lambda _: None,
    ledger_address: str | None = None,
) -> Iterator[HistoryDay]:
    """Import the last `days` days (UTC), today up to now, oldest first; `begun` is called with each day first.

    A day folded from snapshots, or imported to its end, is skipped, unless it was imported and a file is damaged.
    `ledger_address` is as for `fold`: a day that the ledger has sealed is sealed again. Raises `UsageError` without a
    normalized snapshot, `DataNotFit` if the server knows nothing of the cluster or answers in part,
    `ClusterUnreachable` if it can't be asked.
    """
    source, now_s = _source(root, server, labels, days)
    today_s = now_s // DAY_S * DAY_S
    for start_s in range(today_s - (days - 1) * DAY_S, today_s + 1, DAY_S):
        day = root.day(f"{datetime.fromtimestamp(start_s, UTC):%Y%m%d}")
        # All moments of a past day; of today, only those whose step is over.
        window = Window(start_s, step_s, (now_s - start_s) // step_s if start_s == today_s else -(-DAY_S // step_s))
        if not window.number:
            continue
        begun(day.date)
        with held(day.folder("result"), day.date, f"day {day} of cluster {root.cluster} is being imported") as lease:
            before = day_if_any(day)
            if before is not None and not _is_to_be_imported(root, before, window):
                _log.info("day %s already exists: kept", day)
                remove_parts(day, lease.require)  # parts of an import that was killed after the day was written
                yield before
                continue
            with ledger_if_any(ledger_address or root.own_ledger_url) as ledger:
                imported = _import_day(source, day, window, lease.require, ledger)
            if imported is None:
                _log.warning("day %s: no figures were scraped", day)
            else:
                yield imported


def _source(root: Root, server: Prometheus, labels: Labels, days: int) -> tuple[_Source, int]:
    """What the queries for all days share, and the server's time."""
    root.resolve(LATEST)
    snapshot = next((one for one in root.newest_first() if one.is_written("normalize")), None)
    if snapshot is None:
        raise UsageError(
            f"no snapshot of cluster '{root.cluster}' is normalized: run `normalize`; its bundles are needed"
        )
    manifest = read_manifest(snapshot)
    now_s = int(server.clock_s())
    once_a_day = Window(now_s - (days - 1) * DAY_S, DAY_S, days)
    labels = labels_on(server, labels, manifest.identity.cluster_name, once_a_day)
    source = _Source(
        scraped=ScrapedCluster(server, manifest.identity.cluster_name, labels, tuple(manifest.identity.broker_ids)),
        clock_ahead_s=server.clock_ahead_s(),
        snapshot=snapshot.id,
        bundles=tuple(read_table(snapshot, "bundles", judged_view(manifest), ["bundle"])["bundle"].to_pylist()),
        settings=settings_of(snapshot, {}).values,
    )
    source.scraped.require_known(once_a_day)
    return source, now_s


def _is_to_be_imported(root: Root, before: HistoryDay, window: Window) -> bool:
    """Whether an existing day holds only an import, and a moment in the window is missing or a file is damaged."""
    if before.imported is None or not before.is_only_imported:
        return False
    ends_earlier = window.start_s + before.imported.step_s * before.imported.moments <= window.end_s
    return ends_earlier or any(damage(root, before, DAY_TABLES))


def _import_day(
    source: _Source, day: Day, window: Window, require: Callable[[], None], ledger: Ledger | None
) -> HistoryDay | None:
    scraped = source.scraped
    hosts = scraped.hosts(window)
    if not hosts.scraped.any():
        return None
    level, series = scraped.level(window)
    seen = [subject for subject in series if level is BUNDLES]
    namespaces = Counter[str]()
    for subject, number in series.items():
        namespaces[namespace_of(subject) if level is BUNDLES else subject] += number
    ring = Ring({*source.bundles, *seen}, namespaces)
    if not ring.names:
        return None
    if len(ring.names) * window.number > MOST_ROWS:
        raise UsageError(
            f"a day of {count(len(ring.names), 'bundle')} every {window.step_s} s is more than {MOST_ROWS:,} rows: "
            "choose a greater --step"
        )
    parts = [_part(scraped, day, window, level, ring, group, namespaces) for group in _groups(ring, namespaces, window)]
    load = pa.concat_tables(parts)
    unusable = sum(int((part.schema.metadata or {}).get(b"unusable", b"0")) for part in parts)
    follows = last_before(day, scraped.cluster_name)
    tables = day_tables(
        window,
        ring.names,
        hosts,
        load,
        source.settings,
        owners_known=level is not NAMESPACES,
        before=None if follows is None else last_seen(day.root.snapshot(follows), scraped.cluster_name),
    )

    def result(files: Mapping[str, FoldedTable]) -> HistoryDay:
        moments = zip(tables["moments"]["snapshot"].to_pylist(), tables["moments"]["fit"].to_pylist(), strict=True)
        unknown = tuple(id for id in tables["brokers"]["id"].to_pylist() if id not in scraped.broker_ids)
        doubtful = level is not TOPICS or unknown
        made = HistoryDay(
            cluster=day.root.cluster,
            cluster_name=scraped.cluster_name,
            day=day.date,
            columns=COLUMNS,
            snapshots=tuple(
                FoldedSnapshot(id=id, manifest_sha256="", validation_sha256=None, fit=fit) for id, fit in moments
            ),
            follows=follows,
            summary=summary_of(tables["index"], tables["events"]),
            tables=files,
            imported=Imported(
                server=scraped.server.address,
                level=level.name,
                step_s=window.step_s,
                moments=window.number,
                points_per_question=POINTS,
                clock_ahead_s=source.clock_ahead_s,
                snapshot=source.snapshot,
                gaps=tuple(gaps(window, hosts)),
                unusable_samples=unusable,
                unknown_brokers=unknown,
                unbounded_namespaces=ring.unbounded,
                missing=MISSING,
                confidence="low" if doubtful else "medium",
            ),
            # A day that was never sealed may be the beginning of one that will be.
            is_sealed=ledger is not None and was_sealed(ledger, day),
        )
        if ledger is not None and made.is_sealed:
            seal_day(ledger, day, made)
        return made

    written = write_day(day, tables, result, require)
    remove_parts(day, require)
    return written


def _groups(ring: Ring, namespaces: Mapping[str, int], window: Window) -> Iterator[tuple[str, ...]]:
    """All namespaces of the ring, grouped so that one query about a group stays below `POINTS`."""
    everywhere = {namespace_of(name): 0 for name in ring.names} | dict(namespaces)
    return groups(everywhere, max(POINTS // window.number, 1))


def _part(
    cluster: ScrapedCluster,
    day: Day,
    window: Window,
    level: Level,
    ring: Ring,
    group: tuple[str, ...],
    namespaces: Mapping[str, int],
) -> pa.Table:
    """The load of some namespaces' bundles: read from an earlier import's part, or queried and written."""
    bundles = [number for namespace in group for number in ring.bundles_of(namespace)]
    made_of = (
        cluster.server.address,
        cluster.cluster_name,
        cluster.labels,
        level.name,
        window,
        cluster.broker_ids,
        group,
    )
    name = sha256_hex(repr((*made_of, [ring.names[number] for number in bundles])).encode())
    if (before := read_part(day, name)) is None:
        scraped, unusable = cluster.load(window, level, ring, group, sum(namespaces.get(one, 0) for one in group))
        before = scraped.load(bundles).replace_schema_metadata({"unusable": str(unusable)})
        write_part(day, name, before)
    numbers = np.asarray(bundles, np.int32)
    return before.set_column(0, before.schema.field(0), pa.array(np.repeat(numbers, window.number)))
