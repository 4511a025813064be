"""LeastLongTermMessageRate as placement, by example; the vectors hold it to the released class."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from unit.placement.choice import choose, otherwise
from unit.shedding.leader import broker, settings, view


def with_rate(cpu_percent: float, long_term_rate_per_s: float) -> dict[str, Any]:
    return {**broker(cpu_percent, []), "longTermMsgRateIn": long_term_rate_per_s}


def test_the_lowest_rate_wins_and_overloaded_brokers_are_out() -> None:
    load = view({"a": with_rate(10, 300), "b": with_rate(10, 200), "c": with_rate(90, 100)}, {})
    eligible, codes, _ = choose("LeastLongTermMessageRate", load, settings())
    assert eligible == ["b"]
    assert codes == {"a": "higher_rate", "b": "lowest_rate", "c": "overloaded"}


def test_equal_rates_are_drawn_among() -> None:
    load = view({"a": with_rate(10, 200), "b": with_rate(10, 200)}, {})
    assert choose("LeastLongTermMessageRate", load, settings())[0] == ["a", "b"]


def test_a_broker_at_the_threshold_is_not_overloaded() -> None:
    load = view({"a": with_rate(50, 100), "b": with_rate(10, 200)}, {})
    assert choose("LeastLongTermMessageRate", load, settings(loadBalancerBrokerOverloadedThresholdPercentage=50))[
        0
    ] == ["a"]


def test_if_all_are_overloaded_all_are_drawn_among() -> None:
    load = view({"a": with_rate(90, 100), "b": with_rate(95, 200)}, {})
    eligible, codes, _ = choose("LeastLongTermMessageRate", load, settings())
    assert eligible == ["a", "b"]
    assert set(codes.values()) == {"all_overloaded"}


def test_bundles_on_their_way_count() -> None:
    on_its_way = {"preallocated": {"t/n/x": {"longTerm": {"msgRateIn": 150}}}}
    load = view({"a": {**with_rate(10, 100), **on_its_way}, "b": with_rate(10, 200)}, {})
    assert choose("LeastLongTermMessageRate", load, settings())[0] == ["b"]


def test_an_average_that_is_not_stored_yet_may_be_anything_up_to_its_sample() -> None:
    load = view({"a": with_rate(10, 300), "b": with_rate(10, 900), "c": with_rate(10, 400)}, {})
    unstored = replace(load, brokers=replace(load.brokers, unstored_rate_per_s=np.array([0.0, 650.0, 0.0])))
    assert otherwise("LeastLongTermMessageRate", unstored, settings()) == ["a", "b"]
    assert otherwise("LeastLongTermMessageRate", load, settings()) is None
