"""Records the outcome of a step in the ledger, reports it, and judges it against the error budget."""

from __future__ import annotations

from typing import NoReturn

from pulsar_advisor.documents.runs import StepState
from pulsar_advisor.execution import telemetry
from pulsar_advisor.execution.ledger.tables import StepRecord
from pulsar_advisor.execution.run.ongoing_run import BudgetSpent, DeadEnd, Drift, OngoingRun, Stop
from pulsar_advisor.execution.run.preconditions import NEW_PLAN, leaves_destination
from pulsar_advisor.model.plans.names import short
from pulsar_advisor.model.plans.plan import Step
from pulsar_advisor.model.text.reader import reader
from pulsar_advisor.model.text.some_of import count


def confirmed(run: OngoingRun, step: Step, seen: str) -> None:
    """The cluster shows the effect."""
    _conclude(run, step, "confirmed", seen)
    run.progress(f"{step.id}: confirmed, {seen}")


def failed(run: OngoingRun, step: Step, why: str) -> None:
    """The cluster shows another state. Raises `Stop` for the first step, and beyond the error budget."""
    first = run.none_confirmed()
    _conclude(run, step, "failed", why)
    run.signs.troubles.append(f"{step.id} failed")
    run.progress(f"{step.id}: failed, {why}")
    if first:
        raise Stop(f"the first step, {step.id}, failed: {why}")
    check_error_budget(run)


def check_error_budget(run: OngoingRun) -> None:
    """Raises `BudgetSpent` if more steps failed than was approved, in any process of the run."""
    failures = [record for record in run.held.steps().values() if record.state == "failed"]
    if len(failures) > (budget := run.throttle.error_budget):
        last = max(failures, key=lambda record: record.ended_at_ms or 0)
        raise BudgetSpent(
            f"{count(len(failures), 'step')} failed, and the error budget is {budget}; the last: {last.observation}"
        )


def unresolved(run: OngoingRun, step: Step, why: str, *, is_gone: bool = False) -> NoReturn:
    """The cluster doesn't show the outcome of a call, and never will if its bundle `is_gone`. Raises `Stop`."""
    _conclude(run, step, "unresolved", why)
    beware = ""
    if leaves_destination(run.plan, step):
        beware = f". Until its outcome is known, do not unload any bundle of range {step.bundle} in any namespace"
        if is_gone:
            beware = f". The next bundle of range {step.bundle}, in any namespace, may go to {step.destination}"
    what = f"{step.id} is unresolved: {why}{beware}"
    if is_gone:
        raise DeadEnd(what, f"{reader().end_run.format(digest=short(run.held.digest))}, then {NEW_PLAN}")
    raise Stop(f"{what}; check {step.bundle_name} before the run goes on, or is ended for good")


def had_no_effect(run: OngoingRun, step: Step) -> None:
    """All is as before the call of an earlier process; until the next one, its destination may wait on the leader."""
    seen = f"the bundle is still on {step.source}" if step.action == "unload" else "the boundaries have not changed"
    _conclude(run, step, "unresolved", f"{seen}: it is sent again if the run goes on")
    run.progress(f"{step.id}: had no effect, {seen}")


def leave_out(run: OngoingRun, step: Step, why: str) -> None:
    """The step is not sent, and the run goes on."""
    _conclude(run, step, "skipped", why)
    run.progress(f"{step.id}: skipped, {why}")


def drifted(run: OngoingRun, step: Step, record: StepRecord, changed: str) -> None:
    """The cluster is not as the step expects. Raises `Drift` unless such steps may be left out."""
    is_sent = record.state != "pending"
    if is_sent and leaves_destination(run.plan, step):  # and can't be sent again to consume it
        unresolved(run, step, changed)
    if run.throttle.on_drift == "stop":
        raise Drift(f"{step.id}, {step.bundle_name}, was not sent{' again' if is_sent else ''}: {changed}")
    if is_sent:
        failed(run, step, f"its call had no effect, and it is not sent again: {changed}")
    else:
        leave_out(run, step, changed)


def _conclude(run: OngoingRun, step: Step, state: StepState, observation: str) -> None:
    run.held.conclude(step.id, state, observation)
    telemetry.step_ended(run.plan.cluster, step.action, state)
