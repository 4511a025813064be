"""AvgShedder by example; the vectors hold it to the released classes."""

from __future__ import annotations

import pytest

from pulsar_advisor.shedding.avg_shedder import Memory, decide
from unit.shedding.leader import broker, broker_codes, bundle, bundle_codes, settings, unloads, view

BUNDLES = {"big": bundle(rate_per_s=9000), "middle": bundle(rate_per_s=1500), "idle": bundle()}
HALF = {"maxUnloadPercentage": 0.5}


def pair_of(busy_percent: float, calm_percent: float) -> object:
    brokers = {
        "busy": broker(busy_percent, list(BUNDLES), rate_per_s=10_500),
        "calm": broker(calm_percent, [], rate_per_s=500),
    }
    return view(brokers, BUNDLES)


def test_a_wide_gap_acts_in_the_second_cycle_and_moves_what_fits() -> None:
    load, of = pair_of(90, 20), settings(**HALF)
    first, memory = decide(load, of, Memory())
    assert unloads(load, first) == []
    assert broker_codes(load, first) == {"busy": "too_few_hits", "calm": "too_few_hits"}
    assert memory.hits_high == {"calm": 1, "busy": 1}
    second, memory = decide(load, of, memory)
    assert unloads(load, second) == [("busy", "middle")]
    assert bundle_codes(load, second) == {"big": "rate_too_large", "middle": "rate_fits", "idle": "idle"}
    assert broker_codes(load, second) == {"busy": "gives", "calm": "receives"}
    assert memory.hits_high == memory.hits_low == {}


def test_a_moderate_gap_acts_in_the_eighth_cycle() -> None:
    load, of, memory = pair_of(50, 25), settings(**HALF), Memory()
    cycles = []
    for _ in range(8):
        decision, memory = decide(load, of, memory)
        cycles.append(len(decision.bundle))
    assert cycles == [0] * 7 + [1]


def test_a_pair_that_comes_close_loses_its_hits() -> None:
    of = settings(**HALF)
    _, memory = decide(pair_of(90, 20), of, Memory())
    decision, memory = decide(pair_of(30, 20), of, memory)
    assert memory == Memory()
    assert set(broker_codes(pair_of(30, 20), decision).values()) == {"pair_alike"}


def test_hits_are_used_up_even_if_too_little_would_move() -> None:
    load = pair_of(90, 20)
    of = settings(minUnloadMessage=10_000, loadBalancerAvgShedderHitCountHighThreshold=1)
    decision, memory = decide(load, of, Memory())
    assert broker_codes(load, decision)["busy"] == "too_little_gap"
    assert memory.hits_high == {}


def test_the_idler_broker_is_kept_in_mind_as_destination() -> None:
    of = settings(loadBalancerAvgShedderHitCountHighThreshold=1, **HALF)
    _, memory = decide(pair_of(90, 20), of, Memory())
    assert list(memory.destinations.values()) == [("busy", "calm")]


@pytest.mark.parametrize(("release", "hits"), [("3.3.6", {"a": 1, "c": 1}), ("4.0.8", {"b": 1, "c": 1})])
def test_up_to_3_3_scores_less_than_a_point_apart_are_equal(release: str, hits: dict[str, int]) -> None:
    load = view({"a": broker(20.5, []), "b": broker(20, []), "c": broker(60, [])}, {})
    _, memory = decide(load, settings(release), Memory())
    assert memory.hits_low == hits
