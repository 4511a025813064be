"""What whoever approves a plan, or carries it out by hand, reads first."""

from __future__ import annotations

from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.plans.plan import PlanDecision, PlannedSetting
from pulsar_advisor.planning.plans.to_mind import to_mind
from unit.execution.doubles import make_plan, unload_step

KEY = "loadBalancerBrokerOverloadedThresholdPercentage"


def test_a_missed_goal_caveats_and_assumed_settings_are_said_in_this_order() -> None:
    plan = make_plan(
        [unload_step()],
        goal=Goal("drain", ("a:8080",)),
        decision=PlanDecision(acts_in_cycle=1, why_nothing=None, would_pulsar_act="", caveats=("1 bundle stays.",)),
        settings={KEY: PlannedSetting(value="60", origin="what-if")},
    )
    assert list(to_mind(plan)) == [
        "Goal reached only in part: drain a:8080.",
        "1 bundle stays.",
        f"assumes other settings than the cluster's: {KEY}=60",
    ]


def test_a_release_that_is_newer_than_known_is_said() -> None:
    newer = make_plan([unload_step()], pulsar_version="9.1.0")
    [line] = to_mind(newer)
    assert line.startswith("Pulsar 9.1.0 is newer than ")


def test_a_plan_without_any_says_nothing() -> None:
    assert list(to_mind(make_plan([unload_step()]))) == []
