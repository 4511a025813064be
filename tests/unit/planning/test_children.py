"""The children of a split have the topics that hash into them, and go where the placement strategy puts them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.bundle_range import contains, topic_hash
from pulsar_advisor.model.cluster_state import ClusterState
from pulsar_advisor.model.decision import Split
from pulsar_advisor.model.plan import Plan, PlanInputs
from pulsar_advisor.model.settings import resolve_settings
from pulsar_advisor.planning.build_plan import build_plan
from pulsar_advisor.planning.children import after_split
from pulsar_advisor.planning.limits import Limits
from pulsar_advisor.planning.proposal import Move, Proposal
from pulsar_advisor.planning.request import Request
from states import BrokerRow, BundleRow, cluster_state

NAMES = tuple(f"persistent://t/hot/topic-{number}" for number in range(40))
PLACEMENT = "LeastLongTermMessageRate"
HOT, COOL = "a:8080", "b:8080"


def busy(load_manager: str = "modular", names: tuple[str, ...] = NAMES) -> ClusterState:
    """Two brokers; the hot one owns the first quarter of a namespace, whose topics have 10 msg/s in and out each."""
    state = cluster_state(
        [
            BrokerRow(HOT, cpu=(80.0, 100.0), traffic=(1000.0, 1000.0, 0.0, 0.0), topics=40),
            BrokerRow(COOL, cpu=(10.0, 100.0), traffic=(10.0, 10.0, 0.0, 0.0), topics=1),
        ],
        [
            BundleRow("t/hot", "0x00000000_0x40000000", HOT, (900.0, 900.0, 0.0, 0.0), topics=10),
            BundleRow("t/hot", "0x40000000_0xffffffff", HOT, (100.0, 100.0, 0.0, 0.0), topics=30),
        ],
        topics=names,
        load_manager=load_manager,  # type: ignore[arg-type]
    )
    traffic = np.tile([10.0, 10.0, 0.0, 0.0], (len(names), 1))
    return replace(state, topics=replace(state.topics, traffic=traffic))


def split(*boundaries: int, bundle: int = 0) -> Split:
    return Split(bundle, "range_equally_divide", boundaries, "too hot", near_tie=False)


@given(st.lists(st.integers(1, 0x3FFFFFFF), min_size=1, max_size=4, unique=True))
def test_each_topic_is_in_the_child_that_its_hash_falls_into(boundaries: list[int]) -> None:
    before = busy()
    state = after_split(before, split(*sorted(boundaries)))
    bundles, topics = state.bundles, state.topics
    assert len(bundles) == len(before.bundles) + len(boundaries)
    for row, name in enumerate(topics.names):
        bundle = int(topics.bundle[row])
        assert contains(int(bundles.lower[bundle]), int(bundles.upper[bundle]), topic_hash(str(name)))
    children = slice(0, len(boundaries) + 1)
    inside = topics.bundle < len(boundaries) + 1
    assert bundles.traffic[children].sum() == pytest.approx(before.bundles.traffic[0].sum())
    assert (
        bundles.topics[children].tolist() == np.bincount(topics.bundle[inside], minlength=len(boundaries) + 1).tolist()
    )
    assert state.bundle_name(len(boundaries) + 1) == before.bundle_name(1)


def plan_of(state: ClusterState, splits: tuple[Split, ...], moves: tuple[Move, ...] = (), **request: object) -> Plan:
    return build_plan(
        state,
        resolve_settings("4.0.8"),
        Proposal("ThresholdShedder", PLACEMENT, moves, splits, (), 1, None),
        Request(**{"unload_children": True, **request}),  # type: ignore[arg-type]
        PlanInputs(manifest_sha256="0" * 64, validation_sha256="1" * 64),
        frozenset(),
    )


def test_children_are_unloaded_after_their_split_to_where_the_strategy_puts_them() -> None:
    state = busy()
    cut, *unloads = plan_of(state, (split(0x20000000),)).steps
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


@pytest.mark.parametrize(
    ("loaded", "names", "shares"),
    [(True, NAMES, "names"), (False, NAMES, "names"), (False, (), "width")],
    ids=["no topic reports traffic", "no topic is loaded", "no topic is known"],
)
def test_figures_that_no_topic_accounts_for_are_divided_too(loaded: bool, names: tuple[str, ...], shares: str) -> None:
    state = busy(names=names)
    topics = replace(state.topics, traffic=np.zeros((len(names), 4)), loaded=np.full(len(names), loaded))
    halves = after_split(replace(state, topics=topics), split(0x10000000)).bundles
    position = state.topics.hash[state.topics.hash < 0x40000000]
    share = (position < 0x10000000).mean() if shares == "names" else 0.25
    assert halves.traffic[0, 0] == pytest.approx(900.0 * share)
    assert halves.traffic[:2, 0].sum() == pytest.approx(900.0)


def test_the_prediction_moves_the_load_of_the_childrens_topics() -> None:
    plan = plan_of(busy(), (split(0x20000000),))
    moved = sum(step.expect.msg_rate_per_s or 0.0 for step in plan.steps if step.action == "unload")
    before, after = plan.predicted.before.brokers, plan.predicted.after.brokers
    assert after[COOL].msg_rate_per_s == pytest.approx((before[COOL].msg_rate_per_s or 0.0) + moved)
    assert (after[HOT].usage_ratio or 1.0) < 0.2 < (before[HOT].usage_ratio or 0.0)
    assert (after[HOT].bundles, after[COOL].bundles) == (1, 2)


def test_without_the_wish_a_split_leaves_its_children_where_they_are() -> None:
    assert [step.action for step in plan_of(busy(), (split(0x20000000),), unload_children=False).steps] == ["split"]


def test_under_the_simple_manager_no_child_is_unloaded() -> None:
    assert [step.action for step in plan_of(busy("simple"), (split(0x20000000),)).steps] == ["split"]


def test_children_count_as_unloads() -> None:
    steps = plan_of(busy(), (split(0x20000000),), limits=Limits(max_unloads=1)).steps
    assert [step.action for step in steps] == ["split", "unload"]


def test_a_child_that_may_only_stay_where_it_is_has_no_step() -> None:
    state = busy()
    alone = replace(state, brokers=replace(state.brokers, available=np.array([True, False])))
    assert [step.action for step in plan_of(alone, (split(0x20000000),)).steps] == ["split"]


def test_the_children_of_a_bundle_that_the_plan_has_moved_stay_there() -> None:
    move = Move(0, 0, 1, "because", near_tie=False)
    assert [step.action for step in plan_of(busy(), (split(0x20000000),), (move,)).steps] == ["unload", "split"]


def test_a_split_that_will_not_be_sent_has_no_children_to_unload() -> None:
    state = busy()
    unfit = replace(state, bundles=replace(state.bundles, usable=np.zeros(2, dtype=np.bool_)))
    assert [step.executable for step in plan_of(unfit, (split(0x20000000),)).steps] == [False]
