from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pulsar_advisor.lint import thresholds
from pulsar_advisor.lint.rule import Rule
from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings, resolve_settings
from pulsar_advisor.planning.questions.explain import explain
from pulsar_advisor.planning.requests.request import Request
from states import BrokerRow, BundleRow
from unit.lint.cases import MIB, case, violation

TEN_BUSY_ONE_IDLE = [80.0] * 10 + [0.0]


def test_ten_busy_brokers_and_an_idle_one_need_the_lower_boundary() -> None:
    rule = thresholds.idle_broker_is_noticed
    found = violation(rule, case(*TEN_BUSY_ONE_IDLE))
    assert found.sentence.startswith("b11:8080 is at 0.0%, the mean is 72.7%")
    assert found.change["lowerBoundarySheddingEnabled"] == "true"
    assert rule.find(case(*TEN_BUSY_ONE_IDLE, settings=found.change)) is None
    assert rule.find(case(50, 45, 40)) is None


def test_a_busy_broker_gives_to_an_idle_one_only_as_much_as_is_worth_shedding() -> None:
    """Of 80 MiB/s the lower boundary sheds half of ten percent."""
    found = violation(thresholds.idle_broker_is_noticed, case(*TEN_BUSY_ONE_IDLE))
    assert found.change["loadBalancerBundleUnloadMinThroughputThreshold"] == "4"
    much = [broker(f"b{number}:8080", usage, 3 * usage) for number, usage in enumerate(TEN_BUSY_ONE_IDLE, start=1)]
    found = violation(thresholds.idle_broker_is_noticed, case(brokers=much))
    assert found.change == {"lowerBoundarySheddingEnabled": "true"}


def test_small_throughput_is_no_obstacle_where_no_bundle_takes_along_what_makes_the_broker_busy() -> None:
    busy, idle = SMALL
    held = replace(busy, cpu=(10, 100), direct_memory=(90, 100))
    weights = {"loadBalancerDirectMemoryResourceWeight": "1"}
    find = thresholds.small_throughput_is_shed.find
    assert find(case(brokers=(held, idle), settings=weights)) is None
    found = find(case(brokers=(held, busy, *[replace(idle, id=f"{name}:8080") for name in "abc"]), settings=weights))
    assert found is not None
    assert found.sentence.startswith("busy:8080")


def broker(name: str, cpu: float, mib_per_s: float, msg_per_s: float = 0) -> BrokerRow:
    return BrokerRow(name, cpu=(cpu, 100), traffic=(msg_per_s, 0, mib_per_s * MIB, 0))


SMALL = (broker("busy:8080", 90, 3), broker("idle:8080", 10, 1))
"""Forty points above the mean, of which ThresholdShedder would shed 35 %: 1.05 MiB/s."""
APART = (broker("busy:8080", 90, 3, 3000), broker("idle:8080", 10, 1, 10))
WITHOUT_TRAFFIC = (broker("busy:8080", 90, 3, 800), broker("idle:8080", 10, 0, 0))
"""UniformLoadShedder counts the idle one's messages as one."""


@pytest.mark.parametrize(
    ("rule", "usages", "settings", "sentence"),
    [
        (
            thresholds.threshold_can_be_exceeded,
            (98, 83),
            {},
            "the mean is 90.5%: only a broker above 100.5% sheds",
        ),
        (
            thresholds.history_follows_the_load,
            (50,),
            {"loadBalancerHistoryResourcePercentage": "0.98"},
            "half of a change shows after 34 min, and the grace period is 30 min",
        ),
        (
            thresholds.history_follows_the_load,
            (50,),
            {"loadBalancerSheddingGracePeriodMinutes": "5"},
            "half of a change shows after 7 min, and the grace period is 5 min",
        ),
        (
            thresholds.history_follows_the_load,
            (50,),
            {"loadBalancerHistoryResourcePercentage": "1"},
            "smoothed usage never changes: only the first sample counts",
        ),
        (thresholds.some_broker_has_room, (90, 95), {}, "all 2 brokers are above 85%, the least busy at 90.0%"),
        (
            thresholds.grace_period_covers_cycles,
            (50,),
            {"loadBalancerSheddingGracePeriodMinutes": "1"},
            "the grace period is 1 min, and a cycle takes 1 min",
        ),
    ],
)
def test_a_threshold_out_of_reach_is_named_and_its_change_mends_it(
    rule: Rule, usages: Sequence[float], settings: dict[str, str], sentence: str
) -> None:
    found = violation(rule, case(*usages, settings=settings))
    assert found.sentence == sentence
    if found.change:
        assert rule.find(case(*usages, settings=settings | found.change)) is None
    assert rule.find(case(60, 50)) is None


