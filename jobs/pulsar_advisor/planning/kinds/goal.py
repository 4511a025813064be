"""Checks a goal against its plan kind, and completes it for one cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.text.some_of import nearest, some_of
from pulsar_advisor.planning.kinds.registry import plan_kind


def check_goal(goal: Goal) -> None:
    """Raise `UsageError` for what the kind doesn't take, before anything is captured."""
    kind = plan_kind(goal.kind)
    of_bundles = kind.about == "bundles"
    if not {"broker": len(goal.brokers) == 1, "brokers": bool(goal.brokers)}.get(kind.about, not goal.brokers):
        wanted = {"broker": "exactly one broker", "brokers": "at least one broker"}.get(kind.about, "no broker")
        raise UsageError(f"{goal.kind} is about {wanted}; named: {some_of(goal.brokers) or 'none'}")
    if bool(goal.bundles) != of_bundles:
        number = "at least one bundle" if of_bundles else "no bundle"
        raise UsageError(f"{goal.kind} is about {number}; named: {some_of(goal.bundles) or 'none'}")
    if of_bundles and len(goal.onto) != 1:
        raise UsageError(f"{goal.kind} is onto exactly one broker; named: {some_of(goal.onto) or 'none'}")
    if goal.target_ratio is not None and "to" not in kind.options:
        raise UsageError(f"{goal.kind} has no target usage: leave it out")
    for option, ratio in (("--to", goal.target_ratio), ("--ceiling", goal.ceiling_ratio)):
        if ratio is not None:
            check_usage(option, ratio)


def check_usage(option: str, ratio: float) -> None:
    """Raise `UsageError` for a usage that no broker can be held to."""
    if not 0.0 < ratio <= 1.0:
        raise UsageError(f"{option} {ratio:.0%} is out of bounds: give a percentage from 1% to 100%")


def ceiling_of(asked: float | None, overloaded_ratio: float) -> float:
    """The ceiling of a cluster, by default its overload threshold, or 100% where that never calls a broker overloaded.

    Raises `UsageError` for one above the threshold: `apply` moves no bundle to a broker that it would overload.
    """
    if asked is None:
        return min(overloaded_ratio, 1.0)
    check_usage("--ceiling", asked)
    if asked > overloaded_ratio:
        raise UsageError(
            f"--ceiling {asked:.0%} is above the overload threshold of {overloaded_ratio:.0%} "
            "(loadBalancerBrokerOverloadedThresholdPercentage), and `apply` overloads no broker"
        )
    return asked


def resolved_goal(goal: Goal, broker_ids: Sequence[str], overloaded_ratio: float) -> Goal:
    """The same goal with the ids of its brokers and a ceiling, which by default is the overload threshold.

    Raises `UsageError` for a broker that the cluster doesn't have, and as `ceiling_of`.
    """
    ceiling = ceiling_of(goal.ceiling_ratio, overloaded_ratio)
    resolved = brokers_in_order if plan_kind(goal.kind).in_order else resolved_brokers
    onto = resolved_brokers(goal.onto, broker_ids)
    return replace(goal, brokers=resolved(goal.brokers, broker_ids), ceiling_ratio=ceiling, onto=onto)


def resolved_brokers(names: Sequence[str], broker_ids: Sequence[str]) -> tuple[str, ...]:
    """The ids of brokers as an operator names them, sorted. Raises `UsageError` for one that the cluster lacks."""
    return tuple(sorted(brokers_in_order(names, broker_ids)))


def brokers_in_order(names: Sequence[str], broker_ids: Sequence[str], of: str = "the cluster") -> tuple[str, ...]:
    """The same in the order in which they are first named; `of` says which brokers those are, for the error."""
    return tuple(dict.fromkeys(_broker_id(name, broker_ids, of) for name in names))


def _broker_id(name: str, broker_ids: Sequence[str], of: str) -> str:
    """The one broker with this id, host, or first part of a host."""
    alike = [broker for broker in broker_ids if broker == name or broker.startswith((f"{name}:", f"{name}."))]
    if len(alike) == 1:
        return alike[0]
    if alike:
        raise UsageError(f"{len(alike)} brokers are named '{name}': {some_of(alike)}; give the whole id")
    raise UsageError(f"there is no broker '{name}'{nearest(name, broker_ids)}; {of} has {some_of(broker_ids)}")
