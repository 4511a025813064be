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

from pulsar_advisor.admin.prometheus import POINTS, Prometheus, Question, Samples, Window
from pulsar_advisor.documents.history_day import FoldedSnapshot, FoldedTable, HistoryDay, Imported
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.opening import ledger_if_any
from pulsar_advisor.history.columns import COLUMNS, DAY_TABLES
from pulsar_advisor.history.exported import (
    BUNDLES,
    HOST_METRICS,
    JOB,
    LEVELS,
    NAMESPACES,
    STARTED,
    TOPICS,
    VERSION,
    VERSION_LABEL,
    Labels,
    Level,
    broker_of,
    groups,
    of_namespaces,
    selector,
)
from pulsar_advisor.history.exporters import Exporters
from pulsar_advisor.history.imported import MISSING, ScrapedHosts, day_tables, gaps
from pulsar_advisor.history.ring import Ring, namespace_of
from pulsar_advisor.history.scraped import Scraped
from pulsar_advisor.history.summary import summary_of
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.errors import DataNotFit, UsageError
from pulsar_advisor.model.text.some_of import count, some_of
from pulsar_advisor.stages.moments import last_seen
from pulsar_advisor.stages.seal import seal_day, was_sealed
from pulsar_advisor.storage.files import sha256_hex
from pulsar_advisor.storage.history import day_if_any, day_path, last_before
from pulsar_advisor.storage.lease import held
from pulsar_advisor.storage.results import read_manifest
from pulsar_advisor.storage.root import LATEST, Root
from pulsar_advisor.tables.days import damage, read_part, remove_parts, write_day, write_part
from pulsar_advisor.tables.judged import settings_of
from pulsar_advisor.tables.read_table import read_table
from pulsar_advisor.tables.state import judged_view

_log = logging.getLogger(__name__)

DAY_S: Final = 24 * 60 * 60
MOST_ROWS: Final = 20_000_000
"""Limit for one day, bundles times moments: this many take 600 MB of memory."""
_COUNTED_S: Final = 3 * 60 * 60
"""Series are counted over this long at a time."""
_LOOKBACK_S: Final = 5 * 60
"""Maximum age of a sample, Prometheus's default: the first moment may show the day before."""
_HOST_MOMENTS: Final = 1_000
"""Moments of broker figures per query: there are at most about a thousand brokers."""


@dataclass(frozen=True)
class _Source:
    """What the queries for all days share."""

    server: Prometheus
    address: str
    clock_ahead_s: int
    cluster_name: str
    labels: Labels
    snapshot: str
    bundles: tuple[str, ...]
    broker_ids: tuple[str, ...]
    settings: LoadBalancerSettings


