"""ThresholdShedder by example; the vectors hold it to the released classes."""

from __future__ import annotations

import pytest

from pulsar_advisor.shedding.threshold_shedder import Memory, decide
from unit.shedding.leader import broker, broker_answers, broker_codes, bundle, settings, unloads, view

BUNDLES = {"big": bundle(mib_per_s=60), "middle": bundle(mib_per_s=30), "small": bundle(mib_per_s=10)}
COLD = {"cold-1": broker(10, []), "cold-2": broker(10, [])}


def test_a_broker_that_stands_out_gives_what_lies_above_the_mean() -> None:
    load = view({"hot": broker(40, ["big", "middle", "small"], mib_per_s=100), **COLD}, BUNDLES)
    decision, memory = decide(load, settings(), Memory())
    assert unloads(load, decision) == [("hot", "big")]
    assert broker_answers(load, decision)["hot"] == "smoothed usage 40.00% has reached mean plus threshold 30.00%"
    assert memory.history == pytest.approx({"hot": 0.4, "cold-1": 0.1, "cold-2": 0.1})


def test_usage_is_smoothed_over_cycles() -> None:
    calm = view({"hot": broker(10, ["big", "small"], mib_per_s=100), **COLD}, BUNDLES)
    peak = view({"hot": broker(60, ["big", "small"], mib_per_s=100), **COLD}, BUNDLES)
    _, memory = decide(calm, settings(), Memory())
    decision, memory = decide(peak, settings(), memory)
    assert memory.history["hot"] == pytest.approx(0.15)
    assert broker_codes(peak, decision)["hot"] == "near_mean"


def test_a_broker_that_left_is_forgotten_when_the_leader_sees_it_go() -> None:
    _, memory = decide(view({"hot": broker(40, []), **COLD}, {}), settings(), Memory())
    _, memory = decide(view(COLD, {}), settings(), memory)
    assert set(memory.history) == {"hot", *COLD}
    assert set(memory.forget_departed(COLD).history) == set(COLD)


BUSY = {f"busy-{number}": broker(80, ["big", "small"], mib_per_s=200) for number in range(10)}
IDLE = {"idle": broker(0, [])}


def test_an_idle_broker_draws_from_the_busiest_if_the_lower_boundary_is_on() -> None:
    load = view({**BUSY, **IDLE}, BUNDLES)
    off, _ = decide(load, settings(), Memory())
    on, _ = decide(load, settings(lowerBoundarySheddingEnabled=True), Memory())
    assert unloads(load, off) == []
    [(source, taken)] = unloads(load, on)
    assert taken == "big"
    assert broker_codes(load, on)[source] == "gives_to_idle"


def test_the_lower_boundary_pass_smooths_a_second_time() -> None:
    load = view({**BUSY, **IDLE}, BUNDLES)
    before = Memory(dict.fromkeys((*BUSY, *IDLE), 0.5))
    _, memory = decide(load, settings(lowerBoundarySheddingEnabled=True), before)
    assert memory.history["idle"] == pytest.approx(0.5 * 0.9 * 0.9)
