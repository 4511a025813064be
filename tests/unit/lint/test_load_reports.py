from typing import Any

import pytest

from pulsar_advisor.lint import load_reports
from pulsar_advisor.lint.rule import Rule
from states import BrokerRow
from unit.lint.cases import case, violation

TRAFFIC = (10.0, 10.0, 1e6, 1e6)


@pytest.mark.parametrize(
    ("rule", "broken", "part"),
    [
        (
            load_reports.network_speed_is_known,
            BrokerRow("b:8080", bandwidth_in=(900, 0), traffic=TRAFFIC),
            "no network speed on 1 of 2 brokers (b:8080)",
        ),
        (
            load_reports.network_speed_is_plausible,
            BrokerRow("b:8080", bandwidth_out=(250, 100), traffic=TRAFFIC),
            "b:8080 uses 250% of its bandwidth, whose speed was detected",
        ),
        (
            load_reports.brokers_are_of_one_size,
            BrokerRow("b:8080", cpu=(10, 800), traffic=TRAFFIC),
            "limits differ: cpu",
        ),
    ],
)
def test_a_broker_with_implausible_limits_is_named(rule: Rule, broken: BrokerRow, part: str) -> None:
    assert part in violation(rule, case(50, brokers=[broken])).sentence
    assert rule.find(case(50, 40)) is None


ALL_ZERO = {
    f"loadBalancer{resource}ResourceWeight": "0" for resource in ("CPU", "BandwidthIn", "BandwidthOut", "DirectMemory")
}


@pytest.mark.parametrize(
    ("rule", "settings", "part", "of"),
    [
        (load_reports.some_resource_counts, ALL_ZERO, "every broker counts as idle", {}),
        (
            load_reports.heap_weight_has_effect,
            {"loadBalancerMemoryResourceWeight": "1"},
            "loadBalancerMemoryResourceWeight=1 changes nothing",
            {},
        ),
        (
            load_reports.bandwidth_weights_are_spelt_correctly,
            {"loadBalancerBandwithInResourceWeight": "0.5"},
            "in force: loadBalancerBandwithInResourceWeight=0.5",
            {},
        ),
        (
            load_reports.statistics_keep_up_with_cycles,
            {"statsUpdateFrequencyInSecs": "180"},
            "statistics are updated every 180 s, and a cycle takes 1 min",
            {},
        ),
        (
            load_reports.usage_keeps_up_with_cycles,
            {"loadBalancerHostUsageCheckIntervalMinutes": "5"},
            "brokers measure every 5 min, and a cycle takes 1 min",
            {},
        ),
        (
            load_reports.reports_show_what_the_shedder_compares,
            {"loadBalancerReportUpdateThresholdPercentage": "25"},
            "ThresholdShedder acts on 10 points, brokers report changes of more than 25 points",
            {},
        ),
        (
            load_reports.reports_arrive_within_the_grace_period,
            {"loadBalancerReportUpdateMaxIntervalMinutes": "60"},
            "an unchanged broker reports every 60 min, and the grace period is 30 min",
            {},
        ),
        (
            load_reports.load_data_outlives_reports,
            {"loadBalancerBrokerLoadDataTTLInSeconds": "60"},
            "load data is valid for 60 s, and an unchanged broker reports every 15 min",
            {"load_manager": "extensible"},
        ),
    ],
)
def test_a_setting_that_blinds_the_leader_is_named(
    rule: Rule, settings: dict[str, str], part: str, of: dict[str, Any]
) -> None:
    assert part in violation(rule, case(50, 40, settings=settings, **of)).sentence
    assert rule.find(case(50, 40, **of)) is None


def test_the_weight_of_the_heap_that_3_0_has_by_default_was_not_set() -> None:
    settings = {"loadBalancerMemoryResourceWeight": "1.0"}
    assert load_reports.heap_weight_has_effect.find(case(50, settings=settings, pulsar_version="3.0.7")) is None


def test_direct_memory_that_decides_is_named() -> None:
    rule, weight = load_reports.direct_memory_does_not_decide, "loadBalancerDirectMemoryResourceWeight"
    full = BrokerRow("b:8080", cpu=(10, 100), direct_memory=(90, 100))
    found = violation(rule, case(50, brokers=[full], settings={weight: "1"}))
    assert found.sentence == "direct memory decides the usage of 1 of 2 brokers (b:8080)"
    assert rule.find(case(50, brokers=[full], settings=found.change)) is None
    assert rule.find(case(50, settings={weight: "1"})) is None


@pytest.mark.parametrize(
    ("release", "load_manager", "counts"),
    [("2.11.0", "modular", True), ("3.3.6", "modular", False), ("3.3.6", "extensible", True)],
)
def test_a_heap_that_decides_is_named_where_it_counts(release: str, load_manager: str, counts: bool) -> None:
    full = BrokerRow("b:8080", cpu=(10, 100), memory=(90, 100))
    of = {"brokers": [full], "pulsar_version": release, "load_manager": load_manager}
    found = load_reports.heap_does_not_decide.find(case(50, **of))
    assert (found is not None) is counts
    if found is not None:
        assert load_reports.heap_does_not_decide.find(case(50, settings=found.change, **of)) is None


def test_releases_without_the_correct_spelling_are_left_alone() -> None:
    settings = {"loadBalancerBandwithInResourceWeight": "0.5"}
    rule = load_reports.bandwidth_weights_are_spelt_correctly
    assert rule.find(case(50, settings=settings, pulsar_version="3.0.7")) is None
