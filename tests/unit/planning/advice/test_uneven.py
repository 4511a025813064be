"""What can be done about a broker that is too busy, where no strategy acts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pulsar_advisor.model.cluster.cluster_state import CPU, DIRECT_MEMORY, ClusterState, IsolationPolicy
from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings, resolve_settings
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.planning.advice.uneven import uneven
from pulsar_advisor.planning.advice.verbs import PlanFor, Verbs
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.planning.usage.hot_topics import HotTopic
from pulsar_advisor.planning.usage.noise import NoiseFloor
from states import WHOLE
from unit.planning.kinds.clusters import cluster, planned

SETTINGS = resolve_settings("4.0.8")
NOISE = 0.03
OVERLOADED = "a:8080 is at 90.0% (CPU), above the overload threshold of 85%"
NOTHING = (
    f"{OVERLOADED}, and `relieve a:8080`, `balance` and `split`, also with `--to 85%`, find nothing that lowers it by "
    "more than noise"
)


def uneven_sentence(
    state: ClusterState,
    settings: ResolvedSettings,
    plan_for: PlanFor,
    excluded: Collection[str] = (),
    *,
    floor_ratio: float = 0.0,
    hot: Sequence[HotTopic] = (),
    same_options: bool = False,
) -> str | None:
    situation = Situation.of(state, settings)
    vars(situation).update(noise=NoiseFloor(floor_ratio, "default"), hot=tuple(hot))
    found = uneven(situation, Verbs(plan_for, same_options=same_options), excluded)
    return None if found is None else found.sentence


def verbs(state: ClusterState, **limits: Any) -> Callable[[Goal], Plan]:
    """What the verbs of goals answer about a cluster."""
    return lambda goal: planned(state, goal, **limits)


def no_verb(goal: Goal) -> Plan:
    pytest.fail(f"{goal.title} was asked")


def said(state: ClusterState, **limits: Any) -> str | None:
    return uneven_sentence(state, SETTINGS, verbs(state, **limits), floor_ratio=NOISE)


def test_of_an_overloaded_broker_it_is_said_what_relieve_finds(state: ClusterState) -> None:
    assert said(state) == f"{OVERLOADED}: `relieve a:8080` finds 2 unloads: a:8080 falls to 50.0%."


def test_a_fall_that_only_one_end_of_the_model_shows_may_be() -> None:
    state = cluster({"a": [50, 40], "b": [10]})
    plan_for = verbs(state, follows_messages=False)
    found = str(uneven_sentence(state, SETTINGS, plan_for, floor_ratio=NOISE, same_options=True))
    assert found == (
        f"{OVERLOADED}: `relieve a:8080` with the same options finds 1 unload: a:8080 may fall to 52.2% (49.2% to "
        "90.0%)."
    )


def test_beside_a_broker_that_no_move_lowers_that_one_is_named() -> None:
    found = said(cluster({"a": [50, 40], "b": [89], "c": [5], "d": [5]}))
    assert found == (
        f"{OVERLOADED}: `relieve a:8080` finds 1 unload: a:8080 falls to 50.0%, and b:8080 is the busiest, at 89.0%."
    )


def test_far_above_the_mean_it_is_said_what_balance_finds(state: ClusterState) -> None:
    state.brokers.usage[:, CPU] = [240.0, 120.0, 60.0]
    assert said(state) == (
        "a:8080 is at 60.0% (CPU), 25.0 points above the mean: `balance` finds 2 unloads: a:8080 falls to 33.3%."
    )


def test_where_no_move_helps_it_is_said_what_split_finds() -> None:
    topics = [f"persistent://t/a-0/{number}" for number in range(8)]
    state = cluster({"a": [90], "b": [5], "c": [5]}, topics=topics)
    state.topics.traffic[:] = state.bundles.traffic[0] / len(topics)
    state.topics.loaded[:], state.bundles.topics[0] = True, len(topics)
    assert said(state) == f"{OVERLOADED}: `split` finds 1 split and 2 unloads: a:8080 falls to 45.0%."


def test_a_target_at_which_the_load_counts_as_even_is_tried_too() -> None:
    state = cluster({"a": [50, 40], "b": [30], "c": [30]})
    assert said(state) == f"{OVERLOADED}: `relieve a:8080 --to 85%` finds 1 unload: a:8080 falls to 50.0%."


def test_where_no_verb_finds_anything_it_is_said_why_and_why_the_bundle_stays_whole() -> None:
    named = ["persistent://t/a-0/0"]
    reason = (
        f"{NOTHING}. `relieve a:8080`: no other broker has room for a bundle. `split`: t/a-0/{WHOLE} can't be split: "
    )
    state = cluster({"a": [90], "b": [10], "c": [5]}, topics=named)
    state.topics.traffic[:] = state.bundles.traffic[0]
    assert said(state) == (f"{reason}it has 1 topic with load, and each part needs one.")


def test_of_several_bundles_that_stay_whole_one_of_the_broker_asked_about_is_named() -> None:
    state = cluster({"a": [88], "b": [90], "c": [60]}, topics=["persistent://t/a-0/0", "persistent://t/b-0/0"])
    found = str(said(state))
    assert found.startswith("b:8080 is at 90.0%")
    assert f"`split`: t/b-0/{WHOLE} can't be split: " in found and "t/a-0" not in found


def test_where_no_bundle_may_move_the_verb_about_that_broker_gives_the_reason(state: ClusterState) -> None:
    state.brokers.usage[:, CPU] = [240.0, 120.0, 60.0]
    state.bundles.topics[:] = 0
    found = str(said(state))
    assert "above the mean, and `balance`, `relieve a:8080` and `split`, also" in found
    assert found.endswith(" by more than noise. `relieve a:8080`: no bundle may be moved.")


def test_a_fall_within_noise_is_nothing(state: ClusterState, settings: ResolvedSettings) -> None:
    found = uneven_sentence(state, settings, verbs(state), floor_ratio=0.6)
    assert found == (
        f"{NOTHING}. a:8080 only falls to 50.0%, not to 44.0%: no other broker surely has room for more within 44.0%. "
        "`split`: t/hot/0x00000000_0x40000000 can't be split: the load of 1 topic in it isn't known."
    )


def test_limits_that_leave_no_step_are_the_reason(state: ClusterState) -> None:
    assert (
        said(state, max_unloads=0)
        == f"{NOTHING}. `relieve a:8080`: the limits leave out 2 of 3 unloads: 2 by --max-unloads 0."
    )


def test_where_limits_leave_too_little_only_what_they_leave_out_is_said() -> None:
    state = cluster({"a": [2] * 45, "b": [10], "c": [10]})
    found = str(said(state, max_unloads=1))
    assert found == f"{NOTHING}. The limits leave out 24 of 25 unloads: 24 by --max-unloads 1."


def test_no_split_is_looked_for_where_a_plan_without_one_has_hundreds_of_steps(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    long = planned(state, Goal("balance"))
    long = long.model_copy(update={"steps": long.steps * 300})
    kinds = []

    def plan_for(goal: Goal) -> Plan:
        kinds.append(goal.kind)
        return long

    found = str(uneven_sentence(state, settings, plan_for, floor_ratio=0.9))
    assert "split" not in kinds
    assert "split" not in found


def test_nothing_is_advised_about_an_excluded_broker(state: ClusterState, settings: ResolvedSettings) -> None:
    found = uneven_sentence(state, settings, no_verb, ("a:8080",))
    assert found == f"{OVERLOADED}, and is excluded by --exclude-broker."


def test_no_verb_is_asked_about_what_no_move_lowers(state: ClusterState) -> None:
    state.brokers.usage[0, DIRECT_MEMORY] = 0.95 * state.brokers.limit[0, DIRECT_MEMORY]
    weighted = resolve_settings("4.0.8", what_if={"loadBalancerDirectMemoryResourceWeight": "1"})
    assert uneven_sentence(state, weighted, no_verb) == (
        "a:8080 is at 95.0% (direct memory), above the overload threshold of 85%: no bundle takes direct memory along, "
        "so no move lowers it."
    )


def test_a_broker_may_have_no_bundle_to_move(state: ClusterState) -> None:
    state.bundles.topics[:] = 0
    assert said(state) == f"{NOTHING}. `relieve a:8080`: no bundle may be moved."


def test_isolation_policies_that_leave_no_broker_with_room_are_the_reason(state: ClusterState) -> None:
    no_room = f"{NOTHING}: isolation policies leave its bundles no other broker with room."
    alone, two = (
        replace(state, isolation_policies=(IsolationPolicy("vip", ("t/hot",), brokers, (), 1, 80),))
        for brokers in (("a",), ("a", "b"))
    )
    assert said(alone) == no_room
    assert " finds 1 unload: " in str(said(two))
    two.brokers.usage[1, CPU] = 320.0
    assert said(two) == no_room
    two.bundles.topics[:] = 0
    assert said(two) == f"{NOTHING}. `relieve a:8080`: no bundle may be moved."


def test_where_no_goal_can_be_planned_for_no_verb_is_named(state: ClusterState, settings: ResolvedSettings) -> None:
    assert uneven_sentence(state, settings, lambda _: None) == f"{OVERLOADED}."


def test_where_every_broker_is_overloaded_only_more_brokers_help(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    state.brokers.usage[:, CPU] = 380.0
    found = uneven_sentence(state, settings, no_verb)
    assert found == "Only more brokers help: all 3 brokers are above 85%, the least busy at 95.0%."


HOT = f"{OVERLOADED}, and no unload and no split divides persistent://t/hot/topic-1, which alone makes 86.0%."


def test_of_a_topic_that_no_split_divides_no_verb_is_asked(state: ClusterState, settings: ResolvedSettings) -> None:
    hot = HotTopic("persistent://t/hot/topic-1", "t/hot/0x00000000_0x40000000", 3, 0.86, 0.5, True, 2, "")
    assert uneven_sentence(state, settings, no_verb, hot=[hot]) == HOT
    smaller, elsewhere = replace(hot, alone_ratio=0.6), replace(hot, bundle="t/idle/0x00000000_0xffffffff")
    for harmless in (smaller, elsewhere):
        assert "relieve" in str(uneven_sentence(state, settings, verbs(state), hot=[harmless]))
    state.brokers.usage[0, CPU] = 250.0  # nearly all of it is the topic's
    found = uneven_sentence(state, settings, no_verb, floor_ratio=NOISE, hot=[smaller])
    assert str(found).endswith("above the mean, and no unload and no split divides " + smaller.in_words + ".")


def test_a_topic_that_makes_most_of_the_broker_is_named_where_no_verb_lowers_it(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    state.brokers.usage[:, CPU] = [240.0, 120.0, 60.0]
    state.bundles.topics[:] = 0
    hot = HotTopic("persistent://t/hot/topic-1", "t/hot/0x00000000_0x40000000", 3, 0.5, 0.4, True, 2, "")
    found = str(uneven_sentence(state, settings, verbs(state), floor_ratio=NOISE, hot=[hot]))
    assert found.endswith(f" no bundle may be moved. No unload and no split divides {hot.in_words}.")


def test_hot_topics_of_other_brokers_are_named_beside_that_of_the_busiest(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    here = HotTopic("persistent://t/hot/topic-1", "t/hot/0x00000000_0x40000000", 3, 0.86, 0.5, True, 2, "")
    there = replace(here, topic="persistent://t/idle/topic-2", bundle="t/idle/0x00000000_0xffffffff", alone_ratio=0.88)

    def found(*hot: HotTopic) -> str | None:
        return uneven_sentence(state, settings, no_verb, hot=hot)

    assert found(there, here) == (f"{HOT.removesuffix('.')}, nor persistent://t/idle/topic-2, which alone makes 88.0%.")
    assert str(found(there, here, there)).endswith("makes 86.0%, nor 2 other topics above the threshold.")
    assert found(here, replace(there, alone_ratio=0.7)) == HOT


def test_of_a_broker_near_the_mean_there_is_nothing_to_say(state: ClusterState, settings: ResolvedSettings) -> None:
    state.brokers.usage[:, CPU] = [240.0, 220.0, 200.0]
    assert uneven_sentence(state, settings, no_verb) is None
