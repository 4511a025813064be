"""The certificate holds: however topics are distributed, some broker is as busy as the hottest topic makes it."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.load.base_load import BaseLoad, base_load
from pulsar_advisor.planning.usage.hot_topics import HotTopic, hot_topics
from pulsar_advisor.shedding.minimal_move_shedder import TARGET_OF_MEAN
from states import WHOLE, BrokerRow, BundleRow, cluster_state
from unit.planning.kinds.clusters import SETTINGS
from unit.properties import examples

RATE = 10.0


def serving(*shares: list[int]) -> ClusterState:
    """Brokers with topics of these sizes, in percent of a broker; every topic has a namespace and a bundle."""
    rows, bundles, topics, sizes = [], [], [], []
    for number, own in enumerate(shares):
        total = sum(own)
        rows.append(BrokerRow(f"b{number}:8080", cpu=(total, 100.0), traffic=(total * RATE,) * 4))
        for place, size in enumerate(own):
            namespace = f"t/n{number}-{place}"
            bundles.append(BundleRow(namespace, WHOLE, f"b{number}:8080", (size * RATE,) * 4, topics=1))
            topics.append(f"persistent://{namespace}/x")
            sizes.append(size)
    state = cluster_state(rows, bundles, topics=topics)
    by_name = dict(zip(topics, sizes, strict=True))
    traffic = np.array([[by_name[str(name)] * RATE] * 4 for name in state.topics.names]).reshape(-1, 4)
    return replace(state, topics=replace(state.topics, traffic=traffic))


def found(state: ClusterState, stays: float = 0.0) -> tuple[HotTopic, ...]:
    """Those of brokers with this base load, in percent of a core."""
    base = np.full(len(state.brokers), stays)
    return hot_topics(state, SETTINGS.values, BaseLoad(base, base, base, ("default",) * len(base)))


def test_a_topic_above_the_fair_share_is_named_with_the_partitions_that_help() -> None:
    [hot] = found(serving([60, 5], [10], [15]))
    assert (hot.topic, hot.topics_of_bundle, hot.partitions) == ("persistent://t/n0-0/x", 1, 2)
    assert (hot.alone_ratio, hot.fair_ratio) == (pytest.approx(0.6), pytest.approx(0.33))
    assert "no unload and no split gets the busiest broker below that; as a new topic of 2 partitions" in hot.sentence
    assert "holds no other loaded topic" in hot.sentence


def test_no_number_of_partitions_helps_where_what_stays_is_above_the_fair_share() -> None:
    """The fair share is 33 %; beside 32 % that stay, a part may take one of the 30.5 % that go with the topic."""
    hottest = found(serving([60, 5], [10], [15]), stays=33.1)[0]
    assert hottest.partitions is None
    assert "no number of partitions is enough" in hottest.sentence
    assert found(serving([60, 5], [10], [15]), stays=32.0)[0].partitions == 31


def test_a_topic_that_is_mostly_read_says_so() -> None:
    state = serving([70, 10], [10], [10])
    hottest = int(state.topics.traffic[:, 0].argmax())
    assert "is read" not in found(state)[0].sentence
    state.topics.traffic[hottest, :2] = (13.0, 1387.0)
    assert "/x (99% of it is read: by many subscriptions, or from a backlog that will end) alone" in (
        found(state)[0].sentence
    )


def test_the_fair_share_is_of_all_cores() -> None:
    state = serving([90], [30])
    state.brokers.limit[1, 0] = 150.0
    [hot] = found(state)
    assert (hot.alone_ratio, hot.fair_ratio) == (pytest.approx(0.6), pytest.approx(1.1 * 120 / 250))


@pytest.mark.parametrize("impossible", [1e300, np.inf, np.nan, -1e300])
def test_a_topic_whose_figures_no_machine_can_have_is_not_called_hot(impossible: float) -> None:
    state = serving([10] * 6, [10])
    state.topics.traffic[0] = impossible
    assert found(state) == ()


def test_a_load_of_many_small_topics_can_be_balanced() -> None:
    assert found(serving([10] * 6, [10])) == ()


def test_what_holds_only_if_cpu_follows_messages_says_so() -> None:
    state = serving([60, 5], [10], [15])
    [certain] = found(state)
    assert certain.sentence.startswith("persistent://t/n0-0/x alone takes")
    [hot] = hot_topics(state, SETTINGS.values, base_load(state))
    assert hot.sentence.startswith("If CPU follows messages, persistent://t/n0-0/x alone takes")


def test_without_the_load_of_topics_nothing_is_claimed() -> None:
    state = serving([60], [10])
    assert found(replace(state, missing={"topic_traffic": "no broker was asked"})) == ()


@given(st.lists(st.lists(st.integers(1, 30), max_size=3), min_size=1, max_size=3))
@examples(60)
def test_no_distribution_gets_below_the_hottest_topic(shares: list[list[int]]) -> None:
    sizes = [size for own in shares for size in own]
    mean = sum(sizes) / len(shares)
    best = (
        min(
            max(
                sum(size for size, to in zip(sizes, chosen, strict=True) if to == broker)
                for broker in range(len(shares))
            )
            for chosen in itertools.product(range(len(shares)), repeat=min(len(sizes), 6))
            if len(chosen) == len(sizes)
        )
        if len(sizes) <= 6
        else None
    )
    hot = found(serving(*shares))
    assert {round(100 * one.alone_ratio) for one in hot} == {
        size for size in sizes if size > TARGET_OF_MEAN * mean + 1e-6
    }
    if hot and best is not None:
        assert best >= 100 * hot[0].alone_ratio - 1e-4
    for one in hot:
        assert one.partitions is not None
        assert one.alone_ratio / one.partitions <= one.fair_ratio + 1e-6
        assert one.alone_ratio / (one.partitions - 1) > one.fair_ratio - 1e-6
