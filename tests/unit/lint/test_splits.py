from dataclasses import replace

import numpy as np
import pytest

from pulsar_advisor.lint import splits
from pulsar_advisor.lint.rule import Case
from pulsar_advisor.model.cluster.bundle_range import topic_hash
from states import WHOLE, BundleRow
from unit.lint.cases import case, violation

LARGE = BundleRow("t/n", "0x00000000_0x80000000", "b1:8080", traffic=(40_000, 1, 1e6, 1e6), topics=3)
SMALL = BundleRow("t/n", "0x80000000_0xffffffff", "b1:8080", traffic=(10, 10, 1e3, 1e3), topics=3)


def test_a_bundle_above_a_limit_without_automatic_splits_is_named() -> None:
    rule, off = splits.large_bundles_are_split, {"loadBalancerAutoBundleSplitEnabled": "false"}
    found = violation(rule, case(50, bundles=[LARGE, SMALL], settings=off))
    assert found.sentence == "t/n/0x00000000_0x80000000 should be split"
    two = case(50, bundles=[LARGE, replace(SMALL, traffic=LARGE.traffic)], settings=off)
    assert violation(rule, two).sentence == "t/n/0x00000000_0x80000000 and 1 more should be split"
    assert rule.find(case(50, bundles=[LARGE, SMALL])) is None
    assert rule.find(case(50, bundles=[SMALL], settings=off)) is None


@pytest.mark.parametrize(("load_manager", "is_above"), [("modular", True), ("extensible", True), ("simple", False)])
def test_a_bandwidth_limit_beyond_32_bits_is_compared_as_the_manager_does(load_manager: str, is_above: bool) -> None:
    # 2048 MiB/s is -2 GiB/s in 32 bits: every bundle with two topics is above it, and Pulsar splits them all.
    unlimited = {
        "loadBalancerAutoBundleSplitEnabled": "false",
        "loadBalancerNamespaceBundleMaxBandwidthMbytes": "2048",
    }
    of = case(50, bundles=[SMALL], settings=unlimited)
    of = replace(of, state=replace(of.state, load_manager=load_manager))
    assert (splits.large_bundles_are_split.find(of) is not None) == is_above


def test_a_full_namespace_with_a_bundle_above_a_limit_is_named() -> None:
    rule, key = splits.namespaces_have_room_for_splits, "loadBalancerNamespaceMaximumBundles"
    full = {key: "2"}
    found = violation(rule, case(50, bundles=[LARGE, SMALL], settings=full))
    assert found.sentence.startswith("above a limit: ") and found.sentence.endswith("; its namespace has 2 bundles")
    assert rule.find(case(50, bundles=[LARGE, SMALL], settings=found.change)) is None
    created_with_more = rule.find(case(50, bundles=[LARGE, SMALL], settings={key: "1"}))
    assert created_with_more == found
    assert rule.find(case(50, bundles=[SMALL], settings=full)) is None


def with_topic_traffic(of: Case, *traffic: float) -> Case:
    topics = of.state.topics
    figures = np.tile(np.array(traffic), (len(topics), 1))
    loaded = np.ones(len(topics), dtype=np.bool_)
    return replace(of, state=replace(of.state, topics=replace(topics, traffic=figures, loaded=loaded)))


def test_a_topic_above_the_limits_is_named() -> None:
    rule, of = splits.topics_fit_into_bundles, case(50, bundles=[LARGE], topics=["persistent://t/n/hot"])
    found = violation(rule, with_topic_traffic(of, 40_000, 1, 1e6, 1e6))
    assert found.sentence == "persistent://t/n/hot alone has 40,001 msg/s and 1.9 MiB/s"
    assert rule.find(with_topic_traffic(of, 1, 1, 1, 1)) is None
    two = case(50, bundles=[LARGE], topics=["persistent://t/n/hot", "persistent://t/n/warm"])
    found = violation(rule, with_topic_traffic(two, 40_000, 1, 1e6, 1e6))
    assert found.sentence.startswith("persistent://t/n/hot alone, the busiest of 2 such topics, has 40,001 msg/s")


def test_a_segment_is_split_as_it_has_no_partitions_which_releases_before_5_cannot() -> None:
    assert "of Pulsar 5, split the segment: pulsar-admin scalable-topics" in splits.topics_fit_into_bundles.remedy


def test_a_bundle_that_flow_would_split_in_more_than_two_is_named() -> None:
    flow = {"defaultNamespaceBundleSplitAlgorithm": "flow_or_qps_equally_divide"}
    rule, huge = splits.flow_splits_in_two, replace(LARGE, traffic=(70_000, 1, 1e6, 1e6))
    found = violation(rule, case(50, bundles=[huge], settings=flow, load_manager="extensible"))
    assert found.sentence == "not split in two: t/n/0x00000000_0x80000000"
    by_hand = {**flow, "loadBalancerAutoBundleSplitEnabled": "false"}
    assert rule.find(case(50, bundles=[huge], settings=by_hand, load_manager="extensible")) is None
    assert rule.find(case(50, bundles=[LARGE], settings=flow, load_manager="extensible")) is None
    assert rule.find(case(50, bundles=[huge], load_manager="extensible")) is None


@pytest.mark.parametrize(
    ("rates", "is_split"),
    [([45_000.0, 20_000.0], True), ([20_000.0, 20_000.0], True), ([10_000.0, 25_000.0, 10_000.0], False)],
    ids=["a topic above the limit", "two that fit", "a topic that fits with neither neighbour"],
)
def test_what_flow_makes_of_the_topics_decides(rates: list[float], is_split: bool) -> None:
    """Up to 30,000 msg/s fit into a child; topics come in the order of their hashes."""
    names = sorted((f"persistent://t/n/{number}" for number in range(len(rates))), key=topic_hash)
    bundle = BundleRow("t/n", WHOLE, "b1:8080", (sum(rates), 0.0, 0.0, 0.0), topics=len(rates))
    flow = {"defaultNamespaceBundleSplitAlgorithm": "flow_or_qps_equally_divide"}
    of = case(50, bundles=[bundle], topics=names, settings=flow, load_manager="extensible")
    by_name = dict(zip(names, rates, strict=True))
    traffic = np.array([(by_name[name], 0.0, 0.0, 0.0) for name in of.state.topics.names])
    of = replace(of, state=replace(of.state, topics=replace(of.state.topics, traffic=traffic)))
    assert (splits.flow_splits_in_two.find(of) is None) == is_split


def test_children_that_stay_are_named() -> None:
    rule, stay = splits.children_of_splits_move, {"loadBalancerAutoUnloadSplitBundlesEnabled": "false"}
    assert rule.find(case(50, settings=stay)) is not None
    assert rule.find(case(50)) is None
    assert rule.find(case(50, settings=stay | {"loadBalancerAutoBundleSplitEnabled": "false"})) is None
