"""The content of the pages of reports and plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from time import time_ns

from pulsar_advisor.execution.consent.approval import why_not_again
from pulsar_advisor.execution.ledger import lists
from pulsar_advisor.execution.ledger.approvals import REJECTED, approvals_of_plan
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.plan_states import PlanStateName, states_of
from pulsar_advisor.execution.ledger.plans import plan_record, summary_of_plan
from pulsar_advisor.execution.ledger.proposals import proposals_of_plan
from pulsar_advisor.execution.ledger.rolls import roll_of_plan
from pulsar_advisor.execution.ledger.runs import runs_of_plan
from pulsar_advisor.execution.ledger.tables import Approval, Event, Proposal, Run
from pulsar_advisor.execution.ledger.unfinished import concerns
from pulsar_advisor.execution.ledger.verifications import Verdict, last_verdicts
from pulsar_advisor.execution.run.pace import sent_in_order
from pulsar_advisor.execution.run.preconditions import stale
from pulsar_advisor.execution.throttle import DEFAULT_THROTTLE, ApplyThrottle
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.plans.goal import ROLL
from pulsar_advisor.model.plans.plan import Plan, Step
from pulsar_advisor.model.plans.sealed import digest_of, load_plan
from pulsar_advisor.reporting.options import OptionRow, option_rows
from pulsar_advisor.stages.snapshot_lines import CARRIED_OUT, began_after
from pulsar_advisor.storage.index import has_report
from pulsar_advisor.storage.plans import PlanReference, read_recommendation
from pulsar_advisor.storage.root import Snapshot
from pulsar_advisor_airflow.clusters import Cluster, dag_of
from pulsar_advisor_airflow.pages.parts import STEPS_SHOWN, Offsets, Part, events_of_plan, part
from pulsar_advisor_airflow.pages.places import ledger_if_any, root_of


@dataclass(frozen=True)
class ReportOption:
    """One option of a report, and the state of its plan; None if it has none, or one that wasn't proposed."""

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
    """None: it wasn't proposed."""
    why_not: str
    """Why it can't be proposed (again); empty if it can."""
    outdated: str
    """Why it would be refused as too old, with the form's own maximum age; empty if it wouldn't."""
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
    concerns: Mapping[int, str] = field(default_factory=dict)
    """Likewise, what `concerns` says of a run."""
    events: Part[Event] = field(default=Part((), None))


def report_content(cluster: Cluster, snapshot: Snapshot) -> ReportContent:
    """The content of a snapshot's report page. Raises `UsageError` if it has no report."""
    if not has_report(snapshot):
        raise UsageError(f"snapshot {snapshot} has no report")
    made = read_recommendation(snapshot)
    rows, advised = option_rows(made), made.advice.digest
    digests = {digest for digest in (advised, *(row.digest for row in rows)) if digest}
    with ledger_if_any() as ledger:
        states = {} if ledger is None else _states(ledger, cluster, sorted(digests))
        later = None if ledger is None else _later_run(ledger, cluster, snapshot.id)
    options = [ReportOption(row, states.get(row.digest)) for row in rows]
    return ReportContent(snapshot.id, advised, states.get(advised or ""), options, later)


def plan_of_report(snapshot: Snapshot, digest: str) -> Plan:
    """A plan that was recommended for a snapshot. Raises `UsageError` if there is none with this digest."""
    for row in read_recommendation(snapshot).combinations:
        if row.plan and row.digest == digest:
            return PlanReference(snapshot.id, row.plan, digest).load(snapshot.root)
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
        has_report=has_report(root_of(cluster).snapshot(plan.snapshot)),
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
        concerns=concerns(ledger, runs),
        events=events_of_plan(ledger, digest, offsets),
    )


def proposed_plan(ledger: Ledger | None, cluster: Cluster, digest: str) -> Plan:
    """A plan that was proposed for the cluster. Raises `UsageError` if there is none with this digest."""
    record = None if ledger is None else plan_record(ledger, digest)
    if record is None or record.cluster != cluster.name:
        raise UsageError(f"no plan {digest} was proposed for cluster '{cluster.name}'")
    return load_plan(record.document.encode())


def _steps_as_sent(plan: Plan, throttle: ApplyThrottle, first: int) -> Part[tuple[int | None, Step]]:
    sent = enumerate(sent_in_order(plan.executable_steps, throttle), 1)
    rows = chain(sent, ((None, step) for step in plan.steps if not step.executable))
    return part(list(islice(rows, first, first + STEPS_SHOWN + 1)), STEPS_SHOWN, lambda _: first + STEPS_SHOWN)


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
