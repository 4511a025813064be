"""What a plan with a goal does, as one sentence: what becomes of the broker asked about, and who is busiest then."""

from __future__ import annotations

from typing import Final

from pulsar_advisor.model.plans.plan import Forecast, Plan
from pulsar_advisor.model.text.some_of import count
from pulsar_advisor.planning.advice.headline import busiest_of, usage_text
from pulsar_advisor.planning.kinds.goal_outcome import goal_outcome
from pulsar_advisor.planning.usage.noise import DEFAULT_RATIO

_ROUNDING: Final = 1e-9


def goal_sentence(plan: Plan, floor_ratio: float = DEFAULT_RATIO) -> str:
    """The sentence for an operator; usages are the likely ones, with their range where it is wider than noise."""
    steps = plan.executable_steps
    if not steps:
        start = "Do nothing" if goal_outcome(plan) == "reached" else "Nothing can be done"
        why = (plan.decision.why_nothing or "no bundle can be moved").removesuffix(".")
        return f"{start} to {plan.title}: {why}."
    unloads = plan.unloads
    brokers = {step.destination for step in unloads if step.destination is not None}
    stay = len(plan.steps) - len(steps)
    cut = f"cut {count(len(steps) - len(unloads), 'bundle')} and " if len(steps) > len(unloads) else ""
    what = f"{cut}move {count(len(unloads), 'bundle')} to {count(len(brokers), 'broker')}"
    if stay:
        what += f", and leave {stay} that can't move"
    effect = "; ".join(filter(None, (_asked(plan, floor_ratio), _busiest(plan, floor_ratio))))
    return f"To {plan.title}, {what}{effect and ': '}{effect}."


def _asked(plan: Plan, floor_ratio: float) -> str:
    """What becomes of the one broker that the goal is about; empty if it isn't about one, or that isn't known."""
    if plan.goal is None or len(plan.goal.brokers) != 1:
        return ""
    (broker,) = plan.goal.brokers
    before = plan.predicted.before.brokers[broker]
    usage = usage_after(plan.predicted.after, broker, floor_ratio)
    return "" if before.usage_ratio is None or not usage else f"{broker} goes from {usage_text(before)} to {usage}"


def _busiest(plan: Plan, floor_ratio: float) -> str:
    """Who is busiest then, and how busy the busiest broker was; empty if that isn't known."""
    before, after = plan.predicted.before, plan.predicted.after
    was, is_now = busiest_of(before), busiest_of(after)
    if was is None or is_now is None:
        return ""
    usage, usage_before = usage_after(after, is_now, floor_ratio), usage_text(before.brokers[was])
    if is_now != was:
        return f"the busiest broker is then {is_now} at {usage}, not {was} at {usage_before}"
    if usage == f"{before.maximum_ratio:.1%}":
        return f"the busiest broker stays {was} at {usage_before}"
    if plan.goal is not None and plan.goal.brokers == (was,):
        return "it stays the busiest"
    return f"the busiest broker, {was}, goes from {usage_before} to {usage}"


def usage_after(forecast: Forecast, broker: str, floor_ratio: float) -> str:
    """`60.1%`, or `60.1% (45.0% to 90.0%)` where the model leaves that open; empty if it isn't known."""
    found = forecast.brokers[broker]
    usage, lowest, highest = found.usage_ratio, found.lowest_usage_ratio, found.highest_usage_ratio
    if usage is None:
        return ""
    if lowest is None or highest is None or max(usage - lowest, highest - usage) <= floor_ratio + _ROUNDING:
        return f"{usage:.1%}"
    return f"{usage:.1%} ({lowest:.1%} to {highest:.1%})"
