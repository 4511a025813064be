"""The section "What happens next": the cluster's own strategies from now on, and after the advised plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pulsar_advisor.documents.recommendation import Foresight
from pulsar_advisor.reporting.figures import count, percent, sentence
from pulsar_advisor.reporting.futures import between, doubt, own_sentence
from pulsar_advisor.simulation.foresight import CycleSeen, Undone


@dataclass(frozen=True)
class WhatsNext:
    """What a simulation says about the coming hour."""

    sentences: tuple[str, ...]
    cycles: tuple[CycleSeen, ...]
    """The snapshot as cycle 0, and the cycles with an unload or a split."""

    @property
    def brokers(self) -> tuple[str, ...]:
        """The brokers whose usage is known for each cycle."""
        return tuple(self.cycles[0].usage_ratios) if self.cycles else ()


def whats_next(foresight: Foresight | None) -> WhatsNext | None:
    """The section; None if an earlier release wrote the recommendation."""
    if foresight is None:
        return None
    if foresight.error:
        return WhatsNext((sentence(f"What happens next could not be simulated: {foresight.error}"),), ())
    own, off = foresight.own, foresight.switched_off_by
    sentences = [own_sentence([own], own, off) or ""] if own else []
    if (plan := foresight.plan) is not None:
        sentences.append(interference_sentence(plan, foresight.cycles, off))
    if foresight.not_simulated:
        sentences.append(foresight.not_simulated)
    return WhatsNext(tuple(sentences), foresight.acting)


def interference_sentence(plan: Undone, cycles: int, switched_off_by: Sequence[str] = ()) -> str:
    """What Pulsar's own balancer does with the bundles of a plan once it has been carried out, or would if switched on.

    `switched_off_by` are the switches that keep it from shedding.
    """
    conditions = ["the plan is carried out", *(f"{key}=true is set" for key in switched_off_by)]
    return f"Once {' and '.join(conditions)}, {_interference(plan, cycles)}."


def _interference(plan: Undone, cycles: int) -> str:
    number = count(plan.plan_bundles, "bundle")
    highest = f"the busiest broker at {percent(plan.last_usage_maximum_ratio)}{between(plan)}"
    if plan.ended == "settled":
        end = f"end with {highest}{doubt(plan)}"
    elif plan.ended == "repeats":
        end = f"oscillate, with {highest} in cycle {plan.cycles}"
    else:
        end = f"not settle by cycle {cycles}, with {highest}"
    if not plan.happens:
        return f"Pulsar's own balancer would do nothing for {cycles} cycles"
    if not plan.moved_again:
        where = "where it is" if plan.plan_bundles == 1 else "where they are"
        acts = [f"leave its {number} {where}"]
        if plan.bundles:
            acts.append(f"unload {count(plan.bundles, 'other bundle')}")
        if plan.splits:
            acts.append(f"split {count(plan.splits, 'bundle')}")
        return f"Pulsar's own balancer would {', '.join(acts)} and {end}"
    again, back = plan.moved_again, plan.moved_back
    some_back = f", {back:,} of them back" if back else ""
    where = "back" if back == again else f"again{some_back}"
    return (
        f"Pulsar's own balancer would undo part of it: from cycle {plan.first_cycle} on it would move "
        f"{again:,} of the plan's {number} {where}, and {end}"
    )
