"""The content of the pages of all clusters and of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from typing import Final

from pulsar_advisor.execution.ledger import lists
from pulsar_advisor.execution.ledger.lists import AfterRun
from pulsar_advisor.execution.ledger.plan_states import PlanState, states_of
from pulsar_advisor.execution.ledger.rolls import open_rolls
from pulsar_advisor.execution.ledger.switches import SwitchedOff
from pulsar_advisor.execution.ledger.tables import Event, Run
from pulsar_advisor.execution.ledger.unfinished import concerns
from pulsar_advisor.execution.ledger.verifications import Verdict, last_verdicts
from pulsar_advisor.execution.run.guard.left_off import left_off_by_cluster
from pulsar_advisor.model.bounds import DEFAULT_DAYS
from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.reporting.fleet import FleetRow
from pulsar_advisor.stages.index import fleet_row
from pulsar_advisor.stages.snapshot_lines import (
    CARRIED_OUT,
    Recorded,
    ShownVerdict,
    SnapshotLine,
    last_and_unfinished,
    snapshot_lines,
)
from pulsar_advisor.storage.index import newest
from pulsar_advisor_airflow.clusters import Cluster
from pulsar_advisor_airflow.configuration import report_link
from pulsar_advisor_airflow.pages.answers import without_places
from pulsar_advisor_airflow.pages.dag_runs import NewestRun, newest_runs
from pulsar_advisor_airflow.pages.parts import EVENTS_SHOWN, ROWS_SHOWN, Offsets, Part, Shown, part
from pulsar_advisor_airflow.pages.places import ledger_if_any, root_of

TREND_SHOWN: Final = 12
"""Snapshots in a cluster's trend on the page of all clusters."""
VERDICTS_READ: Final = 100
"""Maximum number of `verify`'s verdicts read per cluster."""
_READ_AT_ONCE: Final = 16
"""Clusters read in parallel: on an object store each file is a round trip."""


@dataclass(frozen=True)
class ClusterLine:
    """A cluster, its last advice, how the newest run of its DAGs goes, and its newest run of a plan."""

    cluster: Cluster
    run: Run | None
    dag_run: NewestRun | None
    last: SnapshotLine | None = None
    """Its newest snapshot with a verdict."""
    unfinished: SnapshotLine | None = None
    """Its newest snapshot, if a stage has yet to run on it, or failed."""
    problem: str = ""
    """Why its files can't be read."""
    trend: Sequence[SnapshotLine] = ()
    """Oldest first."""
    left_off: Sequence[SwitchedOff] = ()
    """What runs switched off and could not restore."""


@dataclass(frozen=True)
class ClusterContent:
    """A cluster's snapshots, plans, runs and events, newest first."""

    snapshots: Part[SnapshotLine]
    dag_run: NewestRun | None
    unfinished: SnapshotLine | None
    """As in `ClusterLine`."""
    plans: Part[PlanState] = field(default=Part((), None))
    runs: Part[Run] = field(default=Part((), None))
    verdicts: Mapping[int, Verdict] = field(default_factory=dict)
    concerns: Mapping[int, str] = field(default_factory=dict)
    """Both as in `PlanContent`."""
    events: Sequence[Event] = ()
    left_off: Sequence[SwitchedOff] = ()
    """As in `ClusterLine`."""
    rolls: Sequence[str] = ()
    """The digests of rolls that were begun and aren't over."""

    @property
    def trend(self) -> Sequence[SnapshotLine]:
        """The snapshots, oldest first."""
        return self.snapshots.rows[::-1]


def cluster_lines(clusters: Sequence[Cluster]) -> list[ClusterLine]:
    """A line for each cluster; those with something wrong or to be done come first."""
    dag_runs = newest_runs(clusters)
    with ledger_if_any() as ledger:
        runs = {} if ledger is None else lists.newest_runs(ledger)
        recorded = Recorded.of(ledger)
        off = {} if ledger is None else left_off_by_cluster(ledger)

    def line(cluster: Cluster) -> ClusterLine:
        return _line(cluster, runs.get(cluster.name), dag_runs.get(cluster.name), recorded)

    lines = _for_each(clusters, line)
    return sorted((replace(line, left_off=off.get(line.cluster.name, ())) for line in lines), key=_urgency)


