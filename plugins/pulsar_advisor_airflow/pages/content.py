"""What the pages show: read from the root, the ledger and Airflow's database, as plain data.

Each page reads only as much as it shows: the index of a cluster's snapshots, the summaries of its plans, a part of a
list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from time import time_ns
from typing import Annotated, Final, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import URL

from pulsar_advisor.execution.consent.approval import why_not_again
from pulsar_advisor.execution.ledger import lists
from pulsar_advisor.execution.ledger.address import ledger_url
from pulsar_advisor.execution.ledger.approvals import REJECTED, approvals_of_plan
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.lists import AfterRun
from pulsar_advisor.execution.ledger.opening import is_current, ledger_exists, open_ledger
from pulsar_advisor.execution.ledger.pauses import pause_requested
from pulsar_advisor.execution.ledger.plan_states import PlanState, PlanStateName, states_of
from pulsar_advisor.execution.ledger.plans import plan_record, summary_of_plan
from pulsar_advisor.execution.ledger.proposals import proposals_of_plan
from pulsar_advisor.execution.ledger.rolls import open_rolls, roll_of_plan
from pulsar_advisor.execution.ledger.runs import is_parked, run_if_any, runs_of_plan
from pulsar_advisor.execution.ledger.steps import is_left, steps_of_run
from pulsar_advisor.execution.ledger.switches import SwitchedOff
from pulsar_advisor.execution.ledger.tables import Approval, Event, Proposal, Run, StepRecord
from pulsar_advisor.execution.ledger.verifications import Verdict, last_verdicts
from pulsar_advisor.execution.run.guard import left_off, left_off_by_cluster
from pulsar_advisor.execution.run.pace import sent_in_order
from pulsar_advisor.execution.run.preconditions import stale
from pulsar_advisor.execution.run.steering import left_open
from pulsar_advisor.execution.throttle import DEFAULT_THROTTLE, ApplyThrottle
from pulsar_advisor.execution.undo import can_be_undone
from pulsar_advisor.model.bounds import DEFAULT_DAYS
from pulsar_advisor.model.errors import AdvisorError, UsageError
from pulsar_advisor.model.plans.goal import ROLL
from pulsar_advisor.model.plans.plan import Plan, Step, digest_of, load_plan
from pulsar_advisor.reporting.fleet import FleetRow
from pulsar_advisor.reporting.options import OptionRow, option_rows
from pulsar_advisor.stages.index import fleet_row
from pulsar_advisor.stages.snapshot_lines import (
    CARRIED_OUT,
    Recorded,
    ShownVerdict,
    SnapshotLine,
    began_after,
    last_and_unfinished,
    snapshot_lines,
)
from pulsar_advisor.storage.index import has_report, newest
from pulsar_advisor.storage.plans import PlanReference, read_recommendation
from pulsar_advisor.storage.root import Root
from pulsar_advisor_airflow.clusters import Cluster, dag_of
from pulsar_advisor_airflow.configuration import option, report_link
from pulsar_advisor_airflow.pages.answers import without_places
from pulsar_advisor_airflow.pages.dag_runs import NewestRun, newest_runs

ROWS_SHOWN: Final = 30
"""Rows shown of each of a cluster's lists."""
TREND_SHOWN: Final = 12
"""Snapshots in a cluster's trend on the page of all clusters."""
STEPS_SHOWN: Final = 200
EVENTS_SHOWN: Final = 100
VERDICTS_READ: Final = 100
"""Maximum number of `verify`'s verdicts read per cluster."""

_READ_AT_ONCE: Final = 16
"""Clusters read in parallel: on an object store each file is a round trip."""

_Shown = TypeVar("_Shown")


@dataclass(frozen=True)
class Part(Generic[_Shown]):
    """A part of a list, and what the address of the next part contains; None: there is no next part."""

    rows: Sequence[_Shown]
    rest: str | int | None


_Offset = Annotated[int, Field(ge=0, le=2**31)]


class Offsets(BaseModel):
    """Where the requested parts of a page's lists begin; by default the first ones."""

    model_config = ConfigDict(frozen=True)

    snapshots_before: Annotated[str | None, Field(pattern=r"^[0-9]{8}T[0-9]{6}Z$")] = None
    plans_from: _Offset = 0
    runs_from: _Offset = 0
    steps_from: _Offset = 0
    events_before: _Offset | None = None


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
    plans: Part[PlanState] = Part((), None)
    runs: Part[Run] = Part((), None)
    verdicts: Mapping[int, Verdict] = field(default_factory=dict)
    not_drained: Mapping[int, str] = field(default_factory=dict)
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


