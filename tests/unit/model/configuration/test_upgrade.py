"""What an upgrade makes of each setting, by what decided before."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from pulsar_advisor.model.cluster.cluster_state import LoadManagerKind
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.configuration.settings import SETTING_KEYS, text_of
from pulsar_advisor.model.configuration.upgrade import UpgradedSetting, settings_upgrade
from pulsar_advisor.model.errors import UsageError

SHEDDING = "loadBalancerLoadSheddingStrategy"
PLACEMENT = "loadBalancerLoadPlacementStrategy"
THRESHOLD_SHEDDER = "org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder"
UNIFORM = "org.apache.pulsar.broker.loadbalance.impl.UniformLoadShedder"
AVG_SHEDDER = "org.apache.pulsar.broker.loadbalance.impl.AvgShedder"
CHANGED = {
    "defaultNumberOfNamespaceBundles": ("4", "32"),
    "loadBalancerDistributeBundlesEvenlyEnabled": ("true", "false"),
    PLACEMENT: ("org.apache.pulsar.broker.loadbalance.impl.LeastLongTermMessageRate", AVG_SHEDDER),
    SHEDDING: (THRESHOLD_SHEDDER, AVG_SHEDDER),
    "maxUnloadPercentage": ("0.2", "0.5"),
}
"""As Pulsar publishes them for 4.0.x and 4.2.x against 5.0."""


def runtime(release: str = "4.0.8", **changed: str) -> dict[str, str]:
    """The runtime configuration of a broker: every value, set or not."""
    values = resolve_settings(release).values.model_dump(mode="json", by_alias=True)
    return {key: text_of(values[key]) for key in SETTING_KEYS} | changed


def one(key: str, of: Mapping[str, str], dynamic: Mapping[str, str] | None = None) -> UpgradedSetting:
    found = settings_upgrade("4.0.8", of, dynamic or {}, "5.0.1", "modular")
    return next(setting for setting in found.settings if setting.key == key)


@pytest.mark.parametrize("release", ["4.0.8", "4.2.4"])
@pytest.mark.parametrize("configuration", [True, False])
def test_what_was_never_set_takes_the_new_default(release: str, configuration: bool) -> None:
    upgrade = settings_upgrade(release, runtime(release) if configuration else {}, {}, "5.0.1", "modular")
    changing = {setting.key: (setting.before, setting.after) for setting in upgrade.settings if setting.changes}
    assert changing == CHANGED
    assert {setting.set_by for setting in upgrade.settings} == {"default"}
    assert {setting.origin_after for setting in upgrade.settings if setting.changes} == {"default 5.0.1"}


def test_what_a_file_sets_stays() -> None:
    found = one(SHEDDING, runtime(**{SHEDDING: UNIFORM}))
    assert (found.set_by, found.before, found.after) == ("file", UNIFORM, UNIFORM)


def test_a_dynamic_value_stays_though_the_file_never_set_it() -> None:
    found = one("maxUnloadPercentage", runtime(), {"maxUnloadPercentage": "0.3"})
    assert (found.set_by, found.before, found.after) == ("dynamic", "0.3", "0.3")


def test_a_value_that_is_the_new_default_already_doesnt_change() -> None:
    assert not one("maxUnloadPercentage", runtime(maxUnloadPercentage="0.5")).changes


def test_what_is_set_but_kept_for_old_configurations_only_is_obsolete() -> None:
    key = "loadBalancerBandwithInResourceWeight"
    assert one(key, runtime(**{key: "0.5"})).obsolete
    assert not one(key, runtime()).obsolete


def test_with_its_lines_no_value_changes() -> None:
    upgrade = settings_upgrade("4.0.8", runtime(maxUnloadPercentage="0.4"), {}, "5.0.1", "modular")
    assert dict(upgrade.pins) == {key: before for key, (before, _) in CHANGED.items() if key != "maxUnloadPercentage"}
    today = upgrade.before.values.model_dump(exclude={"behaviour"})
    assert upgrade.pinned.values.model_dump(exclude={"behaviour"}) == today
    assert upgrade.pinned.values.behaviour == (5, 0, 1)


def test_a_dynamic_value_that_only_the_new_release_reads_is_no_line_for_a_file() -> None:
    key = "scalableTopicSplitMsgRateInThreshold"
    upgrade = settings_upgrade("4.0.14", {}, {key: "50"}, "5.0.1", "modular")
    assert [setting.key for setting in upgrade.unveiled] == [key]
    assert key not in upgrade.pins


def test_a_limit_that_an_earlier_capture_lacks_neither_changes_nor_gets_a_line() -> None:
    split, merge = "scalableTopicSplitMsgRateInThreshold", "scalableTopicMergeMsgRateInThreshold"
    upgrade = settings_upgrade("5.0.0", {split: "10000"}, {}, "5.0.1", "modular")
    assert split in {setting.key for setting in upgrade.settings}
    assert merge not in {*upgrade.pins, *(setting.key for setting in upgrade.settings)}


def test_a_classic_shedder_that_is_set_gets_the_placement_that_5_0_falls_back_to() -> None:
    upgrade = settings_upgrade("4.0.8", runtime(**{SHEDDING: UNIFORM}), {}, "5.0.1", "modular")
    assert any("place with LeastLongTermMessageRate" in note for note in upgrade.after.notes)


@pytest.mark.parametrize("to", ["4.0.8", "4.0.3", "3.0.7"])
def test_only_a_later_release_is_an_upgrade(to: str) -> None:
    with pytest.raises(UsageError, match="--to"):
        settings_upgrade("4.0.8", {}, {}, to, "modular")


@pytest.mark.parametrize("to", ["5", "latest"])
def test_what_is_no_release_is_answered_with_one(to: str) -> None:
    with pytest.raises(UsageError, match=rf"^--to {to} is not a Pulsar version: name a release, such as 5\.0\.1$"):
        settings_upgrade("4.0.8", {}, {}, to, "modular")


@pytest.mark.parametrize(
    ("version", "to"),
    [("5.0.1", "6.0.0"), ("5.0.0-M1", "5.0.0"), ("5.0.0-M1", "5.0.0-M2"), ("4.0.8", "4.1.0"), ("4.0.5", "4.0.7")],
)
def test_a_later_release_is_an_upgrade_though_it_is_judged_as_the_same(version: str, to: str) -> None:
    upgrade = settings_upgrade(version, {}, {}, to, "modular")
    assert upgrade.before.values.behaviour <= upgrade.after.values.behaviour


@pytest.mark.parametrize(("version", "to"), [("5.0.0", "5.0.0-M1"), ("5.0.0-M2", "5.0.0-M2"), ("6.0.0", "5.0.1")])
def test_an_earlier_release_is_none(version: str, to: str) -> None:
    with pytest.raises(UsageError, match=f"--to {to} is not an upgrade: the cluster runs {version}"):
        settings_upgrade(version, {}, {}, to, "modular")


def test_a_release_newer_than_those_known_is_said_to_be() -> None:
    (caveat, *_) = settings_upgrade("4.0.8", {}, {}, "5.1.0", "modular").after.caveats
    assert caveat.startswith("Pulsar 5.1.0 is newer than 5.0.1")


@pytest.mark.parametrize(("load_manager", "is_kept"), [("modular", False), ("simple", False), ("extensible", True)])
def test_the_weight_of_the_heap_is_kept_only_where_the_new_release_counts_it(
    load_manager: LoadManagerKind, is_kept: bool
) -> None:
    upgrade = settings_upgrade("3.0.8", {}, {}, "4.0.8", load_manager)
    assert upgrade.pins["loadBalancerDirectMemoryResourceWeight"] == "1.0"
    assert ("loadBalancerMemoryResourceWeight" in upgrade.pins) == is_kept
