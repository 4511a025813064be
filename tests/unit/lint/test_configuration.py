from dataclasses import replace

import pytest

from pulsar_advisor.lint import configuration
from pulsar_advisor.lint.rule import Rule
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from states import BrokerRow
from unit.lint.cases import case, violation


@pytest.mark.parametrize(
    ("rule", "key"),
    [
        (configuration.load_balancer_is_enabled, "loadBalancerEnabled"),
        (configuration.shedding_is_enabled, "loadBalancerSheddingEnabled"),
    ],
)
def test_a_switch_that_is_off_is_named(rule: Rule, key: str) -> None:
    found = violation(rule, case(50, settings={key: "false"}))
    assert found.sentence == f"{key} is false"
    assert found.change == {key: "true"}
    assert rule.find(case(50)) is None


def test_brokers_that_disagree_are_named_by_their_key() -> None:
    rule, key = configuration.brokers_agree, "loadBalancerBrokerThresholdShedderPercentage"
    found = violation(rule, case(50, 40, runtime={"b1:8080": {key: "10"}, "b2:8080": {key: "20"}}))
    assert found.sentence == f"{key} (10 or 20)"
    assert rule.find(case(50, 40, runtime={"b1:8080": {key: "10"}, "b2:8080": {key: "10"}})) is None


def test_brokers_that_disagree_by_their_releases_defaults_alone_are_marked() -> None:
    runtime = {"b1:8080": {"maxUnloadPercentage": "0.2"}, "new:8080": {"maxUnloadPercentage": "0.5"}}
    mixed = case(50, brokers=[BrokerRow("new:8080", version="5.0.1")], runtime=runtime)
    found = violation(configuration.brokers_agree, mixed)
    assert found.sentence == "maxUnloadPercentage (0.2 or 0.5, each its release's default)"


def test_brokers_may_have_different_network_cards() -> None:
    runtime = {"b1:8080": {"loadBalancerOverrideBrokerNicSpeedGbps": "1"}, "b2:8080": {}}
    runtime["b2:8080"] = {"loadBalancerOverrideBrokerNicSpeedGbps": "10"}
    assert configuration.brokers_agree.find(case(50, 40, runtime=runtime)) is None


@pytest.mark.parametrize(
    ("key", "value", "version"),
    [
        ("loadBalancerSheddingExcludedNamespaces", "t/n", "4.0.8"),
        ("lowerBoundarySheddingEnabled", "true", "4.0.8"),
    ],
    ids=["a key of a later release", "a key read at start only"],
)
def test_a_dynamic_value_without_effect_is_named(key: str, value: str, version: str) -> None:
    rule = configuration.dynamic_values_are_in_force
    assert violation(rule, case(50, dynamic={key: value}, pulsar_version=version)).sentence == f"ignored: {key}={value}"
    assert rule.find(case(50, dynamic={"loadBalancerSheddingEnabled": "false"}, pulsar_version=version)) is None


def test_a_setting_of_another_strategy_is_named() -> None:
    rule, tuned = configuration.settings_are_read, {"loadBalancerAvgShedderLowThreshold": "20"}
    found = violation(rule, case(50, settings=tuned))
    assert found.sentence == (
        "loadBalancerAvgShedderLowThreshold: neither ThresholdShedder nor LeastLongTermMessageRate reads it"
    )
    assert violation(rule, case(50, settings={**tuned, "minUnloadMessage": "5"})).sentence.endswith("reads them")
    assert rule.find(case(50, settings=tuned, shedder="AvgShedder", placement="AvgShedder")) is None
    assert rule.find(case(50, settings={"loadBalancerAvgShedderLowThreshold": "15"})) is None


def test_a_dynamic_value_that_brokers_ignore_hides_no_setting_of_another_strategy() -> None:
    key = "lowerBoundarySheddingEnabled"
    of = case(50, settings={key: "true"}, dynamic={key: "false"}, shedder="OverloadShedder")
    assert violation(configuration.settings_are_read, of).sentence.startswith(key)


@pytest.mark.parametrize("own", [{"shedder": "com.acme.Shedder"}, {"placement": "com.acme.Placement"}])
def test_a_class_of_ones_own_may_read_any_setting(own: dict[str, str]) -> None:
    tuned = case(50, settings={"loadBalancerAvgShedderLowThreshold": "20"}, **own)
    assert configuration.settings_are_read.find(tuned) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("loadBalancerSheddingGracePeriodMinutes", "60"),
        ("loadBalancerSheddingExcludedNamespaces", "t/n"),
        ("loadBalancerBrokerMaxTopics", "1000"),
        ("loadBalancerBrokerOverloadedThresholdPercentage", "70"),
    ],
)
def test_a_setting_that_the_load_manager_reads_itself_is_not(key: str, value: str) -> None:
    rule, changed = configuration.settings_are_read, {"settings": {key: value}, "pulsar_version": "4.2.4"}
    assert rule.find(case(50, **changed, placement="LeastResourceUsageWithWeight")) is None
    assert rule.find(case(50, **changed, load_manager="extensible")) is None


def test_what_the_simple_manager_does_not_read_is_named() -> None:
    of = case(50, settings={"loadBalancerBrokerMaxTopics": "1000"}, load_manager="simple")
    assert configuration.settings_are_read.find(of) is not None


PREFERS = {"preferLaterVersions": "true", "loadBalancerDistributeBundlesEvenlyEnabled": "false"}


def test_a_cluster_in_mid_upgrade_that_prefers_later_versions_is_named() -> None:
    rule, prefers = configuration.older_brokers_get_bundles, PREFERS
    upgraded = BrokerRow("new:8080", version="4.2.4")
    found = violation(rule, case(50, 40, brokers=[upgraded], settings=prefers))
    assert found.sentence == "1 of 3 brokers, with 4.2.4, get all bundles; those with 4.0.8 get none"
    assert rule.find(case(50, 40, brokers=[upgraded])) is None
    assert rule.find(case(50, 40, settings=prefers)) is None
    evenly = {**prefers, "loadBalancerDistributeBundlesEvenlyEnabled": "true"}
    assert rule.find(case(50, 40, brokers=[upgraded], settings=evenly)) is None
    assert rule.find(case(50, 40, brokers=[upgraded], settings=evenly, load_manager="extensible")) is not None


def test_the_newest_version_is_the_one_with_the_greatest_numbers() -> None:
    upgraded = [BrokerRow(f"new-{number}:8080", version="4.0.10") for number in range(3)]
    of = case(50, brokers=upgraded, settings=PREFERS)
    found = violation(configuration.older_brokers_get_bundles, of)
    assert found.sentence == "3 of 4 brokers, with 4.0.10, get all bundles; those with 4.0.8 get none"


def test_where_a_version_cannot_be_compared_every_broker_gets_bundles() -> None:
    own_build = BrokerRow("new:8080", version="4.2.4.1")
    rule, prefers = configuration.older_brokers_get_bundles, PREFERS
    assert rule.find(case(50, 40, brokers=[own_build], settings=prefers)) is None


def test_a_default_of_the_leaders_newer_release_is_not_taken_for_tuning() -> None:
    texts = {"maxUnloadPercentage": "0.5"}
    half_upgraded = case(50, settings=texts, pulsar_version="4.0.8")
    newer = replace(half_upgraded, resolved=resolve_settings("5.0.1", texts))
    assert half_upgraded.is_set("maxUnloadPercentage")
    assert not newer.is_set("maxUnloadPercentage")
