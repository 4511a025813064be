"""Advice about scalable topics: wait for their controllers where they act, name the command where they don't."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.planning.usage.scalable_topics import awaited_split, cure, not_simulated
from states import BrokerRow, BundleRow, cluster_state

SETTINGS = resolve_settings("5.0.1").values
SEGMENT, VIEWS = "segment://t/n/clicks/0000-ffff-3", "persistent://t/n/views-partition-1"
WHOLE = "t/n/0x00000000_0xffffffff"
OF_A_PARTITION = "with 3 times as many partitions, each would be within it, but consider its keys first"


def sharing(clicks: float, views: float, segment: str = SEGMENT, partition: str = VIEWS) -> ClusterState:
    """One bundle with a segment and a partition of these rates, in messages/s in."""
    state = cluster_state(
        [BrokerRow("a:8080")], [BundleRow("t/n", "0x00000000_0xffffffff", "a:8080")], topics=[segment, partition]
    )
    rates = {segment: clicks, partition: views}
    traffic = np.array([[rates[str(name)], 0.0, rates[str(name)], 0.0] for name in state.topics.names])
    return replace(state, topics=replace(state.topics, traffic=traffic))


def row(state: ClusterState, topic: str) -> int:
    return state.topics.names.tolist().index(topic)


def test_a_bundle_waits_for_the_controller_of_the_topic_that_makes_it_hot() -> None:
    assert (awaited_split(sharing(30_000.0, 10_000.0), SETTINGS, 0) or "").startswith(
        "75% of its load is from topic://t/n/clicks, whose controller is about to split it by itself"
    )


def test_a_bundle_that_other_topics_make_hot_does_not_wait() -> None:
    assert awaited_split(sharing(30_000.0, 30_000.0), SETTINGS, 0) is None


def test_a_bundle_does_not_wait_for_a_controller_that_does_nothing() -> None:
    assert awaited_split(sharing(9_000.0, 100.0), SETTINGS, 0) is None
    off = resolve_settings("5.0.1", what_if={"scalableTopicAutoScaleEnabled": "false"}).values
    assert awaited_split(sharing(30_000.0, 100.0), off, 0) is None


def test_a_segment_below_the_limits_is_cured_by_a_command_to_review() -> None:
    state = sharing(9_000.0, 100.0)
    said = cure(state, SETTINGS, row(state, SEGMENT), 2)
    assert said.startswith("in 2 segments, each part would be within it")
    assert "`pulsar-admin scalable-topics split-segment t/n/clicks --segment-id 3`" in said


@pytest.mark.parametrize("topic", ["segment://t/n/x$(reboot)/0000-ffff-3", "persistent://t/n/x$(reboot)"])
def test_a_command_runs_nothing_that_a_tenant_put_into_a_topics_name(topic: str) -> None:
    domain = topic.partition(":")[0]
    state = sharing(9_000.0, 9_000.0, **{"segment" if domain == "segment" else "partition": topic})
    assert " 't/n/x$(reboot)'" in cure(state, SETTINGS, row(state, topic), 2)


def test_a_segment_above_the_limits_is_left_to_its_controller() -> None:
    state = sharing(30_000.0, 100.0)
    said = cure(state, SETTINGS, row(state, SEGMENT), 2)
    assert said.startswith("the controller of topic://t/n/clicks is about to split it by itself")


def test_a_segment_of_one_key_hash_is_not_left_to_a_controller_that_cannot_split_it() -> None:
    state = sharing(30_000.0, 100.0, segment=(only := "segment://t/n/clicks/00ff-00ff-3"))
    assert awaited_split(state, SETTINGS, 0) is None
    assert cure(state, SETTINGS, row(state, only), 2) == (
        "all its keys have the same hash, so it can't be split: spread its load over more keys"
    )


def test_a_sealed_segment_needs_no_cure() -> None:
    state = sharing(30_000.0, 100.0)
    sealed = replace(state.topics.segments, is_active=np.array([False]))
    state = replace(state, topics=replace(state.topics, segments=sealed))
    assert "nothing is written to it any more" in cure(state, SETTINGS, row(state, SEGMENT), 2)


def test_an_ordinary_topic_may_be_made_scalable_from_release_5_on() -> None:
    state = sharing(100.0, 9_000.0)
    said = cure(state, SETTINGS, row(state, VIEWS), 3)
    assert said.startswith(f"{OF_A_PARTITION}; if all its clients are of Pulsar 5, ")
    assert "`pulsar-admin scalable-topics migrate t/n/views`" in said
    assert "can't be undone" in said
    before = cure(state, resolve_settings("4.2.4").values, row(state, VIEWS), 3)
    assert before == OF_A_PARTITION


def test_a_topic_without_partitions_has_to_be_made_anew() -> None:
    state = sharing(100.0, 9_000.0, partition="persistent://t/n/views")
    assert cure(state, resolve_settings("4.2.4").values, row(state, "persistent://t/n/views"), 3) == (
        "as a new topic of 3 partitions, each would be within it, but this one can't be given any"
    )


def test_simulations_say_that_controllers_are_left_out_and_where_that_matters() -> None:
    assert not_simulated(sharing(30_000.0, 10_000.0), SETTINGS) == (
        "The cluster has 1 scalable topic with 75% of all messages. Their controllers, which split and merge segments "
        f"and so move load between bundles, are not simulated; now due to be split: 1 segment in {WHOLE}."
    )


def test_a_cluster_without_scalable_topics_has_nothing_to_leave_out() -> None:
    state = cluster_state([BrokerRow("a:8080")], [BundleRow("t/n", "0x00000000_0xffffffff", "a:8080")], topics=[VIEWS])
    assert not_simulated(state, SETTINGS) is None
