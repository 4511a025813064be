"""UniformLoadShedder by example; the vectors hold it to the released classes."""

from __future__ import annotations

import pytest

from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.shedding.uniform_load_shedder import Memory, decide
from unit.shedding.leader import broker, broker_codes, bundle, bundle_codes, settings, unloads, view

BUNDLES = {
    "big": bundle(rate_per_s=9000),
    "middle": bundle(rate_per_s=1500),
    "small": bundle(rate_per_s=400),
    "idle": bundle(),
}
ALL = list(BUNDLES)


def load_of(of: LoadBalancerSettings, busy_rate_per_s: float = 10_900) -> object:
    brokers = {"busy": broker(0, ALL, rate_per_s=busy_rate_per_s), "calm": broker(0, [], rate_per_s=900)}
    return view(brokers, BUNDLES, of=of)


def test_the_largest_bundles_that_fit_go_and_idle_ones_with_them() -> None:
    of = settings("4.2.4")
    load = load_of(of)
    decision, _ = decide(load, of, Memory())
    assert unloads(load, decision) == [("busy", "middle"), ("busy", "small"), ("busy", "idle")]
    assert bundle_codes(load, decision)["big"] == "rate_too_large"
    assert broker_codes(load, decision) == {"busy": "busiest_by_rate", "calm": "not_busiest_by_rate"}


@pytest.mark.parametrize(("release", "chosen"), [("4.2.4", ["small"]), ("4.0.8", ["middle", "small"])])
def test_up_to_4_0_a_bundle_may_exceed_the_plan_by_1000(release: str, chosen: list[str]) -> None:
    of = settings(release, maxUnloadPercentage=0.1)
    load = load_of(of)
    decision, _ = decide(load, of, Memory())
    assert [name for _, name in unloads(load, decision) if name != "idle"] == chosen


def test_a_cap_ends_the_walk() -> None:
    of = settings("4.2.4", maxUnloadBundleNumPerShedding=1)
    load = load_of(of)
    decision, _ = decide(load, of, Memory())
    assert unloads(load, decision) == [("busy", "middle")]
    assert bundle_codes(load, decision)["small"] == "cap_reached"


def test_throughput_decides_when_rates_are_alike() -> None:
    of = settings("4.2.4", maxUnloadPercentage=0.5)
    bundles = {"wide": bundle(mib_per_s=30), "narrow": bundle(mib_per_s=10)}
    brokers = {"busy": broker(0, list(bundles), mib_per_s=40), "calm": broker(0, [], mib_per_s=2)}
    load = view(brokers, bundles, of=of)
    decision, _ = decide(load, of, Memory())
    assert unloads(load, decision) == [("busy", "narrow")]
    assert bundle_codes(load, decision)["wide"] == "throughput_too_large"


def test_in_2_11_both_greatest_values_are_those_of_one_broker() -> None:
    brokers = {
        "wide": broker(0, [], mib_per_s=400, rate_per_s=100),
        "chatty": broker(0, [], mib_per_s=1, rate_per_s=200),
    }
    apart, _ = decide(view(brokers, {}), settings("4.2.4"), Memory())
    together, _ = decide(view(brokers, {}), settings("2.11.0"), Memory())
    assert (apart.figures["rate_gap_percent"], apart.figures["throughput_multiple"]) == (100.0, 400.0)
    assert (together.figures["rate_gap_percent"], together.figures["throughput_multiple"]) != (100.0, 400.0)


@pytest.mark.parametrize(("release", "chosen"), [("2.11.4", []), ("3.0.7", ["over"]), ("4.2.4", [])])
def test_from_3_0_7_up_to_4_0_it_may_by_1000_bytes_too(release: str, chosen: list[str]) -> None:
    of = settings(release, maxUnloadPercentage=0.5)
    bundles = {"over": bundle(mib_per_s=19 + 500 / (1 << 20))}
    brokers = {"busy": broker(0, ["over", "rest"], mib_per_s=40), "calm": broker(0, [], mib_per_s=2)}
    load = view(brokers, bundles, of=of)
    decision, _ = decide(load, of, Memory())
    assert [name for _, name in unloads(load, decision)] == chosen


@pytest.mark.parametrize(("calm", "gap_percent"), [(0.5, 19_900.0), (0.0, 9_900.0)])
def test_only_a_rate_of_nothing_counts_as_one_message(calm: float, gap_percent: float) -> None:
    brokers = {"busy": broker(0, [], rate_per_s=100), "calm": broker(0, [], rate_per_s=calm)}
    decision, _ = decide(view(brokers, {}), settings("4.2.4"), Memory())
    assert decision.figures["rate_gap_percent"] == gap_percent