def run(
    root: Root,
    server: Prometheus,
    address: str,
    *,
    days: int,
    step_s: int,
    labels: Labels,
    begun: Callable[[str], None] = lambda _: None,
    ledger_address: str | None = None,
) -> Iterator[HistoryDay]:
    """Import the last `days` days (UTC), today up to now, oldest first; `begun` is called with each day first.

    A day folded from snapshots, or imported to its end, is skipped, unless it was imported and a file is damaged.
    `address` names the server in the day; `ledger_address` is as for `fold`: a day that the ledger has sealed is sealed
    again. Raises `UsageError` without a normalized snapshot, `DataNotFit` if the server knows nothing of the cluster or
    answers in part, `ClusterUnreachable` if it can't be asked.
    """
    source, now_s = _source(root, server, address, labels, days)
    today_s = now_s // DAY_S * DAY_S
    for start_s in range(today_s - (days - 1) * DAY_S, today_s + 1, DAY_S):
        day = f"{datetime.fromtimestamp(start_s, UTC):%Y%m%d}"
        # All moments of a past day; of today, only those whose step is over.
        window = Window(start_s, step_s, (now_s - start_s) // step_s if start_s == today_s else -(-DAY_S // step_s))
        if not window.number:
            continue
        begun(day)
        with held(day_path(root, day).parent, day, f"day {day} of cluster {root.cluster} is being imported") as lease:
            before = day_if_any(root, day)
            if before is not None and not _is_to_be_imported(root, before, window):
                _log.info("day %s already exists: kept", day)
                remove_parts(root, day)  # parts of an import that was killed after the day was written
                yield before
                continue
            with ledger_if_any(ledger_address or root.own_ledger_url) as ledger:
                imported = _import_day(root, source, day, window, lease.require, ledger)
            if imported is None:
                _log.warning("day %s: no figures were scraped", day)
            else:
                yield imported


def _source(root: Root, server: Prometheus, address: str, labels: Labels, days: int) -> tuple[_Source, int]:
    """What the queries for all days share, and the server's time."""
    root.resolve(LATEST)
    snapshot = next((id for id in root.newest_first() if root.is_written(id, "normalize")), None)
    if snapshot is None:
        raise UsageError(
            f"no snapshot of cluster '{root.cluster}' is normalized: run `normalize`; its bundles are needed"
        )
    manifest = read_manifest(root, snapshot)
    now_s = int(server.clock_s())
    once_a_day = Window(now_s - (days - 1) * DAY_S, DAY_S, days)
    labels = _labels(server, labels, manifest.identity.cluster_name, once_a_day)
    source = _Source(
        server=server,
        address=address,
        clock_ahead_s=server.clock_ahead_s(),
        cluster_name=manifest.identity.cluster_name,
        labels=labels,
        snapshot=snapshot,
        bundles=tuple(read_table(root, snapshot, "bundles", judged_view(manifest), ["bundle"])["bundle"].to_pylist()),
        broker_ids=tuple(manifest.identity.broker_ids),
        settings=settings_of(root, snapshot, {}).values,
    )
    _require_known(source, once_a_day)
    return source, now_s


def _labels(server: Prometheus, labels: Labels, cluster_name: str, window: Window) -> Labels:
    """The labels by their names on this server; restricted to this cluster if the server has series of it."""
    exported = f"exported_{labels.cluster}"
    wanted = (labels.cluster, *(f"exported_{name}" for name in vars(labels).values()))
    metrics = (level.metrics[0] for level in (TOPICS, BUNDLES))
    one_each = (f"topk by ({labels.cluster}, {exported}) (1, {metric})" for metric in metrics)
    answers = server.answers(Question(query, window, wanted) for query in one_each)
    series = [dict(zip(wanted, found, strict=True)) for samples in answers for found in samples.labels]
    ours = [one for one in series if cluster_name in (one[labels.cluster], one[exported])]
    return labels.replaced({name for one in ours or series for name, value in one.items() if value})


def _require_known(source: _Source, window: Window) -> None:
    """Refuse a server without data about the cluster's brokers in this period."""
    label = source.labels.cluster
    query = f"count by ({label}) (last_over_time({HOST_METRICS['cpu_usage']}[1d]))"
    names = {name for (name,) in source.server.ask(Question(query, window, (label,))).labels if name}
    if source.cluster_name not in names:
        others = f"it has clusters: {some_of(names)}" if names else "it has none: does it scrape /metrics?"
        raise DataNotFit(
            f"{source.address} has no broker of cluster '{source.cluster_name}' in label {label}; {others}; if the "
            "label has another name, give it with --label cluster=NAME"
        )


def _is_to_be_imported(root: Root, before: HistoryDay, window: Window) -> bool:
    """Whether an existing day holds only an import, and a moment in the window is missing or a file is damaged."""
    if before.imported is None or not before.is_only_imported:
        return False
    ends_earlier = window.start_s + before.imported.step_s * before.imported.moments <= window.end_s
    return ends_earlier or any(damage(root, before, DAY_TABLES))


def _import_day(
    root: Root, source: _Source, day: str, window: Window, require: Callable[[], None], ledger: Ledger | None
) -> HistoryDay | None:
    hosts = _hosts(source, window)
    if not hosts.scraped.any():
        return None
    level, series = _level(source, window)
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
    parts = [
        _part(root, source, day, window, level, ring, group, namespaces) for group in _groups(ring, namespaces, window)
    ]
    load = pa.concat_tables(parts)
    unusable = sum(int((part.schema.metadata or {}).get(b"unusable", b"0")) for part in parts)
    follows = last_before(root, day, source.cluster_name)
    tables = day_tables(
        window,
        ring.names,
        hosts,
        load,
        source.settings,
        owners_known=level is not NAMESPACES,
        before=None if follows is None else last_seen(root, follows, source.cluster_name),
    )
    require()

    def result(files: Mapping[str, FoldedTable]) -> HistoryDay:
        moments = zip(tables["moments"]["snapshot"].to_pylist(), tables["moments"]["fit"].to_pylist(), strict=True)
        unknown = tuple(id for id in tables["brokers"]["id"].to_pylist() if id not in source.broker_ids)
        doubtful = level is not TOPICS or unknown
        made = HistoryDay(
            cluster=root.cluster,
            cluster_name=source.cluster_name,
            day=day,
            columns=COLUMNS,
            snapshots=tuple(
                FoldedSnapshot(id=id, manifest_sha256="", validation_sha256=None, fit=fit) for id, fit in moments
            ),
            follows=follows,
            summary=summary_of(tables["index"], tables["events"]),
            tables=files,
            imported=Imported(
                server=source.address,
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
            is_sealed=ledger is not None and was_sealed(ledger, root, day),
        )
        if ledger is not None and made.is_sealed:
            seal_day(ledger, root, made)
        return made

    written = write_day(root, day, tables, result)
    remove_parts(root, day)
    return written


def _hosts(source: _Source, window: Window) -> ScrapedHosts:
    hosts = ScrapedHosts(window.number)
    labels = (source.labels.instance, JOB, VERSION_LABEL)
    metrics = {**HOST_METRICS, "started": STARTED, "version": VERSION}
    asked = [(column, metric, *part) for column, metric in metrics.items() for part in window.parts(_HOST_MOMENTS)]
    questions = (
        Question(selector(metric, source.labels, source.cluster_name), part, labels) for _, metric, _, part in asked
    )
    processes = set[tuple[str, ...]]()
    for (column, _, first, _), samples in zip(asked, source.server.answers(questions), strict=True):
        if column in HOST_METRICS:
            processes.update(of[:2] for of in samples.labels)
        # Bookies and proxies say when they started, too.
        places = [place for place, of in enumerate(samples.labels) if of[:2] in processes]
        found, figures = [samples.labels[place] for place in places], samples.figures[places]
        if any(not instance for instance, *_ in found):
            raise DataNotFit(
                f"series of {metrics[column]} at {source.address} lack the label {source.labels.instance}: if it has "
                "another name, give it with --label instance=NAME"
            )
        brokers = [broker_of(instance, source.broker_ids) for instance, *_ in found]
        if column == "version":
            hosts.add_versions(first, brokers, [version for *_, version in found], figures)
        else:
            hosts.add(column, first, brokers, figures)
    return hosts


def _level(source: _Source, window: Window) -> tuple[Level, Mapping[str, int]]:
    """The most detailed level with figures, and the number of series by namespace, or by bundle."""
    of_day = Window(window.start_s + _COUNTED_S, _COUNTED_S, (window.end_s - window.start_s) // _COUNTED_S + 1)
    for level in LEVELS:
        label = source.labels.bundle if level is BUNDLES else source.labels.namespace
        figures = selector(level.metrics[0], source.labels, source.cluster_name, level.matchers(source.labels))
        query = f"count by ({label}) (last_over_time({figures}[{_COUNTED_S + _LOOKBACK_S}s]))"
        samples = source.server.ask(Question(query, of_day, (label,)))
        found = {name: int(most) for (name,), most in zip(samples.labels, _most(samples), strict=True) if most}
        if "" in found:
            raise DataNotFit(
                f"{found['']:,} series of {level.metrics[0]} at {source.address} lack the label {label}: if it "
                f"has another name, give it with --label"
            )
        if found:
            return level, found
    return TOPICS, {}


def _most(samples: Samples) -> list[float]:
    return [float(one) for one in np.nan_to_num(samples.figures).max(axis=1, initial=0)]


def _groups(ring: Ring, namespaces: Mapping[str, int], window: Window) -> Iterator[tuple[str, ...]]:
    """All namespaces of the ring, grouped so that one query about a group stays below `POINTS`."""
    everywhere = {namespace_of(name): 0 for name in ring.names} | dict(namespaces)
    return groups(everywhere, max(POINTS // window.number, 1))


def _part(
    root: Root,
    source: _Source,
    day: str,
    window: Window,
    level: Level,
    ring: Ring,
    group: tuple[str, ...],
    namespaces: Mapping[str, int],
) -> pa.Table:
    """The load of some namespaces' bundles: read from an earlier import's part, or queried and written."""
    bundles = [number for namespace in group for number in ring.bundles_of(namespace)]
    made_of = (source.address, source.cluster_name, source.labels, level.name, window, source.broker_ids, group)
    name = sha256_hex(repr((*made_of, [ring.names[number] for number in bundles])).encode())
    if (before := read_part(root, day, name)) is None:
        scraped, unusable = _queried(source, window, level, ring, group, sum(namespaces.get(one, 0) for one in group))
        before = scraped.load(bundles).replace_schema_metadata({"unusable": str(unusable)})
        write_part(root, day, name, before)
    numbers = np.asarray(bundles, np.int32)
    return before.set_column(0, before.schema.field(0), pa.array(np.repeat(numbers, window.number)))


def _queried(
    source: _Source, window: Window, level: Level, ring: Ring, group: tuple[str, ...], series: int
) -> tuple[Scraped, int]:
    """What the server has about namespaces, and how many samples were unusable."""
    scraped, unusable = Scraped(window.number), 0
    if not series:
        return scraped, 0
    names = source.labels
    labels = (names.instance, names.namespace, level.subject_label(names), names.partition)
    matchers = (level.matchers(names), of_namespaces(level, names, group))
    number = max(POINTS // series, 1)
    asked = [(figure, *part) for figure in range(len(level.metrics)) for part in window.parts(number)]
    questions = (
        Question(selector(level.metrics[figure], names, source.cluster_name, *matchers), part, labels)
        for figure, _, part in asked
    )
    exporters = Exporters(source.broker_ids, level, ring)
    for (figure, first, _), samples in zip(asked, source.server.answers(questions), strict=True):
        unusable += samples.unusable
        scraped.add(figure, first, exporters.places(samples.labels), samples.figures)
    return scraped, unusable
