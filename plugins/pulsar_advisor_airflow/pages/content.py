"""What the pages show: read from the root, the ledger and Airflow's database, as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Final, Literal

from pulsar_advisor.execution.ledger import Ledger, default_ledger_url, ledger_exists
from pulsar_advisor.execution.ledger_tables import Approval, Event, Proposal, Run, StepRecord
from pulsar_advisor.execution.plan_states import PlanState, plan_states
from pulsar_advisor.model.errors import AdvisorError, UsageError
from pulsar_advisor.model.plan import Plan, load_plan
from pulsar_advisor.storage.files import read_json
from pulsar_advisor.storage.plans import PLANS, RECOMMENDATION, RECOMMENDATION_SCHEMA
from pulsar_advisor.storage.root import RESULT, Root
from pulsar_advisor.storage.validation import read_validation
from pulsar_advisor_airflow.clusters import Cluster
from pulsar_advisor_airflow.configuration import option
from pulsar_advisor_airflow.ledger import opened_ledger
from pulsar_advisor_airflow.pages.dag_runs import NewestRun, newest_runs

SNAPSHOTS_SHOWN: Final = 30
TREND_SHOWN: Final = 12
"""Snapshots in the trend of a cluster among others."""
PLANS_SHOWN: Final = 30
RUNS_SHOWN: Final = 30
EVENTS_SHOWN: Final = 100

_READ_AT_ONCE: Final = 16
"""Clusters read in parallel: on an object store each file is a round trip."""

Verdict = Literal["act", "nothing", "unfit", "unfinished", "unreadable"]
"""act: a plan is advised. unfit: validation failed. unfinished: a stage has yet to run, or failed."""


@dataclass(frozen=True)
class SnapshotLine:
    """A snapshot and what became of it."""

    id: str
    verdict: Verdict
    sentence: str
    failed_checks: int
    has_report: bool


@dataclass(frozen=True)
class Figures:
    """What a trend shows of one snapshot; None where a stage has yet to run, or failed."""

    imbalance_ratio: float | None
    """Standard deviation of the brokers' usage."""
    failed_checks: float | None


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
    trend: Sequence[Figures] = ()
    """Oldest first."""


@dataclass(frozen=True)
class ClusterContent:
    """A cluster's snapshots, plans, runs and events, newest first."""

    snapshots: Sequence[SnapshotLine]
    trend: Sequence[Figures]
    """The same snapshots, oldest first."""
    dag_run: NewestRun | None
    unfinished: SnapshotLine | None
    """As in `ClusterLine`."""
    plans: Sequence[PlanState] = ()
    runs: Sequence[Run] = ()
    events: Sequence[Event] = ()


@dataclass(frozen=True)
class PlanContent:
    """A plan, its state, and what the ledger has recorded about it, oldest first."""

    plan: Plan
    state: PlanState
    proposals: Sequence[Proposal]
    approvals: Sequence[Approval]
    runs: Sequence[Run]
    as_predicted: Mapping[int, bool]
    """The last verdict of `verify` on each run that has one, by the run's number."""
    events: Sequence[Event]
    has_report: bool

    @property
    def rejections(self) -> Sequence[Event]:
        """Who said no, or that an answer didn't come in time."""
        return [event for event in self.events if event.kind == "rejected"]


@dataclass(frozen=True)
class RunContent:
    """A run, its steps in the order of the plan, and its events, oldest first."""

    run: Run
    steps: Mapping[str, StepRecord]
    as_predicted: Mapping[int, bool]
    """As in `PlanContent`."""
    events: Sequence[Event]
    approver: str
    pause: str | None
    """Who asked for a pause, if somebody did."""
    waiting: str
    """What a parked run waits for; empty if it isn't parked."""

    @property
    def confirmed(self) -> int:
        """How many steps are confirmed."""
        return sum(step.state == "confirmed" for step in self.steps.values())


def root_of(cluster: Cluster) -> Root:
    """The root, for a cluster."""
    return Root(option("root"), cluster.name)


