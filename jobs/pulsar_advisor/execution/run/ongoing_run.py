"""A run that this process carries out: what it works with, its limits, and what it has seen so far."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pulsar_advisor.execution.ledger.held_run import HeldRun
from pulsar_advisor.execution.ledger.tables import Approval
from pulsar_advisor.execution.run.guard.guard import Guard
from pulsar_advisor.execution.run.observe import look as look_at
from pulsar_advisor.execution.run.observe import open_calls
from pulsar_advisor.execution.run.options import Attempt
from pulsar_advisor.execution.run.pace import Signs, disturbed_topics, room_in_s
from pulsar_advisor.execution.run.preconditions import NEW_PLAN, Found
from pulsar_advisor.execution.run.preconditions import expected_boundaries as boundaries_before
from pulsar_advisor.execution.throttle import ApplyThrottle
from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.model.plans.plan import Step


class Stop(Exception):
    """The run must end here; the message gives the reason."""

    to_do = ""
    """What to do where going on would end in the same way."""
    first: str | None = ""
    """What would change that, in words that follow `to resume`; None if nothing does."""


class Drift(Stop):
    """The cluster is not as a step expects, and such a step ends the run."""

    to_do = "make a new plan, or have this one approved with --on-drift skip to leave such steps out"
    first = ", once the cluster is as it was, or the plan is approved again with --on-drift skip"


class BudgetSpent(Stop):
    """More steps failed than was approved."""

    to_do = "make a new plan, or have this one approved with a larger --error-budget"
    first = ", once it is approved again with a larger --error-budget"


class DeadEnd(Stop):
    """What the run has done did not last, or what it is to act on is gone."""

    first = None

    def __init__(self, message: str, to_do: str = NEW_PLAN) -> None:
        super().__init__(message)
        self.to_do = to_do


@dataclass(frozen=True, kw_only=True)
class OngoingRun(Attempt):
    """An attempt that has a run."""

    held: HeldRun
    approval: Approval
    throttle: ApplyThrottle
    settle_s: float
    """How long a broker may work on a call whose answer never came."""
    guard: Guard | None
    """Keeps the cluster's own balancer off, if that was approved."""
    signs: Signs = field(default_factory=Signs)
    """What the current wave has shown so far."""
    looked_at_ms: dict[str, int] = field(default_factory=dict)
    """When the facts about each step were gathered, by the ledger's clock, which goes on while a machine sleeps."""
    unloaded: dict[tuple[str, int], tuple[float, int]] = field(default_factory=dict)
    """The time (monotonic seconds) and topics of each unload, by step and attempt: when it is due, or was last seen."""
    failures: list[Exception] = field(default_factory=list)
    """Why the run must end; once there is a reason, only the steps in flight go on."""

    def look(self, step: Step) -> Found:
        """The facts about a step; bundles in flight count as arrived, and where they were, as they may not arrive."""
        self.looked_at_ms[step.id] = self.ledger.now_ms()
        records = self.held.steps()
        in_flight = [other for other in self.plan.executable_steps if records[other.id].state == "sent"]
        arriving = {other.namespace for other in in_flight if other.destination == step.destination}
        others = open_calls(self.ledger, self.plan.identity.cluster_name, except_of=self.held.digest)
        return look_at(self.cluster, step, {}, others, arriving)

    def expected_boundaries(self, step: Step) -> tuple[str, ...]:
        """The boundaries of a step's namespace, as the steps confirmed so far should have left them."""
        records = self.held.steps()
        return boundaries_before(step, (done for done in self.plan.executable_steps if records[done.id].is_confirmed))

    def count_unload(self, step: Step, attempt: int, in_s: float = 0.0) -> None:
        """Count the topics of a step's attempt as unloaded now, or when it is due."""
        self.unloaded[step.id, attempt] = (self.clock.monotonic_s() + in_s, disturbed_topics([step]))

    def count_no_unload(self, step: Step, attempt: int) -> None:
        """Count an attempt no more that is not made: the next steps have its room."""
        del self.unloaded[step.id, attempt]

    def room_in_s(self, steps: Iterable[Step]) -> float:
        """Seconds until the limit of topics per minute permits these steps."""
        return room_in_s(steps, self.unloaded.values(), self.clock.monotonic_s(), self.throttle)

    def none_confirmed(self) -> bool:
        """Whether no step is confirmed yet, so that the next one is the run's first."""
        return not any(record.is_confirmed for record in self.held.steps().values())


def in_words(error: Exception) -> str:
    """A failure in words, for the ledger."""
    return str(error) if isinstance(error, AdvisorError | Stop) else f"{type(error).__name__}: {error}"[:300]