def test_nothing_is_out_of_reach_that_a_broker_reaches_with_more_bandwidth_than_it_should_have() -> None:
    fast = BrokerRow("fast:8080", bandwidth_in=(900, 100))
    assert thresholds.threshold_can_be_exceeded.find(case(50, brokers=[fast])) is None
    of = {"brokers": [fast], "load_manager": "extensible"}
    assert thresholds.target_deviation_can_be_exceeded.find(case(50, **of)) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("usages", [(95,), (95, 93)])
def test_no_percentage_helps_where_only_more_brokers_do(usages: Sequence[float]) -> None:
    assert thresholds.threshold_can_be_exceeded.find(case(*usages)) is None


@pytest.mark.parametrize(
    ("rule", "shedder", "brokers", "settings", "part"),
    [
        (
            thresholds.small_throughput_is_shed,
            "ThresholdShedder",
            SMALL,
            {},
            "would shed 1.05 MiB/s, below the minimum of 10",
        ),
        (
            thresholds.imbalance_below_overload_is_seen,
            "OverloadShedder",
            (broker("busy:8080", 80, 3), broker("idle:8080", 10, 1)),
            {},
            "busy:8080 is at 80.0% and the mean is 45.0%, but nothing is shed below 85%",
        ),
        (
            thresholds.uniform_minimum_is_reached,
            "UniformLoadShedder",
            APART,
            {},
            "20% of that is 598 msg/s, below minUnloadMessage=1,000",
        ),
        (thresholds.uniform_minimum_is_reached, "UniformLoadShedder", WITHOUT_TRAFFIC, {}, "are 799 msg/s apart; 20%"),
        (
            thresholds.avg_minimum_is_reached,
            "AvgShedder",
            APART,
            {},
            "are 80 points apart, but what would move, 598 msg/s",
        ),
        (thresholds.avg_shedder_moves_half, "AvgShedder", APART, {}, "maxUnloadPercentage is 0.2"),
    ],
)
def test_a_minimum_that_hides_an_imbalance_is_named_and_its_change_mends_it(
    rule: Rule, shedder: str, brokers: Sequence[BrokerRow], settings: dict[str, str], part: str
) -> None:
    found = violation(rule, case(brokers=brokers, shedder=shedder, settings=settings))
    assert part in found.sentence
    assert found.change
    changed = dict(found.change)
    changed.setdefault("loadBalancerLoadSheddingStrategy", f"org.example.{shedder}")
    assert rule.find(case(brokers=brokers, settings=settings | changed)) is None
    assert rule.find(case(brokers=brokers, shedder="TransferShedder")) is None


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"loadBalancerAvgShedderHighThreshold": "15"}, "the high threshold, 15, is not above the low one, 15"),
        (
            {"loadBalancerAvgShedderHitCountHighThreshold": "8"},
            "a difference of 40 points must last 8 cycles, one of only 15 points 8",
        ),
    ],
)
def test_avg_thresholds_in_the_wrong_order_are_named(settings: dict[str, str], sentence: str) -> None:
    found = violation(thresholds.avg_thresholds_are_ordered, case(50, shedder="AvgShedder", settings=settings))
    assert found.sentence == sentence
    assert thresholds.avg_thresholds_are_ordered.find(case(50, shedder="AvgShedder")) is None


@pytest.mark.parametrize(("release", "acts"), [("3.3.6", True), ("4.0.8", False)])
def test_overload_without_a_weight_makes_the_overload_shedder_act_before_4_0(release: str, acts: bool) -> None:
    busy = BrokerRow("busy:8080", cpu=(60, 100), direct_memory=(90, 100))
    of = case(20, brokers=[busy], shedder="OverloadShedder", pulsar_version=release)
    assert (thresholds.imbalance_below_overload_is_seen.find(of) is None) == acts


@pytest.mark.parametrize(("release", "acts"), [("2.11.0", True), ("3.0.7", False)])
def test_one_of_both_minimums_is_enough_for_the_uniform_shedder_up_to_2_11(release: str, acts: bool) -> None:
    apart = (broker("busy:8080", 90, 30, 3000), broker("idle:8080", 10, 1, 10))
    of = case(brokers=apart, shedder="UniformLoadShedder", pulsar_version=release)
    assert (thresholds.uniform_minimum_is_reached.find(of) is None) == acts


