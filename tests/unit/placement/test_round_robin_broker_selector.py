"""RoundRobinBrokerSelector as placement, by example; the vectors hold it to the released class."""

from __future__ import annotations

import numpy as np

from pulsar_advisor.placement import registry
from unit.placement.choice import choose
from unit.shedding.leader import broker, settings, view


def test_one_after_the_other() -> None:
    load, memory, chosen = view({"a": broker(0, []), "b": broker(0, [])}, {}), None, []
    for _ in range(3):
        eligible, _, memory = choose("RoundRobinBrokerSelector", load, settings(), memory)
        chosen += eligible
    assert chosen == ["a", "b", "a"]


def test_the_order_of_an_earlier_set_persists_while_its_members_remain() -> None:
    load = view({name: broker(0, []) for name in "abc"}, {})
    _, _, memory = choose("RoundRobinBrokerSelector", load, settings())
    assert choose("RoundRobinBrokerSelector", load, settings(), memory, among=("c", "a", "b"))[0] == ["b"]


def test_a_broker_that_comes_back_is_where_it_was_in_the_list() -> None:
    before, between = (view({name: broker(0, []) for name in names}, {}) for names in ("abc", "acd"))
    chosen, _, memory = choose("RoundRobinBrokerSelector", before, settings(), among=("b", "c", "a"))
    for load, among in ((between, ("a", "c", "d")), (between, ("a", "c", "d")), (before, ("a", "b", "c"))):
        eligible, _, memory = choose("RoundRobinBrokerSelector", load, settings(), memory, among=among)
        chosen += eligible
    assert chosen == ["b", "c", "a", "b"]


def test_the_counter_wraps() -> None:
    load, strategy = view({"a": broker(0, []), "b": broker(0, [])}, {}), registry.load("RoundRobinBrokerSelector")
    eligible, _, memory = choose("RoundRobinBrokerSelector", load, settings(), strategy.Memory(2**31 - 1))
    assert (eligible, memory.counter) == (["b"], 0)


def test_without_candidates_nobody_is_chosen_and_no_turn_is_lost() -> None:
    load, strategy = view({}, {}), registry.load("RoundRobinBrokerSelector")
    decision, memory = strategy.choose(load, np.empty(0, dtype=np.int32), 0, settings(), strategy.Memory(7))
    assert (len(decision.eligible), memory.counter) == (0, 7)
