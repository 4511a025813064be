"""AvgShedder as placement, by example; the vectors hold it to the released class."""

from __future__ import annotations

from typing import Any

import pytest

from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.load_data import LoadData
from pulsar_advisor.shedding import avg_shedder
from unit.placement.choice import choose, otherwise
from unit.shedding.leader import broker, bundle, settings, view

BUNDLES = {"big": bundle(rate_per_s=1500), "other": bundle(rate_per_s=30_000)}


def shed(release: str, calm_percent: float = 20) -> tuple[LoadData, LoadBalancerSettings, Any]:
    of = settings(
        release,
        loadBalancerAvgShedderHitCountHighThreshold=1,
        loadBalancerAvgShedderHitCountLowThreshold=1,
        loadBalancerAvgShedderLowThreshold=5,
    )
    brokers = {
        "busy": broker(95, list(BUNDLES), rate_per_s=31_500),
        "calm": broker(calm_percent, []),
        "free": broker(60, []),
    }
    load = view(brokers, BUNDLES, of=of)
    _, memory = avg_shedder.decide(load, of, avg_shedder.Memory())
    return load, of, memory


@pytest.mark.parametrize("release", ["4.0.8", "5.0.1"])
def test_a_chosen_bundle_goes_where_the_shedder_had_in_mind(release: str) -> None:
    load, of, memory = shed(release)
    eligible, codes, _ = choose("AvgShedder", load, of, memory, row=0)
    assert eligible == ["calm"]
    assert codes == {"busy": "another_remembered", "calm": "remembered", "free": "another_remembered"}


@pytest.mark.parametrize(("release", "brokers"), [("4.0.8", ["busy", "calm", "free"]), ("5.0.1", None)])
def test_up_to_5_0_0_a_report_makes_it_forget_where_the_bundle_should_go(
    release: str, brokers: list[str] | None
) -> None:
    load, of, memory = shed(release)
    assert otherwise("AvgShedder", load, of, memory) == brokers


def test_any_other_bundle_is_drawn() -> None:
    load, of, memory = shed("4.0.8")
    assert choose("AvgShedder", load, of, memory, row=1)[0] == ["busy", "calm", "free"]


@pytest.mark.parametrize(
    ("release", "eligible"),
    [
        ("4.0.13", ["busy", "free"]),
        ("4.0.14", ["free"]),
        ("4.1.9", ["busy", "free"]),
        ("4.2.4", ["busy", "free"]),
        ("4.2.5", ["free"]),
        ("5.0.0-M1", ["busy", "free"]),
        ("5.0.1", ["free"]),
    ],
)
def test_a_destination_that_is_no_candidate_leads_to_a_draw(release: str, eligible: list[str]) -> None:
    load, of, memory = shed(release)
    assert choose("AvgShedder", load, of, memory, among=("busy", "free"))[0] == eligible


def test_from_5_0_1_an_overloaded_destination_gives_way() -> None:
    load, of, memory = shed("5.0.1")
    strict = of.model_copy(update={"load_balancer_broker_overloaded_threshold_percentage": 10})
    lenient = of.model_copy(update={"load_balancer_broker_overloaded_threshold_percentage": 15})
    hot = view({"busy": broker(95, []), "calm": broker(20, []), "free": broker(12, [])}, BUNDLES, of=of)
    assert choose("AvgShedder", hot, lenient, memory)[0] == ["free"]
    assert choose("AvgShedder", hot, strict, memory)[0] == ["calm"]
    assert choose("AvgShedder", load, of, memory)[0] == ["calm"]
