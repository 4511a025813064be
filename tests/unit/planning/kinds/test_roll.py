"""roll: the first broker of the order is drained, the turns after it are foretold, and bundles move least often."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.cluster.cluster_state import IsolationPolicy
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.plans.goal import ROLL, Goal
from pulsar_advisor.planning.kinds.goal_outcome import foretold_outcome, goal_outcome
from pulsar_advisor.planning.plans.consent import needed_consents
from unit.planning.kinds.clusters import cluster, executable, host, moved, planned
from unit.properties import examples

THREE = {"a": [10] * 4, "b": [20] * 2, "c": [10] * 3}


def roll(*brokers: str) -> Goal:
    return Goal(ROLL, brokers)


def test_only_the_first_brokers_bundles_are_steps_and_the_other_turns_are_sentences() -> None:
    plan = planned(cluster(THREE), roll("b", "a", "c"))
    assert plan.goal is not None
    assert plan.goal.brokers == ("b:8080", "a:8080", "c:8080")
    assert plan.title == "roll 3 brokers, b:8080 first"
    assert {host(step.source) for step in plan.steps} == {"b"}
    assert goal_outcome(plan) == "reached"
    figures = plan.decision.figures
    assert (figures["restarts"], figures["moves"], figures["moves_in_all"], figures["moves_of_a_bundle"]) == (
        3,
        2,
        11,
        2,
    )
    second, third = plan.decision.caveats[-2:]
    assert second.startswith("Turn 2, a:8080: 5 bundles of")
    assert " to b:8080 (5); the busiest other broker is then at" in second
    assert third.startswith("Turn 3, c:8080: ")


def test_a_spare_broker_takes_the_first_ones_bundles_and_no_bundle_moves_twice() -> None:
    plan = planned(cluster({**THREE, "spare": []}), roll("a", "b", "c"))
    assert set(moved(plan).values()) == {"spare"}
    assert plan.decision.figures["moves_of_a_bundle"] == 1
    assert plan.decision.figures["moves_in_all"] == 9


def test_brokers_that_were_restarted_take_bundles_before_those_that_were_not() -> None:
    """The plan of the second turn: b is back, and empty."""
    plan = planned(cluster({"a": [10] * 4, "b": [], "c": [1]}), roll("a", "c"))
    assert set(moved(plan).values()) == {"b"}
    full = planned(cluster({"a": [40, 40], "b": [], "c": [1]}), roll("a", "c"))
    assert sorted(moved(full).values()) == ["b", "b"]
    tight = planned(cluster({"a": [44, 44], "b": [], "c": [1]}), roll("a", "c"))
    assert sorted(moved(tight).values()) == ["b", "c"]
    assert tight.decision.figures["moves_of_a_bundle"] == 2


def test_what_finds_no_room_is_a_roll_that_is_reached_only_in_part() -> None:
    plan = planned(cluster({"a": [70, 1], "b": [70]}), roll("a", "b"))
    assert goal_outcome(plan) == "in part"
    assert plan.decision.caveats[0].startswith("There is no room for 1 of 2 bundles")


def test_the_ceiling_that_would_do_is_the_one_for_the_first_brokers_bundles() -> None:
    plan = planned(cluster({"a": [40, 40], "b": [45], "c": [45]}), Goal(ROLL, ("a", "b"), ceiling_ratio=0.6))
    assert "; all would fit with a ceiling of 85%; " in plan.decision.caveats[0]


def test_a_later_turn_that_leaves_bundles_behind_makes_the_roll_one_in_part_but_not_its_first_turn() -> None:
    policy = IsolationPolicy("vip", ("t/b-0",), ("b",), (), 1, 100)
    plan = planned(cluster({"a": [10], "b": [10], "c": [10]}, policies=[policy]), roll("a", "b", "c"))
    assert foretold_outcome(plan) == "in part"
    assert goal_outcome(plan) == "reached"


def test_a_roll_whose_every_turn_empties_its_broker_is_reached() -> None:
    assert foretold_outcome(planned(cluster(THREE), roll("b", "a", "c"))) == "reached"


def test_the_highest_usage_of_any_turn_is_what_needs_consent() -> None:
    """The first turn lowers the highest usage; what a later one is expected to reach counts too."""
    plan = planned(cluster({"a": [30, 30], "b": [20], "c": [10]}), roll("a", "b", "c"))
    assert needed_consents(plan) == ()
    later = {**plan.decision.figures, "highest_usage_ratio": 0.7}
    worse = plan.model_copy(update={"decision": plan.decision.model_copy(update={"figures": later})})
    assert [needed.consent.name for needed in needed_consents(worse)] == ["worse"]
    assert "rises from 60.0% to 70.0%" in needed_consents(worse)[0].sentence


@given(
    sizes=st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=4), min_size=2, max_size=4),
    spare=st.booleans(),
)
@examples(40)
def test_made_anew_before_each_turn_a_roll_moves_no_bundle_more_often_than_it_foretold(
    sizes: list[list[int]], spare: bool
) -> None:
    """All of the load is at most 80 %: any broker could take it."""
    now = {
        f"b{number}": {f"t/{number}-{place}": size for place, size in enumerate(own)}
        for number, own in enumerate(sizes)
    }
    if spare:
        now["spare"] = {}
    left = sorted(name for name in now if name != "spare")
    times, foretold = Counter[str](), None
    while left:
        state = cluster(
            {broker: list(own.values()) for broker, own in now.items()},
            namespaces={broker: list(own) for broker, own in now.items()},
        )
        plan = planned(state, roll(*left))
        foretold = foretold or plan.decision.figures
        for namespace, to in moved(plan).items():
            times[namespace] += 1
            now[to][namespace] = now[left[0]].pop(namespace)
        assert not now[left[0]], "the broker is empty when it stops"
        del left[0]
    assert foretold is not None
    assert max(times.values()) == foretold["moves_of_a_bundle"] <= (1 if spare else 2)
    assert times.total() == foretold["moves_in_all"]


def test_nothing_to_move_is_a_plan_without_steps() -> None:
    plan = planned(cluster({"a": [], "b": [10]}), roll("a", "b"))
    assert executable(plan) == []
    assert plan.decision.why_nothing == "a:8080 has no bundle with a loaded topic: restart it, and roll the others"
    assert plan.decision.figures["moves_in_all"] == 1


@pytest.mark.parametrize("brokers", [(), ("x",)])
def test_a_roll_names_brokers_that_there_are(brokers: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match=r"at least one broker|there is no broker 'x'"):
        planned(cluster(THREE), roll(*brokers))
