"""How an `apply` ended: its outcome, its steps, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from pulsar_advisor.documents.apply_result import AppliedStep, ApplyResult, Outcome
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
    first: str | None = ""
    """As of the `Stop` that ended it."""


class AttemptResult(ApplyResult):
    """The result of an attempt, and what of its end isn't part of the document."""

    parking: Annotated[Parking | None, Field(exclude=True)] = None
    """For whoever waits in place of a parked run."""
    first: Annotated[str | None, Field(exclude=True)] = ""
    """As of the `Stop` that ended it."""

    @property
    def is_left(self) -> bool:
        """Also whether anything helps."""
        return self.first is not None and super().is_left


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
