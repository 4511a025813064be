"""How an `apply` ended: its outcome, its steps, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pulsar_advisor.documents.apply_result import AppliedStep, Outcome
from pulsar_advisor.documents.runs import StepState
from pulsar_advisor.execution.ledger.tables import StepRecord
from pulsar_advisor.execution.run.parking import Parking
from pulsar_advisor.execution.run.preconditions import call_of
from pulsar_advisor.model.plans.plan import Plan, Step


@dataclass(frozen=True)
class EndOfRun:
    """How a run ended: the part of the result that neither the plan nor, afterwards, the ledger holds."""

    outcome: Outcome
    run: int | None
    sentence: str
    steps: tuple[AppliedStep, ...]
    refusals: tuple[str, ...] = ()
    parking: Parking | None = None


def end_of_run(
    outcome: Outcome,
    plan: Plan,
    run: int,
    sentence: str,
    records: Mapping[str, StepRecord],
) -> EndOfRun:
    """The end of a run, from the records of its steps."""
    steps = tuple(
        applied_step(plan, step, records[step.id].state, records[step.id].observation) for step in plan.executable_steps
    )
    return EndOfRun(outcome, run, sentence, steps)


def applied_step(plan: Plan, step: Step, state: StepState, detail: str) -> AppliedStep:
    """A step as the result of `apply` has it."""
    return AppliedStep(
        id=step.id,
        action=step.action,
        bundle=step.bundle_name,
        state=state,
        detail=detail,
        request=call_of(step, plan.pulsar_version).request,
    )
