"""The request shown to an approver: the plan in a few lines of Markdown, and any additional consents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from pulsar_advisor.execution.consent.approval import NOTHING_BEFORE, Before
from pulsar_advisor.execution.run.pace import sent_in_order
from pulsar_advisor.model.configuration.defaults import newer_than_known
from pulsar_advisor.model.plans.goal import ROLL
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor.model.text.some_of import count
from pulsar_advisor.planning.kinds.goal_outcome import foretold_outcome, outcome_sentence
from pulsar_advisor.planning.plans.consent import needed_consents, usage_change
from pulsar_advisor.reporting.figures import percent
from pulsar_advisor.reporting.markdown import code, text
from pulsar_advisor_airflow.configuration import page_link

if TYPE_CHECKING:
    from pulsar_advisor.execution.throttle import ApplyThrottle
    from pulsar_advisor.model.plans.plan import Plan, Step

STEPS_SHOWN: Final = 40
"""The body is a summary; the plan's page has the rest, and the report only that of the advised plan."""


def subject(plan: Plan) -> str:
    """One line with the full digest."""
    what = "Restart the brokers of" if plan.shedder == ROLL else "Rebalance"
    return f"{what} Pulsar cluster {plain(plan.cluster)}? {digest_of(plan)}"


def lines(
    plan: Plan,
    throttle: ApplyThrottle,
    valid_for_h: float,
    proposer: str,
    report: str,
    why_a_person: str = "",
    not_computed_here: str | None = None,
    recorded: Before = NOTHING_BEFORE,
    barred: Sequence[str] = (),
) -> Iterator[str]:
    """The plan for a person, line by line: effect, consents, limits, unloads and splits separately; `report` is a link.

    `why_a_person` says which criteria of the policy were not met, `not_computed_here` why it is unproven that the
    advisor computed the plan's figures; `barred` are others who proposed it. The lines are Markdown in which no name in
    the plan becomes markup, so that a plan can't disguise itself as another.
    """
    sent = [step for step in sent_in_order(plan.executable_steps, throttle) if step.id not in recorded.ended]
    unloads = [(number, step) for number, step in enumerate(sent, 1) if step.action == "unload"]
    splits = [(number, step) for number, step in enumerate(sent, 1) if step.action == "split"]
    before, after = plan.predicted.before, plan.predicted.after
    calls = f"{count(len(unloads), 'unload')} and {count(len(splits), 'split')}"
    yield f"**{text(proposer)}** proposes {calls} on {code(plan.cluster)}"
    yield f"(Pulsar's own name: {code(plan.identity.cluster_name)}), from snapshot {code(plan.snapshot)}."
    yield ""
    if barred:
        yield f"- proposed before by **{'**, **'.join(map(text, barred))}**, who can't approve it"
    if not_computed_here:
        yield f"- **not computed here**, so check its figures yourself: {text(not_computed_here)}"
    if recorded.runs:
        yield f"- **carried out in part**, in run {', '.join(map(str, recorded.runs))}: only what is left is sent"
    yield f"- strategy: {text(plan.title)}, view `{plan.view}`"
    if short := outcome_sentence(foretold_outcome(plan), plan.title):
        yield f"- **{text(short)}**"
    if plan.what_if:
        assumed = ", ".join(code("=".join(one)) for one in plan.what_if.items())
        yield f"- **assumes other settings** than the cluster's: {assumed}"
    notes = (*plan.decision.caveats, *newer_than_known(plan.pulsar_version))
    yield from (f"- **note**: {text(note)}" for note in notes)
    yield f"- highest usage: {usage_change(plan)} (predicted)"
    yield (
        f"- standard deviation: {percent(before.standard_deviation_ratio)} → "
        f"{percent(after.standard_deviation_ratio)} (predicted)"
    )
    yield f"- digest: `{digest_of(plan)}`"
    yield f"- [report]({report}) of snapshot {code(plan.snapshot)}"
    for needed in needed_consents(plan):
        yield f"- **consent needed**: {text(needed.sentence)}. Tick *{needed.consent.title}* to approve it."
    if why_a_person:
        yield f"- {text(why_a_person)}"
    yield f"- approved for {valid_for_h:g} h: nothing is sent later"
    yield f"- limits approved with it: {'; '.join(throttle.sentences())}"
    if plan.shedder == ROLL and plan.goal is not None:
        left = [broker for broker in plan.goal.brokers if broker not in recorded.ended]
        yield from _of_a_roll(left, plan.decision.figures.get("moves_of_a_bundle"))
    if sent and not recorded.ended:
        only_if = "nothing else is sent unless its effect holds"
        yield f"- {text(sent[0].id)} is sent first, as it disturbs the fewest topics; {only_if}"
    if left_out := len(plan.steps) - len(plan.executable_steps):
        yield f"- {count(left_out, 'step')} of the plan can't be carried out and won't be sent"
    if unloads:
        yield from ("", "| order | step | unload | from | to | why |", "|---|---|---|---|---|---|")
        yield from _rows(plan, unloads, lambda step: f"{code(step.source)} | {_wish(step)}")
    if splits:
        yield from ("", "| order | step | split | at | by | why |", "|---|---|---|---|---|---|")
        yield from _rows(
            plan, splits, lambda step: f"{', '.join(map(code, step.boundaries))} | {text(step.algorithm or '')}"
        )


def _of_a_roll(brokers: Sequence[str], most: object) -> Iterator[str]:
    yield f"- **one approval for the whole roll**: {', '.join(map(code, brokers))}, in this order, the leader last"
    yield (
        "- before each later turn the leader is looked up again, and the plan made anew from fresh figures: it must "
        "keep to these brokers, limits and consents, and move no bundle more than "
        f"{text(str(most))} {'time' if most == 1 else 'times'} in all"
    )
    yield (
        "- a drained broker waits until somebody restarts it and confirms that; the next turn begins once it is "
        "healthy and listed, and the leader has its report"
    )
    yield (
        "- it stops at a failed step beyond the budget, a changed cluster, the end of this approval, *Pause* or *End*: "
        "then the cluster's own balancer is switched on again"
    )


def _rows(plan: Plan, steps: list[tuple[int, Step]], columns: Any) -> Iterator[str]:
    for number, step in steps[:STEPS_SHOWN]:
        bundle = code(step.bundle_name)
        yield f"| {number} | {text(step.id)} | {bundle} | {columns(step)} | {text(step.reason)} |"
    if len(steps) > STEPS_SHOWN:
        page = page_link("clusters", plan.cluster, "plans", digest_of(plan))
        yield f"\n… and {len(steps) - STEPS_SHOWN} more: see [the plan]({page})."


def _wish(step: Step) -> str:
    return code(step.destination) if step.destination else "Pulsar chooses"
