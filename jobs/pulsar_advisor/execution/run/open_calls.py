"""The calls of other runs whose outcome is unknown, and what settles each."""

from __future__ import annotations

from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.plans import readable_plan
from pulsar_advisor.execution.ledger.steps import open_steps
from pulsar_advisor.execution.ledger.unfinished import ways
from pulsar_advisor.execution.run.preconditions import OpenCall, leaves_destination
from pulsar_advisor.model.plans.plan import Plan


def open_calls(ledger: Ledger, cluster_name: str, except_of: str = "") -> tuple[OpenCall, ...]:
    """Those of runs that may go on, on a cluster (Pulsar's own name), except for one plan's if it is given."""
    still_open = open_steps(ledger, cluster_name, except_of)
    runs = {run.id: run for run, _ in still_open}
    plans = {run.id: readable_plan(ledger, run.digest) for run in runs.values()}
    to_do = {run.id: ways(ledger, run) for run in runs.values()}
    return tuple(
        OpenCall(record.bundle, run.id, may_leave_destination(plans[run.id], record.step_id), to_do[run.id])
        for run, record in still_open
    )


def may_leave_destination(plan: Plan | None, step_id: str) -> bool:
    """As `leaves_destination`, for a step of a run; also if its plan can't be read (None), or has no such step."""
    return plan is None or all(leaves_destination(plan, step) for step in plan.steps if step.id == step_id)
