"""The settings of a cluster: what overrides what, and what is said of it."""

from __future__ import annotations

import pytest

from pulsar_advisor.model.configuration.defaults import is_dynamic, takes_effect_at_once
from pulsar_advisor.model.configuration.resolved_settings import (
    is_release_default,
    resolve_settings,
    setting_value,
)
from pulsar_advisor.model.configuration.settings import FIELD_OF_KEY, SETTING_KEYS, LoadBalancerSettings
from pulsar_advisor.model.errors import DataNotFit, UsageError

PACKAGE = "org.apache.pulsar.broker.loadbalance.impl."


@pytest.mark.parametrize(
    ("version", "release", "behaviour"),
    [
        ("2.11.4", "2.11.0", (2, 11, 4)),
        ("3.2.1", "3.0.7", (3, 0, 7)),
        ("4.0.3", "4.0.8", (4, 0, 8)),
        ("4.0.14", "4.0.8", (4, 0, 14)),
        ("4.1.0", "4.0.8", (4, 0, 8)),
        ("4.2.4", "4.2.4", (4, 2, 4)),
        ("4.2.5", "4.2.4", (4, 2, 5)),
        ("5.0.0-M1", "5.0.0-M1", (5, 0, 0)),
        ("5.0.0-M2", "5.0.0-M1", (5, 0, 0)),
        ("5.0.0", "5.0.1", (5, 0, 1)),
        ("5.0.1", "5.0.1", (5, 0, 1)),
        ("5.0.1-vendor.7", "5.0.1", (5, 0, 1)),
        ("6.1.0", "5.0.1", (5, 0, 1)),
    ],
)
def test_a_release_takes_the_defaults_of_the_nearest_listed_line(
    version: str, release: str, behaviour: tuple[int, int, int]
) -> None:
    settings = resolve_settings(version)
    assert (settings.release, settings.values.behaviour) == (release, behaviour)


def test_only_a_release_that_is_not_listed_gets_a_note() -> None:
    assert resolve_settings("4.0.8").notes == ()
    assert resolve_settings("5.0.1").notes == ()
    assert "4.1.0 is not listed" in resolve_settings("4.1.0").notes[0]
    assert resolve_settings("4.0.14").notes == ("Pulsar 4.0.14 is not listed: using the defaults of 4.0.8.",)
    assert resolve_settings("5.0.0").notes == (
        "Pulsar 5.0.0 is not listed: using the defaults and the decisions of 5.0.1.",
    )


def test_a_release_newer_than_all_listed_puts_the_answer_in_doubt() -> None:
    [newer] = resolve_settings("5.0.2").caveats
    assert newer.startswith("Pulsar 5.0.2 is newer than 5.0.1, the newest release known here")


PUBLISHED_IN_5_0 = {
    "loadBalancerLoadSheddingStrategy": "org.apache.pulsar.broker.loadbalance.impl.AvgShedder",
    "loadBalancerLoadPlacementStrategy": "org.apache.pulsar.broker.loadbalance.impl.AvgShedder",
    "loadBalancerDistributeBundlesEvenlyEnabled": False,
    "maxUnloadPercentage": 0.5,
    "defaultNumberOfNamespaceBundles": 32,
}
"""The table "Load balancing and namespace creation" of the page "Configuration default changes from Pulsar 4.x to
5.0.x" in Pulsar's documentation of 5.0.x (apache/pulsar-site, commit 2350558)."""


def test_the_defaults_of_5_0_are_those_published_and_else_those_of_its_milestone() -> None:
    settings, milestone = resolve_settings("5.0.1"), resolve_settings("5.0.0-M1")
    for key in SETTING_KEYS:
        value, before = (getattr(one.values, FIELD_OF_KEY[key]) for one in (settings, milestone))
        assert value == PUBLISHED_IN_5_0.get(key, before), key
        assert (value != before) == (key in PUBLISHED_IN_5_0), key


