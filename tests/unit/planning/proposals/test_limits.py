"""A plan stays within its limits, touches nothing excluded, and begins with what comes first."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.cluster.cluster_state import ClusterState, IsolationPolicy
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.strategy.decision import Split
from pulsar_advisor.planning.proposals.limits import Budgets, Limits, check_namespaces, splits_within, unloads_within
from pulsar_advisor.planning.proposals.proposal import Move
from states import WHOLE, BrokerRow, BundleRow, cluster_state
from unit.planning.kinds.clusters import cluster, executable, host, moved, planned
from unit.properties import examples

IDS = ("a:8080", "b:8080", "c:8080")


def moves(state: ClusterState) -> list[Move]:
    """Every bundle of a and b moves to c."""
    owner = state.bundles.owner
    return [Move(row, int(owner[row]), 2, "it must", near_tie=False) for row in range(len(owner)) if owner[row] < 2]


@pytest.fixture
def state() -> ClusterState:
    rows = [("t/p", "a:8080", 5), ("t/q", "a:8080", 1), ("u/r", "b:8080", 2), ("u/s", "b:8080", 4)]
    return cluster_state(
        [BrokerRow(broker) for broker in IDS],
        [
            BundleRow(namespace, WHOLE, owner, (1.0, 1.0, topics * 4e6, topics * 6e6), topics=topics)
            for namespace, owner, topics in rows
        ],
    )


def kept(state: ClusterState, **limits: object) -> tuple[list[str], Counter[str]]:
    left, out = unloads_within(moves(state), state, Budgets(Limits(**limits)))  # type: ignore[arg-type]
    return [state.namespaces.names[state.bundles.namespace[move.bundle]] for move in left], out


def test_numbers_cut_the_lowest_ranked_first(state: ClusterState) -> None:
    assert kept(state, max_unloads=3) == (["t/p", "t/q", "u/r"], Counter({"--max-unloads 3": 1}))
    assert kept(state, max_per_source=1) == (["t/p", "u/r"], Counter({"--max-per-source 1": 2}))
    assert kept(state, max_topics=7) == (["t/p", "t/q"], Counter({"--max-topics 7": 2}))
    assert kept(state, max_megabytes_per_s=85) == (["t/p", "t/q", "u/r"], Counter({"--max-megabytes-per-s 85": 1}))


def test_a_throughput_that_is_not_known_leaves_the_limit_to_the_others(state: ClusterState) -> None:
    state.bundles.traffic[0, 2:] = np.nan
    assert kept(state, max_megabytes_per_s=25) == (["t/p", "t/q"], Counter({"--max-megabytes-per-s 25": 2}))


def test_the_first_limit_that_is_reached_is_named(state: ClusterState) -> None:
    assert kept(state, max_per_source=1, max_topics=6)[1] == Counter({"--max-per-source 1": 1, "--max-topics 6": 2})


def test_what_comes_first_comes_after_the_moves_of_its_group_before_it(state: ClusterState) -> None:
    """In another order `apply` may find more of the group at a destination than at the source."""
    state = replace(state, namespaces=replace(state.namespaces, anti_affinity_groups=("g", None, None, "g")))
    assert kept(state, first_namespaces=("u/s",))[0] == ["t/p", "u/s", "t/q", "u/r"]


def test_what_cannot_be_carried_out_anyway_counts_against_no_limit(state: ClusterState) -> None:
    unfit = replace(state, bundles=replace(state.bundles, usable=np.array([False, True, True, True])))
    assert kept(unfit, max_unloads=1) == (["t/p", "t/q"], Counter({"--max-unloads 1": 2}))


def test_where_a_bundle_stays_nothing_goes_that_counted_on_its_room() -> None:
    policies = [
        IsolationPolicy(f"only-{to}", of, (to,), (), 1, 100)
        for to, of in (("b", ("t/a-1", "t/b-1")), ("c", ("t/a-0", "t/b-0")))
    ]
    state = cluster({"a": [30, 20], "b": [25, 55], "c": []}, policies=policies)
    many = replace(state, bundles=replace(state.bundles, topics=np.array([1, 1, 9, 1])))
    assert moved(planned(many, Goal("conform"))) == {"t/a-0": "c", "t/b-0": "c", "t/a-1": "b"}
    plan = planned(many, Goal("conform"), max_topics=5)
    assert moved(plan) == {"t/a-0": "c"}
    assert plan.decision.caveats == ("The limits leave out 2 of 3 unloads: 2 by --max-topics 5.",)


def test_what_is_excluded_is_not_touched(state: ClusterState) -> None:
    assert kept(state, exclude_namespaces=("t/p", "u"))[0] == ["t/q"]
    assert kept(state, exclude_brokers=("a:8080",))[0] == ["u/r", "u/s"]
    assert kept(state, exclude_brokers=("c:8080",))[0] == []


def test_what_comes_first_is_cut_last(state: ClusterState) -> None:
    assert kept(state, max_unloads=2, first_namespaces=("u/s", "t/q"))[0] == ["t/q", "u/s"]
    assert kept(state, max_unloads=1, first_brokers=("b:8080",))[0] == ["u/r"]


def test_what_makes_room_for_the_first_comes_before_it() -> None:
    policy = IsolationPolicy("vip", ("t/a-0",), ("b",), (), 1, 100)
    state = cluster({"a": [30], "b": [60], "c": [5]}, policies=[policy])
    whole = planned(state, Goal("conform"), first_brokers=("a:8080",))
    assert [step.source for step in whole.steps] == ["b:8080", "a:8080"]
    assert moved(planned(state, Goal("conform"), first_brokers=("a:8080",), max_unloads=1)) == {"t/b-0": "c"}


def test_splits_that_come_first_are_cut_last_too(state: ClusterState) -> None:
    splits = [Split(row, "range_equally_divide", (1 << 31,), "it must", near_tie=False) for row in range(4)]

    def kept_rows(**limits: object) -> list[int]:
        return [split.bundle for split in splits_within(splits, state, Limits(**limits))[0]]  # type: ignore[arg-type]

    assert kept_rows(max_splits=2) == [0, 1]
    assert kept_rows(max_splits=2, first_namespaces=("u/s",)) == [3, 0]
    assert kept_rows(exclude_brokers=("a:8080",)) == [2, 3]


def test_a_goal_is_planned_around_what_is_excluded() -> None:
    state = cluster({"a": [40, 30], "b": [10], "c": [20]}, clients={"a": [1, 9], "b": [1], "c": [1]})
    relieve = Goal("relieve", ("a",), 0.65)
    assert moved(planned(state, relieve)) == {"t/a-0": "b"}
    assert moved(planned(state, relieve, exclude_namespaces=("t/a-0",))) == {"t/a-1": "b"}
    assert moved(planned(state, relieve, exclude_brokers=("b:8080",))) == {"t/a-0": "c"}
    assert planned(state, Goal("drain", ("a",)), max_topics=1).decision.caveats[-1] == (
        "The limits leave out 1 of 2 unloads: 1 by --max-topics 1."
    )


def test_a_plan_records_the_limits_that_were_chosen() -> None:
    plan = planned(cluster({"a": [10], "b": [10]}), Goal("drain", ("a",)), exclude_namespaces=("u",), max_topics=9)
    assert plan.limits == {"max_splits": 10, "max_unloads": None, "exclude_namespaces": ("u",), "max_topics": 9}


@pytest.mark.parametrize(
    "wrong", [{"max_per_source": 0}, {"max_topics": 0}, {"max_megabytes_per_s": 0}, {"max_unloads": -1}]
)
def test_numbers_out_of_bounds_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="is out of bounds"):
        Limits(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("retail/payment", "there is no namespace or tenant 'retail/payment'; the nearest is 'retail/payments'"),
        ("retial", "'retial'; the nearest is 'retail'; the snapshot has public/default, retail/payments"),
        ("payments", "there is no namespace or tenant 'payments'"),
    ],
)
def test_a_namespace_or_tenant_that_is_not_there_is_refused(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_namespaces(["retail", name], {"retail/payments", "public/default"})


def test_where_there_is_no_namespace_every_name_is_refused() -> None:
    with pytest.raises(UsageError, match="there is no namespace or tenant 'retail'; the snapshot has none"):
        check_namespaces(["retail"], ())


@given(
    sizes=st.lists(st.lists(st.integers(1, 10), max_size=4), min_size=2, max_size=4),
    barred=st.sets(st.sampled_from(["b0", "b1", "b2"])),
    most=st.integers(0, 5),
)
@examples(40)
def test_no_step_touches_an_excluded_broker_or_exceeds_a_limit(
    sizes: list[list[int]], barred: set[str], most: int
) -> None:
    hosts = [f"b{number}" for number in range(len(sizes))]
    state = cluster(dict(zip(hosts, sizes, strict=True)))
    excluded = tuple(f"{name}:8080" for name in sorted(barred & set(hosts)))
    plan = planned(state, Goal("drain", ("b0",)), exclude_brokers=excluded, max_unloads=most)
    assert len(executable(plan)) <= most
    assert not {host(broker) for step in executable(plan) for broker in (step.source, step.destination)} & barred
