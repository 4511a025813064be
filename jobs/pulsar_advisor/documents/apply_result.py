"""The result of `apply`: how a run of a plan ended, step by step."""

from __future__ import annotations

from typing import ClassVar, Literal

from pulsar_advisor.documents.call import Call
from pulsar_advisor.documents.document import Document, Part
from pulsar_advisor.documents.runs import StepState
from pulsar_advisor.model.errors import BalancerStillOff, Deviates, Refused
from pulsar_advisor.model.plans.plan import Action
from pulsar_advisor.planning.kinds.goal_outcome import GoalOutcome

Outcome = Literal["done", "nothing_to_do", "dry_run", "partial", "parked"]


class AppliedStep(Part):
    """The result of one step. In a dry run, it is pending or skipped, and `detail` gives the objections."""

    id: str
    action: Action
    bundle: str
    """Full name, `tenant/namespace/range`."""
    state: StepState
    """As in the ledger."""
    detail: str
    request: Call


class ApplyResult(Document):
    """How a run of `apply` ended, step by step. Only a dry run has `refusals`; otherwise they are raised."""

    SCHEMA: ClassVar = "pulsar-advisor/apply-result/3"
    MADE_BY: ClassVar = "apply"

    outcome: Outcome
    digest: str
    run: int | None
    """Its number in the ledger; null in a dry run."""
    sentence: str
    steps: tuple[AppliedStep, ...]
    undoable_steps: tuple[str, ...]
    """The confirmed unloads: `undo` moves their bundles back. None where an unload can't name a destination."""
    refusals: tuple[str, ...]
    still_off: tuple[str, ...]
    """Settings that a run switched off and that could not be restored: exit code 8."""
    ledger_head: str = ""
    """The ledger's last event after the run, `NUMBER:HASH`."""
    goal_outcome: GoalOutcome | None = None
    """How far the plan's executable steps get towards its goal; null for a plan without one. In part if clients still
    use drained brokers: `sentence` says what."""

    @property
    def is_left(self) -> bool:
        """Whether a step is left to send, or a call to look at; without one, the run can't go on."""
        return any(step.state in ("pending", "sent", "unresolved") for step in self.steps)

    @property
    def exit_code(self) -> int:
        """0: done, or nothing to do. 4: dry run of a plan that would be refused. 5: applied in part. 8: `still_off`."""
        if self.still_off:
            return BalancerStillOff.exit_code
        if self.outcome == "partial":
            return Deviates.exit_code
        return Refused.exit_code if self.refusals else 0
