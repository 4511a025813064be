from dataclasses import replace

import pytest

from pulsar_advisor.lint import bundles
from pulsar_advisor.model.cluster.cluster_state import IsolationPolicy
from states import HALVES, BrokerRow, BundleRow
from unit.lint.cases import case, violation


def owned(namespace: str, mib_per_s: float) -> list[BundleRow]:
    traffic = (1.0, 1.0, mib_per_s * 1e6, 0.0)
    return [BundleRow(namespace, half, "b1:8080", traffic=traffic, topics=2) for half in HALVES]


def test_a_large_namespace_with_few_bundles_is_named() -> None:
    rule = bundles.large_namespaces_have_bundles_for_all_brokers
    found = violation(rule, case(50, 40, 30, bundles=[*owned("t/large", 9), *owned("t/small", 1)]))
    assert found.sentence == "t/large has 90% of the throughput and 2 bundles for 3 brokers"
    assert rule.find(case(50, 40, bundles=[*owned("t/large", 9), *owned("t/small", 1)])) is None


def test_more_bundles_spread_nothing_where_each_has_one_topic() -> None:
    rows = [replace(row, topics=1) for row in owned("t/large", 9)]
    assert bundles.large_namespaces_have_bundles_for_all_brokers.find(case(50, 40, 30, bundles=rows)) is None


def test_a_namespace_needs_no_more_bundles_than_its_policy_leaves_it_brokers() -> None:
    rule = bundles.large_namespaces_have_bundles_for_all_brokers
    rows = [*owned("t/isolated", 5), *owned("t/free", 5)]
    policy = IsolationPolicy("p", ("t/isolated",), ("b[12].*",), (), 1, 100)
    assert rule.find(case(50, 40, 30, 20, bundles=rows, isolation_policies=(policy,))) is None
    found = violation(rule, case(50, 40, 30, 20, 10, bundles=rows, isolation_policies=(policy,)))
    assert found.sentence == "t/free has 50% of the throughput and 2 bundles for 3 brokers"


def test_a_default_below_the_number_of_brokers_is_named() -> None:
    rule = bundles.new_namespaces_get_bundles_for_all_brokers
    found = violation(rule, case(1, 2, 3, 4, 5))
    assert found.sentence == "defaultNumberOfNamespaceBundles is 4, and the cluster has 5 brokers"
    assert rule.find(case(1, 2, 3, 4)) is None


def test_load_that_policies_keep_from_balancing_is_named() -> None:
    rule = bundles.bundles_with_policies_are_balanced
    policy = IsolationPolicy("p", ("t/isolated",), ("b1.*",), (), 1, 100)
    of = {"load_manager": "extensible", "bundles": [*owned("t/isolated", 3), *owned("t/free", 1)]}
    without = {"loadBalancerSheddingBundlesWithPoliciesEnabled": "false"}
    found = violation(rule, case(50, 40, isolation_policies=(policy,), settings=without, **of))
    assert found.sentence == "75% of the throughput is never balanced"
    assert rule.find(case(50, 40, isolation_policies=(policy,), settings=found.change, **of)) is None
    assert rule.find(case(50, 40, settings=without, **of)) is None


def test_a_large_excluded_namespace_is_named() -> None:
    rule, key = bundles.excluded_namespaces_are_small, "loadBalancerSheddingExcludedNamespaces"
    rows = [*owned("t/large", 9), *owned("t/small", 1)]
    found = violation(rule, case(50, 40, bundles=rows, settings={key: "t/large"}, pulsar_version="4.2.4"))
    assert found.sentence == "90% of the throughput is excluded"
    assert rule.find(case(50, 40, bundles=rows, settings={key: "t/small"}, pulsar_version="4.2.4")) is None
    idle = [replace(row, traffic=(0.0, 0.0, 0.0, 0.0)) for row in rows]
    assert rule.find(case(50, 40, bundles=idle, settings={key: "t/large"}, pulsar_version="4.2.4")) is None


def test_a_broker_with_all_topics_it_may_have_is_named() -> None:
    rule = bundles.brokers_may_take_more_topics
    full = BrokerRow("full:8080", topics=50_001)
    found = violation(rule, case(50, brokers=[full]))
    assert found.sentence == "more than 50,000 topics on 1 of 2 brokers (full:8080)"
    assert rule.find(case(50, brokers=[full], settings=found.change)) is None
    fuller = case(50, brokers=[full, BrokerRow("fuller:8080", topics=120_000)])
    assert violation(rule, fuller).change == {"loadBalancerBrokerMaxTopics": "240000"}


@pytest.mark.parametrize(("load_manager", "is_full"), [("modular", False), ("extensible", True)])
def test_a_broker_with_exactly_the_topics_that_it_may_have_is_full_to_one_manager(
    load_manager: str, is_full: bool
) -> None:
    at_limit = case(50, brokers=[BrokerRow("b:8080", topics=50_000)], load_manager=load_manager)
    assert (bundles.brokers_may_take_more_topics.find(at_limit) is not None) == is_full