def cluster_lines(clusters: Sequence[Cluster]) -> list[ClusterLine]:
    """A line for each cluster: those where something is to be done or wrong come first."""
    dag_runs = newest_runs(clusters)
    runs: dict[str, Run] = {}
    with ledger_if_any() as ledger:
        if ledger is not None:
            runs = {each.name: newest[0] for each in clusters if (newest := ledger.runs_on(each.name))}
    with ThreadPoolExecutor(_READ_AT_ONCE) as pool:
        lines = list(pool.map(lambda each: _line(each, runs.get(each.name), dag_runs.get(each.name)), clusters))
    return sorted(lines, key=_urgency)


def cluster_content(cluster: Cluster) -> ClusterContent:
    """The newest of everything about a cluster."""
    root = root_of(cluster)
    ids = list(islice(root.newest_first(), SNAPSHOTS_SHOWN))
    with ThreadPoolExecutor(_READ_AT_ONCE) as pool:
        snapshots = list(pool.map(lambda snapshot: _snapshot_line(root, snapshot), ids))
        trend = list(pool.map(lambda snapshot: _figures(root, snapshot), reversed(ids)))
    _, unfinished = _last_and_unfinished(snapshots)
    content = ClusterContent(snapshots, trend, newest_runs([cluster]).get(cluster.name), unfinished)
    with ledger_if_any() as ledger:
        if ledger is None:
            return content
        plans = list(islice(plan_states(ledger, cluster.name), PLANS_SHOWN))
        events = [event for record in ledger.plans(cluster.name) for event in ledger.events(record.digest)]
        newest_events = sorted(events, key=lambda event: event.id, reverse=True)[:EVENTS_SHOWN]
        return replace(content, plans=plans, runs=ledger.runs_on(cluster.name)[:RUNS_SHOWN], events=newest_events)


def run_content(ledger: Ledger, cluster: Cluster, number: int) -> RunContent:
    """A run of the cluster. Raises `UsageError` if it has no such run."""
    run = next((run for run in ledger.runs_on(cluster.name) if run.id == number), None)
    if run is None:
        raise UsageError(f"cluster '{cluster.name}' has no run {number}")
    approvals = {approval.id: approval.approver for approval in ledger.approvals(run.digest)}
    events = [event for event in ledger.events(run.digest) if event.run_id == run.id]
    return RunContent(
        run=run,
        steps=ledger.steps(run.id),
        as_predicted=_as_predicted(ledger, run.digest),
        events=events,
        approver=approvals.get(run.approval_id, ""),
        pause=ledger.pause_requested(run.id),
        waiting=next(event.detail for event in reversed(events) if event.kind == "run parked")
        if ledger.is_parked(run)
        else "",
    )


def plan_content(ledger: Ledger, cluster: Cluster, digest: str) -> PlanContent:
    """A plan that was proposed for the cluster. Raises `UsageError` if there is none of this digest."""
    record = next((record for record in ledger.plans(cluster.name) if record.digest == digest), None)
    if record is None:
        raise UsageError(f"no plan {digest} was proposed for cluster '{cluster.name}'")
    return PlanContent(
        plan=load_plan(record.document.encode()),
        state=next(state for state in plan_states(ledger, cluster.name) if state.digest == digest),
        proposals=ledger.proposals(digest),
        approvals=ledger.approvals(digest),
        runs=ledger.runs(digest),
        as_predicted=_as_predicted(ledger, digest),
        events=ledger.events(digest),
        has_report=has_report(root_of(cluster), record.snapshot),
    )


def has_report(root: Root, snapshot: str) -> bool:
    """Whether a snapshot has a report."""
    return (root.folder("reports", snapshot) / "report.html").exists()


def newest_report(cluster: Cluster) -> str | None:
    """The newest snapshot with a report, if one of the last has any."""
    root = root_of(cluster)
    return next((one for one in islice(root.newest_first(), SNAPSHOTS_SHOWN) if has_report(root, one)), None)


