"""The strategy of ours: the fewest moves, what it never touches, and what it says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from conformance import codes, fixture, moves_of, state_of
from pulsar_advisor.model.cluster.cluster_state import ClusterState, IsolationPolicy
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.errors import DataNotFit
from pulsar_advisor.model.strategy.decision import SheddingDecision
from pulsar_advisor.shedding.minimal_move_shedder import Memory, decide, observe


def answer(state: ClusterState, **what_if: str) -> SheddingDecision:
    settings = resolve_settings("4.0.8", what_if=what_if).values
    decision, _ = decide(observe(state, settings, state.captured_at_ms), settings, Memory())
    return decision


def broker_codes(state: ClusterState, decision: SheddingDecision) -> dict[str, str]:
    return {state.brokers.ids[row].partition(":")[0]: code for row, code in codes(decision.brokers).items()}


@pytest.mark.parametrize("case", fixture("MinimalMoveShedder"), ids=lambda case: case["id"])
def test_bound_and_ceiling_are_those_worked_out_by_hand(case: dict[str, Any]) -> None:
    decision = answer(state_of(case["brokers"], case["bundles"]))
    assert decision.figures["moves_bound"] == case["bound"]
    assert decision.figures["moves_gap"] == 0
    assert decision.figures["reached_of_mean_ratio"] == case["reached_percent"] / 100
    assert decision.brokers.right[0] == pytest.approx(case["ceiling"] / 100)


def test_a_target_out_of_reach_is_raised_no_further_than_moves_need_that_also_make_room() -> None:
    """The mean is 40. Within 46, `b` takes 30 and 15, and `c`, which gives the 15, takes 25."""
    decision = answer(state_of({"a": 85.0, "b": 0.0, "c": 35.0}, {"a": [30.0, 30.0, 25.0], "b": [], "c": [20.0, 15.0]}))
    assert decision.figures["reached_of_mean_ratio"] == 1.15
    assert decision.figures["maximum_usage_ratio_after"] == pytest.approx(0.45)


HOT = {"a": 90.0, "b": 50.0, "c": 40.0}
HOT_BUNDLES = {"a": [30.0, 25.0, 20.0, 15.0], "b": [50.0], "c": [40.0]}


def test_broker_and_bundle_say_both_sides_of_what_decided() -> None:
    state = state_of(HOT, HOT_BUNDLES)
    decision = answer(state)
    sentences = [decision.brokers.explain(row) for row in range(3)]
    assert sentences == [
        "usage 90.00% is above the ceiling of 66.00%",
        "usage 50.00% is within the ceiling of 66.00%",
        "ends at 65.00% after receiving bundles if CPU follows messages, within the ceiling of 66.00%",
    ]
    assert (
        decision.bundles.explain(0)
        == "its broker ends at 65.00% without it if CPU follows messages, within the ceiling of 66.00%"
    )
    assert (
        decision.bundles.explain(1)
        == "its new broker ends at 65.00% if CPU follows messages, within the ceiling of 66.00%"
    )


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ({"usable": False}, "unfit"),
        ({"in_boundaries": False}, "in_flight"),
        ({"topics": 0}, "not_reported"),
        ({"last_unloaded_at_ms": 1_795_250_000_000}, "recently_unloaded"),
    ],
)
def test_what_may_not_move_stays_and_says_why(row: dict[str, Any], code: str) -> None:
    decision = answer(state_of(HOT, HOT_BUNDLES, **row))
    assert len(decision.bundle) == 0
    assert set(codes(decision.bundles).values()) == {code}


def with_heaviest_in(namespace: str) -> tuple[ClusterState, int]:
    """The hot cluster with the bundle that would move in another namespace, and that bundle's row."""
    state = state_of(HOT, HOT_BUNDLES)
    heaviest = int(np.flatnonzero(state.bundles.traffic[:, 0] == 25.0)[0])
    names = tuple(namespace if row == heaviest else name for row, name in enumerate(state.namespaces.names))
    return replace(state, namespaces=replace(state.namespaces, names=names)), heaviest


@pytest.mark.parametrize("namespace", ["pulsar/system", "pulsar/a:8080", "sla-monitor/a:8080"])
def test_pulsars_own_namespaces_are_never_touched(namespace: str) -> None:
    state, heaviest = with_heaviest_in(namespace)
    decision = answer(state)
    assert heaviest not in decision.bundle
    assert codes(decision.bundles)[heaviest] in ("pulsars_own", "service_bundle")


def test_other_namespaces_of_pulsars_tenant_move_like_any_other() -> None:
    state, heaviest = with_heaviest_in("pulsar/mine")
    assert heaviest in answer(state).bundle


def test_an_excluded_namespace_stays() -> None:
    decision = answer(state_of(HOT, HOT_BUNDLES), loadBalancerSheddingExcludedNamespaces="t/a-1")
    assert codes(decision.bundles)[1] == "excluded_namespace"
    assert 1 not in decision.bundle


POLICY = IsolationPolicy("p", namespaces=("t/a-1",), primary=("c",), secondary=(), min_limit=0, usage_threshold=0)


def test_a_namespace_with_a_policy_stays_and_a_reserved_broker_receives_nothing() -> None:
    state = replace(state_of(HOT, HOT_BUNDLES), isolation_policies=(POLICY,))
    decision = answer(state)
    assert codes(decision.bundles)[1] == "with_policies"
    assert "c" not in [destination for _, _, destination in moves_of(state, decision)]


