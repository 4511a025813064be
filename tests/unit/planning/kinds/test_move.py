"""move: the bundles that are named go to one broker, or the plan says why not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, ClusterState, IsolationPolicy
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import dump_plan, load_plan
from pulsar_advisor.planning.advice.goal_sentence import goal_sentence
from pulsar_advisor.planning.kinds.goal_outcome import goal_outcome
from states import WHOLE
from unit.planning.kinds.clusters import cluster, moved, planned

BROKERS = {"a": [20.0, 10.0], "b": [30.0], "c": [10.0]}


def moving(
    state: ClusterState, *namespaces: str, onto: str = "b", ceiling: float | None = None, **limits: object
) -> Plan:
    bundles = tuple(f"{namespace}/{WHOLE}" for namespace in namespaces)
    return planned(state, Goal("move", (), None, ceiling, (onto,), bundles), **limits)


def why_not(plan: Plan) -> str:
    """Why the one step of the plan can't be carried out."""
    [step] = plan.steps
    return step.not_executable_because or ""


def test_the_bundles_go_to_the_broker_and_nothing_else_moves() -> None:
    plan = moving(cluster(BROKERS), "t/a-1", "t/c-0")
    assert moved(plan) == {"t/a-1": "b", "t/c-0": "b"}
    assert plan.title == f"move t/a-1/{WHOLE}, t/c-0/{WHOLE} onto b:8080"
    assert (plan.decision.caveats, goal_outcome(plan)) == ((), "reached")
    assert "move 2 bundles to 1 broker: " in goal_sentence(plan)


def test_a_bundle_that_is_there_already_stays_and_the_plan_says_so() -> None:
    plan = moving(cluster(BROKERS), "t/b-0")
    assert not plan.steps
    assert goal_outcome(plan) == "reached"
    assert goal_sentence(plan) == f"Do nothing to {plan.title}: t/b-0/{WHOLE} is on b:8080 already."
    both = moving(cluster(BROKERS), "t/b-0", "t/a-0")
    assert (moved(both), goal_outcome(both)) == ({"t/a-0": "b"}, "reached")


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (
            {"policies": [IsolationPolicy("p", ("t/a-0",), ("a", "c"), (), 1, 100)]},
            "it may not go to b:8080: neither primary nor secondary in the namespace's isolation policy",
        ),
        ({"groups": {"t/a-0": "g", "t/b-0": "g"}}, "it may not go to b:8080: "),
        ({"idle": ("t/a-0",)}, "no topic of the bundle is loaded"),
        ({"limits": {"b": 0.0}}, "it may not go to b:8080: takes nothing: it reports no CPU limit"),
    ],
)
def test_a_bundle_that_may_not_go_there_is_a_step_that_says_why(made: dict[str, object], reason: str) -> None:
    plan = moving(cluster(BROKERS, **made), "t/a-0")  # type: ignore[arg-type]
    assert why_not(plan).startswith(reason)
    assert plan.decision.caveats[0].startswith(f"t/a-0/{WHOLE} stays: {reason}")
    assert goal_outcome(plan) == "missed"


def test_a_bundle_of_pulsars_own_is_a_step_that_says_why() -> None:
    names = {"a": ["pulsar/system"], "b": ["t/b"]}
    state = cluster({"a": [20], "b": [30]}, namespaces=names)
    plan = planned(state, Goal("move", onto=("b",), bundles=("pulsar/system/0x00000000_0x10000000",)))
    assert why_not(plan) == "pulsar/system is one of Pulsar's own namespaces"


def test_what_the_broker_has_no_room_for_stays_and_the_rest_goes() -> None:
    plan = moving(cluster(BROKERS), "t/a-0", "t/a-1", ceiling=0.45)
    assert moved(plan) == {"t/a-1": "b"}
    [stuck] = [step for step in plan.steps if not step.executable]
    assert "might reach 50.0%, above the ceiling of 45.0%" in (stuck.not_executable_because or "")
    assert goal_outcome(plan) == "in part"


def test_a_bundle_that_no_broker_owns_is_named_and_the_goal_missed() -> None:
    state = cluster(BROKERS)
    owner = state.bundles.owner.copy()
    owner[0] = NO_ROW
    plan = moving(replace(state, bundles=replace(state.bundles, owner=owner)), "t/a-0")
    assert not plan.steps
    assert plan.decision.caveats[0].startswith(f"No broker owns t/a-0/{WHOLE}: ")
    assert goal_outcome(plan) == "missed"


def test_what_the_request_excludes_is_said_to_be_left_out_or_to_be_no_destination() -> None:
    named = moving(cluster(BROKERS), "t/a-0", exclude_namespaces=("t/a-0",))
    assert named.decision.why_nothing == (
        "the limits leave out the only unload: 1 by --exclude-broker or --exclude-namespace"
    )
    assert why_not(moving(cluster(BROKERS), "t/a-0", exclude_brokers=("b:8080",))).endswith("the request excludes it")
    assert goal_outcome(named) == "missed"


def test_only_a_plan_about_bundles_has_them_in_its_file() -> None:
    plan = moving(cluster(BROKERS), "t/a-0")
    assert load_plan(dump_plan(plan)).goal == plan.goal
    assert b'"bundles":[' not in dump_plan(planned(cluster(BROKERS), Goal("drain", ("a",))))