@dataclass(frozen=True)
class ReportOption:
    """One option of a report, and the state of its plan; None if it has none, or nobody has proposed it."""

    row: OptionRow
    state: PlanStateName | None


@dataclass(frozen=True)
class ReportContent:
    """The options of a report that may be proposed, best first."""

    snapshot: str
    advised: str | None
    """The digest of the plan that is advised; None if nothing is worth doing."""
    advised_state: PlanStateName | None
    """As in `ReportOption`."""
    options: Sequence[ReportOption]
    later_run: Run | None
    """The cluster's newest run, finished or in progress, if it began after the snapshot."""


@dataclass(frozen=True)
class PlanContent:
    """A plan, its state, and what the ledger has recorded about it, oldest first."""

    plan: Plan
    digest: str
    state: PlanStateName | None
    """None: nobody has proposed it."""
    why_not: str
    """Why it can't be proposed (again); empty if it can."""
    outdated: str
    """Why nobody would be asked about it, with the maximum age that the form begins with; empty if somebody would."""
    later_run: Run | None
    """As in `ReportContent`."""
    steps: Part[tuple[int | None, Step]]
    """In the order in which they are sent, numbered; those that aren't sent come last."""
    has_report: bool
    proposals: Sequence[Proposal] = ()
    approvals: Sequence[Approval] = ()
    rejections: Sequence[Event] = ()
    """Who said no, or that no answer came in time."""
    runs: Sequence[Run] = ()
    verdicts: Mapping[int, Verdict] = field(default_factory=dict)
    """The last verdict of `verify` on each run that has one, by the run's number."""
    not_drained: Mapping[int, str] = field(default_factory=dict)
    """Likewise, why brokers that a run drained may not be stopped."""
    events: Part[Event] = Part((), None)


@dataclass(frozen=True)
class RunContent:
    """A run, its steps in the order in which they are sent, and its events, oldest first."""

    run: Run
    steps: Part[StepRecord]
    steps_in_all: int
    confirmed: int
    """How many steps are confirmed."""
    verdicts: Mapping[int, Verdict]
    not_drained: Mapping[int, str]
    """Both as in `PlanContent`."""
    events: Part[Event]
    approver: str
    pause: str | None
    """Who asked for a pause, if somebody did."""
    waiting: str
    """What a parked run waits for; empty if it isn't parked."""
    left_off: Sequence[SwitchedOff]
    """What it switched off and could not restore."""
    left_open: Sequence[str]
    """What to check after it was ended for good: calls whose outcome is unknown."""
    is_left: bool
    """Whether it has a step left to send, or a call to look at."""
    why_not_again: str
    """Why its plan can't be carried out any further, such as that it was undone; empty if it can."""
    is_approved: bool
    """Whether an approval of its plan is in force."""
    can_be_undone: bool
    """Whether runs of its plan have moved anything that wasn't moved back."""
    roll: str | None
    """The digest of the roll that it is a turn of, which is steered on its own page; None if it isn't a turn."""


def root_of(cluster: Cluster) -> Root:
    """The root of a cluster."""
    return Root(option("root"), cluster.name)


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
        shown = _part(snapshots, ROWS_SHOWN, lambda row: row.id)
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
            plans=_part(states, ROWS_SHOWN, lambda _: offsets.plans_from + ROWS_SHOWN),
            runs=_part(runs, ROWS_SHOWN, lambda _: offsets.runs_from + ROWS_SHOWN),
            events=lists.newest_events(ledger, cluster.name, EVENTS_SHOWN),
            verdicts=last_verdicts(ledger, [run.id for run in runs[:ROWS_SHOWN]]),
            not_drained=lists.not_drained(ledger, runs[:ROWS_SHOWN]),
            left_off=left_off_by_cluster(ledger).get(cluster.name, ()),
            rolls=open_rolls(ledger, cluster.name),
        )


