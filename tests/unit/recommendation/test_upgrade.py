"""A cluster before and after an upgrade, and after it with today's values."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from pulsar_advisor.documents.simulation import SimulatedScore
from pulsar_advisor.documents.upgrade import UpgradePreview
from pulsar_advisor.model.bounds import DEFAULT_CYCLES
from pulsar_advisor.model.cluster.cluster_state import ClusterState, LoadManagerKind
from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings, resolve_settings
from pulsar_advisor.model.configuration.settings import SETTING_KEYS, text_of
from pulsar_advisor.model.configuration.upgrade import settings_upgrade
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.recommendation.upgrade import UpgradeRequest, upgrade_preview
from pulsar_advisor.simulation.scores import Ending, cycle_scores, simulation_score
from pulsar_advisor.simulation.simulate import simulate
from states import BrokerRow, BundleRow, cluster_state
from unit.simulation.clusters import EVERY_LOAD_COUNTS, cluster

UNEVEN = replace(cluster({"a": [12.0] * 7, "b": [5.0] * 4, "c": [10.0] * 2}), pulsar_version="4.0.8")
EMPTY_RATIO = 0.05
"""What a broker of these uses without any bundle, as far as one snapshot shows."""
SEEDS = UpgradeRequest("5.0.1", seed=5, seeds=2)


@cache
def preview(state: ClusterState = UNEVEN, request: UpgradeRequest = SEEDS, **runtime: str) -> UpgradePreview:
    return upgrade_preview(
        state, settings_upgrade("4.0.8", {**EVERY_LOAD_COUNTS, **runtime}, {}, request.to, "modular"), request
    )


def endings(found: tuple[object, ...]) -> list[Ending]:
    assert all(isinstance(score, SimulatedScore) for score in found)
    return [Ending(**{name: getattr(score, name) for name in Ending.__dataclass_fields__}) for score in found]


def simulated(shedder: str, placement: str, state: ClusterState, settings: ResolvedSettings, seed: int) -> Ending:
    found = simulate(
        shedder, placement, Situation.of_fit(state, settings), cycles=DEFAULT_CYCLES, seed=seed, both_ends=True
    )
    return simulation_score(found, cycle_scores(found))


def skewed(brokers: int, bundles: int) -> ClusterState:
    """Brokers with as many bundles each, whose usage rises from 20 % to 80 %."""
    each = bundles // brokers
    usage = {f"b{at:03}": [(20 + 60 * at / (brokers - 1)) / each] * each for at in range(brokers)}
    return replace(cluster(usage), pulsar_version="4.0.8")


SIZES = [
    pytest.param(UNEVEN, id="3 x 13"),
    pytest.param(skewed(30, 990), id="30 x 990", marks=pytest.mark.full),
    pytest.param(skewed(100, 10_000), id="100 x 10,000", marks=pytest.mark.full),
]


@pytest.mark.slow
@pytest.mark.parametrize("state", SIZES)
def test_before_is_what_simulate_says(state: ClusterState) -> None:
    settings = resolve_settings("4.0.8", EVERY_LOAD_COUNTS)
    strategies = ("ThresholdShedder", "LeastLongTermMessageRate")
    expected = [simulated(*strategies, state, settings, seed) for seed in (5, 6)]
    before = preview(state).before
    assert (before.shedder, before.placement) == strategies
    assert endings(before.scores) == expected
    assert expected[0].unloads > 0


@pytest.mark.parametrize("state", SIZES)
def test_after_is_what_a_cluster_does_that_has_the_values_of_5_0_set(state: ClusterState) -> None:
    set_values = resolve_settings("5.0.1").values.model_dump(mode="json", by_alias=True)
    runtime = {key: text_of(set_values[key]) for key in SETTING_KEYS} | EVERY_LOAD_COUNTS
    settings = resolve_settings("5.0.1", runtime)
    upgraded = replace(state, pulsar_version="5.0.1")
    expected = [simulated("AvgShedder", "AvgShedder", upgraded, settings, seed) for seed in (5, 6)]
    assert endings(preview(state).after.scores) == expected
    assert expected[0].unloads > 0


def test_a_large_cluster_is_simulated_with_fewer_seeds_unless_they_are_asked_for() -> None:
    request = UpgradeRequest("5.0.1", seed=7)
    assert [len(request.seeds_for(bundles)) for bundles in (0, 10_000, 20_000, 65_000)] == [5, 5, 2, 1]
    assert replace(request, seeds=3).seeds_for(65_000) == range(7, 10)


def test_that_fewer_seeds_were_simulated_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pulsar_advisor.recommendation.upgrade._BUNDLES_SIMULATED", len(UNEVEN.bundles))
    found = upgrade_preview(
        UNEVEN, settings_upgrade("4.0.8", {}, {}, "5.0.1", "modular"), UpgradeRequest("5.0.1", cycles=1)
    )
    assert found.seeds == len(found.before.scores) == 1
    assert "Simulated with 1 seed in place of 5, as the cluster has 13 bundles." in found.notes


def test_a_misspelt_shedder_that_is_replaced_today_and_with_which_no_broker_starts_afterwards_is_said() -> None:
    misspelt = {"loadBalancerLoadSheddingStrategy": "org.apache.pulsar.broker.loadbalance.impl.TresholdShedder"}
    upgrade = settings_upgrade("3.3.6", misspelt, {}, "4.2.4", "modular")
    state = replace(UNEVEN, pulsar_version="3.3.6")
    found = upgrade_preview(state, upgrade, UpgradeRequest("4.2.4", seeds=1, cycles=1))
    assert found.before.shedder == "OverloadShedder"
    assert any("TresholdShedder" in note and "no broker starts with it" in note for note in found.notes)


def test_a_dynamic_value_that_no_line_overrides_is_to_be_deleted() -> None:
    upgrade = settings_upgrade("4.0.8", {}, {"scalableTopicSplitMsgRateInThreshold": "5000"}, "5.0.1", "modular")
    found = upgrade_preview(UNEVEN, upgrade, UpgradeRequest("5.0.1", seeds=1, cycles=1))
    assert found.notes[-1] == (
        "Dynamic values that 5.0.1 reads and 4.0.8 ignores: scalableTopicSplitMsgRateInThreshold. No line in a file "
        "overrides them: to keep today's values, delete them before the upgrade."
    )


@pytest.mark.slow
def test_with_the_lines_the_new_release_does_what_the_old_one_did() -> None:
    found = preview()
    assert found.pinned is not None
    assert found.pinned.release == "5.0.1"
    assert found.pinned.scores == found.before.scores
    assert found.pinned.scores != found.after.scores


def test_after_a_rolling_restart_one_broker_is_empty_and_both_balancers_fill_it() -> None:
    found = preview()
    for balancer in (found.before, found.after):
        for score in endings(balancer.after_restart):
            idlest = score.first_usage_maximum_ratio - score.first_usage_range_ratio
            assert idlest == pytest.approx(EMPTY_RATIO)
            assert score.last_usage_maximum_ratio - score.last_usage_range_ratio > EMPTY_RATIO


def test_there_is_nothing_to_pin_where_every_value_is_set() -> None:
    values = resolve_settings("4.0.8").values.model_dump(mode="json", by_alias=True)
    unlike_either_default = {
        "defaultNumberOfNamespaceBundles": "16",
        "loadBalancerDistributeBundlesEvenlyEnabled": "false",
        "loadBalancerLoadPlacementStrategy": "org.apache.pulsar.broker.loadbalance.impl.RoundRobinBrokerSelector",
        "loadBalancerLoadSheddingStrategy": "org.apache.pulsar.broker.loadbalance.impl.OverloadShedder",
        "maxUnloadPercentage": "0.4",
    }
    found = preview(**{key: text_of(values[key]) for key in SETTING_KEYS} | unlike_either_default)
    assert (found.pins, found.pinned) == ({}, None)
    assert found.after.scores == found.before.scores


def test_an_extensible_cluster_keeps_its_strategies() -> None:
    state = replace(
        cluster({"a": [12.0] * 7, "b": [5.0] * 4, "c": [10.0] * 2}, load_manager="extensible"), pulsar_version="4.0.8"
    )
    found = preview(state, UpgradeRequest("5.0.1", seeds=1, cycles=1))
    assert {one.shedder for one in (found.before, found.after)} == {"TransferShedder"}


def test_brokers_own_namespaces_of_three_parts_which_4_2_no_longer_has_do_not_stop_it() -> None:
    own = [BundleRow(f"{one}/live/b1:8080", "0x00000000_0xffffffff", "b1:8080") for one in ("pulsar", "sla-monitor")]
    state = cluster_state([BrokerRow("b1:8080"), BrokerRow("b2:8080")], own, load_manager="extensible")
    (score,) = preview(state, UpgradeRequest("5.0.1", seeds=1, cycles=1)).after.scores
    assert score.error is None


def test_no_seed_may_be_negative() -> None:
    with pytest.raises(UsageError, match="--seed -1 is out of bounds"):
        UpgradeRequest("5.0.1", seed=-1)


def test_strategies_that_can_not_judge_the_cluster_are_said_not_to() -> None:
    found = preview(loadBalancerLoadSheddingStrategy="com.example.Own")
    (first, *_) = found.before.scores
    assert first.error is not None and "there is no shedder 'Own'" in first.error


def test_that_an_upgrade_is_under_way_is_said() -> None:
    brokers = replace(UNEVEN.brokers, versions=("5.0.1", *UNEVEN.brokers.versions[1:]))
    request = UpgradeRequest("5.0.1", seeds=1, cycles=1)
    found = upgrade_preview(
        replace(UNEVEN, brokers=brokers), settings_upgrade("4.0.8", {}, {}, "5.0.1", "modular"), request
    )
    assert found.notes[0].startswith("The brokers run 4.0.8 and 5.0.1, so an upgrade is under way")


@pytest.mark.parametrize(
    ("manager", "otherwise"),
    [("modular", "upgraded ones can't load topics"), ("extensible", "upgraded ones stop within two minutes")],
)
def test_brokers_before_5_need_the_listener_that_later_ones_ask_for(manager: LoadManagerKind, otherwise: str) -> None:
    def notes(before: str, to: str) -> str:
        state = replace(UNEVEN, pulsar_version=before, load_manager=manager)
        request = UpgradeRequest(to, seeds=1, cycles=1)
        return " ".join(upgrade_preview(state, settings_upgrade(before, {}, {}, to, manager), request).notes)

    said = notes("4.0.8", "5.0.1")
    assert "advertisedListeners=internal:pulsar://HOST:6650,internal:http://HOST:8080" in said
    assert otherwise in said
    assert "advertisedListeners" not in notes("4.0.8", "4.2.4")
    assert "advertisedListeners" not in notes("5.0.0", "5.0.1")
