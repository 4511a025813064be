"""What Pulsar would do and we would not: each obstacle to a step, in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, ClusterState
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.strategy.decision import Split
from pulsar_advisor.planning.proposals.executable import why_move_not, why_split_not
from pulsar_advisor.planning.proposals.proposal import Move
from states import HALVES, WHOLE, BrokerRow, BundleRow, cluster_state

SETTINGS = resolve_settings("5.0.1").values
TOPICS = tuple(f"persistent://t/n/topic-{number}" for number in range(8))


def cluster(namespace: str = "t/n", *, complete: bool = True, **row: Any) -> ClusterState:
    """Two brokers; the bundle in question is row 0, owned by `a`."""
    fields: dict[str, Any] = {"topics": 4, **row}
    return cluster_state(
        [BrokerRow("a:8080", complete=complete), BrokerRow("b:8080")],
        [BundleRow(namespace, HALVES[0], "a:8080", **fields), BundleRow(namespace, HALVES[1], "b:8080", topics=4)],
        topics=TOPICS if namespace == "t/n" else (),
    )


def move(destination: int = 1) -> Move:
    return Move(0, 0, destination, "because", near_tie=False)


def split(*boundaries: int, algorithm: str = "range_equally_divide") -> Split:
    return Split(0, algorithm, boundaries, "because", near_tie=False)


def test_an_ordinary_bundle_can_be_unloaded_and_split() -> None:
    assert why_move_not(cluster(), move()) is None
    assert why_move_not(cluster(), move(NO_ROW)) is None
    assert why_split_not(cluster(), SETTINGS, split(0x40000000)) is None


@pytest.mark.parametrize(
    ("topic", "enabled", "obstacle"),
    [
        ("persistent", "non_persistent_topics_enabled", "b:8080 doesn't serve its persistent topics"),
        ("non-persistent", "persistent_topics_enabled", "b:8080 doesn't serve its non-persistent topics"),
        ("persistent", "persistent_topics_enabled", None),
        ("non-persistent", "non_persistent_topics_enabled", None),
    ],
)
def test_no_bundle_goes_where_its_topics_would_not_be_served(topic: str, enabled: str, obstacle: str | None) -> None:
    state = cluster_state(
        [BrokerRow("a:8080"), BrokerRow("b:8080")],
        [BundleRow("t/n", WHOLE, "a:8080", topics=1)],
        topics=[f"{topic}://t/n/one"],
    )
    neither = {"persistent_topics_enabled": np.zeros(2, bool), "non_persistent_topics_enabled": np.zeros(2, bool)}
    brokers = replace(state.brokers, **{**neither, enabled: np.ones(2, bool)})
    state = replace(state, brokers=brokers, topics=replace(state.topics, loaded=np.array([True])))
    assert why_move_not(state, move()) == obstacle


@pytest.mark.parametrize(
    ("state", "obstacle"),
    [
        (cluster("pulsar/system"), "pulsar/system is one of Pulsar's own namespaces"),
        (cluster("pulsar/a:8080"), "pulsar/a:8080 is one of Pulsar's own namespaces"),
        (cluster("t/live/n"), "the name of t/live/n has three parts"),
        (cluster("t/live/n", in_boundaries=False), "the name of t/live/n has three parts"),
        (cluster(in_boundaries=False), "a split is in progress"),
        (cluster(usable=False), "validation found the figures of this bundle unfit"),
        (cluster(complete=False), "the figures of its owner a:8080 are incomplete or unfit"),
        (cluster(topics=0), "no topic of the bundle is loaded"),
    ],
)
def test_an_unload_that_can_not_be_carried_out_says_why(state: ClusterState, obstacle: str) -> None:
    assert obstacle in (why_move_not(state, move()) or "")


def test_a_bundle_of_segments_is_not_split_because_pulsar_counts_none_of_them() -> None:
    topics = [f"segment://t/n/clicks/0000-7fff-{number}" for number in range(8)]
    state = cluster()
    segments = cluster_state([BrokerRow("a:8080")], [BundleRow("t/n", HALVES[0], "a:8080")], topics=topics)
    here = int((segments.topics.bundle == 0).sum())
    why = why_split_not(replace(state, topics=segments.topics), SETTINGS, split(0x40000000)) or ""
    assert f"counts only 0 of the {here} here" in why


def test_no_bundle_is_split_at_positions_that_brokers_refuse() -> None:
    settings = resolve_settings("4.0.8", {"supportedNamespaceBundleSplitAlgorithms": "range_equally_divide"}).values
    assert "so brokers refuse positions" in (why_split_not(cluster(), settings, split(0x40000000)) or "")


def test_a_bundle_without_an_owner_is_not_unloaded() -> None:
    state = cluster()
    owner = np.full_like(state.bundles.owner, NO_ROW)
    assert why_move_not(replace(state, bundles=replace(state.bundles, owner=owner)), move()) is not None


def test_a_bundle_of_a_broker_that_left_is_not_unloaded() -> None:
    state = cluster()
    state.brokers.available[0] = False
    assert why_move_not(state, move()) == "its owner a:8080 is not an active broker"


def test_a_destination_with_unfit_figures_gets_no_bundle() -> None:
    state = cluster()
    state.brokers.complete[1] = False
    assert "the destination b:8080" in (why_move_not(state, move()) or "")
    assert why_move_not(state, move(NO_ROW)) is None


@pytest.mark.parametrize(
    ("state", "asked", "obstacle"),
    [
        (cluster(), split(), "range_equally_divide finds no boundary inside the bundle"),
        (replace(cluster(), load_manager="extensible"), split(0x20000000, 0x40000000), "gives 2 boundaries"),
        (cluster("pulsar/system"), split(0x40000000), "a bundle of 0 topics is never split"),
        (cluster(usable=False), split(0x40000000), "validation found the figures of this bundle unfit"),
    ],
)
def test_a_split_that_can_not_be_carried_out_says_why(state: ClusterState, asked: Split, obstacle: str) -> None:
    assert obstacle in (why_split_not(state, SETTINGS, asked) or "")
