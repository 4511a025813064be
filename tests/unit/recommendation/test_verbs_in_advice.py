"""Where the advice says what a verb finds, the verb finds that; where it says that none does, none does."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

import pytest

from pulsar_advisor.model.bounds import ratio
from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.cluster.inputs import Input
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.planning.kinds.goal import resolved_goal
from pulsar_advisor.planning.proposals.limits import Limits
from pulsar_advisor.planning.requests.request import Request
from unit.planning.any_state import any_state, changed
from unit.recommendation.test_recommendation import REQUEST, SETTINGS, recommended

FINDS: Final = re.compile(
    r"`([^`]+)`(?: with the same options)? finds (?:(\d+) splits? and )?(\d+) unloads?: (\S+) (?:may fall|falls) to "
    r"([\d.]+%)"
)
FIND_NOTHING: Final = re.compile(r"(\S+) is at [^`]+, and (`.+), also with `(--to \d+%)`, find nothing that lowers it")


def plan_of(command: str, state: ClusterState, limits: Limits) -> Plan:
    """The plan of a command as the advice names it, typed with the same limits."""
    kind, *words = command.split()
    target = ratio(words.pop()) if "--to" in words else None
    goal = Goal(kind, tuple(word for word in words if word != "--to"), target)
    request = Request(
        goal=resolved_goal(goal, state.brokers.ids, SETTINGS.values.overloaded_ratio), splits=False, limits=limits
    )
    (plan,) = recommended(state, request=request)[1].values()
    return plan


def usages(plan: Plan, broker: str) -> tuple[float, float]:
    """Of a broker, before and after a plan."""
    before, after = (forecast.brokers[broker] for forecast in (plan.predicted.before, plan.predicted.after))
    assert before.usage_ratio is not None and after.usage_ratio is not None
    return before.usage_ratio, after.usage_ratio


def checked(state: ClusterState, limits: Limits, request: Request = REQUEST) -> str:
    """`finds` or `nothing`, as the advice has it, once the verbs have been asked; the advice if it names none."""
    document, _ = recommended(state, request=replace(request, limits=limits))
    said, floor_ratio = document.advice.sentence, document.noise_floor.ratio
    typed = replace(limits, max_splits=None)
    if found := FINDS.search(said):
        command, splits, unloads, broker, usage = found.groups()
        plan = plan_of(command, state, typed)
        before, after = usages(plan, broker)
        steps = len(plan.executable_steps) - len(plan.unloads), len(plan.unloads)
        assert (*steps, f"{after:.1%}") == (int(splits or 0), int(unloads), usage)
        assert before - after >= floor_ratio
        return "finds"
    if nothing := FIND_NOTHING.search(said):
        broker, verbs, target = nothing.groups()
        for verb in re.findall("`([^`]+)`", verbs):
            for command in (verb, f"{verb} {target}"):
                before, after = usages(plan_of(command, state, typed), broker)
                assert before - after < floor_ratio, command
        return "nothing"
    return said


@pytest.mark.parametrize(
    ("seed", "policy", "limits", "expected"),
    [
        (0, "isolation_policies", Limits(), "finds"),
        (11, "failure_domains", Limits(exclude_namespaces=("t/n1",)), "finds"),
        (3, "isolation_policies", Limits(exclude_namespaces=("t/n1",)), "nothing"),
        (2, "failure_domains", Limits(max_unloads=1), "nothing"),
        (21, "isolation_policies", Limits(exclude_brokers=("broker-1:8080",)), "nothing"),
    ],
)
def test_what_the_advice_says_of_verbs_is_what_they_find(
    seed: int, policy: Input, limits: Limits, expected: str
) -> None:
    state = any_state(seed, ("modular", "extensible")[seed % 2])
    assert checked(changed(state, frozenset({policy}), seed), limits) == expected
