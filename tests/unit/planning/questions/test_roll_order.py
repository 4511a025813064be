"""Which brokers a roll restarts, in which order, and what it leaves out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.planning.kinds.restarting import turns_of
from pulsar_advisor.planning.questions.roll_order import roll_order
from unit.planning.kinds.clusters import cluster, room

THREE = {"a": [10] * 4, "b": [20] * 2, "c": [10] * 3}
A, B, C, D = (f"{name}:8080" for name in "abcd")


def test_the_order_moves_bundles_least_often_but_for_the_leader_who_is_last() -> None:
    assert roll_order(room(cluster(THREE)), None).brokers[0] == B
    order = roll_order(room(cluster(THREE)), B)
    assert (order.brokers, order.leader) == ((C, A, B), B), "of the others, the one with the fewest bundles is first"
    assert [turn.broker for turn in order.turns] == list(order.brokers)
    assert sum(turn.bundles for turn in order.turns) == 9 + order.turns[0].bundles


def test_the_turns_of_the_order_found_are_not_made_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    at_first = room(cluster(THREE))
    made = [one.restart for one in turns_of(at_first, at_first.rows_of([C, A, B]), [])]
    monkeypatch.setattr("pulsar_advisor.planning.questions.roll_order.turns_of", lambda *_: pytest.fail("made again"))
    assert list(roll_order(room(cluster(THREE)), B).turns) == made


def test_the_operators_own_order_counts_again_with_the_leader_last() -> None:
    assert roll_order(room(cluster(THREE)), A, ["a", "c", "b"]).brokers == (C, B, A)
    some = roll_order(room(cluster(THREE)), A, ["c"])
    assert (some.brokers, some.leader, some.at_rest) == ((C,), None, ())


def test_a_spare_broker_takes_the_first_ones_bundles_and_none_moves_again() -> None:
    order = roll_order(room(cluster({**THREE, "d": []})), None, spare=["d"])
    assert set(order.turns[0].onto) == {D}
    assert [turn.will_move_again for turn in order.turns] == [0, 0, 0]
    assert order.at_rest == ()


def test_a_broker_with_nothing_to_move_is_left_out_and_takes_bundles_first() -> None:
    order = roll_order(room(cluster({**THREE, "d": []})), None)
    assert (D in order.brokers, order.at_rest) == (False, (D,))
    assert set(order.turns[0].onto) == {D}


@pytest.mark.parametrize("field", ["complete", "available"])
def test_a_broker_that_can_not_be_judged_is_not_left_out_in_silence(field: str) -> None:
    state = cluster({**THREE, "d": []})
    unlike_b = np.array([broker != B for broker in state.brokers.ids])
    at_first = room(replace(state, brokers=replace(state.brokers, **{field: unlike_b})))  # type: ignore[arg-type]
    order = roll_order(at_first, None)
    assert (order.brokers, order.at_rest, order.unfit) == ((A, C), (D,), (B,))
    assert list(order.left_out()) == [
        f"{D}: nothing to move, so the roll leaves them out; restart 1 such broker before it begins",
        f"{B}: not active, or without figures fit for use, so the roll leaves them out and they are not restarted: "
        "capture again, and make the plan anew",
    ]
    assert list(roll_order(at_first, None, ["a", "c"]).left_out()) == [], "its order is the operator's own"
    with pytest.raises(UsageError, match=f"{B} is not active, or its figures are not fit for use: capture again"):
        roll_order(at_first, None, ["a", "b"])
    unlike_c = np.array([broker == A for broker in state.brokers.ids])
    both = room(replace(state, brokers=replace(state.brokers, **{field: unlike_c})))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=f"{B}, {C} are not active, or their figures are not fit for use"):
        roll_order(both, None, ["b", "c"])


@pytest.mark.parametrize(
    ("names", "spare", "message"),
    [
        (["a"], ["a"], "a:8080 can't be restarted and spare at once"),
        (["x"], [], "there is no broker 'x'"),
        ([], ["a", "b", "c"], "no broker has a bundle to move"),
    ],
)
def test_what_can_not_be_an_order_is_refused(names: list[str], spare: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        roll_order(room(cluster(THREE)), None, names, spare)


def test_it_is_said_where_no_plan_can_follow_an_order() -> None:
    simple = roll_order(room(replace(cluster(THREE), load_manager="simple")), None)
    assert simple.why_none == "the Simple load manager doesn't keep the destination of an unload."
    assert roll_order(room(cluster(THREE)), None).why_none is None
