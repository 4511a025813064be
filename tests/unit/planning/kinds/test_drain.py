"""drain: every bundle leaves, to a broker that is allowed and has room, or the plan says why not and what helps."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance import codes
from pulsar_advisor.model.cluster.cluster_state import CPU, RESOURCES, IsolationPolicy
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.plans.goal import Goal
from unit.planning.kinds.clusters import SETTINGS, cluster, executable, host, moved, planned, proposed
from unit.properties import examples

DRAIN_A = Goal("drain", ("a",))


def test_every_bundle_leaves_to_the_broker_that_is_used_least_with_it() -> None:
    plan = planned(cluster({"a": [20, 10, 5], "b": [30], "c": [10]}), DRAIN_A)
    assert moved(plan) == {"t/a-0": "c", "t/a-1": "b", "t/a-2": "c"}
    assert plan.title == "drain a:8080"
    assert plan.goal == Goal("drain", ("a:8080",), None, 0.85)
    assert plan.predicted.after.brokers["a:8080"].bundles == 0
    assert plan.decision.would_pulsar_act == "Pulsar itself would not act: none of its strategies has this goal"


def test_consecutive_steps_go_to_different_brokers() -> None:
    plan = planned(cluster({"a": [4, 4, 4, 4], "b": [10], "c": [40]}), DRAIN_A)
    assert [host(step.destination) for step in plan.steps] == ["b", "b", "b", "b"]
    plan = planned(cluster({"a": [4, 4, 4, 4], "b": [10], "c": [11]}), DRAIN_A)
    assert [host(step.destination) for step in plan.steps] == ["b", "c", "b", "c"]


def test_what_finds_no_room_says_by_how_much_and_what_would_help() -> None:
    plan = planned(cluster({"a": [20, 20], "b": [60], "c": [75]}), DRAIN_A)
    assert moved(plan) == {"t/a-0": "b"}
    [stuck] = [step for step in plan.steps if not step.executable]
    assert "might reach 95.0%" in (stuck.not_executable_because or "")
    caveat, _ = plan.decision.caveats
    assert caveat.startswith("There is no room for 1 of 2 bundles under a ceiling of 85%: up to 20% of a broker")
    # A ceiling of 95%, above the overload threshold, would be refused.
    assert caveat.endswith("a broker like theirs is missing; 1 more broker like theirs would take them.")
    plan = planned(cluster({"a": [20, 20], "b": [60], "c": [60]}), Goal("drain", ("a",), ceiling_ratio=0.7))
    assert "is missing; all would fit with a ceiling of 80%; " in plan.decision.caveats[0]


def test_as_many_brokers_would_take_what_stays_as_may_have_its_topics() -> None:
    state = cluster({"a": [20, 20], "b": [80]})
    state.bundles.topics[:2] = 30_000  # of at most 50,000 on a broker
    caveat, _ = planned(state, DRAIN_A).decision.caveats
    assert caveat.endswith("2 more brokers like theirs would take them.")


def test_one_more_broker_takes_a_bundle_under_a_policy_only_if_that_names_it() -> None:
    policy = IsolationPolicy("p", ("t/a-0",), ("a", "b"), (), 1, 100)
    caveat, _ = planned(cluster({"a": [20], "b": [80]}, policies=[policy]), DRAIN_A).decision.caveats
    assert caveat.endswith("1 more broker like theirs would take them, if their isolation policies name it.")


def test_of_a_broker_without_a_cpu_limit_no_number_of_brokers_is_promised() -> None:
    caveat, _ = planned(cluster({"a": [20, 20], "b": [80]}, limits={"a": 0.0}), DRAIN_A).decision.caveats
    assert caveat.endswith("85%: how much is missing isn't known, as their broker reports no CPU limit.")


def test_what_pulsar_itself_will_place_is_said_where_a_broker_will_feel_it() -> None:
    def caveats(namespace: str, size: float) -> tuple[str, ...]:
        names = {"a": [namespace, "t/n"], "b": ["t/n"], "c": ["t/n"]}
        return planned(cluster({"a": [size, 5], "b": [1], "c": [1]}, namespaces=names), DRAIN_A).decision.caveats

    assert caveats("pulsar/system", 40) == (
        "No step moves pulsar/system/0x00000000_0x10000000: Pulsar itself places that load when its broker stops, up "
        "to 40% of a broker like it.",
    )
    assert caveats("pulsar/system", 2) == ()
    assert caveats("pulsar/a:8080", 40) == (), "heartbeats stop with their broker"


def test_what_pulsar_itself_will_place_is_that_of_one_broker_after_the_other() -> None:
    state = cluster(
        {"a": [20], "b": [20], "c": [1]}, namespaces={"a": ["pulsar/system"], "b": ["pulsar/system"], "c": ["t/n"]}
    )
    caveat = planned(state, Goal("drain", ("a", "b"))).decision.caveats[0]
    assert caveat.endswith("when its broker stops, up to 20% of a broker like it.")


def test_the_fullest_brokers_first_where_the_least_used_ones_would_not_do() -> None:
    # Least used first would put 30 on b and 25 on c, and leave no room for 45.
    state = cluster({"a": [45, 30, 25], "b": [40], "c": [30]})
    plan = planned(state, DRAIN_A)
    assert len(executable(plan)) == 3
    assert plan.decision.caveats[0].startswith("There is no headroom")


def test_a_bundle_that_no_broker_of_that_size_could_take_has_to_be_split() -> None:
    state = cluster({"a": [88, 12], "b": [76]}, limits={"a": 100.0, "b": 100.0})
    assert "alone needs up to 88% of a broker: split it" in planned(state, DRAIN_A).decision.caveats[0]


def test_neither_a_split_nor_a_broker_helps_under_a_ceiling_below_what_brokers_use_without_bundles() -> None:
    state = cluster({"a": [0.1], "b": [1], "c": [5], "d": [10]})
    state.brokers.usage[1:, CPU] += 50.0
    plan = planned(state, Goal("drain", ("a",), ceiling_ratio=0.03), follows_messages=False)
    assert plan.decision.caveats[0] == (
        "There is no room for 1 of 1 bundle under a ceiling of 3%: less than 1% of a broker like theirs is missing; "
        "all would fit with a ceiling of 52%; a broker without bundles would probably be above it, too."
    )


def test_what_is_missing_is_the_most_that_a_bundle_may_need() -> None:
    # The line through the brokers has a base of 50, but for all they show the CPU of each may follow its messages.
    state = cluster({"a": [20], "b": [1], "c": [5], "d": [10]})
    usage = state.brokers.usage + 50.0 * (np.arange(len(RESOURCES)) == CPU)
    state = replace(state, brokers=replace(state.brokers, usage=usage))
    caveat = planned(state, DRAIN_A, follows_messages=False).decision.caveats[0]
    assert "up to 70% of a broker like theirs is missing; t/a-0/0x00000000_0xffffffff alone needs up to 70%" in caveat


def test_what_the_moves_of_its_group_would_leave_nowhere_goes_first() -> None:
    """The larger one may go to `a`, where its namespace is already, or to `c`; the other one only to `c`."""
    state = cluster(
        {"a": [21], "b": [11], "c": [], "d": [17]},
        namespaces={"a": ["t/x"], "b": ["t/y"], "c": [], "d": ["t/x"]},
        groups={"t/x": "g", "t/y": "g"},
    )
    plan = planned(state, Goal("drain", ("b", "d")))
    assert moved(plan) == {"t/y": "c", "t/x": "a"}
    assert plan.decision.caveats == ()


def test_no_ceiling_makes_room_for_what_is_forbidden_everywhere() -> None:
    policy = IsolationPolicy("p", ("t/a-1",), ("a",), (), 1, 100)
    state = cluster({"a": [19, 40], "b": [25]}, policies=[policy])
    caveat = planned(state, Goal("drain", ("a",), ceiling_ratio=0.4)).decision.caveats[0]
    assert caveat.endswith("is missing; 1 more broker like theirs would take them.")


def test_every_brokers_own_limit_counts() -> None:
    plan = planned(cluster({"a": [40], "b": [0], "c": [50]}, limits={"b": 45.0, "c": 400.0}), DRAIN_A)
    assert moved(plan) == {"t/a-0": "c"}
    assert plan.predicted.after.brokers["c:8080"].usage_ratio == pytest.approx(90 / 400, abs=1e-6)


def test_idle_bundles_and_pulsars_own_stay() -> None:
    state = cluster(
        {"a": [10, 5, 5], "b": [1]},
        namespaces={"a": ["t/used", "t/idle", "pulsar/system"], "b": ["t/other"]},
        idle=["t/idle"],
    )
    proposal = proposed(state, DRAIN_A)
    answered = {state.namespace_of(row): code for row, code in codes(proposal.answers[1].outcomes).items()}
    assert answered == {
        "t/used": "moves",
        "t/idle": "no_topics",
        "pulsar/system": "pulsars_own",
    }
    assert len(planned(state, DRAIN_A).steps) == 1


def test_isolation_policies_are_kept_and_a_broker_that_only_one_bundle_may_have_is_named() -> None:
    policy = IsolationPolicy("payments", ("t/a-0",), ("a", "c"), (), 1, 100)
    state = cluster({"a": [10, 10], "b": [1], "c": [40]}, policies=[policy])
    # t/a-1 has no policy, and both primaries of the other one are reserved for it.
    assert moved(planned(state, DRAIN_A)) == {"t/a-0": "c", "t/a-1": "b"}
    alone = IsolationPolicy("payments", ("t/a-0",), ("a",), (), 1, 100)
    plan = planned(cluster({"a": [10], "b": [1]}, policies=[alone]), DRAIN_A)
    assert not executable(plan)
    assert "neither primary nor secondary" in (plan.steps[0].not_executable_because or "")
    assert "may go to no other broker" in plan.decision.caveats[0]


def test_secondaries_are_for_too_few_primaries_only() -> None:
    policy = IsolationPolicy("payments", ("t/a-0",), ("a",), ("b",), 1, 100)
    assert not executable(planned(cluster({"a": [10], "b": [1]}, policies=[policy]), DRAIN_A))
    needs_two = IsolationPolicy("payments", ("t/a-0",), ("a",), ("b",), 2, 100)
    assert moved(planned(cluster({"a": [10], "b": [1]}, policies=[needs_two]), DRAIN_A)) == {"t/a-0": "b"}


def test_a_group_is_not_brought_together() -> None:
    groups = {"t/a-0": "g", "t/b-0": "g"}
    assert moved(planned(cluster({"a": [10], "b": [1], "c": [50]}, groups=groups), DRAIN_A)) == {"t/a-0": "c"}
    together = planned(cluster({"a": [10], "b": [1]}, groups=groups), DRAIN_A)
    assert not executable(together)
    assert "more of the anti-affinity group than here" in (together.steps[0].not_executable_because or "")


def test_bundles_of_a_group_leave_in_the_order_in_which_each_is_allowed() -> None:
    names = {"a": ["t/m", "t/q", "t/o"], "b": ["t/q"], "c": []}
    groups = dict.fromkeys(("t/m", "t/o", "t/q"), "g")
    plan = planned(cluster({"a": [5, 5, 10], "b": [20], "c": []}, namespaces=names, groups=groups), DRAIN_A)
    # Without t/q, a would have less of the group than c then has: `apply` would refuse t/m.
    assert [step.namespace for step in plan.steps] == ["t/o", "t/m", "t/q"]


def test_several_brokers_at_once_and_none_of_them_receives() -> None:
    plan = planned(cluster({"a": [10], "b": [10], "c": [30]}), Goal("drain", ("a", "b")))
    assert moved(plan) == {"t/a-0": "c", "t/b-0": "c"}
    assert "fewer than two brokers remain" in plan.decision.caveats[0]


def test_only_the_brokers_that_are_named_take_bundles() -> None:
    state = cluster({"a": [20], "b": [1], "c": [60], "d": [80]})
    assert moved(planned(state, Goal("drain", ("a",), onto=("c", "d")))) == {"t/a-0": "c"}
    plan = planned(state, Goal("drain", ("a",), onto=("d",)))
    assert not executable(plan)
    assert "b:8080: takes nothing" not in plan.decision.caveats[0]


def test_why_no_other_broker_is_allowed_is_said_of_each() -> None:
    state = cluster({"a": [20], "b": [1], "c": [1], "d": [1]})
    state.brokers.limit[1, CPU] = 0.0
    state.brokers.doubtful[2] = True
    [step] = planned(state, Goal("drain", ("a",), onto=("c",))).steps
    assert step.not_executable_because == (
        "no other broker is allowed: b:8080: takes nothing: it reports no CPU limit; c:8080: takes nothing: validation "
        "doubts what is known of it; d:8080: takes nothing: the request names other destinations"
    )


def test_a_broker_that_has_filled_up_with_topics_is_not_said_to_have_too_many_of_a_group() -> None:
    state = cluster({"a": [20, 10], "b": [1]})
    state.bundles.topics[:2] = 30_000
    caveat = planned(state, DRAIN_A).decision.caveats[0]
    assert caveat == (
        "t/a-1/0x00000000_0xffffffff may go to no other broker (b:8080: would have 60,000 topics, and may have 50,000 "
        "(loadBalancerBrokerMaxTopics)): start a broker that may take it, or lift what forbids the others."
    )


def test_without_headroom_the_approver_is_warned() -> None:
    assert (
        "the others could be at 90% on average"
        in planned(cluster({"a": [30], "b": [30], "c": [30]}), DRAIN_A).decision.caveats[0]
    )
    assert not planned(cluster({"a": [20], "b": [20], "c": [20]}), DRAIN_A).decision.caveats


def test_a_limit_leaves_some_out_and_says_so() -> None:
    plan = planned(cluster({"a": [4, 3, 2], "b": [10], "c": [11]}), DRAIN_A, max_unloads=2)
    assert plan.decision.caveats == ("The limits leave out 1 of 3 unloads: 1 by --max-unloads 2.",)


def test_limits_that_leave_out_all_that_could_be_moved_are_the_reason() -> None:
    state = cluster({"a": [10, 5], "b": [10]})
    state.bundles.usable[1] = False
    plan = planned(state, DRAIN_A, max_unloads=0)
    assert [step.executable for step in plan.steps] == [False]
    assert plan.decision.why_nothing == "the limits leave out 1 of 2 unloads: 1 by --max-unloads 0"


def test_a_broker_whose_bundles_may_not_move_is_not_called_idle() -> None:
    state = cluster({"a": [10], "b": [10]})
    for goal in (DRAIN_A, Goal("roll", ("a", "b"))):
        plan = planned(state, goal, exclude_namespaces=("t/a-0",))
        assert (plan.decision.why_nothing or "").endswith("can move")


def test_an_empty_broker_needs_no_plan() -> None:
    assert planned(cluster({"a": [], "b": [10]}), DRAIN_A).decision.why_nothing == "no bundle has a loaded topic"


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        (Goal("drain", ("z",)), "there is no broker 'z'"),
        (Goal("drain", ("broker",)), "2 brokers are named 'broker'"),
        (Goal("drain", ("b",), None, 0.9), "above the overload threshold of 85%"),
    ],
)
def test_what_the_cluster_does_not_have_is_refused(goal: Goal, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        planned(cluster({"b": [1], "broker.a": [1], "broker.b": [1]}), goal)


sizes = st.lists(st.integers(1, 40), max_size=4)


@given(a=sizes, b=sizes, c=sizes, d=sizes, ceiling=st.sampled_from([0.5, 0.7, 0.85]))
@examples(60)
def test_it_fits_if_and_only_if_it_can(a: list[int], b: list[int], c: list[int], d: list[int], ceiling: float) -> None:
    """Against every distribution of at most four bundles over three brokers, but for what packing greedily misses."""
    state = cluster({"a": a, "b": b, "c": c, "d": d})
    plan = planned(state, Goal("drain", ("a",), None, ceiling))
    assert len(plan.steps) == len(a)
    for broker, forecast in plan.predicted.after.brokers.items():
        received = any(step.destination == broker for step in executable(plan))
        assert not received or (forecast.usage_ratio or 0.0) <= ceiling + 1e-6
    left = [step for step in plan.steps if not step.executable]
    assert bool(left) == any("There is no room for" in caveat for caveat in plan.decision.caveats)
    room = [round(ceiling * 100) - sum(own) for own in (b, c, d)]
    possible = any(
        all(
            sum(size for size, to in zip(a, chosen, strict=True) if to == broker) <= room[broker]
            for broker in set(chosen)
        )
        for chosen in itertools.product(range(3), repeat=len(a))
    )
    if not possible:
        assert left
    if len(a) <= 2:  # so few are packed without a miss
        assert bool(left) == (not possible)


def test_settings_of_the_test_are_pulsars() -> None:
    assert SETTINGS.values.load_balancer_broker_overloaded_threshold_percentage == 85