def run_content(ledger: Ledger, cluster: Cluster, number: int, offsets: Offsets) -> RunContent:
    """A run of the cluster. Raises `UsageError` if it has no such run."""
    run = run_of(ledger, cluster, number)
    approvals = {approval.id: approval for approval in approvals_of_plan(ledger, run.digest)}
    records = steps_of_run(ledger, run.id)
    approval = approvals.get(run.approval_id)
    throttle = approval.throttle if approval else DEFAULT_THROTTLE
    plan = proposed_plan(ledger, cluster, run.digest)
    order = sent_in_order(plan.executable_steps, throttle)
    steps = [records[step.id] for step in order if step.id in records]
    parked = lists.events_of(ledger, [run.digest], ["run parked"]).get(run.digest, ())
    return RunContent(
        run=run,
        steps=_part(steps[offsets.steps_from :], STEPS_SHOWN, lambda _: offsets.steps_from + STEPS_SHOWN),
        steps_in_all=len(steps),
        confirmed=sum(step.is_confirmed for step in steps),
        verdicts=last_verdicts(ledger, [run.id]),
        not_drained=lists.not_drained(ledger, [run]),
        events=_events(ledger, run.digest, offsets, run.id),
        approver=approval.approver if approval else "",
        pause=pause_requested(ledger, run.id),
        waiting=next(event.detail for event in reversed(parked) if event.run_id == run.id) if is_parked(run) else "",
        left_off=[switch for switch in left_off(ledger, run.cluster_name) if switch.run == run.id],
        left_open=list(left_open(ledger, [run])) if run.state == "aborted" else (),
        is_left=is_left(records),
        why_not_again=why_not_again(ledger, run.digest) or "",
        is_approved=any(one.is_in_force(ledger.latest_ms()) for one in approvals.values()),
        can_be_undone=can_be_undone(plan, ledger),
        roll=roll_of_plan(ledger, run.digest),
    )


def report_content(cluster: Cluster, snapshot: str) -> ReportContent:
    """The content of a snapshot's report page. Raises `UsageError` if it has no report."""
    root = root_of(cluster)
    if not has_report(root, snapshot):
        raise UsageError(f"snapshot {snapshot} has no report")
    made = read_recommendation(root, snapshot)
    rows, advised = option_rows(made), made.advice.digest
    digests = {digest for digest in (advised, *(row.digest for row in rows)) if digest}
    with ledger_if_any() as ledger:
        states = {} if ledger is None else _states(ledger, cluster, sorted(digests))
        later = None if ledger is None else _later_run(ledger, cluster, snapshot)
    options = [ReportOption(row, states.get(row.digest)) for row in rows]
    return ReportContent(snapshot, advised, states.get(advised or ""), options, later)


def plan_of_report(cluster: Cluster, snapshot: str, digest: str) -> Plan:
    """A plan that was recommended for a snapshot. Raises `UsageError` if there is none with this digest."""
    root = root_of(cluster)
    for row in read_recommendation(root, snapshot).combinations:
        if row.plan and row.digest == digest:
            return PlanReference(snapshot, row.plan, digest).load(root)
    raise UsageError(f"no plan {digest} was recommended for snapshot {snapshot}")


