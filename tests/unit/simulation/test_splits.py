"""Bundles of an evolving cluster are split when they are due, by the rules of their load manager."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.simulation.scores import Ending, cycle_scores, simulation_score
from pulsar_advisor.simulation.simulate import Simulation, simulate
from states import BrokerRow, BundleRow, cluster_state
from unit.simulation.clusters import situation
from unit.splitting.busy_cluster import COOL, NAMES, busy

PLACEMENT = "LeastLongTermMessageRate"
RATE = "loadBalancerNamespaceBundleMaxMsgRate"
CHILDREN = ("t/hot/0x00000000_0x20000000", "t/hot/0x20000000_0x40000000")
HIGHEST = "loadBalancerNamespaceMaximumBundles"


def simulation_of(state: ClusterState, cycles: int = 30, **what_if: str) -> Simulation:
    """Under OverloadShedder, which does nothing at 80 %; the hot bundle has 1,800 messages/s, the other 200."""
    placement = "extensions.LeastResourceUsageWithWeight" if state.load_manager == "extensible" else PLACEMENT
    return simulate("OverloadShedder", placement, situation(state, **{RATE: "1500", **what_if}), cycles=cycles)


def score_of(simulation: Simulation) -> Ending:
    return simulation_score(simulation, cycle_scores(simulation))


def splits(simulation: Simulation) -> list[tuple[int, str]]:
    """Cycle and name of each bundle split."""
    return [
        (cycle.number, cycle.division.before.bundle_name(split.bundle))
        for cycle in simulation.cycles
        if cycle.division is not None
        for split in cycle.division.splits
    ]


def test_the_leader_splits_a_hot_bundle_at_once_and_unloads_its_children() -> None:
    state = busy()
    simulation = simulation_of(state)
    assert splits(simulation) == [(1, "t/hot/0x00000000_0x40000000")]
    first = simulation.cycles[1]
    assert [first.state.bundle_name(row) for row in first.bundle.tolist()] == list(CHILDREN)
    assert [state.brokers.ids[row] for row in first.destination.tolist()] == [COOL, COOL]
    assert simulation.ended == "settled"
    score = score_of(simulation)
    assert (score.splits, score.unloads, score.settles_in_cycles) == (1, 2, 1)
    assert score.last_usage_maximum_ratio < score.first_usage_maximum_ratio
    assert score.last_usage_mean_ratio == pytest.approx(score.first_usage_mean_ratio)


@pytest.mark.parametrize(
    ("evenly", "other", "destinations"),
    [
        ("true", 20.0, [1, 2]),
        ("false", 20.0, [1, 2]),
        # No broker has reported the child: it counts as 100 messages/s, and c has 120.
        ("false", 60.0, [1, 1]),
    ],
)
def test_each_child_counts_where_it_was_assigned_and_the_parent_where_it_was(
    evenly: str, other: float, destinations: list[int]
) -> None:
    # By message rate both children would go to b, the idlest, and by reports their own broker has no load any more.
    topics = [f"persistent://t/n/{number}" for number in range(40)]
    state = cluster_state(
        [
            BrokerRow("a:8080", cpu=(80.0, 100.0), traffic=(900.0, 900.0, 9e6, 9e6)),
            BrokerRow("b:8080"),
            BrokerRow("c:8080"),
        ],
        [
            BundleRow("t/n", "0x00000000_0xffffffff", "a:8080", (900.0, 900.0, 9e6, 9e6), topics=40),
            BundleRow("t/other", "0x00000000_0xffffffff", "c:8080", (other, other, 1e3, 1e3), topics=2),
        ],
        topics=topics,
    )
    loaded, traffic = np.ones(len(topics), dtype=np.bool_), np.full((len(topics), 4), 20.0)
    state = replace(state, topics=replace(state.topics, loaded=loaded, traffic=traffic))
    spread = {"loadBalancerDistributeBundlesEvenlyEnabled": evenly}
    assert simulation_of(state, cycles=1, **spread).cycles[1].destination.tolist() == destinations


def test_a_cluster_has_not_settled_while_its_brokers_count_towards_a_split() -> None:
    counts = {"loadBalancerNamespaceBundleSplitConditionHitCountThreshold": "20"}
    simulation = simulation_of(replace(busy(), load_manager="extensible"), cycles=60, **counts)
    assert [cycle for cycle, _ in splits(simulation)] == [21]


def test_children_have_the_load_of_their_topics() -> None:
    state = busy()
    rates = np.where(state.topics.bundle == 0, 10.0, 0.0) * (1 + np.arange(len(NAMES)))
    state = replace(state, topics=replace(state.topics, traffic=np.outer(rates, [1.0, 1.0, 0.0, 0.0])))
    first = simulation_of(state, cycles=1).cycles[1]
    lower_half = state.topics.hash < 0x20000000
    share = rates[lower_half].sum() / rates.sum()
    assert first.traffic[:, 0].tolist() == pytest.approx([900.0 * share, 900.0 * (1 - share)])


def test_children_stay_if_they_are_not_to_be_unloaded() -> None:
    simulation = simulation_of(busy(), loadBalancerAutoUnloadSplitBundlesEnabled="false")
    assert (score_of(simulation).splits, score_of(simulation).unloads) == (1, 0)


@pytest.mark.parametrize("switch", ["loadBalancerEnabled", "loadBalancerAutoBundleSplitEnabled"])
def test_nothing_is_split_if_the_cluster_does_not_do_so_by_itself(switch: str) -> None:
    simulation = simulation_of(busy(), **{switch: "false"})
    assert splits(simulation) == []


def test_a_child_that_is_still_too_big_is_split_once_it_has_been_reported() -> None:
    simulation = simulation_of(busy(), **{RATE: "300"})
    cycles = [cycle for cycle, _ in splits(simulation)]
    assert cycles[0] == 1
    assert len(set(cycles)) > 1
    rates = simulation.cycles[-1].state.bundles.traffic[:, :2].sum(axis=1)
    topics = simulation.cycles[-1].state.bundles.topics
    assert ((rates <= 300) | (topics < 2)).all()


@pytest.mark.parametrize("most", [2, 3, 5])
def test_a_namespace_never_has_more_bundles_than_its_maximum(most: int) -> None:
    simulation = simulation_of(busy(), **{RATE: "100", HIGHEST: str(most)})
    assert len(simulation.cycles[-1].state.bundles) == most
    assert simulation.ended == "settled"


def test_an_extensible_broker_splits_after_its_fourth_hit_and_keeps_the_children() -> None:
    simulation = simulation_of(busy("extensible"))
    assert splits(simulation) == [(4, "t/hot/0x00000000_0x40000000")]
    assert score_of(simulation).unloads == 0


def test_an_extensible_broker_counts_a_hit_per_interval() -> None:
    simulation = simulation_of(busy("extensible"), loadBalancerSplitIntervalMinutes="3")
    # Passes with the first cycle, and 3, 6 and 9 minutes later.
    assert [cycle for cycle, _ in splits(simulation)] == [10]


def test_the_shedder_leaves_children_alone_until_they_are_reported() -> None:
    simulation = simulate(
        "ThresholdShedder",
        PLACEMENT,
        situation(busy(), **{RATE: "1500", "loadBalancerAutoUnloadSplitBundlesEnabled": "false"}),
        cycles=20,
    )
    first = simulation.cycles[1]
    assert set(CHILDREN).isdisjoint(first.state.bundle_name(row) for row in first.bundle.tolist())
    later = {cycle.state.bundle_name(row) for cycle in simulation.cycles[2:] for row in cycle.bundle.tolist()}
    assert later & set(CHILDREN)
