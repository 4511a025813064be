"""`index`: one page over all clusters of a root, from their folded days and last advice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from pulsar_advisor.documents.history_day import HistoryDay
from pulsar_advisor.execution.ledger.opening import ledger_if_any
from pulsar_advisor.history.trend import HOURS, moves_text, slope_of, slope_text
from pulsar_advisor.model.cluster.snapshot_id import hour_of, midnight, snapshot_moment
from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.model.text.reader import reader
from pulsar_advisor.reporting.fleet import FleetRow, render_fleet
from pulsar_advisor.stages.snapshot_lines import Recorded, SnapshotLine, last_and_unfinished
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.history import folded_days
from pulsar_advisor.storage.index import newest
from pulsar_advisor.storage.root import Root

_LOOKED_AT: Final = 12
"""Snapshots among which the last one with a verdict is looked for."""


def run(root: Root, days: int, ledger_url: str | None) -> str:
    """Write the page to `index.html` of a root, whose cluster is ignored; returns its place. Raises `StorageError`.

    `ledger_url` is the address of the ledger, which there may not be yet.
    """
    page = root.path / "index.html"
    with ledger_if_any(ledger_url) as ledger:
        recorded = Recorded.of(ledger)
    rows = [fleet_row(Root(root.url, name), days, _report, recorded) for name in root.known_clusters()]
    write_file(page, render_fleet(rows, days).encode())
    return str(page)


def fleet_row(root: Root, days: int, report_at: Callable[[str, str], str], recorded: Recorded) -> FleetRow:
    """A cluster, as far as its files can be read; `report_at` is the link to the report of a cluster and snapshot."""
    problems: list[str] = []
    folded: Sequence[HistoryDay] = ()
    advice: SnapshotLine | None = None
    without_advice = ""
    try:
        folded, unreadable = folded_days(root, days)
        problems += unreadable
        last, unfinished = last_and_unfinished(recorded.lines(root.cluster, newest(root, _LOOKED_AT)))
        advice = last or unfinished
        without_advice = "no snapshot is left" if folded else "never captured"
    except (AdvisorError, OSError) as error:
        problems.append(str(error))
        without_advice = "not known"
    same = [day for day in folded if day.cluster_name == folded[-1].cluster_name]
    known = {day.day: day.summary for day in same if day.summary is not None}
    if len(known) < len(same):
        problems.append(f"some days were folded by an earlier release: {reader().fold_days}")
    found = _row(root.cluster, same, without_advice, "; ".join(problems) or None)
    if advice is None:
        return found
    report = report_at(root.cluster, advice.id) if advice.has_report else None
    advised_at = f"{snapshot_moment(advice.id):%Y-%m-%d %H:%M} UTC"
    return replace(found, verdict=advice.sentence, advised_at=advised_at, report=report)


def _report(cluster: str, snapshot: str) -> str:
    """The link from the page to a report."""
    return f"reports/cluster={cluster}/snapshot={snapshot}/report.html"


def _row(cluster: str, days: Sequence[HistoryDay], verdict: str, problem: str | None) -> FleetRow:
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
        problem=problem,
    )


def _hours(day: HistoryDay) -> set[int]:
    """The hours (UTC) of a day that have a fit snapshot."""
    return {hour_of(one.id) for one in day.snapshots if one.fit}


def _ordinal(day: HistoryDay) -> int:
    return midnight(day.day).toordinal()
