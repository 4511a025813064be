"""OverloadShedder by example; the vectors hold it to the released classes."""

from __future__ import annotations

import pytest

from pulsar_advisor.shedding.overload_shedder import Memory, decide
from unit.shedding.leader import broker, broker_answers, broker_codes, bundle, bundle_codes, settings, unloads, view

BUNDLES = {"big": bundle(mib_per_s=6), "middle": bundle(mib_per_s=3), "small": bundle(mib_per_s=1)}


def test_an_overloaded_broker_gives_its_excess_and_a_margin_largest_first() -> None:
    load = view({"hot": broker(95, ["big", "middle", "small"], mib_per_s=10), "cold": broker(10, [])}, BUNDLES)
    decision, _ = decide(load, settings(), Memory())
    assert unloads(load, decision) == [("hot", "big")]
    assert bundle_codes(load, decision) == {"big": "chosen", "middle": "quota_filled", "small": "quota_filled"}
    # What is refused is compared with what was really taken.
    assert decision.bundles.left.tolist() == [0, 6 * 2**20, 6 * 2**20]
    assert broker_answers(load, decision) == {
        "hot": "usage 95.00% has reached the overload threshold 85.00%",
        "cold": "usage 10.00% is below the overload threshold 85.00%",
    }


def test_one_bundle_goes_even_if_the_broker_carries_nothing() -> None:
    load = view({"hot": broker(95, ["big", "small"])}, BUNDLES)
    decision, _ = decide(load, settings(), Memory())
    assert unloads(load, decision) == [("hot", "big")]
    assert bundle_codes(load, decision)["big"] == "chosen_as_first"


def test_recently_unloaded_bundles_are_left_alone() -> None:
    load = view({"hot": broker(95, ["big", "small"], mib_per_s=10)}, BUNDLES, recently_unloaded=("big",))
    decision, _ = decide(load, settings(), Memory())
    assert unloads(load, decision) == [("hot", "small")]
    assert bundle_codes(load, decision)["big"] == "recently_unloaded"


def test_a_broker_whose_bundles_may_not_move_says_so() -> None:
    load = view({"hot": broker(95, ["unknown-1", "unknown-2"], mib_per_s=10)}, {})
    decision, _ = decide(load, settings(), Memory())
    assert broker_codes(load, decision) == {"hot": "nothing_to_move"}
    assert set(bundle_codes(load, decision).values()) == {"not_reported"}


@pytest.mark.parametrize(("release", "code"), [("3.3.6", "overloaded"), ("4.0.8", "below_threshold")])
def test_weights_count_from_4_0_on(release: str, code: str) -> None:
    half = settings(release, loadBalancerCPUResourceWeight=0.5)
    load = view({"hot": broker(95, ["big", "small"], mib_per_s=10)}, BUNDLES, of=half)
    decision, _ = decide(load, half, Memory())
    assert broker_codes(load, decision) == {"hot": code}


def test_the_bundles_of_brokers_that_are_not_overloaded_are_not_looked_at() -> None:
    load = view({"cold": broker(10, ["big", "small"], mib_per_s=10)}, BUNDLES)
    decision, _ = decide(load, settings(), Memory())
    assert len(decision.bundles) == 0
