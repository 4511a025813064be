"""`index`: one page over all clusters of a root, from their folded days and last advice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from pulsar_advisor.documents.history_day import HistoryDay
from pulsar_advisor.history.trend import HOURS, moves_text, slope_of, slope_text
from pulsar_advisor.model.cluster.snapshot_id import hour_of, midnight
from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.model.text.reader import reader
from pulsar_advisor.reporting.fleet import FleetRow, render_fleet
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.history import folded_days
from pulsar_advisor.storage.index import newest
from pulsar_advisor.storage.root import Root


def run(root: Root, days: int) -> str:
    """Write the page to `index.html` of a root, whose cluster is ignored; returns its place. Raises `StorageError`."""
    page = root.path / "index.html"
    rows = [fleet_row(Root(root.url, name), days, _report) for name in root.known_clusters()]
    write_file(page, render_fleet(rows, days).encode())
    return str(page)


def fleet_row(root: Root, days: int, report_at: Callable[[str, str], str]) -> FleetRow:
    """A cluster, as far as its files can be read; `report_at` is the link to the report of a cluster and snapshot."""
    problems: list[str] = []
    folded: Sequence[HistoryDay] = ()
    verdict: str | None = None
    report: str | None = None
    try:
        folded, unreadable = folded_days(root, days)
        problems += unreadable
        for last in newest(root, 1):
            verdict = last.sentence
            report = report_at(root.cluster, last.id) if last.has_report else None
    except (AdvisorError, OSError) as error:
        problems.append(str(error))
        verdict = "not known"
    if verdict is None:
        verdict = "no snapshot is left" if folded else "never captured"
    same = [day for day in folded if day.cluster_name == folded[-1].cluster_name]
    known = {day.day: day.summary for day in same if day.summary is not None}
    if len(known) < len(same):
        problems.append(f"some days were folded by an earlier release: {reader().fold_days}")
    return _row(root.cluster, same, verdict, report, "; ".join(problems) or None)


def _report(cluster: str, snapshot: str) -> str:
    """The link from the page to a report."""
    return f"reports/cluster={cluster}/snapshot={snapshot}/report.html"


def _row(cluster: str, days: Sequence[HistoryDay], verdict: str, report: str | None, problem: str | None) -> FleetRow:
    found = [(day, day.summary) for day in days if day.summary is not None]
    fit = [(day, one.busiest, one) for day, one in found if one.busiest is not None]
    moves: Counter[str] = Counter()
    for _, one in found:
        moves.update(one.moves)
    last = fit[-1][2] if fit else None
    by_day = {_ordinal(day): busiest for day, busiest, _ in fit}
    ordinals = [_ordinal(day) for day in days]
    hours = [(HOURS * _ordinal(day) + hour, busiest) for day, busiest, _ in fit for hour in _hours(day)]
    slope = slope_of(np.array([hour for hour, _ in hours], np.int64), np.array([busiest for _, busiest in hours]))
    return FleetRow(
        cluster=cluster,
        days=len(days),
        imported=sum(day.imported is not None for day in days),
        snapshots=sum(len(day.snapshots) for day in days),
        fit=sum(one.fit for day in days for one in day.snapshots),
        brokers=found[-1][1].brokers if found else 0,
        bundles=found[-1][1].bundles if found else 0,
        busiest=tuple(map(by_day.get, range(min(ordinals), max(ordinals) + 1))) if ordinals else (),
        now=last.busiest_last if last else None,
        day=f"{midnight(fit[-1][0].day):%Y-%m-%d}" if fit else "",
        excess=last.excess if last else None,
        slope=slope_text(slope),
        moves=moves_text(moves.total(), moves),
        changed_settings=sum(one.settings for _, one in found),
        restarts=sum(one.restarts for _, one in found),
        verdict=verdict,
        report=report,
        problem=problem,
    )


def _hours(day: HistoryDay) -> set[int]:
    """The hours (UTC) of a day that have a fit snapshot."""
    return {hour_of(one.id) for one in day.snapshots if one.fit}


def _ordinal(day: HistoryDay) -> int:
    return midnight(day.day).toordinal()
