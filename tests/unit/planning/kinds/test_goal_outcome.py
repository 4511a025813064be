"""A goal is reached, reached in part, or missed; whatever leaves something of it undone counts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.planning.kinds.goal_outcome import goal_outcome, outcome_sentence
from unit.planning.kinds.clusters import cluster, moved, planned
from unit.properties import examples

DRAIN_A = Goal("drain", ("a",))


def test_a_drained_broker_is_empty_or_the_goal_is_not_reached() -> None:
    assert goal_outcome(planned(cluster({"a": [20, 10], "b": [30]}), DRAIN_A)) == "reached"
    assert goal_outcome(planned(cluster({"a": [20, 20], "b": [60], "c": [75]}), DRAIN_A)) == "in part"
    assert goal_outcome(planned(cluster({"a": [50], "b": [60]}), DRAIN_A)) == "missed"


def test_what_the_limits_leave_out_is_missing() -> None:
    state = cluster({"a": [20, 10], "b": [30]})
    assert goal_outcome(planned(state, DRAIN_A, max_unloads=1)) == "in part"
    assert goal_outcome(planned(state, DRAIN_A, exclude_namespaces=("t/a-0",))) == "in part"


def test_a_bundle_that_cannot_be_moved_is_missing_under_limits_too() -> None:
    state = cluster({"a": [10, 10], "b": [30]})
    state = replace(state, bundles=replace(state.bundles, usable=state.bundles.namespace != 1))
    for limits in ({}, {"max_unloads": 1}):
        assert goal_outcome(planned(state, DRAIN_A, **limits)) == "in part"


def test_a_goal_of_a_kind_that_only_another_release_has_is_not_said_to_be_reached() -> None:
    plan = planned(cluster({"a": [20, 10], "b": [30]}), DRAIN_A)
    assert goal_outcome(plan.model_copy(update={"goal": Goal("vacate", ("a:8080",))})) == "in part"


def test_a_broker_without_bundles_is_drained_already() -> None:
    assert goal_outcome(planned(cluster({"a": [], "b": [30]}), DRAIN_A)) == "reached"


def test_a_broker_is_not_drained_where_nothing_can_be_planned() -> None:
    state = cluster({"a": [20, 10], "b": [30]})
    assert goal_outcome(planned(replace(state, load_manager="simple"), DRAIN_A)) == "missed"
    assert goal_outcome(planned(replace(state, missing={"bundle_traffic": "HTTP 500"}), DRAIN_A)) == "missed"


@pytest.mark.parametrize(
    ("goal", "brokers", "outcome"),
    [
        (Goal("relieve", ("a",), 0.6), {"a": [40, 40], "b": [10]}, "reached"),
        (Goal("relieve", ("a",), 0.5), {"a": [30], "b": [10]}, "reached"),
        (Goal("relieve", ("a",), 0.3), {"a": [40, 40], "b": [60]}, "missed"),
        (Goal("relieve", ("a",), 0.25), {"a": [30, 30, 20], "b": [0]}, "in part"),
        (Goal("balance", (), 0.55), {"a": [40, 40], "b": [10]}, "reached"),
        (Goal("balance", (), 0.2), {"a": [40, 10], "b": [5]}, "in part"),
        (Goal("balance", (), 0.9), {"a": [40, 40], "b": [10]}, "reached"),
        (Goal("fill", ("b",)), {"a": [20, 20, 20], "b": []}, "reached"),
        (Goal("fill", ("b",)), {"a": [60], "b": []}, "missed"),
        (Goal("fill", ("b",)), {"a": [30, 30], "b": [20]}, "reached"),
        (Goal("conform"), {"a": [60], "b": []}, "reached"),
    ],
)
def test_a_usage_is_within_its_target_or_the_goal_is_not_reached(
    goal: Goal, brokers: dict[str, list[float]], outcome: str
) -> None:
    assert goal_outcome(planned(cluster(brokers), goal)) == outcome


@pytest.mark.parametrize(("children_moved", "outcome"), [(0, "reached"), (1, "in part")])
def test_children_that_were_to_move_count_as_moves(children_moved: int, outcome: str) -> None:
    plan = planned(cluster({"a": [20, 10], "b": [30]}), DRAIN_A)
    figures = {**plan.decision.figures, "children_moved": children_moved}
    decision = plan.decision.model_copy(update={"figures": figures})
    assert goal_outcome(plan.model_copy(update={"decision": decision})) == outcome


def test_what_falls_short_is_said_and_what_is_reached_needs_no_words() -> None:
    assert outcome_sentence("reached", "drain a:8080") == ""
    assert outcome_sentence(None, "") == ""
    assert outcome_sentence("in part", "drain a:8080") == "Goal reached only in part: drain a:8080."
    assert outcome_sentence("missed", "") == "Goal missed."


@given(
    sizes=st.fixed_dictionaries({broker: st.lists(st.integers(1, 30), min_size=1, max_size=5) for broker in "abc"}),
    goal=st.sampled_from([DRAIN_A, Goal("balance", (), 0.5), Goal("relieve", ("a",), 0.3)]),
)
@examples(60)
def test_a_goal_that_was_reached_asks_for_nothing_more(sizes: dict[str, list[int]], goal: Goal) -> None:
    plan = planned(cluster(sizes), goal)
    moves = moved(plan)
    after: dict[str, list[float]] = {broker: [] for broker in sizes}
    for broker, own in sizes.items():
        for number, size in enumerate(own):
            after[moves.get(f"t/{broker}-{number}", broker)].append(size)
    if goal_outcome(plan) == "reached":
        again = planned(cluster(after), goal)
        assert (goal_outcome(again), again.steps) == ("reached", ())
