from __future__ import annotations

from dataclasses import replace

import numpy as np

from conformance import codes
from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.strategy.decision import SplittingDecision
from pulsar_advisor.model.strategy.memory import SplitMemory
from pulsar_advisor.splitting.simple_load_manager_impl import decide
from states import LOWER_HALF, UPPER_HALF, BrokerRow, BundleRow, cluster_state

HOT = (20_000.0, 20_000.0, 0.0, 0.0)


def run(state: ClusterState, **what_if: object) -> SplittingDecision:
    settings = resolve_settings("4.0.8", what_if={key: str(value) for key, value in what_if.items()}).values
    return decide(state, settings, SplitMemory())[0]


def bundles(*rows: BundleRow) -> ClusterState:
    return cluster_state([BrokerRow("a:8080")], rows, load_manager="simple")


def test_the_last_statistics_count_not_the_averages():
    state = bundles(BundleRow("t/n", LOWER_HALF, "a:8080", HOT, 3))
    state = replace(state, bundles=replace(state.bundles, long_term=np.zeros((1, 4))))
    assert run(state).splits[0].boundaries == (0x40000000,)


def test_a_hot_bundle_of_one_topic_is_left_alone():
    assert codes(run(bundles(BundleRow("t/n", LOWER_HALF, "a:8080", HOT, 1))).bundles) == {0: "few_topics"}


def test_a_calm_bundle_of_one_topic_is_below_its_limits():
    assert codes(run(bundles(BundleRow("t/n", LOWER_HALF, "a:8080", topics=1))).bundles) == {0: "below_limits_topics"}


def test_bundles_picked_earlier_in_the_pass_are_not_counted():
    state = bundles(BundleRow("t/n", LOWER_HALF, "a:8080", HOT, 3), BundleRow("t/n", UPPER_HALF, "a:8080", HOT, 3))
    assert len(run(state, loadBalancerNamespaceMaximumBundles=3).splits) == 2


def test_a_namespace_at_its_maximum_is_left_alone():
    state = bundles(BundleRow("t/n", LOWER_HALF, "a:8080", HOT, 3))
    assert codes(run(state, loadBalancerNamespaceMaximumBundles=1).bundles) == {0: "namespace_full"}


def test_a_limit_of_two_gibibytes_does_not_wrap():
    heavy = (0.0, 0.0, float(2049 << 20), 0.0)
    state = bundles(
        BundleRow("t/n", LOWER_HALF, "a:8080", heavy, 3),
        BundleRow("t/n", UPPER_HALF, "a:8080", (0.0, 0.0, 1.0, 0.0), 3),
    )
    decision = run(state, loadBalancerNamespaceBundleMaxBandwidthMbytes=2048)
    assert [split.bundle for split in decision.splits] == [0]


def test_a_broker_that_can_not_count_the_bundles_of_a_namespace_splits_nothing():
    state = cluster_state(
        [BrokerRow("a:8080"), BrokerRow("b:8080")],
        [
            BundleRow("t/n", LOWER_HALF, "a:8080", HOT, 3),
            BundleRow("t/n", UPPER_HALF, "b:8080", HOT, 3),
            BundleRow("t/no valid name", LOWER_HALF, "a:8080", HOT, 3),
        ],
        load_manager="simple",
    )
    decision = run(state)
    assert [split.bundle for split in decision.splits] == [1]
    assert codes(decision.bundles) == {0: "pass_fails", 1: "split_msg_rate", 2: "bundle_count_unknown"}
