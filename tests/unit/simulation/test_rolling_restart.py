"""Where bundles are after a rolling restart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pulsar_advisor.model.cluster.cluster_state import ClusterState, IsolationPolicy
from pulsar_advisor.simulation.rolling_restart import rolling_restart
from pulsar_advisor.simulation.simulate import CarriedOut
from unit.simulation.clusters import cluster, situation

THREE = replace(cluster({"a": [5.0] * 6, "b": [5.0] * 6, "c": [5.0] * 6}), leader=2)
ALL_IN_ONE = replace(cluster({"a": [9.0, 1.0] * 3, "b": [5.0] * 6, "c": [5.0] * 6}, in_one_namespace=True), leader=2)
EVENLY = "loadBalancerDistributeBundlesEvenlyEnabled"


def owners_after(
    state: ClusterState, placement: str, release: str = "4.0.8", seed: int = 0, **what_if: str
) -> list[int]:
    """How many bundles each broker has after the restart."""
    return owned(state, rolling_restart(placement, situation(state, release, **what_if), seed=seed))


def owned(state: ClusterState, restarted: CarriedOut) -> list[int]:
    owner = state.bundles.owner.copy()
    owner[list(restarted.moves)] = list(restarted.moves.values())
    return np.bincount(owner, minlength=len(state.brokers)).tolist()


def test_the_broker_restarted_last_comes_back_empty_and_the_others_share_its_bundles() -> None:
    assert owners_after(THREE, "LeastLongTermMessageRate", **{EVENLY: "false"}) == [9, 9, 0]


def test_the_leader_is_restarted_last() -> None:
    first = replace(THREE, leader=0)
    assert owners_after(first, "LeastLongTermMessageRate", **{EVENLY: "false"}) == [0, 9, 9]


def test_a_namespace_is_spread_evenly_over_the_brokers_that_are_up() -> None:
    assert owners_after(ALL_IN_ONE, "LeastLongTermMessageRate", **{EVENLY: "true"}) == [9, 9, 0]
    assert owners_after(ALL_IN_ONE, "LeastLongTermMessageRate", **{EVENLY: "false"}) != [9, 9, 0]


def test_a_draw_at_random_leaves_an_uneven_shape_that_its_seed_decides() -> None:
    shapes = {tuple(owners_after(THREE, "AvgShedder", "5.0.1", seed)) for seed in range(8)}
    assert len(shapes) > 1
    assert {shape[2] for shape in shapes} == {0}
    assert owners_after(THREE, "AvgShedder", "5.0.1", 3) == owners_after(THREE, "AvgShedder", "5.0.1", 3)


def test_in_an_upgrade_the_leader_places_as_before_until_it_is_restarted() -> None:
    before = situation(THREE, **{EVENLY: "false"})
    after = situation(THREE, "5.0.1")
    shapes = {tuple(owned(THREE, rolling_restart("AvgShedder", after, seed=seed, before=before))) for seed in range(8)}
    # Before it stops, they have 9, 0 and 9.
    assert len(shapes) > 1
    assert min(shape[0] for shape in shapes) >= 9


def test_a_namespace_excluded_from_shedding_takes_its_turns_from_one_restart_to_the_next() -> None:
    state = replace(cluster({"a": [1.0] * 3, "b": [1.0] * 3, "c": [1.0] * 3, "d": [60.0]}), leader=3)
    excluded = {"loadBalancerSheddingExcludedNamespaces": "t/a,t/b,t/c"}
    # With turns that began anew it would be [5, 2, 3, 0].
    assert owners_after(state, "LeastLongTermMessageRate", "4.2.4", **{EVENLY: "false"}) == [4, 5, 1, 0]
    assert owners_after(state, "LeastLongTermMessageRate", "4.2.4", **{EVENLY: "false"}, **excluded) == [4, 4, 2, 0]


@pytest.mark.parametrize(("most", "owners"), [("6", [4, 4, 1, 0]), ("50000", [7, 1, 1, 0])])
def test_topics_that_were_assigned_count_before_a_report_shows_them(most: str, owners: list[int]) -> None:
    # Every bundle has two topics: a broker takes one more while it has six or fewer.
    state = replace(cluster({"a": [1.0] * 6, "b": [0.1], "c": [30.0], "d": [40.0]}), leader=3)
    of = {EVENLY: "false", "loadBalancerBrokerMaxTopics": most}
    assert owners_after(state, "LeastLongTermMessageRate", **of) == owners


def test_a_bundle_that_may_go_nowhere_else_comes_back() -> None:
    alone = IsolationPolicy("alone", ("t/a",), ("a",), (), 1, 100)
    state = cluster({"a": [10.0] * 6, "b": [10.0] * 6, "c": [10.0] * 6}, isolation_policies=(alone,))
    restarted = rolling_restart("LeastLongTermMessageRate", situation(state))
    of_a = [row for row in range(len(state.bundles)) if state.namespaces.names[state.bundles.namespace[row]] == "t/a"]
    assert not set(of_a) & set(restarted.moves)


@pytest.mark.parametrize("load_manager", ["modular", "simple", "extensible"])
def test_no_bundle_is_lost_under_any_load_manager(load_manager: str) -> None:
    placement = {
        "modular": "LeastResourceUsageWithWeight",
        "simple": "SimpleLoadManagerImpl",
        "extensible": "extensions.LeastResourceUsageWithWeight",
    }[load_manager]
    state = cluster({"a": [10.0] * 6, "b": [10.0] * 6, "c": [10.0] * 6}, load_manager=load_manager)  # type: ignore[arg-type]
    assert sum(owners_after(state, placement)) == len(state.bundles)
