"""The children of a split go where the placement strategy puts them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings, resolve_settings
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.strategy.decision import Split
from pulsar_advisor.planning.proposals.limits import Limits
from pulsar_advisor.planning.proposals.proposal import Move
from states import WHOLE, BrokerRow, BundleRow, cluster_state
from unit.planning.made_plans import NO_LIMITS, plan_of
from unit.splitting.busy_cluster import COOL, HOT, busy, split

PLACEMENT = "LeastLongTermMessageRate"
SETTINGS = resolve_settings("4.0.8")


def planned(
    state: ClusterState,
    splits: tuple[Split, ...],
    moves: tuple[Move, ...] = (),
    settings: ResolvedSettings = SETTINGS,
    limits: Limits = NO_LIMITS,
) -> Plan:
    return plan_of(state, settings, moves, splits, limits=limits, unload_children=True)


def test_children_are_unloaded_after_their_split_to_where_the_strategy_puts_them() -> None:
    state = busy()
    cut, *unloads = planned(state, (split(0x20000000),)).steps
    assert [(step.action, step.bundle, step.destination) for step in unloads] == [
        ("unload", child, COOL) for child in cut.children
    ]
    for step in unloads:
        assert step.after == (cut.id,)
        assert (step.executable, step.source, step.expect.owner) == (True, HOT, HOT)
        assert step.expect.boundaries == ("0x00000000", "0x20000000", "0x40000000", "0xffffffff")
    topics = [step.expect.topics for step in unloads]
    assert sum(topics) == int((state.topics.bundle == 0).sum())
    rates = [step.expect.msg_rate_per_s for step in unloads]
    assert rates == pytest.approx([1800.0 * number / sum(topics) for number in topics])


def test_the_prediction_moves_the_load_of_the_childrens_topics() -> None:
    plan = planned(busy(), (split(0x20000000),))
    moved = sum(step.expect.msg_rate_per_s or 0.0 for step in plan.steps if step.action == "unload")
    before, after = plan.predicted.before.brokers, plan.predicted.after.brokers
    assert after[COOL].msg_rate_per_s == pytest.approx((before[COOL].msg_rate_per_s or 0.0) + moved)
    assert (after[HOT].usage_ratio or 1.0) < 0.2 < (before[HOT].usage_ratio or 0.0)
    assert (after[HOT].bundles, after[COOL].bundles) == (1, 2)


def test_a_child_counts_where_the_one_before_it_goes() -> None:
    state = cluster_state(
        [BrokerRow(HOT, cpu=(80.0, 100.0), traffic=(900.0,) * 4), BrokerRow(COOL), BrokerRow("c:8080")],
        [
            BundleRow("t/n", WHOLE, HOT, (900.0,) * 4, topics=40),
            BundleRow("t/other", WHOLE, "c:8080", (20.0,) * 4, topics=2),
        ],
        topics=[f"persistent://t/n/{number}" for number in range(40)],
    )
    unloads = [step for step in planned(state, (split(0x7FFFFFFF),)).steps if step.action == "unload"]
    assert [step.destination for step in unloads] == [COOL, "c:8080"]


@pytest.mark.parametrize(("excluded", "placer"), [(False, PLACEMENT), (True, "RoundRobinBrokerSelector")])
def test_the_reason_of_a_child_names_what_places_its_namespace(excluded: bool, placer: str) -> None:
    state = busy()
    what_if = {"loadBalancerSheddingExcludedNamespaces": ",".join(state.namespaces.names)} if excluded else {}
    plan = planned(state, (split(0x20000000),), settings=resolve_settings("4.2.4", what_if=what_if))
    assert {step.reason.split()[0] for step in plan.steps if step.action == "unload"} == {placer}


def test_without_the_wish_a_split_leaves_its_children_where_they_are() -> None:
    assert [step.action for step in plan_of(busy(), SETTINGS, splits=(split(0x20000000),)).steps] == ["split"]


def test_under_the_simple_manager_no_child_is_unloaded() -> None:
    assert [step.action for step in planned(busy("simple"), (split(0x20000000),)).steps] == ["split"]


def test_every_limit_holds_for_children_too_and_says_what_it_leaves_out() -> None:
    cut, first, _ = planned(busy(), (split(0x20000000),)).steps
    for name, limit in (("max_unloads", 1), ("max_per_source", 1), ("max_topics", first.expect.topics)):
        plan = planned(busy(), (split(0x20000000),), limits=Limits(**{name: limit}))  # type: ignore[arg-type]
        assert plan.steps == (cut, first)
        option = f"--{name.replace('_', '-')} {limit}"
        assert plan.decision.caveats == (f"The limits leave out 1 of ThresholdShedder's 2 unloads: 1 by {option}.",)


@pytest.mark.parametrize("lacking", ["available", "complete"])
def test_a_child_that_may_only_stay_where_it_is_has_no_step(lacking: str) -> None:
    state = busy()
    of_others = {lacking: np.array([True, False])}
    alone = replace(state, brokers=replace(state.brokers, **of_others))  # type: ignore[arg-type]
    assert [step.action for step in planned(alone, (split(0x20000000),)).steps] == ["split"]


def test_the_children_of_a_bundle_that_the_plan_has_moved_stay_there() -> None:
    move = Move(0, 0, 1, "because", near_tie=False)
    assert [step.action for step in planned(busy(), (split(0x20000000),), (move,)).steps] == ["unload", "split"]


def test_a_split_that_will_not_be_sent_has_no_children_to_unload() -> None:
    state = busy()
    unfit = replace(state, bundles=replace(state.bundles, usable=np.zeros(2, dtype=np.bool_)))
    assert [step.executable for step in planned(unfit, (split(0x20000000),)).steps] == [False]
