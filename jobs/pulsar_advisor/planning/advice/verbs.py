"""The verbs of goals, asked without writing anything, so that the advice says of a verb what it would find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.text.some_of import count

PlanFor = Callable[[Goal], Plan | None]
"""The plan that the verb of a goal makes; None if the goal can't be planned for."""


@dataclass(frozen=True)
class Verbs:
    """What the verbs of goals find."""

    plan_for: PlanFor
    same_options: bool = False
    """Whether the operator has to repeat options to get these plans."""

    @property
    def options(self) -> str:
        """What comes after a command that needs them."""
        return " with the same options" if self.same_options else ""

    def command(self, goal: Goal) -> str:
        """A verb as an operator types it: `` `relieve a:8080` with the same options``."""
        return f"`{goal.command}`{self.options}"


def steps_found(plan: Plan) -> str:
    """`2 unloads`, `1 split and 2 unloads`: what can be carried out."""
    splits, unloads = len(plan.executable_steps) - len(plan.unloads), count(len(plan.unloads), "unload")
    return f"{count(splits, 'split')} and {unloads}" if splits else unloads