@contextmanager
def ledger_if_any() -> Iterator[Ledger | None]:
    """The configured ledger; none is created."""
    root = Root(option("root"), "any")
    if ledger_exists(option("ledger") or default_ledger_url(root)):
        with opened_ledger(root) as ledger:
            yield ledger
    else:
        yield None


def _as_predicted(ledger: Ledger, digest: str) -> dict[int, bool]:
    return {verified.run_id: verified.as_predicted for verified in ledger.verifications(digest)}


def _line(cluster: Cluster, run: Run | None, dag_run: NewestRun | None) -> ClusterLine:
    try:
        root = root_of(cluster)
        ids = list(islice(root.newest_first(), TREND_SHOWN))
        last, unfinished = _last_and_unfinished(_snapshot_line(root, snapshot) for snapshot in ids)
        trend = [_figures(root, snapshot) for snapshot in reversed(ids)]
        return ClusterLine(cluster, run, dag_run, last, unfinished, trend=trend)
    except AdvisorError as error:
        return ClusterLine(cluster, run, dag_run, problem=str(error))


def _last_and_unfinished(lines: Iterable[SnapshotLine]) -> tuple[SnapshotLine | None, SnapshotLine | None]:
    """Of a cluster's snapshots, newest first: see the fields of `ClusterLine`."""
    unfinished = None
    for line in lines:
        if line.verdict != "unfinished":
            return line, unfinished
        unfinished = unfinished or line
    return None, unfinished


def _figures(root: Root, snapshot: str) -> Figures:
    figures: list[float | None] = []
    for read in (_imbalance, _failed_checks):
        try:
            figures.append(read(root, snapshot))
        except AdvisorError:
            figures.append(None)
    return Figures(*figures)


@lru_cache(maxsize=20_000)
def _imbalance(root: Root, snapshot: str) -> float | None:
    """Raises `AdvisorError` as long as there is no recommendation; then it is read once, as results don't change."""
    document = read_json(root.folder(PLANS, snapshot) / RECOMMENDATION, "recommend", [RECOMMENDATION_SCHEMA])
    spreads = [row.get("standard_deviation_before") for row in document["combinations"]]
    return next((spread for spread in spreads if spread is not None), None)


@lru_cache(maxsize=20_000)
def _failed_checks(root: Root, snapshot: str) -> int:
    """The same for validation."""
    document = read_validation(root, snapshot)
    return sum(not check["success"] for check in document["results"])


def _snapshot_line(root: Root, snapshot: str) -> SnapshotLine:
    try:
        verdict, sentence, failed = _verdict(root, snapshot)
    except AdvisorError as error:
        verdict, sentence, failed = "unreadable", str(error), 0
    return SnapshotLine(snapshot, verdict, sentence, failed, has_report(root, snapshot))


def _verdict(root: Root, snapshot: str) -> tuple[Verdict, str, int]:
    validation = root.folder("validation", snapshot) / RESULT
    if not validation.exists():
        return "unfinished", "captured; not validated", 0
    judged = read_validation(root, snapshot)
    failed = [check for check in judged["results"] if not check["success"]]
    if not judged["success"]:
        critical = [check["title"] for check in failed if check["severity"] == "critical"]
        return "unfit", f"must not be used: {'; '.join(critical)}", len(failed)
    recommendation = root.folder(PLANS, snapshot) / RECOMMENDATION
    if not recommendation.exists():
        return "unfinished", "validated; no recommendation", len(failed)
    document = read_json(recommendation, "recommend", [RECOMMENDATION_SCHEMA])
    advice, too_little = document["advice"], document.get("coverage", {}).get("decides", False)
    return "act" if advice["plan"] else "unfit" if too_little else "nothing", advice["sentence"], len(failed)


def _urgency(line: ClusterLine) -> tuple[int, str]:
    if line.run is not None and line.run.state in ("active", "stopped"):
        return 0, line.cluster.name
    if line.problem or (line.dag_run and line.dag_run.failed):
        return 1, line.cluster.name
    order: dict[Verdict, int] = {"unreadable": 1, "unfit": 1, "act": 3, "nothing": 4}
    return order[line.last.verdict] if line.last else 2, line.cluster.name