def test_a_target_that_usage_cannot_deviate_by_is_named() -> None:
    rule = thresholds.target_deviation_can_be_exceeded
    found = violation(rule, case(4, 2, load_manager="extensible"))
    assert "at a mean of 3.0% usage can't deviate by more than 0.17, and the target is 0.25" in found.sentence
    assert rule.find(case(4, 2, load_manager="extensible", settings=found.change)) is None
    assert rule.find(case(60, 40, load_manager="extensible")) is None


def many_bundles(number: int) -> list[BundleRow]:
    width = 2**32 // number
    return [
        BundleRow(
            "t/n",
            f"0x{row * width:08x}_0x{min((row + 1) * width, 2**32 - 1):08x}",
            "b1:8080",
            traffic=(1, 0, MIB, 0),
            topics=1,
        )
        for row in range(number)
    ]


def test_too_few_top_bundles_are_named_with_the_number_that_suffices() -> None:
    rule = thresholds.top_bundles_are_enough
    found = violation(rule, case(80, 10, bundles=many_bundles(64), load_manager="extensible"))
    assert "have at most 14% of its throughput to move; closing the gap to b2:8080 takes 44%" in found.sentence
    changed = case(80, 10, bundles=many_bundles(64), load_manager="extensible", settings=found.change)
    assert rule.find(changed) is None
    assert rule.find(case(80, 10, bundles=many_bundles(8), load_manager="extensible")) is None


@pytest.mark.parametrize(
    ("rule", "usages", "of"),
    [
        (thresholds.imbalance_below_overload_is_seen, (95, 10), {"shedder": "OverloadShedder"}),
        (thresholds.imbalance_below_overload_is_seen, (50, 45), {"shedder": "OverloadShedder"}),
        (thresholds.uniform_minimum_is_reached, (50, 49), {"shedder": "UniformLoadShedder"}),
        (thresholds.top_bundles_are_enough, (0, 0), {"load_manager": "extensible"}),
    ],
)
def test_nothing_is_found_where_brokers_are_even_or_their_shedder_acts(
    rule: Rule, usages: Sequence[float], of: dict[str, Any]
) -> None:
    assert rule.find(case(*usages, bundles=many_bundles(64), **of)) is None


@pytest.mark.parametrize(
    ("of", "key"),
    [
        ({"shedder": "UniformLoadShedder"}, "maxUnloadBundleNumPerShedding"),
        ({"shedder": "AvgShedder"}, "maxUnloadPercentage"),
        ({"load_manager": "extensible"}, "loadBalancerMaxNumberOfBrokerSheddingPerCycle"),
    ],
)
def test_a_limit_of_zero_is_named(of: dict[str, Any], key: str) -> None:
    rule = thresholds.shedder_may_move_something
    assert violation(rule, case(50, settings={key: "0"}, **of)).sentence.endswith(f" moves nothing with {key}=0")
    assert rule.find(case(50, **of)) is None


def test_lint_and_explain_name_the_same_limit() -> None:
    """ThresholdShedder would move 11.2 MiB/s x (90 % - 50 % - 10 % + 5 %): 3.92 MiB/s, below the minimum of 100."""
    key = "loadBalancerBundleUnloadMinThroughputThreshold"
    traffic = (100.0, 0.0, 11.2 * MIB, 0.0)
    rows = [BrokerRow(f"{name}:8080", cpu=(usage, 100), traffic=traffic) for name, usage in (("a", 90), ("b", 10))]
    bundles = [
        BundleRow("t/n", text, "a:8080", (50.0, 0.0, 5.6 * MIB, 0.0), topics=1)
        for text in ("0x00000000_0x80000000", "0x80000000_0xffffffff")
    ]
    of = case(brokers=rows, bundles=bundles, settings={key: "100"}, shedder="ThresholdShedder")
    found = violation(thresholds.small_throughput_is_shed, of)

    def resolve(what_if: Mapping[str, str]) -> ResolvedSettings:
        return resolve_settings("4.0.8", {key: "100"}, what_if=what_if)

    request = Request(shedder="ThresholdShedder", placement="LeastLongTermMessageRate")
    explained = {
        flip.change.key: flip.change.after for flip in explain(request, "cluster", "", of.state, resolve).flips
    }
    assert found.change == {key: explained[key]} == {key: "3.9"}
