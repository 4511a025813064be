"""The sentence names the broker that was asked about, what it gets, and who is busiest then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.planning.advice.goal_sentence import goal_sentence
from unit.planning.kinds.clusters import cluster, planned

RELIEVE_A = Goal("relieve", ("a",), 0.6)


@pytest.mark.parametrize(
    ("goal", "brokers", "sentence"),
    [
        (
            RELIEVE_A,
            {"a": [30, 30, 20], "b": [30]},
            "To relieve a:8080, move 1 bundle to 1 broker: a:8080 goes from 80.0% (CPU) to 60.0%; it stays the "
            "busiest.",
        ),
        (
            RELIEVE_A,
            {"a": [40, 40], "b": [10], "c": [70]},
            "To relieve a:8080, move 1 bundle to 1 broker: a:8080 goes from 80.0% (CPU) to 40.0%; the busiest broker "
            "is then c:8080 at 70.0%, not a:8080 at 80.0% (CPU).",
        ),
        (
            Goal("drain", ("a",)),
            {"a": [20], "b": [30], "c": [80]},
            "To drain a:8080, move 1 bundle to 1 broker: a:8080 goes from 20.0% (CPU) to 0.0%; the busiest broker "
            "stays c:8080 at 80.0% (CPU).",
        ),
        (
            Goal("drain", ("a",)),
            {"a": [10, 70], "b": [40]},
            "To drain a:8080, move 1 bundle to 1 broker, and leave 1 that can't move: a:8080 goes from 80.0% (CPU) to "
            "70.0%; it stays the busiest.",
        ),
        (
            Goal("balance", (), 0.6),
            {"a": [30, 30, 20], "b": [10]},
            "To balance, move 1 bundle to 1 broker: the busiest broker, a:8080, goes from 80.0% (CPU) to 60.0%.",
        ),
    ],
)
def test_what_becomes_of_the_broker_and_of_the_busiest(
    goal: Goal, brokers: Mapping[str, Sequence[float]], sentence: str
) -> None:
    assert goal_sentence(planned(cluster(brokers), goal)) == sentence


def test_nothing_is_done_where_the_goal_is_reached_and_nothing_can_be_where_it_is_missed() -> None:
    reached = planned(cluster({"a": [30], "b": [20]}), RELIEVE_A)
    assert goal_sentence(reached) == "Do nothing to relieve a:8080: its usage of 30.0% is within 60.0%."
    state = replace(cluster({"a": [80], "b": [20]}), load_manager="simple")
    assert goal_sentence(planned(state, RELIEVE_A)) == (
        "Nothing can be done to relieve a:8080: the Simple load manager doesn't keep the destination of an unload."
    )


def test_a_usage_that_the_model_leaves_open_has_a_range() -> None:
    plan = planned(cluster({"a": [40, 40], "b": [10]}), RELIEVE_A)
    after = plan.predicted.after
    open_ended = after.brokers["a:8080"].model_copy(update={"highest_usage_ratio": 0.8})
    brokers = {**after.brokers, "a:8080": open_ended}
    predicted = plan.predicted.model_copy(update={"after": after.model_copy(update={"brokers": brokers})})
    assert "a:8080 goes from 80.0% (CPU) to 40.0% (37.0% to 80.0%);" in goal_sentence(
        plan.model_copy(update={"predicted": predicted})
    )
