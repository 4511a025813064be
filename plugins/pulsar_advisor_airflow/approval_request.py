"""What an approver is shown: the plan in a few lines of Markdown, and what to say yes to besides the plan itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from pulsar_advisor.execution.approval import unsure_because, worse_because
from pulsar_advisor.model.plan import digest_of

if TYPE_CHECKING:
    from pulsar_advisor.model.plan import Plan, Step

STEPS_SHOWN: Final = 40
"""The body is a summary: the report has the rest."""


def subject(plan: Plan) -> str:
    """One line with the whole digest."""
    return f"Rebalance Pulsar cluster {plan.cluster}? {digest_of(plan)}"


def body(plan: Plan, proposer: str, report: str) -> str:
    """The plan for a person: effect, unloads, splits apart, what needs a tick of its own; `report` is a link."""
    return "\n".join(_lines(plan, proposer, report))


def _lines(plan: Plan, proposer: str, report: str) -> Iterator[str]:
    unloads = [step for step in plan.steps if step.executable and step.action == "unload"]
    splits = [step for step in plan.steps if step.executable and step.action == "split"]
    before, after = plan.predicted.before, plan.predicted.after
    yield f"**{proposer}** proposes {len(unloads)} unload(s) and {len(splits)} split(s) on `{plan.cluster}`"
    yield f"(Pulsar's own name: `{plan.identity.cluster_name}`), from snapshot `{plan.snapshot}`."
    yield ""
    yield f"- strategy: {plan.shedder} with {plan.placement}, view `{plan.view}`"
    yield f"- maximum usage: {_percent(before.maximum_ratio)} → {_percent(after.maximum_ratio)} (predicted)"
    yield (
        f"- standard deviation: {_percent(before.standard_deviation_ratio)} → "
        f"{_percent(after.standard_deviation_ratio)} (predicted)"
    )
    yield f"- digest: `{digest_of(plan)}`"
    yield f"- [report]({report}) of snapshot `{plan.snapshot}`"
    if worse := worse_because(plan):
        yield f"- **it makes things worse**: {worse}. Tick *Accept a worse outcome* if you mean it."
    if unsure := unsure_because(plan):
        yield f"- **low confidence**: {unsure} Tick *Accept steps of low confidence* if you mean it."
    if left_out := len(plan.steps) - len(unloads) - len(splits):
        yield f"- {left_out} step(s) of the plan are predictions only and will not be sent"
    if unloads:
        yield from ("", "| | unload | from | to | why |", "|---|---|---|---|---|")
        yield from _rows(unloads, lambda step: f"`{step.source}` | {_wish(step)}")
    if splits:
        yield from ("", "**Splits can't be undone.** Tick *Allow the splits* to approve them too.")
        yield from ("", "| | split | at | by | why |", "|---|---|---|---|---|")
        yield from _rows(splits, lambda step: f"{', '.join(step.boundaries)} | {step.algorithm}")


def _rows(steps: list[Step], columns: Any) -> Iterator[str]:
    for step in steps[:STEPS_SHOWN]:
        yield f"| {step.id} | `{step.namespace}/{step.bundle}` | {columns(step)} | {step.reason.replace('|', '/')} |"
    if len(steps) > STEPS_SHOWN:
        yield f"\n… and {len(steps) - STEPS_SHOWN} more: see the report."


def _wish(step: Step) -> str:
    return f"`{step.destination}`" if step.destination else "wherever Pulsar places it"


def _percent(ratio: float | None) -> str:
    return "unknown" if ratio is None else f"{ratio:.1%}"
