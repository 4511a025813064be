"""A goal is checked at once, and names its brokers as the operator knows them."""

from __future__ import annotations

import json

import pytest

from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.planning.kinds.goal import ceiling_of, check_goal, resolved_goal
from pulsar_advisor.planning.requests.request import Request

BROKERS = ("broker-1.eu:8080", "broker-10.eu:8080", "broker-2.eu:8080")


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        (Goal("drian", ("broker-1",)), "there is no plan kind 'drian'; the nearest is 'drain'"),
        (Goal("drain"), "drain is about at least one broker; named: none"),
        (Goal("conform", ("broker-1",)), "conform is about no broker; named: broker-1"),
        (Goal("drain", ("broker-1",), 0.6), "drain has no target usage: leave it out"),
        (Goal("move", onto=("broker-1",)), "move is about at least one bundle; named: none"),
        (Goal("drain", ("broker-1",), bundles=("t/n/0x0",)), "drain is about no bundle; named: t/n/0x0"),
        (Goal("move", onto=("b", "c"), bundles=("t/n/0x0",)), "move is onto exactly one broker; named: b, c"),
        (Goal("relieve", ("broker-1",), 1.6), "--to 160% is out of bounds"),
        (Goal("drain", ("broker-1",), None, 0.0), "--ceiling 0% is out of bounds"),
    ],
)
def test_what_a_kind_does_not_take_is_refused_before_anything_is_read(goal: Goal, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_goal(goal)
    with pytest.raises(UsageError, match=message):
        Request(goal=goal)


def test_the_ceiling_is_the_overload_threshold_or_a_lower_one() -> None:
    assert (ceiling_of(None, 0.85), ceiling_of(0.85, 0.85), ceiling_of(0.7, 0.85)) == (0.85, 0.85, 0.7)
    assert ceiling_of(None, 1.2) == 1.0  # a threshold that switches overload off
    for asked, message in ((0.95, "95% is above the overload threshold of 85%"), (6.0, "600% is out of bounds")):
        with pytest.raises(UsageError, match=f"--ceiling {message}"):
            ceiling_of(asked, 0.85)


def test_a_broker_is_named_by_its_id_or_the_beginning_of_its_host() -> None:
    for name in ("broker-1", "broker-1.eu", "broker-1.eu:8080"):
        assert resolved_goal(Goal("drain", (name,)), BROKERS, 0.85) == Goal("drain", BROKERS[:1], None, 0.85)


def test_a_broker_named_twice_counts_once() -> None:
    goal = resolved_goal(Goal("drain", ("broker-2", "broker-1", "broker-2.eu")), BROKERS, 0.85)
    assert goal.brokers == (BROKERS[0], BROKERS[2])


def test_an_executor_gets_the_same_goal() -> None:
    request = Request(goal=Goal("fill", ("broker-1",), 0.5))
    assert Request.from_document(json.loads(json.dumps(request.document()))) == request
    assert (request.shedders, request.placements) == (("fill",), ("",))