def test_a_broker_that_was_upgraded_with_its_old_file_keeps_what_it_says() -> None:
    old = {"loadBalancerLoadSheddingStrategy": PACKAGE + "ThresholdShedder", "maxUnloadPercentage": "0.2"}
    settings = resolve_settings("5.0.1", old)
    assert settings.values.load_balancer_load_shedding_strategy == PACKAGE + "ThresholdShedder"
    assert settings.values.max_unload_percentage == 0.2
    assert settings.notes == (
        "The brokers place with LeastLongTermMessageRate: AvgShedder is not a placement strategy for ThresholdShedder.",
    )


def test_only_the_modular_manager_replaces_a_placement() -> None:
    texts = {"loadBalancerLoadSheddingStrategy": PACKAGE + "ThresholdShedder"}
    extensible = {"loadManagerClassName": "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"}
    assert resolve_settings("5.0.1", {**texts, **extensible}).notes == ()


def test_controllers_of_scalable_topics_that_a_pair_of_limits_keeps_idle_are_noted() -> None:
    split, merge = "scalableTopicSplitMsgRateInThreshold", "scalableTopicMergeMsgRateInThreshold"
    assert resolve_settings("5.0.1", {split: "1000", merge: "1000.0"}).notes == (
        "Controllers of scalable topics neither split nor merge segments, unless policies of their namespaces or "
        f"topics override it: {split}=1000 must be above {merge}=1000.",
    )
    assert resolve_settings("5.0.1", {split: "1000", merge: "999"}).notes == ()


def test_a_value_of_a_key_that_the_listed_release_lacks_is_no_default() -> None:
    key = "loadBalancerSheddingExcludedNamespaces"
    assert not is_release_default(key, "4.0.8", {key: "shop/orders"})
    assert is_release_default("loadBalancerEnabled", "4.0.8", {"loadBalancerEnabled": "true"})


def test_a_limit_of_merges_that_an_earlier_capture_lacks_keeps_no_controller_idle() -> None:
    settings = resolve_settings("5.0.1", {"scalableTopicSplitMsgRateInThreshold": "300"})
    assert settings.notes == ()
    assert settings.origins["scalableTopicMergeMsgRateInThreshold"] == "not captured"


@pytest.mark.parametrize("version", ["2.10.4", "1.22.0"])
def test_old_releases_get_no_recommendations(version: str) -> None:
    with pytest.raises(DataNotFit, match=r"tables of this cluster but no recommendations"):
        resolve_settings(version)


def test_a_text_that_is_no_version_is_refused() -> None:
    with pytest.raises(DataNotFit, match="'latest' is not a Pulsar version"):
        resolve_settings("latest")


def test_defaults_differ_by_release() -> None:
    assert resolve_settings("3.0.7").values.load_balancer_direct_memory_resource_weight == 1.0
    assert resolve_settings("4.0.8").values.load_balancer_direct_memory_resource_weight == 0.0


def test_each_layer_overrides_the_one_before_and_says_so() -> None:
    key = "loadBalancerBrokerOverloadedThresholdPercentage"
    assert resolve_settings("4.0.8").origins[key] == "default 4.0.8"
    layers = [{key: "70"}, {key: "60"}, {key: "50"}]
    for count, (value, origin) in enumerate([(70, "runtime"), (60, "dynamic"), (50, "what-if")], start=1):
        settings = resolve_settings("4.0.8", *layers[:count])
        assert settings.values.load_balancer_broker_overloaded_threshold_percentage == value
        assert settings.origins[key] == origin


def test_a_key_that_a_broker_reports_counts_though_the_listed_release_does_not_have_it() -> None:
    """4.0.11 got PIP-380."""
    key = "loadBalancerSheddingExcludedNamespaces"
    reported = resolve_settings("4.0.11", {key: "t/a"})
    assert reported.values.load_balancer_shedding_excluded_namespaces == ("t/a",)
    changed = resolve_settings("4.0.11", {key: "t/a"}, {key: "t/b"})
    assert changed.values.load_balancer_shedding_excluded_namespaces == ("t/b",)


