"""Whether the cluster's own balancer lets a plan be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, ClusterState
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.strategy.decision import Split
from pulsar_advisor.planning.plans.build_plan import build_plan
from pulsar_advisor.planning.plans.propose import propose
from pulsar_advisor.planning.proposals.configured import Configured
from pulsar_advisor.planning.proposals.proposal import Move
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.simulation import foresight
from pulsar_advisor.simulation.foresight import CycleSeen, acting, after_plan, left_alone, planned
from pulsar_advisor.simulation.scores import Ending, cycle_scores, simulation_score
from unit.planning.made_plans import INPUTS, plan_of
from unit.simulation.clusters import EVERY_LOAD_COUNTS, cluster
from unit.splitting.busy_cluster import busy

HOT = cluster({"a": [20.0, 20.0, 20.0, 20.0, 12.0], "b": [4.0, 4.0], "c": [4.0, 4.0]})
MINIMAL = ("MinimalMoveShedder", "LeastLongTermMessageRate")
OWN = Configured("OverloadShedder", "LeastLongTermMessageRate")


def situation(state: ClusterState = HOT, **what_if: str) -> Situation:
    """A cluster whose own shedder is OverloadShedder."""
    found = Situation.of_fit(state, resolve_settings("4.0.8", what_if={**EVERY_LOAD_COUNTS, **what_if}))
    vars(found).update(configured=OWN)
    return found


def hot_left_alone() -> tuple[Ending, tuple[CycleSeen, ...]]:
    """How the hot cluster ends by itself, and the cycles in which something happens until then."""
    alone = left_alone(situation(), 0)
    scores = cycle_scores(alone)
    return simulation_score(alone, scores), acting(alone, scores)


def proposed_plan(state: ClusterState, shedder: str, placement: str, **what_if: str) -> Plan:
    settings = resolve_settings("4.0.8", what_if={**EVERY_LOAD_COUNTS, **what_if})
    request = Request(shedder, placement, splits=False)
    [(_, proposal)] = propose(request, Situation.of_fit(state, settings))
    assert not isinstance(proposal, Exception)
    return build_plan(Situation.of_fit(state, settings), proposal, request, INPUTS)


def test_a_balanced_cluster_is_left_alone_after_the_plan() -> None:
    plan = proposed_plan(HOT, *MINIMAL)
    own, _ = hot_left_alone()
    undone = after_plan(situation(), plan)
    assert own.unloads > 0
    assert undone is not None
    assert (undone.plan_bundles, undone.moved_again) == (len(planned(HOT, plan).moves), 0)
    assert undone.first_usage_maximum_ratio < own.first_usage_maximum_ratio


def test_a_balancer_that_wants_it_otherwise_undoes_the_plan() -> None:
    """A plan that puts the load on one broker is what OverloadShedder takes apart again."""
    plan = proposed_plan(
        HOT, "OverloadShedder", "LeastLongTermMessageRate", loadBalancerBrokerOverloadedThresholdPercentage="30"
    )
    undone = after_plan(situation(loadBalancerBrokerOverloadedThresholdPercentage="40"), plan)
    assert undone is not None
    assert undone.moved_again > 0
    assert undone.first_cycle is not None


def test_what_is_unfit_takes_no_part() -> None:
    fit = cluster({"a": [20.0, 20.0, 20.0, 20.0, 12.0], "b": [4.0, 4.0]})
    unfit = replace(HOT, brokers=replace(HOT.brokers, complete=np.array([True, True, False])))
    settings = resolve_settings("4.0.8", what_if=EVERY_LOAD_COUNTS)
    ends = [cycle_scores(left_alone(Situation.of(state, settings), 0))[-1].usage for state in (fit, unfit)]
    assert ends[0] == ends[1]


def test_every_cycle_in_which_something_happens_has_the_usage_of_each_broker() -> None:
    _, cycles = hot_left_alone()
    assert len(cycles) > 1
    for cycle in cycles:
        assert set(cycle.usage_ratios) == set(HOT.brokers.ids)
        assert max(cycle.usage_ratios.values()) == pytest.approx(cycle.maximum_ratio)


def test_of_many_brokers_those_that_are_busiest_in_any_cycle_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foresight, "BROKERS_SEEN", 1)
    _, cycles = hot_left_alone()
    assert {tuple(cycle.usage_ratios) for cycle in cycles} == {(HOT.brokers.ids[0],)}


def test_the_cycles_begin_with_the_snapshot_and_have_every_unload() -> None:
    own, cycles = hot_left_alone()
    assert cycles[0].cycle == 0
    assert cycles[0].maximum_ratio == pytest.approx(0.92)
    assert sum(cycle.unloads for cycle in cycles) == own.unloads


def splitting_plan(state: ClusterState, moves: tuple[Move, ...] = (), *, unload_children: bool = False) -> Plan:
    """Moves, then a split of the first bundle in two."""
    cut = Split(0, "specified_positions_divide", (0x20000000,), "too hot", near_tie=False)
    settings = resolve_settings("4.0.8", what_if=EVERY_LOAD_COUNTS)
    return plan_of(state, settings, moves, (cut,), shedder=OWN.shedder, unload_children=unload_children)


def test_what_becomes_of_the_children_of_a_planned_split() -> None:
    """With --unload-children the plan moves bundles that the snapshot doesn't have yet."""
    state = busy()
    plan = splitting_plan(state, unload_children=True)
    carried_out = planned(state, plan)
    assert [carried_out.division.state.bundle_name(row) for row in carried_out.moves] == [
        "t/hot/0x00000000_0x20000000",
        "t/hot/0x20000000_0x40000000",
    ]
    found = after_plan(situation(state), plan)
    assert found is not None
    assert (found.plan_bundles, found.moved_again) == (2, 0)
    assert found.first_usage_maximum_ratio < 0.8


def test_a_bundle_that_moves_before_it_is_split_takes_its_children_along() -> None:
    state = busy()
    plan = splitting_plan(state, (Move(0, 0, 1, "because", near_tie=False),))
    assert planned(state, plan).moves == {0: 1, 1: 1}


def test_where_a_bundle_goes_that_pulsar_places_is_not_known() -> None:
    state = busy()
    plan = plan_of(state, resolve_settings("4.0.8"), (Move(0, 0, NO_ROW, "because", near_tie=False),))
    assert planned(state, plan).moves == {}
