"""The calls of other runs whose outcome is unknown, and what settles each."""

from __future__ import annotations

from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.plans import recorded_plan
from pulsar_advisor.execution.ledger.steps import open_steps
from pulsar_advisor.execution.ledger.unfinished import ways
from pulsar_advisor.execution.run.preconditions import OpenCall, leaves_destination


def open_calls(ledger: Ledger, cluster_name: str, except_of: str = "") -> tuple[OpenCall, ...]:
    """Those of runs that may go on, on a cluster (Pulsar's own name), except for one plan's if it is given."""
    return tuple(
        OpenCall(step.bundle_name, run.id, leaves_destination(plan, step), ways(ledger, run))
        for run, name in open_steps(ledger, cluster_name, except_of)
        for plan in (recorded_plan(ledger, run.digest),)
        for step in plan.steps
        if step.id == name
    )
