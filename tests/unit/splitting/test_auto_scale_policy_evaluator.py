"""What a controller splits by itself: Pulsar's inequality, at its boundary, and what keeps it from it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.splitting.auto_scale_policy_evaluator import splits_by_itself
from states import WHOLE, BrokerRow, BundleRow, cluster_state

LOWER, UPPER = "segment://t/n/clicks/0000-7fff-1", "segment://t/n/clicks/8000-ffff-2"
LIMITS = (10_000.0, 50_000.0, 50e6, 250e6)


def clicks(*traffic: tuple[float, ...], names: tuple[str, str] = (LOWER, UPPER)) -> ClusterState:
    """A topic of two active segments, the lower one with the first traffic."""
    state = cluster_state([BrokerRow("a:8080")], [BundleRow("t/n", WHOLE, "a:8080")], topics=list(names))
    return replace(state, topics=replace(state.topics, traffic=np.array([*traffic, (0.0,) * 4][:2])))


def due(state: ClusterState, **what_if: str) -> list[bool]:
    return splits_by_itself(state, resolve_settings("5.0.1", what_if=what_if).values).tolist()


@pytest.mark.parametrize("figure", range(4))
def test_a_segment_above_any_of_the_four_limits_is_split(figure: int) -> None:
    at_limit = tuple(limit if one == figure else 0.0 for one, limit in enumerate(LIMITS))
    above = tuple(np.nextafter(limit, np.inf) if limit else 0.0 for limit in at_limit)
    assert due(clicks(at_limit)) == [False, False]
    assert due(clicks(above)) == [True, False]


def test_no_segment_is_split_where_that_is_switched_off_or_the_topic_has_its_most() -> None:
    hot = clicks((20_000.0, 0.0, 0.0, 0.0))
    assert due(hot, scalableTopicAutoScaleEnabled="false") == [False, False]
    assert due(hot, scalableTopicSplitBytesRateOutThreshold="0") == [False, False]
    assert due(hot, scalableTopicMaxSegments="2") == [False, False]
    assert due(hot, scalableTopicMaxSegments="3") == [True, False]


def test_no_segment_is_split_where_a_split_limit_is_not_above_the_limit_of_merges() -> None:
    hot = clicks((20_000.0, 0.0, 0.0, 0.0))
    assert due(hot, scalableTopicSplitMsgRateInThreshold="1000") == [False, False]
    assert due(hot, scalableTopicSplitMsgRateInThreshold="1001") == [True, False]


def test_the_hottest_segments_are_split_first_and_those_without_room_are_not() -> None:
    both = clicks((20_000.0, 0.0, 0.0, 0.0), (0.0, 0.0, 500e6, 0.0))
    assert due(both) == [True, True]
    assert due(both, scalableTopicMaxSegments="3") == [False, True]


def test_a_segment_of_one_key_hash_is_never_split_and_keeps_cooler_ones_of_its_topic_from_it() -> None:
    names = ("segment://t/n/clicks/0000-0000-1", "segment://t/n/clicks/0001-ffff-2")
    hot, hotter = (20_000.0, 0.0, 0.0, 0.0), (30_000.0, 0.0, 0.0, 0.0)
    assert due(clicks(hotter, hot, names=names)) == [False, False]
    assert due(clicks(hot, hotter, names=names)) == [False, True]


def test_a_sealed_segment_is_not_split_and_does_not_count() -> None:
    hot = clicks((20_000.0, 0.0, 0.0, 0.0))
    segments = hot.topics.segments
    sealed = replace(segments, is_active=np.array([False, True]))
    assert due(replace(hot, topics=replace(hot.topics, segments=sealed))) == [False, False]
    other = replace(segments, is_active=np.array([True, False]))
    assert due(replace(hot, topics=replace(hot.topics, segments=other)), scalableTopicMaxSegments="2") == [True, False]


def test_the_load_that_the_controller_knows_decides() -> None:
    state = clicks((20_000.0, 0.0, 0.0, 0.0))
    known = replace(state.topics.segments, controller_traffic=np.array([[0.0] * 4, [60_000.0] * 4]))
    assert due(replace(state, topics=replace(state.topics, segments=known))) == [False, True]