def test_a_key_the_release_does_not_have_is_ignored_unless_it_is_a_what_if() -> None:
    excluded = {"loadBalancerSheddingExcludedNamespaces": "t/a, t/b"}
    assert resolve_settings("4.0.8", dynamic=excluded).values.load_balancer_shedding_excluded_namespaces == ()
    asked = resolve_settings("4.0.8", what_if=excluded)
    assert asked.values.load_balancer_shedding_excluded_namespaces == ("t/a", "t/b")
    assert "does not exist in 4.0.8" in asked.notes[0]


def test_what_only_a_what_if_has_is_said_beside_what_the_cluster_has() -> None:
    own = {"loadBalancerSheddingEnabled": "false"}
    asked = {"loadBalancerSheddingEnabled": "true", "maxUnloadPercentage": "0.2", "loadBalancerEnabled": "true"}
    assert resolve_settings("4.0.8", dynamic=own, what_if=asked).caveats == (
        "This assumes other settings than the cluster's: loadBalancerSheddingEnabled=true in place of false.",
    )
    assert resolve_settings("4.0.8", dynamic=own, what_if=own).caveats == ()


def test_the_misspelt_keys_are_pulsars_own() -> None:
    settings = resolve_settings("4.0.8", {"loadBalancerBandwithInResourceWeight": "0.5"}).values
    assert settings.load_balancer_bandwith_in_resource_weight == 0.5
    assert settings.load_balancer_bandwidth_in_resource_weight == 1.0


def test_rubbish_in_a_dynamic_value_is_read_as_pulsar_reads_it() -> None:
    settings = resolve_settings(
        "4.0.8",
        runtime={"loadBalancerBrokerOverloadedThresholdPercentage": "70"},
        dynamic={"loadBalancerSheddingEnabled": "banana", "loadBalancerBrokerOverloadedThresholdPercentage": "abc"},
    )
    assert settings.values.load_balancer_shedding_enabled is False
    assert settings.values.load_balancer_broker_overloaded_threshold_percentage == 70
    assert len(settings.notes) == 2


@pytest.mark.parametrize("text", ["", " "])
def test_a_blank_dynamic_value_leaves_what_the_broker_started_with(text: str) -> None:
    key = "loadBalancerSheddingEnabled"
    settings = resolve_settings("4.0.8", {key: "true"}, dynamic={key: text})
    assert settings.values.load_balancer_shedding_enabled is True
    assert settings.origins[key] == "runtime"
    assert setting_value(key, "4.0.8", {key: "true"}, {key: text}) is True


def test_a_dynamic_flag_is_not_trimmed_as_boolean_value_of_does_not() -> None:
    settings = resolve_settings("4.0.8", dynamic={"loadBalancerSheddingEnabled": "true "})
    assert settings.values.load_balancer_shedding_enabled is False
    assert settings.notes == ("Dynamic loadBalancerSheddingEnabled='true ' is not a flag: Pulsar reads it as false.",)


def test_a_dynamic_shedder_is_accepted_but_takes_a_restart() -> None:
    assert is_dynamic("4.0.8", "loadBalancerLoadSheddingStrategy")
    assert not takes_effect_at_once("4.0.8", "loadBalancerLoadSheddingStrategy")
    assert takes_effect_at_once("4.0.8", "loadBalancerSheddingEnabled")
    assert not takes_effect_at_once("4.0.8", "loadBalancerLoadPlacementStrategy")


def test_a_dynamic_value_that_pulsar_could_not_parse_is_not_the_origin() -> None:
    key = "loadBalancerBrokerOverloadedThresholdPercentage"
    assert resolve_settings("4.0.8", {key: "70"}, dynamic={key: "abc"}).origins[key] == "runtime"


