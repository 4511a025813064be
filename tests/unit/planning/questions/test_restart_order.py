"""A rolling restart moves every bundle once, and those of one broker twice, where there is room."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.cluster.cluster_state import IsolationPolicy
from pulsar_advisor.planning.kinds.restarting import Turn, turn
from pulsar_advisor.planning.kinds.room import Room
from pulsar_advisor.planning.questions import restart_order as module
from pulsar_advisor.planning.questions.restart_order import restart_order
from unit.planning.kinds.clusters import cluster, host, room
from unit.properties import examples


def test_the_broker_with_the_fewest_bundles_goes_first_and_each_next_one_into_its_room() -> None:
    order = restart_order(room(cluster({"a": [10] * 4, "b": [20] * 2, "c": [10] * 3})))
    first, second, third = order.restarts
    assert (host(first.broker), first.will_move_again) == ("b", 2)
    assert (second.will_move_again, third.will_move_again) == (0, 0)
    assert (order.moves, order.moves_bound) == (11, 11)
    assert set(second.onto) == {first.broker}


def test_a_broker_that_has_to_be_last_is_not_the_first_though_it_has_the_fewest_bundles() -> None:
    order = restart_order(room(cluster({"a": [10] * 4, "b": [20] * 2, "c": [10] * 3})), last=1)
    assert [host(restart.broker) for restart in order.restarts] == ["c", "a", "b"]
    assert (order.moves, order.moves_bound) == (12, 12)


def test_without_room_bundles_move_again_or_stay() -> None:
    order = restart_order(room(cluster({"a": [70], "b": [70]})))
    assert [restart.stay for restart in order.restarts] == [1, 1]
    assert order.moves == 0


def test_another_broker_begins_where_the_one_with_the_fewest_bundles_leaves_a_later_one_no_room() -> None:
    """Only c can take the 50 of a; if c begins, which has none, the 40 of b stay there."""
    order = restart_order(room(cluster({"a": [50, 10], "b": [40], "c": []}, limits={"a": 100, "b": 50, "c": 100})))
    assert [(host(restart.broker), restart.stay) for restart in order.restarts] == [("b", 0), ("c", 0), ("a", 0)]


@pytest.mark.parametrize(("bundles_tried", "tried"), [(12, 3), (9, 2), (1, 1)])
def test_the_more_bundles_the_fewer_brokers_are_tried_for_the_first_place(
    monkeypatch: pytest.MonkeyPatch, bundles_tried: int, tried: int
) -> None:
    monkeypatch.setattr(module, "BUNDLES_TRIED", bundles_tried)
    turns = Counter[int]()

    def counted(room: Room, broker: int, restarted: Sequence[int]) -> Turn:
        turns[len(restarted)] += 1
        return turn(room, broker, restarted)

    monkeypatch.setattr(module, "turn", counted)
    restart_order(room(cluster({"a": [10] * 4, "b": [10] * 4, "c": [10] * 4})))
    assert turns[0] == tried


def test_a_bundle_moves_again_rather_than_leave_others_no_room() -> None:
    """The largest fits on c, which was restarted; then two of the others fit on a, and the third nowhere."""
    now = turn(room(cluster({"a": [72], "b": [7, 5, 5, 5], "c": [74]})), 1, [2])
    assert (now.restart.stay, now.restart.will_move_again) == (0, 2)


def test_a_bundle_that_may_go_nowhere_stays_until_its_broker_stops() -> None:
    policy = IsolationPolicy("vip", ("t/a-0",), ("a",), (), 1, 100)
    order = restart_order(room(cluster({"a": [5], "b": [5], "c": [5]}, policies=[policy])))
    assert {host(restart.broker): restart.stay for restart in order.restarts}["a"] == 1


def test_on_an_overloaded_cluster_the_first_advice_is_to_balance_or_to_add_a_broker() -> None:
    hot = restart_order(room(cluster({"a": [60, 35], "b": [10], "c": [10]}))).balance_first or ""
    assert hot.startswith("Balance (pulsar-advisor balance --to 85%) first: a:8080 (at 95.0%) is above 85%")
    full = restart_order(room(cluster({"a": [60, 35], "b": [90]}))).balance_first or ""
    assert full == "Add a broker first: all 2 brokers are above 85%, the least busy at 90.0%"
    tight = restart_order(room(cluster({"a": [80], "b": [40]}))).balance_first or ""
    assert tight.startswith("Add a broker first: 2 bundles would find no room under 85%")
    uneven = restart_order(room(cluster({"a": [50, 20], "b": [40]}))).balance_first or ""
    assert uneven.startswith("Balance (pulsar-advisor balance), or add a broker, first: ")
    assert restart_order(room(cluster({"a": [30], "b": [20]}))).balance_first is None


def test_where_there_is_nothing_to_balance_something_else_is_advised() -> None:
    even = restart_order(room(cluster({"a": [70], "b": [70]}))).balance_first
    assert even == "Add a broker first: 2 bundles would find no room under 85% and go wherever Pulsar decides"
    without_clients = cluster({"a": [95], "b": [10]})
    without_clients.bundles.topics[0] = 0
    assert (restart_order(room(without_clients)).balance_first or "").startswith(
        "Split bundles, or add a broker, first: a:8080 (at 95.0%)"
    )


def test_a_ceiling_below_what_balance_would_bring_about_is_its_target() -> None:
    found = restart_order(room(cluster({"a": [30, 20, 10], "b": [50], "c": [30]})).up_to(0.5)).balance_first or ""
    assert found.startswith("Balance (pulsar-advisor balance --to 50%) first: ")
    lower = restart_order(room(cluster({"a": [20, 20, 20], "b": [10], "c": [20]})).up_to(0.5)).balance_first or ""
    assert lower.startswith("Balance (pulsar-advisor balance)")


def test_no_balance_is_advised_that_would_move_nothing() -> None:
    coarse = restart_order(room(cluster({"a": [60, 35], "b": [10], "c": [10]}))).balance_first or ""
    assert coarse.startswith("Balance (pulsar-advisor balance --to 85%)"), "to 1.10 times the mean no bundle fits"
    giant = restart_order(room(cluster({"a": [95], "b": [10], "c": [10]}))).balance_first or ""
    assert giant.startswith("Split bundles, or add a broker, first: a:8080 (at 95.0%)")


@given(sizes=st.lists(st.lists(st.integers(1, 5), max_size=4), min_size=1, max_size=4))
@examples(50)
def test_with_room_for_everything_no_order_is_better(sizes: list[list[int]]) -> None:
    """All of the load is at most 80 %: any broker could take it."""
    order = restart_order(room(cluster({f"b{number}": own for number, own in enumerate(sizes)})))
    assert sorted(restart.broker for restart in order.restarts) == [f"b{number}:8080" for number in range(len(sizes))]
    if len(sizes) > 1:
        assert order.moves == order.moves_bound == sum(map(len, sizes)) + min(map(len, sizes))
    else:
        assert [restart.stay for restart in order.restarts] == [len(sizes[0])]
