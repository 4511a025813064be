"""The Extensible manager's view made from a cluster state."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pulsar_advisor.model.cluster.cluster_state import ClusterState, IsolationPolicy, PublishedLoad
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.load.extensible_load import extensible_load
from pulsar_advisor.model.load.top_bundles import stats_of, top_bundles
from states import LOWER_HALF, UPPER_HALF, BrokerRow, BundleRow, cluster_state

MINUTE_MS = 60_000


def state() -> ClusterState:
    return cluster_state(
        [BrokerRow("a:8080", cpu=(60, 100), traffic=(0, 0, 9e6, 1e6)), BrokerRow("b:8080", available=False)],
        [
            BundleRow("pulsar/system", LOWER_HALF, "a:8080", (0, 0, 9e6, 0), topics=1),
            BundleRow("t/grouped", LOWER_HALF, "a:8080", (0, 0, 8e6, 0), topics=1),
            BundleRow("t/isolated", LOWER_HALF, "a:8080", (0, 0, 7e6, 0), topics=1),
            BundleRow("t/n", LOWER_HALF, "a:8080", (0, 0, 5e6, 1e6), topics=1),
            BundleRow("t/n", UPPER_HALF, "a:8080", (0, 0, 2e6, 0), topics=1),
        ],
        anti_affinity_groups={"t/grouped": "group"},
        isolation_policies=(IsolationPolicy("p", ("t/iso.*",), ("a",), (), 1, 100),),
    )


def names(of: ClusterState, **config: str) -> list[str]:
    settings = resolve_settings("4.2.4", config).values
    top = extensible_load(of, settings, of.captured_at_ms).top(0)
    return [of.bundle_name(entry.bundle) for entry in top]


def test_top_bundles_come_lightest_first_without_system_namespaces_and_policies() -> None:
    assert names(state()) == [f"t/n/{UPPER_HALF}", f"t/n/{LOWER_HALF}"]


def test_namespaces_under_policies_are_reported_if_allowed() -> None:
    allowed = names(state(), loadBalancerSheddingBundlesWithPoliciesEnabled="true")
    assert allowed[-2:] == [f"t/isolated/{LOWER_HALF}", f"t/grouped/{LOWER_HALF}"]


def test_excluded_namespaces_are_not_reported() -> None:
    assert names(state(), loadBalancerSheddingExcludedNamespaces="t/n") == []


def test_a_report_holds_a_limited_number_of_bundles() -> None:
    assert names(state(), loadBalancerMaxNumberOfBundlesInBundleLoadReport="1") == [f"t/n/{LOWER_HALF}"]


def test_loads_are_those_of_a_first_sample() -> None:
    of = state()
    load = extensible_load(of, resolve_settings("4.0.8").values, of.captured_at_ms)
    assert load.load[0] == pytest.approx(0.6)
    assert load.throughput_ema_bytes_per_s[0] == load.throughput_bytes_per_s[0] == 1e7
    assert (load.transferable(0, 1, 0), load.transferable(0, 0, 1)) == (True, False)


def test_published_figures_take_precedence_over_derived_ones() -> None:
    of = state()
    published = PublishedLoad(
        weighted_max_ema=np.array([0.75, np.nan]),
        msg_throughput_ema=np.array([8e6, np.nan]),
        top_position=np.array([-1, -1, 0, 2, 1]),
    )
    of = replace(of, published_load=published)
    load = extensible_load(of, resolve_settings("4.2.4").values, of.captured_at_ms)
    assert (load.load[0], load.throughput_ema_bytes_per_s[0]) == (0.75, 8e6)
    assert load.load[1] == extensible_load(state(), resolve_settings("4.2.4").values, of.captured_at_ms).load[1]
    assert names(of) == [f"t/isolated/{LOWER_HALF}", f"t/n/{UPPER_HALF}", f"t/n/{LOWER_HALF}"]


@pytest.mark.parametrize(("minutes", "recently"), [(29, True), (30, False)])
def test_a_bundle_within_the_grace_period_is_marked(minutes: int, recently: bool) -> None:
    of = state()
    unloaded = of.bundles.last_unloaded_at_ms + of.captured_at_ms - minutes * MINUTE_MS
    of = replace(of, bundles=replace(of.bundles, last_unloaded_at_ms=unloaded))
    top = extensible_load(of, resolve_settings("4.0.8").values, of.captured_at_ms).top(0)
    assert {entry.recently_unloaded for entry in top} == {recently}


BUNDLES_IN_JAVA = (2, 7, 1, 8, 5, 6, 11, 9, 3, 0, 10, 4)
BROKERS_IN_JAVA = (8, 11, 4, 1, 9, 3, 6, 0, 7, 2, 5, 10)
"""How Java 17 walks a `ConcurrentHashMap` of these twelve names, put in by number. A `HashMap` begins with 9 and 3."""


def test_equal_bundles_are_ranked_in_the_order_of_a_concurrent_map() -> None:
    ranges = [f"0x{number * 0x8000000:08x}_0x{(number + 1) * 0x8000000:08x}" for number in range(12)]
    rows = [BundleRow("t/n", text, "a:8080", (1, 1, 1, 1), topics=1) for text in ranges]
    of, settings = cluster_state([BrokerRow("a:8080")], rows), resolve_settings("4.0.8").values
    alike = [stats_of(of.bundles, 0)] * 12
    expected = [BUNDLES_IN_JAVA[position] for position in top_bundles(alike, [True] * 12, 5, settings)]
    key = "loadBalancerMaxNumberOfBundlesInBundleLoadReport"
    top = extensible_load(of, resolve_settings("4.0.8", {key: "5"}).values, of.captured_at_ms).top(0)
    assert [entry.bundle for entry in top] == expected


def test_brokers_with_load_data_are_walked_in_the_order_of_a_concurrent_map() -> None:
    of = cluster_state([BrokerRow(f"broker-{number:02d}:8080") for number in range(12)], [])
    stored = extensible_load(of, resolve_settings("4.0.8").values, of.captured_at_ms).stored
    assert tuple(stored.tolist()) == BROKERS_IN_JAVA
