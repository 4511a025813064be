"""How far a plan gets with its goal: reached, in part, or missed."""

from __future__ import annotations

from typing import Final, Literal

from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.planning.kinds.registry import KINDS

GoalOutcome = Literal["reached", "perhaps", "in part", "missed"]
"""perhaps: at the likely usage, but not at the worse end of its range."""

FALLS_SHORT: Final[frozenset[GoalOutcome | None]] = frozenset({"in part", "missed"})
"""The outcomes after which the next thing, such as stopping a drained broker, isn't safe."""

_SENTENCES: Final = {
    "perhaps": "Goal reached at the likely usage, but not at the worst",
    "in part": "Goal reached only in part",
    "missed": "Goal missed",
}

_ROUNDING: Final = 1e-5
"""Kinds weigh usages in parts per million."""


def goal_outcome(plan: Plan) -> GoalOutcome | None:
    """How far the executable steps of a plan get towards its goal, for a roll its first turn; None without a goal.

    The goal is missed if it isn't reached and nothing is done for it.
    """
    if plan.goal is None:
        return None
    if _is_reached(plan, plan.goal):
        return "perhaps" if _may_miss(plan) else "reached"
    return "in part" if plan.executable_steps else "missed"


def foretold_outcome(plan: Plan) -> GoalOutcome | None:
    """The same, with every turn of a roll: one that would leave bundles behind on these figures ends the roll first."""
    outcome, left = goal_outcome(plan), plan.decision.figures.get("left_behind_in_all")
    return "in part" if left and outcome in ("reached", "perhaps") else outcome


def _may_miss(plan: Plan) -> bool:
    """Whether a usage that is reached at the likely base load is missed at another possible one."""
    figures = plan.decision.figures
    most, target = figures.get("usage_ratio_after_at_most"), figures.get("target_ratio")
    return isinstance(most, int | float) and isinstance(target, int | float) and most > target + _ROUNDING


def outcome_sentence(outcome: GoalOutcome | None, title: str) -> str:
    """What has to be said before all else about a goal with this title; empty for one that is reached."""
    if outcome not in _SENTENCES:
        return ""
    return f"{_SENTENCES[outcome]}: {title}." if title else f"{_SENTENCES[outcome]}."


def _is_reached(plan: Plan, goal: Goal) -> bool:
    figures = {name: value for name, value in plan.decision.figures.items() if isinstance(value, int | float)}
    if "moves" not in figures:
        return False  # no kind was asked: the brokers keep no destination, or an input is missing
    done = [step.action for step in plan.steps if step.executable]
    moves, splits = figures["moves"] + figures.get("children_moved", 0), figures.get("splits", 0)
    if len(done) < len(plan.steps) or done.count("unload") < moves or done.count("split") < splits:
        return False
    if goal.kind == "drain" and not moves and figures.get("may_have_arrived", 0):
        return False  # with moves, `apply` looks after them
    kind = next((one for one in KINDS if one.name == goal.kind), None)
    if kind is None:
        return False  # only another release knows it: `apply`, which has sent its steps by then, isn't to fail
    if "to" not in kind.options:
        return not any(figures.get(left) for left in ("excluded", "against_afterwards", "unowned"))
    usage, target = figures.get("usage_ratio_after", figures.get("usage_ratio")), figures.get("target_ratio")
    if usage is None or target is None:
        return False
    if goal.kind == "fill":  # up to the target: a broker is full once no further bundle fits
        is_full = usage > figures.get("usage_ratio", usage) or plan.decision.figures.get("is_full") == "true"
        return usage >= target - _ROUNDING or is_full
    return usage <= target + _ROUNDING
