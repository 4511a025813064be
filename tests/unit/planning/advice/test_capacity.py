"""What can be done about a broker that is too busy, where no strategy acts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import CPU, DIRECT_MEMORY, ClusterState, IsolationPolicy
from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings, resolve_settings
from pulsar_advisor.planning.advice.capacity import uneven_sentence as sentence_about
from pulsar_advisor.planning.advice.situation import Situation
from pulsar_advisor.planning.usage.hot_topics import HotTopic
from pulsar_advisor.planning.usage.lower_bound import LowestUsage
from pulsar_advisor.planning.usage.noise import NoiseFloor


def uneven_sentence(
    state: ClusterState,
    settings: ResolvedSettings,
    excluded: Collection[str] = (),
    *,
    only_splits: bool = False,
    lowest: LowestUsage | None = None,
    floor_ratio: float = 0.0,
    hot: Sequence[HotTopic] = (),
) -> str | None:
    situation = replace(
        Situation.of(state, settings), lowest=lowest, noise=NoiseFloor(floor_ratio, "default"), hot=tuple(hot)
    )
    return sentence_about(situation, excluded, only_splits=only_splits)


def at(state: ClusterState, by_bundles: float, by_parts: float = 0.0) -> LowestUsage:
    """Bounds of a cluster whose brokers keep nothing if their bundles leave."""
    return LowestUsage(by_bundles, by_parts, np.zeros(len(state.brokers)))


def test_of_an_overloaded_broker_the_goal_that_may_help_is_named(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    assert uneven_sentence(state, settings) == (
        "a:8080 is at 90.0% (CPU), above the overload threshold of 85%: `relieve a:8080` looks for moves that no "
        "strategy makes."
    )


def test_where_only_splits_are_advised_the_goal_that_moves_their_parts_is_named(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    found = uneven_sentence(state, settings, only_splits=True)
    assert str(found).endswith("threshold of 85%: `split` looks for cuts whose parts move.")


def test_nothing_is_advised_about_an_excluded_broker(state: ClusterState, settings: ResolvedSettings) -> None:
    assert uneven_sentence(state, settings, excluded=("a:8080",)) == (
        "a:8080 is at 90.0% (CPU), above the overload threshold of 85%, and is excluded by --exclude-broker."
    )


def test_no_goal_is_named_for_what_no_move_lowers(state: ClusterState) -> None:
    state.brokers.usage[0, DIRECT_MEMORY] = 0.95 * state.brokers.limit[0, DIRECT_MEMORY]
    weighted = resolve_settings("4.0.8", what_if={"loadBalancerDirectMemoryResourceWeight": "1"})
    assert uneven_sentence(state, weighted) == (
        "a:8080 is at 95.0% (direct memory), above the overload threshold of 85%: no bundle takes direct memory along, "
        "so no move lowers it."
    )


def test_no_goal_is_named_for_a_broker_that_has_no_bundle_to_move(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    state.bundles.topics[:] = 0
    assert uneven_sentence(state, settings) == (
        "a:8080 is at 90.0% (CPU), above the overload threshold of 85%: none of its bundles can be moved."
    )


def test_where_isolation_policies_leave_no_broker_with_room_no_goal_is_named(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    no_room = (
        "a:8080 is at 90.0% (CPU), above the overload threshold of 85%: isolation policies leave its bundles no other "
        "broker with room. Relieve one that they allow, or allow another."
    )
    alone, two = (
        replace(state, isolation_policies=(IsolationPolicy("vip", ("t/hot",), brokers, (), 1, 80),))
        for brokers in (("a",), ("a", "b"))
    )
    assert uneven_sentence(alone, settings) == no_room
    assert str(uneven_sentence(two, settings)).endswith("looks for moves that no strategy makes.")
    two.brokers.usage[1, CPU] = 350.0
    assert uneven_sentence(two, settings) == no_room


def test_a_simple_cluster_has_no_goals(state: ClusterState, settings: ResolvedSettings) -> None:
    found = uneven_sentence(replace(state, load_manager="simple"), settings)
    assert found == "a:8080 is at 90.0% (CPU), above the overload threshold of 85%."


def test_a_release_that_keeps_no_destination_has_no_goals(state: ClusterState) -> None:
    found = uneven_sentence(replace(state, pulsar_version="2.11.0"), resolve_settings("2.11.0"))
    assert found == "a:8080 is at 90.0% (CPU), above the overload threshold of 85%."


def test_where_every_broker_is_overloaded_only_more_brokers_help(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    state.brokers.usage[:, CPU] = 380.0
    found = uneven_sentence(state, settings)
    assert found == "Only more brokers help: all 3 brokers are above 85%, the least busy at 95.0%."


def test_far_above_the_mean_the_goal_that_may_help_is_named(state: ClusterState, settings: ResolvedSettings) -> None:
    state.brokers.usage[:, CPU] = [240.0, 120.0, 60.0]
    assert uneven_sentence(state, settings) == (
        "a:8080 is at 60.0% (CPU), 25.0 points above the mean: `balance` looks for moves that no strategy makes."
    )


def test_where_no_moves_of_whole_bundles_lower_it_no_moves_are_looked_for(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    found = uneven_sentence(state, settings, lowest=at(state, 0.9))
    assert str(found).endswith(
        ": no moves of whole bundles lower it by more than noise; `split` looks for cuts whose parts move."
    )
    assert "relieve" in str(uneven_sentence(state, settings, lowest=at(state, 0.88)))
    assert "`split`" in str(uneven_sentence(state, settings, lowest=at(state, 0.88), floor_ratio=0.03))
    found = uneven_sentence(state, settings, lowest=at(state, 0.88, by_parts=0.88), floor_ratio=0.03)
    assert str(found).endswith("threshold of 85%: no moves and no splits lower it by more than noise.")


def test_beside_a_broker_that_nothing_lowers_the_busiest_may_be_relieved(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    for stuck, said in (((0.2, 0.89), "`relieve a:8080`"), ((0.89, 0.2), "no moves and no splits lower it")):
        of_each = np.array([*stuck, *[0.2] * (len(state.brokers) - 2)])
        lowest = LowestUsage(0.89, 0.89, of_each)
        assert said in str(uneven_sentence(state, settings, lowest=lowest, floor_ratio=0.03))


HOT = (
    "a:8080 is at 90.0% (CPU), above the overload threshold of 85%, and no unload and no split divides "
    "persistent://t/hot/topic-1, which alone makes 86.0%."
)


def test_of_a_topic_that_no_split_divides_no_split_is_looked_for(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    hot = HotTopic("persistent://t/hot/topic-1", "t/hot/0x00000000_0x40000000", 3, 0.86, 0.5, True, 2, "")
    assert uneven_sentence(state, settings, lowest=at(state, 0.9), hot=[hot]) == HOT
    smaller, elsewhere = replace(hot, alone_ratio=0.6), replace(hot, bundle="t/idle/0x00000000_0xffffffff")
    assert "relieve" in str(uneven_sentence(state, settings, hot=[smaller]))
    assert "relieve" in str(uneven_sentence(state, settings, hot=[elsewhere]))
    assert "`split`" in str(uneven_sentence(state, settings, lowest=at(state, 0.9), hot=[smaller]))
    alone = replace(smaller, topics_of_bundle=1)
    assert "divides" in str(uneven_sentence(state, settings, lowest=at(state, 0.9), hot=[alone]))


def test_hot_topics_of_other_brokers_are_named_beside_that_of_the_busiest(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    here = HotTopic("persistent://t/hot/topic-1", "t/hot/0x00000000_0x40000000", 3, 0.86, 0.5, True, 2, "")
    there = replace(here, topic="persistent://t/idle/topic-2", bundle="t/idle/0x00000000_0xffffffff", alone_ratio=0.88)
    assert uneven_sentence(state, settings, hot=[there, here]) == (
        f"{HOT.removesuffix('.')}, nor persistent://t/idle/topic-2, which alone makes 88.0%."
    )
    found = str(uneven_sentence(state, settings, hot=[there, here, there]))
    assert found.endswith("makes 86.0%, nor 2 other topics above the threshold.")
    assert uneven_sentence(state, settings, hot=[here, replace(there, alone_ratio=0.7)]) == HOT


def test_of_a_broker_near_the_mean_there_is_nothing_to_say(state: ClusterState, settings: ResolvedSettings) -> None:
    state.brokers.usage[:, CPU] = [240.0, 220.0, 200.0]
    assert uneven_sentence(state, settings) is None