def test_a_dynamic_value_of_a_key_that_is_not_dynamic_has_no_effect() -> None:
    settings = resolve_settings("4.0.8", dynamic={"loadBalancerEnabled": "false"})
    assert settings.values.load_balancer_enabled is True
    assert "reads this key only at start-up" in settings.notes[0]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("loadBalancerBrokerOverloadThresholdPercentage", "80", "nearest is 'loadBalancerBrokerOverloadedThreshold"),
        ("loadBalancerBrokerOverloadedThresholdPercentage", "101", "out of range; expected 0 to 100"),
        ("loadBalancerBrokerOverloadedThresholdPercentage", "8O", "expected a whole number"),
        ("loadBalancerEnabled", "yes", "expected true or false"),
        ("maxUnloadPercentage", "NaN", "out of range; expected 0 to 1"),
        ("maxUnloadPercentage", "nan", "expected a number"),
        ("minUnloadMessage", "3000000000", "expected a whole number of 32 bits"),
        ("maxUnloadBundleNumPerShedding", "-2", "out of range; expected -1 to 2147483647"),
    ],
)
def test_a_what_if_that_makes_no_sense_is_refused(key: str, value: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        resolve_settings("4.0.8", what_if={key: value})


def test_a_runtime_value_no_broker_can_have_means_the_capture_is_broken() -> None:
    with pytest.raises(DataNotFit, match="minUnloadMessage='many'"):
        resolve_settings("4.0.8", runtime={"minUnloadMessage": "many"})


@pytest.mark.parametrize("key", sorted(SETTING_KEYS))
def test_no_value_that_makes_no_sense_is_used_without_a_word(key: str) -> None:
    annotation = LoadBalancerSettings.model_fields[FIELD_OF_KEY[key]].annotation
    if annotation not in (bool, int, float, float | None):
        return  # any text is a name
    for text in ("-5", "many", "NaN"):
        try:
            notes = resolve_settings("4.0.8", runtime={key: text}).notes
        except DataNotFit as error:
            assert key in str(error)
        else:
            has_key = resolve_settings("4.0.8", runtime={key: "1"}).origins[key] == "runtime"
            assert not has_key or any(key in note for note in notes), text


@pytest.mark.parametrize("text", ["1.5", "-0.5e-3", ".5", "5.", "1d", " 2.0f ", "Infinity"])
def test_a_number_is_what_java_reads_as_one(text: str) -> None:
    assert setting_value(DIRECT_MEMORY, "4.0.8", {DIRECT_MEMORY: text}) == float(text.strip().rstrip("df"))


@pytest.mark.parametrize("text", ["inf", "nan", "1_000", "1,5", "1e", "e1", "9" * 5_000])
def test_a_number_of_python_only_is_none(text: str) -> None:
    assert setting_value(DIRECT_MEMORY, "4.0.8", {DIRECT_MEMORY: text}) == 0.0


def test_a_value_that_pulsar_does_not_check_is_used_and_noted() -> None:
    key = "loadBalancerBrokerOverloadedThresholdPercentage"
    for layers, value in (({"runtime": {key: "-5"}}, -5), ({"dynamic": {key: "850"}}, 850)):
        settings = resolve_settings("4.0.8", **layers)
        assert settings.values.load_balancer_broker_overloaded_threshold_percentage == value
        assert [note.partition(":")[0] for note in settings.notes] == [
            f"{next(iter(layers)).capitalize()} {key}={value} is outside 0 to 100"
        ]


@pytest.mark.parametrize(
    "key",
    [
        "loadBalancerNamespaceBundleMaxSessions",
        "maxNumPartitionsPerPartitionedTopic",
        "maxUnloadBundleNumPerShedding",
    ],
)
def test_minus_one_is_no_limit_where_pulsar_says_so(key: str) -> None:
    for layer in ("runtime", "what_if"):
        settings = resolve_settings("4.0.8", **{layer: {key: "-1"}})
        assert getattr(settings.values, FIELD_OF_KEY[key]) == -1
        assert settings.notes == ()


@pytest.mark.parametrize(
    ("version", "consequence"),
    [("3.0.7", "a broker that starts with it runs the Simple load manager"), ("4.2.4", "no broker starts with it")],
)
@pytest.mark.parametrize("package", ["org.apache.pulsar.broker.loadbalance.impl.", ""])
def test_a_load_manager_named_in_another_package_than_its_own_is_noted(
    package: str, version: str, consequence: str
) -> None:
    # The first as in Pulsar's documentation of 3.1 (develop-load-manager).
    name = f"{package}ExtensibleLoadManagerImpl"
    assert resolve_settings(version, runtime={"loadManagerClassName": name}).notes[-1:] == (
        f"{name} is no class of Pulsar's, "
        f"org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl is: {consequence}.",
    )


def test_a_misspelt_load_manager_is_noted() -> None:
    name = "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManager"
    settings = resolve_settings("4.2.4", runtime={"loadManagerClassName": name})
    assert settings.notes[-1:] == (f"{name} is no class of Pulsar's: no broker starts with it.",)


@pytest.mark.parametrize("name", ["org.apache.pulsar.broker.loadbalance.NoopLoadManager", "com.acme.OurLoadManager"])
def test_a_load_manager_that_may_exist_is_not_noted(name: str) -> None:
    assert resolve_settings("4.0.8", runtime={"loadManagerClassName": name}).notes == ()


def test_a_period_with_which_no_broker_starts_means_the_capture_is_broken() -> None:
    with pytest.raises(DataNotFit, match="statsUpdateFrequencyInSecs=0: no broker starts with it"):
        resolve_settings("4.0.8", runtime={"statsUpdateFrequencyInSecs": "0"})


def test_a_threshold_that_is_not_a_number_is_refused() -> None:
    with pytest.raises(DataNotFit, match="dynamic maxUnloadPercentage=nan can't be compared"):
        resolve_settings("4.0.8", dynamic={"maxUnloadPercentage": "NaN"})


def test_without_any_release_nothing_is_resolved() -> None:
    with pytest.raises(DataNotFit, match="no broker says which release"):
        resolve_settings(None)


INTERVAL, DIRECT_MEMORY = "statsUpdateFrequencyInSecs", "loadBalancerDirectMemoryResourceWeight"


@pytest.mark.parametrize(
    ("version", "default"), [("2.10.4", 1.0), ("no version", 1.0), ("3.0.9", 1.0), ("4.0.8", 0.0), (None, 0.0)]
)
def test_one_setting_has_the_default_of_the_nearest_release_of_any_age(version: str | None, default: float) -> None:
    assert setting_value(DIRECT_MEMORY, version) == default


def test_one_setting_is_read_as_brokers_read_it() -> None:
    key = "loadBalancerReportUpdateMaxIntervalMinutes"
    assert setting_value(key, "4.0.8", {key: "5"}) == 5
    assert setting_value(key, "4.0.8", {key: "5"}, {key: "3"}) == 3
    assert setting_value(key, "4.0.8", {key: "soon"}, {key: "3 min"}) == 15


def test_a_dynamic_value_of_a_key_that_brokers_read_at_start_only_changes_nothing() -> None:
    assert setting_value(INTERVAL, "4.0.8", {INTERVAL: "5"}, {INTERVAL: "1"}) == 5


@pytest.mark.parametrize("text", ["9" * 5_000, "0" * 5_000 + "5", "-" + "9" * 5_000])
def test_a_number_of_thousands_of_digits_changes_nothing(text: str) -> None:
    assert setting_value("statsUpdateFrequencyInSecs", "4.0.8", runtime={"statsUpdateFrequencyInSecs": text}) == 60


def test_a_version_of_thousands_of_digits_is_refused_or_cut_but_never_a_failure() -> None:
    with pytest.raises(DataNotFit):
        resolve_settings("9" * 5_000, {}, {})
