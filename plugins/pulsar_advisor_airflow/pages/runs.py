"""The content of the page of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pulsar_advisor.execution.consent.approval import why_not_again
from pulsar_advisor.execution.ledger import lists
from pulsar_advisor.execution.ledger.approvals import approvals_of_plan
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.pauses import pause_requested
from pulsar_advisor.execution.ledger.plans import summary_of_plan
from pulsar_advisor.execution.ledger.rolls import roll_of_plan
from pulsar_advisor.execution.ledger.runs import is_parked, run_if_any
from pulsar_advisor.execution.ledger.steps import is_left, steps_of_run
from pulsar_advisor.execution.ledger.switches import SwitchedOff
from pulsar_advisor.execution.ledger.tables import Event, Run, StepRecord
from pulsar_advisor.execution.ledger.unfinished import concerns
from pulsar_advisor.execution.ledger.verifications import Verdict, last_verdicts
from pulsar_advisor.execution.run.guard.left_off import left_off
from pulsar_advisor.execution.run.pace import sent_in_order
from pulsar_advisor.execution.run.steering import left_open
from pulsar_advisor.execution.throttle import DEFAULT_THROTTLE
from pulsar_advisor.execution.undo import can_be_undone
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor_airflow.clusters import Cluster
from pulsar_advisor_airflow.pages.parts import STEPS_SHOWN, Offsets, Part, events_of_plan, part
from pulsar_advisor_airflow.pages.plans import proposed_plan


@dataclass(frozen=True)
class RunContent:
    """A run, its steps in the order in which they are sent, and its events, oldest first."""

    run: Run
    steps: Part[StepRecord]
    steps_in_all: int
    confirmed: int
    """How many steps are confirmed."""
    verdicts: Mapping[int, Verdict]
    concerns: Mapping[int, str]
    """Both as in `PlanContent`."""
    events: Part[Event]
    approver: str
    pause: str | None
    """Who asked for a pause, if somebody did."""
    waiting: Event | None
    """Since when a parked run waits, and for what; None if it isn't parked."""
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
        steps=part(steps[offsets.steps_from :], STEPS_SHOWN, lambda _: offsets.steps_from + STEPS_SHOWN),
        steps_in_all=len(steps),
        confirmed=sum(step.is_confirmed for step in steps),
        verdicts=last_verdicts(ledger, [run.id]),
        concerns=concerns(ledger, [run]),
        events=events_of_plan(ledger, run.digest, offsets, run.id),
        approver=approval.approver if approval else "",
        pause=pause_requested(ledger, run.id),
        waiting=next(event for event in reversed(parked) if event.run_id == run.id) if is_parked(run) else None,
        left_off=[switch for switch in left_off(ledger, run.cluster_name) if switch.run == run.id],
        left_open=list(left_open(ledger, [run])) if run.state == "aborted" else (),
        is_left=is_left(records),
        why_not_again=why_not_again(ledger, run.digest) or "",
        is_approved=any(one.is_in_force(ledger.latest_ms()) for one in approvals.values()),
        can_be_undone=can_be_undone(plan, ledger),
        roll=roll_of_plan(ledger, run.digest),
    )


def run_of(ledger: Ledger, cluster: Cluster, number: int) -> Run:
    """A run of the cluster. Raises `UsageError` if it has no such run."""
    run = run_if_any(ledger, number)
    plan = None if run is None else summary_of_plan(ledger, run.digest)
    if run is None or plan is None or plan.cluster != cluster.name:
        raise UsageError(f"cluster '{cluster.name}' has no run {number}")
    return run
