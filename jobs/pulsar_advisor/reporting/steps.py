"""The steps of a plan with their predicted effects: usage before and after, and the load of a split's children."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from pulsar_advisor.model.cluster.bundle_range import FULL_UPPER_BOUND, parse_range
from pulsar_advisor.model.cluster.cluster_state import ClusterState, rate_per_s, throughput_bytes_per_s
from pulsar_advisor.model.plans.plan import Plan, Step
from pulsar_advisor.planning.plans.by_hand import pulsar_admin
from pulsar_advisor.planning.usage.forecast import finite
from pulsar_advisor.reporting.figures import count


@dataclass(frozen=True)
class Effect:
    """Usage (ratio) of a broker immediately before and after a step, if all earlier steps were carried out."""

    broker: str
    before_ratio: float | None
    after_ratio: float | None


@dataclass(frozen=True)
class Child:
    """One part of a bundle after a split: its topics by name, and the current load of its loaded topics; None if that
    is no number."""

    range: str
    topics: int
    msg_rate_per_s: float | None
    throughput_bytes_per_s: float | None


@dataclass(frozen=True)
class StepView:
    """A step of the plan with its effects."""

    step: Step
    effects: tuple[Effect, ...]
    children: tuple[Child, ...]
    rests_on: int
    """Number of checks it is based on."""
    by_hand: str
    """Its call as a `pulsar-admin` command; empty if it can't be carried out."""

    @property
    def checks(self) -> str:
        """The checks it is based on, in words; empty for a plan from a release that didn't record them."""
        if not self.rests_on:
            return ""
        failed = len(self.step.failed_checks)
        return f"Based on {count(self.rests_on, 'check')}, {f'{failed} failed' if failed else 'all passed'}."

    @property
    def condition(self) -> str:
        """What must hold when it is sent, as a sentence; empty if it can't be carried out."""
        expected = self.step.expect
        if not self.step.executable:
            return ""
        owner = "its source" if expected.owner == self.step.source else expected.owner or "no broker"
        after = f", after {', '.join(self.step.after)}" if self.step.after else ""
        bundles = count(len(expected.boundaries) - 1, "bundle")
        return f"Sent only if {owner} still owns it and its namespace still has the same {bundles}{after}."

    @property
    def doubts(self) -> str:
        """Reasons for doubt, as one text; empty if there are none."""
        return " ".join(doubt.sentence for doubt in self.step.doubts)


@dataclass(frozen=True)
class StepList:
    """Unloads or splits in the order of the plan; `total` is their number before any cut."""

    shown: tuple[StepView, ...]
    total: int
    rests_on: tuple[str, ...] = ()
    """The checks they are based on, by name."""


def step_lists(state: ClusterState, plan: Plan | None) -> tuple[StepList, StepList]:
    """(unloads, splits) of a plan."""
    if plan is None:
        return StepList((), 0), StepList((), 0)
    usage = {broker: row.usage_ratio for broker, row in plan.predicted.before.brokers.items()}
    topics_of = cache(lambda namespace: _topics_of(state, namespace))  # many splits share a namespace
    unloads: list[StepView] = []
    splits: list[StepView] = []
    for step in plan.steps:
        listed = unloads if step.action == "unload" else splits
        effects = tuple(Effect(broker, usage.get(broker), after) for broker, after in step.predicted.brokers.items())
        if step.executable:
            usage.update(step.predicted.brokers)
        rests_on = len(plan.rests_on.get(step.action, ()))
        by_hand = pulsar_admin(step, plan.pulsar_version) if step.executable else ""
        listed.append(StepView(step, effects, _children(state, step, topics_of), rests_on, by_hand))
    return (
        StepList(tuple(unloads), len(unloads), plan.rests_on.get("unload", ())),
        StepList(tuple(splits), len(splits), plan.rests_on.get("split", ())),
    )


def in_plan_order(views: Iterable[StepView]) -> list[StepView]:
    """Unloads and splits, merged in the order of the plan."""
    return sorted(views, key=lambda view: (len(view.step.id), view.step.id))


def _topics_of(state: ClusterState, namespace: str) -> npt.NDArray[np.intp]:
    """Rows of a namespace's topics."""
    if namespace not in state.namespaces.names:
        return np.empty(0, np.intp)
    return np.flatnonzero(state.topics.namespace == state.namespaces.names.index(namespace))


def _children(state: ClusterState, step: Step, topics_of: Callable[[str], npt.NDArray[np.intp]]) -> tuple[Child, ...]:
    if step.namespace not in state.namespaces.names:
        return ()
    topics, rows = state.topics, topics_of(step.namespace)
    children = []
    for text in step.children:
        lower, upper = parse_range(text)
        position = topics.hash[rows]
        inside = rows[(position >= lower) & ((position < upper) | ((upper == FULL_UPPER_BOUND) & (position == upper)))]
        traffic = topics.traffic[inside].sum(axis=0)
        rate, flow = finite(float(rate_per_s(traffic))), finite(float(throughput_bytes_per_s(traffic)))
        children.append(Child(text, len(inside), rate, flow))
    return tuple(children)
