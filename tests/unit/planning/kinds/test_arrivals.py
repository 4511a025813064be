"""Whether clients use a bundle with topics that its owner doesn't report is known once it had it for a minute."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.planning.kinds.arrivals import may_have_arrived
from pulsar_advisor.planning.kinds.goal_outcome import goal_outcome
from unit.planning.kinds.clusters import cluster, planned

IDLE = "t/a-0"
TOPIC = f"persistent://{IDLE}/topic"


@pytest.fixture
def state() -> ClusterState:
    """One bundle with a topic that isn't loaded, and one of another broker that has no topic at all."""
    return cluster({"a": [0], "b": [0]}, idle=[IDLE, "t/b-0"], topics=[TOPIC])


def earlier(state: ClusterState, seconds: float, **bundles: object) -> ClusterState:
    return replace(
        state,
        captured_at_ms=state.captured_at_ms - round(seconds * 1000),
        bundles=replace(state.bundles, **bundles),  # type: ignore[arg-type]
    )


def test_a_bundle_with_topics_of_which_none_is_reported_may_have_just_come(state: ClusterState) -> None:
    assert may_have_arrived(state, ()).tolist() == [True, False]
    assert may_have_arrived(cluster({"a": [0], "b": [0]}, topics=[TOPIC]), ()).tolist() == [False, False]


def test_where_topics_are_not_listed_it_may_have_some(state: ClusterState) -> None:
    unlisted = replace(state, unlisted_namespaces=frozenset({"t/b-0"}))
    assert may_have_arrived(unlisted, ()).tolist() == [True, True]


def test_what_its_owner_had_a_minute_ago_is_idle(state: ClusterState) -> None:
    assert may_have_arrived(state, [earlier(state, 80)]).tolist() == [False, False]
    assert may_have_arrived(state, [earlier(state, 60)]).tolist() == [True, False]
    other_owner = np.array([1, 0], dtype=np.int32)
    assert may_have_arrived(state, [earlier(state, 80, owner=other_owner)]).tolist() == [True, False]
    used = np.array([1, 0])
    assert may_have_arrived(state, [earlier(state, 80, topics=used)]).tolist() == [True, False]


def test_a_broker_that_seems_idle_is_not_drained_before_that_is_known(state: ClusterState) -> None:
    plan = planned(state, Goal("drain", ("a",)), follows_messages=False)
    assert goal_outcome(plan) == "missed"
    assert plan.decision.caveats[0].startswith(f"Whether clients use {IDLE}/0x00000000_0xffffffff isn't known")
    idle = planned(cluster({"a": [0], "b": [0]}, idle=[IDLE]), Goal("drain", ("a",)), follows_messages=False)
    assert goal_outcome(idle) == "reached"


def test_with_moves_the_goal_is_that_of_the_moves_and_apply_looks_after_them() -> None:
    state = cluster({"a": [0, 10], "b": [0]}, idle=[IDLE], topics=[TOPIC])
    plan = planned(state, Goal("drain", ("a",)), follows_messages=False)
    assert goal_outcome(plan) in ("reached", "perhaps")
    assert plan.decision.figures["may_have_arrived"] == 1
