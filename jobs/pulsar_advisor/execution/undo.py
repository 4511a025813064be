"""The undo plan: the steps that move a plan's bundles back, made before the first of them moves."""

from __future__ import annotations

from pulsar_advisor.execution.preconditions import boundaries_after, executable_steps
from pulsar_advisor.model.plan import (
    Expectation,
    Plan,
    PlanDecision,
    Prediction,
    Step,
    StepPrediction,
    digest_of,
)


def undo_plan(plan: Plan) -> Plan:
    """The plan that takes one back: its unloads to where the bundles came from, last one first.

    It is a plan like any other: it needs an approval of its own, and since it leads back to the worse state, one that
    accepts that. What can't be undone stands in it as a step that is not executable: splits (Pulsar has no merge),
    unloads without a destination, unloads of bundles that the plan splits later.
    """
    forward = executable_steps(plan)
    boundaries: dict[str, tuple[str, ...]] = {}
    for step in forward:
        known = boundaries.get(step.namespace, step.expect.boundaries)
        boundaries[step.namespace] = boundaries_after(known, step)
    usage = {broker: forecast.usage_ratio for broker, forecast in plan.predicted.before.brokers.items()}
    steps: list[Step] = []
    split_later = {(step.namespace, step.bundle) for step in forward if step.action == "split"}
    for step in forward:
        touched = {broker: usage.get(broker) for broker in step.predicted.brokers}
        usage.update(step.predicted.brokers)
        steps.insert(0, _undo_step(step, boundaries[step.namespace], touched, split_later))
    return plan.model_copy(
        update={
            "shedder": "undo",
            "placement": "undo",
            "memory": {"undoes": digest_of(plan)},
            "rests_on": {},
            "steps": tuple(steps),
            "predicted": Prediction(model="proportional", before=plan.predicted.after, after=plan.predicted.before),
            "decision": PlanDecision(
                acts_in_cycle=None,
                why_nothing=None,
                would_pulsar_act="Pulsar itself would not act: it has no undo",
                figures={},
            ),
        }
    )


def _undo_step(
    step: Step,
    boundaries: tuple[str, ...],
    usage_before: dict[str, float | None],
    split_later: set[tuple[str, str]],
) -> Step:
    obstacle = None
    if step.action == "split":
        obstacle = "a split can't be undone: Pulsar has no merge"
    elif step.destination is None:
        obstacle = "the unload has no destination, so the bundle's new broker is not known in advance"
    elif (step.namespace, step.bundle) in split_later:
        obstacle = "the plan splits the bundle later: move its children"
    now_at = step.destination or ""
    return step.model_copy(
        update={
            "id": f"undo-{step.id}",
            "after": (),
            "source": now_at,
            "destination": step.source if step.action == "unload" else None,
            "reason": f"undoes {step.id}",
            "executable": obstacle is None,
            "not_executable_because": obstacle,
            # Where a bundle was is known, whatever made it move.
            "confidence": "high",
            "doubts": (),
            "failed_checks": (),
            "expect": Expectation(
                owner=now_at,
                boundaries=boundaries,
                topics=step.expect.topics,
                msg_rate_per_s=step.expect.msg_rate_per_s,
                throughput_bytes_per_s=step.expect.throughput_bytes_per_s,
            ),
            "predicted": StepPrediction(brokers=usage_before),
        }
    )