def test_policies_may_quote_names_as_java_does() -> None:
    quoted = replace(POLICY, namespaces=(r"\Qt/a-1\E",), primary=(r"\Qc\E",))
    state = replace(state_of(HOT, HOT_BUNDLES), isolation_policies=(quoted,))
    decision = answer(state)
    assert codes(decision.bundles)[1] == "with_policies"
    assert "c" not in [destination for _, _, destination in moves_of(state, decision)]


def test_an_anti_affinity_group_stays() -> None:
    state = state_of(HOT, HOT_BUNDLES)
    groups = ("g", *state.namespaces.anti_affinity_groups[1:])
    decision = answer(replace(state, namespaces=replace(state.namespaces, anti_affinity_groups=groups)))
    assert codes(decision.bundles)[0] == "with_policies"


@pytest.mark.parametrize("column", ["available", "complete", "persistent_topics_enabled"])
def test_a_broker_that_can_not_take_bundles_gets_none(column: str) -> None:
    state = state_of({"a": 90.0, "b": 10.0, "c": 10.0}, {"a": [20.0] * 4, "b": [10.0], "c": [10.0]})
    without_c = np.array([True, True, False])
    decision = answer(replace(state, brokers=replace(state.brokers, **{column: without_c})))
    assert {destination for _, _, destination in moves_of(state, decision)} == {"b"}


def test_a_broker_whose_figures_are_doubted_gives_but_gets_none() -> None:
    state = state_of({"a": 90.0, "b": 10.0, "c": 10.0}, {"a": [20.0] * 4, "b": [10.0], "c": [10.0]})
    doubtful = np.array([True, False, True])
    moves = moves_of(state, answer(replace(state, brokers=replace(state.brokers, doubtful=doubtful))))
    assert {(source, destination) for source, _, destination in moves} == {("a", "b")}


def test_a_bundle_whose_figures_are_no_numbers_stays() -> None:
    decision = answer(state_of(HOT, {**HOT_BUNDLES, "a": [30.0, float("nan"), 20.0, 15.0]}))
    assert codes(decision.bundles)[1] == "no_figures"


def test_the_busiest_broker_gives_first() -> None:
    state = state_of({"a": 75.0, "b": 95.0, "c": 10.0, "d": 20.0}, {"a": [50.0, 25.0], "b": [50.0, 45.0]})
    assert [source for source, _, _ in moves_of(state, answer(state))] == ["b", "a"]


def test_a_broker_that_gives_to_make_room_gives_first_and_is_said_to() -> None:
    # Mean 50, ceiling 55: only b could take the 26 of a, once its 9 has gone to c.
    state = state_of({"a": 76.0, "b": 30.0, "c": 44.0}, {"a": [50.0, 26.0], "b": [21.0, 9.0], "c": [44.0]})
    decision = answer(state)
    assert moves_of(state, decision) == [["b", 1, "c"], ["a", 1, "b"]]
    assert broker_codes(state, decision) == {"a": "gives", "b": "makes_room", "c": "receives"}


def test_brokers_that_exchange_bundles_take_turns_so_that_none_gets_all_of_its_own_first() -> None:
    """b gives 28 and 22, a gives 30: if a took both first, it would be at 101 % of its CPU."""
    state = state_of({"a": 51.0, "b": 81.0}, {"a": [21.0, 30.0], "b": [23.0, 8.0, 22.0, 28.0]})
    assert [source for source, _, _ in moves_of(state, answer(state))] == ["b", "a", "b"]


def test_a_usage_beyond_all_bounds_is_refused_with_the_broker() -> None:
    state = state_of({**HOT, "b": float("inf")}, HOT_BUNDLES)
    with pytest.raises(DataNotFit, match=r"broker b:8080 reports inf of 100\.0 cpu"):
        answer(state)


def test_a_broker_whose_limit_is_next_to_nothing_is_no_destination() -> None:
    state = state_of({"a": 90.0, "b": 0.0, "c": 30.0}, {"a": [25.0] * 3, "b": [], "c": [30.0]})
    limit = state.brokers.limit.copy()
    limit[1, 0] = 1e-300
    decision = answer(replace(state, brokers=replace(state.brokers, limit=limit)))
    assert {destination for _, _, destination in moves_of(state, decision)} <= {"c"}


def test_a_broker_without_a_cpu_limit_does_not_count_in_the_mean() -> None:
    state = state_of({**HOT, "b": float("inf")}, HOT_BUNDLES)
    limit = state.brokers.limit.copy()
    limit[1, 0] = 0.0
    decision = answer(replace(state, brokers=replace(state.brokers, limit=limit)))
    assert decision.figures["mean_usage_ratio"] == pytest.approx(130 / 200, abs=1e-6)


def test_in_the_mean_brokers_count_by_their_cores() -> None:
    state = state_of({"a": 60.0, "b": 60.0}, {"a": [10.0] * 6, "b": [60.0]})
    limit = state.brokers.limit.copy()
    limit[1, 0] = 300.0
    decision = answer(replace(state, brokers=replace(state.brokers, limit=limit)))
    assert decision.figures["mean_usage_ratio"] == pytest.approx(0.3, abs=1e-6)
    assert len(decision.bundle) == 3


def test_a_cluster_without_brokers_that_report_has_no_answer() -> None:
    state = state_of(HOT, HOT_BUNDLES)
    silent = replace(state.brokers, report_updated_at_ms=np.zeros(3, dtype=np.int64))
    decision = answer(replace(state, brokers=silent))
    assert (len(decision.brokers), len(decision.bundles), len(decision.bundle)) == (0, 0, 0)
