"""conform: bundles leave brokers that their policies forbid, and nothing else moves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.cluster.cluster_state import IsolationPolicy
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.placement.filters import placement_facts, policy_candidates
from pulsar_advisor.planning.kinds.goal_outcome import goal_outcome
from unit.planning.kinds.clusters import SETTINGS, cluster, executable, moved, planned
from unit.properties import examples

CONFORM = Goal("conform")


def vip(primary: str, secondary: tuple[str, ...] = ()) -> IsolationPolicy:
    return IsolationPolicy("vip", ("t/a-0",), (primary,), secondary, 1, 100)


def test_a_bundle_outside_its_policy_and_one_on_a_reserved_broker_move() -> None:
    state = cluster({"a": [10, 10], "b": [20], "c": [5]}, policies=[vip("b")])
    # t/b-0 has no policy, and b is reserved now; t/a-1 may stay.
    assert moved(planned(state, CONFORM)) == {"t/a-0": "b", "t/b-0": "c"}


def test_a_secondary_that_is_not_needed_any_more_is_left() -> None:
    assert moved(planned(cluster({"a": [10], "b": []}, policies=[vip("b", ("a",))]), CONFORM)) == {"t/a-0": "b"}


def test_a_primary_with_unfit_figures_keeps_secondaries_out_as_it_does_in_pulsar() -> None:
    state = cluster({"a": [10], "b": [5], "c": []}, policies=[vip("b", ("c",))])
    state.brokers.complete[1] = False
    plan = planned(state, CONFORM)
    assert not executable(plan)
    assert "c:8080: secondary, and 1 primaries reach the policy's 1" in plan.decision.caveats[0]


def test_where_no_broker_is_allowed_the_plan_says_what_keeps_each_out() -> None:
    plan = planned(cluster({"a": [10], "b": [1]}, policies=[vip("gone")]), CONFORM)
    assert not executable(plan)
    [caveat] = plan.decision.caveats
    assert "t/a-0/0x00000000_0xffffffff may go to no other broker" in caveat
    assert "b:8080: neither primary nor secondary in the namespace's isolation policy" in caveat


def test_where_the_allowed_broker_is_full_the_plan_says_by_how_much() -> None:
    both = IsolationPolicy("vip", ("t/a-0", "t/b-0"), ("b",), (), 1, 100)
    plan = planned(cluster({"a": [30], "b": [70], "c": [1]}, policies=[both]), CONFORM)
    [stuck] = plan.steps
    assert "might reach 100.0%" in (stuck.not_executable_because or "")
    assert "There is no room for 1 of 1 bundle under a ceiling of 85%" in plan.decision.caveats[0]


@pytest.mark.parametrize("sizes", [{"a": [60], "b": [60]}, {"a": [60]}])
def test_a_forbidden_bundle_that_can_not_move_is_not_said_to_be_where_it_may(sizes: dict[str, list[float]]) -> None:
    plan = planned(cluster(sizes, policies=[vip("b")]), CONFORM)
    assert plan.decision.why_nothing == "no bundle on a broker that its policies forbid can move"


def test_a_group_that_sits_on_one_broker_is_spread() -> None:
    groups = {"t/a-0": "g", "t/a-1": "g"}
    plan = planned(cluster({"a": [10, 10], "b": [1], "c": [5]}, groups=groups), CONFORM)
    assert moved(plan) == {"t/a-0": "b"}
    assert (plan.decision.figures["against_isolation"], plan.decision.figures["against_anti_affinity"]) == (0, 1)
    assert not planned(cluster({"a": [10], "b": [1]}, groups={"t/a-0": "g", "t/b-0": "g"}), CONFORM).steps


def test_a_bundle_moves_too_for_which_the_moves_of_others_make_a_better_broker() -> None:
    # When t/n2 on b is asked first, both others have t/n1; then all of that leaves a.
    names = {"a": ["t/n1", "t/n1", "t/n2", "t/a"], "b": ["t/n2", "t/n0", "t/b"], "c": ["t/c"]}
    sizes = {"a": [3.0, 5.0, 5.0, 1.0], "b": [5.0, 1.0, 1.0], "c": [4.0]}
    plan = planned(cluster(sizes, namespaces=names, groups=dict.fromkeys(("t/n0", "t/n1", "t/n2"), "g")), CONFORM)
    assert [(step.namespace, step.source, step.destination) for step in executable(plan)] == [
        ("t/n1", "a:8080", "c:8080"),
        ("t/n1", "a:8080", "c:8080"),
        ("t/n2", "b:8080", "a:8080"),
    ]
    assert goal_outcome(plan) == "reached"


def test_a_group_that_later_moves_crowd_again_needs_another_plan() -> None:
    names = {"a": ["t/x", "t/a"], "b": ["t/y", "t/z", "t/y", "t/x", "t/b"], "c": ["t/c"]}
    sizes = {"a": [1.0, 4.0], "b": [5.0, 1.0, 5.0, 2.0, 7.0], "c": [7.0]}
    plan = planned(cluster(sizes, namespaces=names, groups=dict.fromkeys(("t/x", "t/y", "t/z"), "g")), CONFORM)
    assert [step.destination for step in executable(plan)] == ["c:8080", "a:8080"]
    assert plan.decision.caveats[0].startswith("Other brokers may then have less of the anti-affinity group of t/y/0x2")
    assert goal_outcome(plan) == "in part"


def test_a_broker_gives_what_it_must_before_it_takes_what_only_then_has_room() -> None:
    policies = [
        IsolationPolicy(f"only-{to}", of, (to,), (), 1, 100)
        for to, of in (("b", ("t/a-1", "t/b-1")), ("c", ("t/a-0", "t/b-0")))
    ]
    plan = planned(cluster({"a": [30, 20], "b": [25, 55], "c": []}, policies=policies), CONFORM)
    assert [step.namespace for step in plan.steps] == ["t/a-0", "t/b-0", "t/a-1"]


def only(to: str, *namespaces: str) -> IsolationPolicy:
    return IsolationPolicy(f"only-{to}", namespaces, (to,), (), 1, 100)


def test_a_bundle_that_finds_no_room_at_first_moves_once_others_have_made_it() -> None:
    state = cluster({"a": [30], "b": [25, 50], "c": []}, policies=[only("b", "t/a-0", "t/b-1"), only("c", "t/b-0")])
    plan = planned(state, CONFORM)
    assert [step.namespace for step in plan.steps] == ["t/b-0", "t/a-0"]
    assert goal_outcome(plan) == "reached"


def test_the_ceiling_with_which_all_would_fit_is_one_under_which_this_plan_moves_all() -> None:
    sizes = {"a": [28.0], "b": [25.0, 50.0], "c": [53.5]}
    state = cluster(sizes, policies=[only("b", "t/a-0", "t/b-1"), only("c", "t/b-0", "t/c-0")])
    lower = planned(state, Goal("conform", ceiling_ratio=0.75))
    assert "all would fit with a ceiling of 79%" in lower.decision.caveats[0]
    assert goal_outcome(planned(state, Goal("conform", ceiling_ratio=0.79))) == "reached"


def test_a_cluster_that_conforms_needs_no_plan() -> None:
    plan = planned(cluster({"a": [10], "b": [1]}), CONFORM)
    assert plan.decision.why_nothing == "no bundle that may move is on a broker that its policies forbid"


@given(
    owners=st.lists(st.sampled_from("abcd"), min_size=1, max_size=6),
    policy_of=st.lists(st.sampled_from(["", "p", "q"]), min_size=6, max_size=6),
    primaries=st.tuples(st.sets(st.sampled_from("abcd")), st.sets(st.sampled_from("abcd"))),
)
@examples(60)
def test_afterwards_every_bundle_is_allowed_where_it_is_or_no_broker_is(
    owners: list[str], policy_of: list[str], primaries: tuple[set[str], set[str]]
) -> None:
    every = list(zip(owners, (f"t/{policy}-{row}" for row, policy in enumerate(policy_of)), strict=False))
    names = {broker: [name for owner, name in every if owner == broker] for broker in "abcd"}
    policies = [
        IsolationPolicy(name, (f"t/{name}-.*",), tuple(sorted(hosts)), (), 1, 100)
        for name, hosts in zip("pq", primaries, strict=True)
    ]
    sizes = {broker: [5.0] * len(own) for broker, own in names.items()}
    state = cluster(sizes, namespaces=names, policies=policies)
    plan = planned(state, CONFORM)
    facts = placement_facts(state, SETTINGS.values)
    to = {step.namespace: step.destination for step in executable(plan)}
    for row, namespace in enumerate(state.namespaces.names):
        allowed = policy_candidates(facts, row)
        (bundle,) = (state.bundles.namespace == row).nonzero()[0]
        owner = state.brokers.ids[state.bundles.owner[bundle]]
        ends = to.get(namespace, owner)
        assert allowed[state.brokers.ids.index(ends)] or not allowed.any()
        assert namespace not in to or not allowed[state.brokers.ids.index(owner)]