def fleet_rows(clusters: Sequence[Cluster]) -> list[FleetRow]:
    """The last weeks of clusters, from their folded days."""
    with ledger_if_any() as ledger:
        recorded = Recorded.of(ledger)

    def row(cluster: Cluster) -> FleetRow:
        found = fleet_row(root_of(cluster), DEFAULT_DAYS, report_link, recorded)
        return found if found.problem is None else replace(found, problem=without_places(found.problem))

    return _for_each(clusters, row)


def cluster_content(cluster: Cluster, offsets: Offsets) -> ClusterContent:
    """Everything about a cluster, a part of each list."""
    rows = newest(root_of(cluster), ROWS_SHOWN + 1, offsets.snapshots_before)
    dag_run = newest_runs([cluster]).get(cluster.name)

    def content_with(after: Mapping[str, AfterRun], newest_run: Run | None) -> ClusterContent:
        snapshots = snapshot_lines(rows, after, newest_run)
        shown = part(snapshots, ROWS_SHOWN, lambda row: row.id)
        return ClusterContent(shown, dag_run, last_and_unfinished(snapshots)[1])

    with ledger_if_any() as ledger:
        if ledger is None:
            return content_with({}, None)
        after = lists.after_runs(ledger, cluster.name, VERDICTS_READ)
        content = content_with(after, lists.newest_runs(ledger, CARRIED_OUT).get(cluster.name))
        plans = lists.summaries(ledger, cluster.name, offsets.plans_from, ROWS_SHOWN + 1)
        runs = lists.runs_on(ledger, cluster.name, offsets.runs_from, ROWS_SHOWN + 1)
        states = states_of(ledger, cluster.name, plans)
        return replace(
            content,
            plans=part(states, ROWS_SHOWN, lambda _: offsets.plans_from + ROWS_SHOWN),
            runs=part(runs, ROWS_SHOWN, lambda _: offsets.runs_from + ROWS_SHOWN),
            events=lists.newest_events(ledger, cluster.name, EVENTS_SHOWN),
            verdicts=last_verdicts(ledger, [run.id for run in runs[:ROWS_SHOWN]]),
            concerns=concerns(ledger, runs[:ROWS_SHOWN]),
            left_off=left_off_by_cluster(ledger).get(cluster.name, ()),
            rolls=open_rolls(ledger, cluster.name),
        )


def _for_each(clusters: Sequence[Cluster], read: Callable[[Cluster], Shown]) -> list[Shown]:
    """What `read` returns for each cluster, several at a time, in the caller's context (who reads the page)."""
    with ThreadPoolExecutor(_READ_AT_ONCE) as pool:
        return [each.result() for each in [pool.submit(copy_context().run, read, cluster) for cluster in clusters]]


def _line(
    cluster: Cluster,
    run: Run | None,
    dag_run: NewestRun | None,
    recorded: Recorded,
) -> ClusterLine:
    try:
        rows = recorded.lines(cluster.name, newest(root_of(cluster), TREND_SHOWN))
    except AdvisorError as error:
        return ClusterLine(cluster, run, dag_run, problem=str(error))
    last, unfinished = last_and_unfinished(rows)
    return ClusterLine(cluster, run, dag_run, last, unfinished, trend=rows[::-1])


def _urgency(line: ClusterLine) -> tuple[int, str]:
    if line.left_off or (line.run is not None and line.run.is_unfinished):
        return 0, line.cluster.name
    if line.problem or (line.dag_run and line.dag_run.failed):
        return 1, line.cluster.name
    order: dict[ShownVerdict, int] = {"unreadable": 1, "unfit": 1, "deviates": 1, "act": 3}
    return order.get(line.last.verdict, 4) if line.last else 2, line.cluster.name
