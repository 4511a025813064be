"""LeastResourceUsageWithWeight as placement, by example; the vectors hold it to the released class."""

from __future__ import annotations

import pytest

from pulsar_advisor.model.load.load_data import LoadData
from unit.placement.choice import choose
from unit.shedding.leader import broker, bundle, settings, view


def load_of(a: float, b: float, rate_per_s: float = 1) -> LoadData:
    return view(
        {"a": broker(a, ["x"], rate_per_s=rate_per_s), "b": broker(b, ["x"], rate_per_s=rate_per_s)},
        {"x": bundle()},
    )


def test_brokers_far_enough_below_the_mean_are_eligible() -> None:
    eligible, codes, _ = choose("LeastResourceUsageWithWeight", load_of(20, 60), settings())
    assert eligible == ["a"]
    assert codes == {"a": "below_mean", "b": "near_mean"}


def test_in_an_even_cluster_everybody_is() -> None:
    eligible, codes, _ = choose("LeastResourceUsageWithWeight", load_of(50, 60), settings())
    assert eligible == ["a", "b"]
    assert set(codes.values()) == {"none_below"}


def test_the_history_advances_with_every_choice() -> None:
    _, _, memory = choose("LeastResourceUsageWithWeight", load_of(20, 60), settings())
    _, _, memory = choose("LeastResourceUsageWithWeight", load_of(80, 60), settings(), memory)
    assert memory.history == pytest.approx({"a": 0.26, "b": 0.6})


@pytest.mark.parametrize(("release", "remembered"), [("2.11.0", 0.26), ("4.0.8", 0.8)])
def test_an_idle_broker_starts_afresh_from_3_0_on(release: str, remembered: float) -> None:
    of = settings(release, loadBalancerDirectMemoryResourceWeight=0, loadBalancerMemoryResourceWeight=0)
    _, _, memory = choose("LeastResourceUsageWithWeight", load_of(20, 60, rate_per_s=0), of)
    _, _, memory = choose("LeastResourceUsageWithWeight", load_of(80, 60, rate_per_s=0), of, memory)
    assert memory.history["a"] == pytest.approx(remembered)


def test_brokers_that_are_no_candidates_keep_their_history() -> None:
    load = load_of(20, 60)
    _, _, memory = choose("LeastResourceUsageWithWeight", load, settings())
    _, _, memory = choose("LeastResourceUsageWithWeight", load, settings(), memory, among=("b",))
    assert memory.history["a"] == pytest.approx(0.2)