def plan_content(ledger: Ledger | None, cluster: Cluster, plan: Plan, offsets: Offsets) -> PlanContent:
    """A plan of the cluster, proposed or not."""
    digest = digest_of(plan)
    approvals = () if ledger is None else approvals_of_plan(ledger, digest)
    shown = PlanContent(
        plan=plan,
        digest=digest,
        state=None if ledger is None else _states(ledger, cluster, [digest]).get(digest),
        why_not=_why_not(ledger, plan, digest),
        outdated=stale(plan, DEFAULT_THROTTLE.max_age_s, time_ns() // 1_000_000) or "",
        later_run=None if ledger is None else _later_run(ledger, cluster, plan.snapshot),
        steps=_steps_as_sent(plan, approvals[-1].throttle if approvals else DEFAULT_THROTTLE, offsets.steps_from),
        has_report=has_report(root_of(cluster), plan.snapshot),
    )
    if ledger is None or shown.state is None:
        return shown
    runs = runs_of_plan(ledger, digest)
    return replace(
        shown,
        proposals=proposals_of_plan(ledger, digest),
        approvals=approvals,
        rejections=lists.events_of(ledger, [digest], [REJECTED]).get(digest, ()),
        runs=runs,
        verdicts=last_verdicts(ledger, [run.id for run in runs]),
        not_drained=lists.not_drained(ledger, runs),
        events=_events(ledger, digest, offsets),
    )


def proposed_plan(ledger: Ledger | None, cluster: Cluster, digest: str) -> Plan:
    """A plan that was proposed for the cluster. Raises `UsageError` if there is none with this digest."""
    record = None if ledger is None else plan_record(ledger, digest)
    if record is None or record.cluster != cluster.name:
        raise UsageError(f"no plan {digest} was proposed for cluster '{cluster.name}'")
    return load_plan(record.document.encode())


def run_of(ledger: Ledger, cluster: Cluster, number: int) -> Run:
    """A run of the cluster. Raises `UsageError` if it has no such run."""
    run = run_if_any(ledger, number)
    plan = None if run is None else summary_of_plan(ledger, run.digest)
    if run is None or plan is None or plan.cluster != cluster.name:
        raise UsageError(f"cluster '{cluster.name}' has no run {number}")
    return run


@contextmanager
def ledger_if_any() -> Iterator[Ledger | None]:
    """The configured ledger; none is created."""
    address = option("ledger") or Root(option("root"), "any").ledger_url
    url = ledger_url(address)
    if not ledger_exists(address):
        yield None
        return
    ledger = _opened(address, url, _inode(url))
    if not is_current(ledger):  # another release has migrated it, so writes must match its tables
        _opened.cache_clear()
        ledger = _opened(address, url, _inode(url))
    yield ledger


@lru_cache(maxsize=1)
def _opened(address: str, _url: URL, _inode: int) -> Ledger:
    """An open ledger, kept open because opening one takes longer than a page's queries.

    It is opened anew once the address refers to another URL, such as one with a new password.
    """
    return open_ledger(address)


def _inode(url: URL) -> int:
    """A number that changes if somebody replaces a ledger's file; 0 if the ledger is on a server."""
    return Path(url.database).stat().st_ino if url.get_backend_name() == "sqlite" and url.database else 0


def _steps_as_sent(plan: Plan, throttle: ApplyThrottle, first: int) -> Part[tuple[int | None, Step]]:
    sent = enumerate(sent_in_order(plan.executable_steps, throttle), 1)
    rows = chain(sent, ((None, step) for step in plan.steps if not step.executable))
    return _part(list(islice(rows, first, first + STEPS_SHOWN + 1)), STEPS_SHOWN, lambda _: first + STEPS_SHOWN)


def _why_not(ledger: Ledger | None, plan: Plan, digest: str) -> str:
    of = None if ledger is None else roll_of_plan(ledger, digest)
    if of not in (None, digest):
        return f"it is a turn of the roll {of}"
    if ledger is not None and (why := why_not_again(ledger, digest)) is not None:
        return f"it {why}"
    if plan.shedder == ROLL:
        return f"it is a rolling restart: trigger {dag_of('pulsar_rolling_restart', plan.cluster)} with its digest"
    return "" if plan.executable_steps else "no step of it can be carried out"


def _states(ledger: Ledger, cluster: Cluster, digests: Sequence[str]) -> dict[str, PlanStateName]:
    """The states of those of these plans that were proposed."""
    summaries = [found for digest in digests if (found := summary_of_plan(ledger, digest)) is not None]
    return {state.digest: state.state for state in states_of(ledger, cluster.name, summaries)}


def _later_run(ledger: Ledger, cluster: Cluster, snapshot: str) -> Run | None:
    newest_run = lists.newest_runs(ledger, CARRIED_OUT).get(cluster.name)
    return newest_run if newest_run is not None and began_after(newest_run, snapshot) else None


def _part(rows: Sequence[_Shown], count: int, rest: Callable[[_Shown], str | int]) -> Part[_Shown]:
    """The first `count` rows; if there are more, `rest` of the last one shown says where they begin."""
    return Part(rows[:count], rest(rows[count - 1]) if len(rows) > count else None)


def _events(ledger: Ledger, digest: str, offsets: Offsets, run: int | None = None) -> Part[Event]:
    """The newest events, or those before one, oldest first."""
    events = ledger.events(digest, run, offsets.events_before, EVENTS_SHOWN + 1)
    newest_first = _part(events[::-1], EVENTS_SHOWN, lambda event: event.id)
    return Part(newest_first.rows[::-1], newest_first.rest)


def _for_each(clusters: Sequence[Cluster], read: Callable[[Cluster], _Shown]) -> list[_Shown]:
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
