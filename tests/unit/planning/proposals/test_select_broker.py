"""Where an unloaded bundle would go: filters, strategy, and a second try off an overloaded broker."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, ClusterState, Indices, IsolationPolicy, LoadManagerKind
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.strategy.decision import PlacementDecision
from pulsar_advisor.model.strategy.memory import NoMemory
from pulsar_advisor.model.strategy.outcomes import Outcome, Outcomes, yes
from pulsar_advisor.placement.filters import placement_facts
from pulsar_advisor.planning.proposals.select_broker import BUNDLES_EXPLAINED, BrokerSelection, CandidateSets
from states import WHOLE, BrokerRow, BundleRow, cluster_state

RANGES = tuple(f"0x{lower:08x}_0x{lower + 0x01000000:08x}" for lower in range(0, 0x60000000, 0x01000000))
ONLY_B = IsolationPolicy("p", ("t/n",), primary=("b",), secondary=(), min_limit=0, usage_threshold=0)


class Anything(Outcome):
    ANY = yes("any broker will do")


@dataclass
class Takes:
    """A placement strategy that takes these candidates (rows), first choice first; all of them without any."""

    choices: tuple[tuple[int, ...], ...] = ()

    def choose(
        self, _view: Any, candidates: Indices, _bundle: int, _settings: LoadBalancerSettings, made: int
    ) -> tuple[PlacementDecision, int]:
        eligible = np.array(self.choices[made], dtype=np.int32) if self.choices else candidates
        nothing = np.full(len(candidates), np.nan)
        code = np.zeros(len(candidates), dtype=np.uint8)
        return PlacementDecision(
            eligible, Outcomes("broker", tuple(Anything), candidates, code, nothing, nothing)
        ), made + 1


def cluster(
    load_manager: LoadManagerKind = "modular",
    policies: tuple[IsolationPolicy, ...] = (),
    bundles: int = 4,
    cpu: float = 95.0,
) -> ClusterState:
    """`a` is above the overload threshold, `b` and `c` are idle; all bundles are at `a`."""
    return cluster_state(
        [BrokerRow("a:8080", cpu=(cpu, 100.0)), BrokerRow("b:8080"), BrokerRow("c:8080")],
        [BundleRow("t/n", text, "a:8080", topics=1) for text in RANGES[:bundles]],
        load_manager=load_manager,
        isolation_policies=policies,
    )


def selection(state: ClusterState, strategy: Takes, seed: int = 0, name: str = "Takes") -> BrokerSelection:
    even = {"loadBalancerDistributeBundlesEvenlyEnabled": "false"}
    candidates = CandidateSets.of(placement_facts(state, resolve_settings("4.0.8", what_if=even).values))
    return BrokerSelection(candidates, name, strategy, view=None, memory=0, seed=seed)


A, B, C = range(3)


def test_the_one_broker_that_the_strategy_leaves_is_taken() -> None:
    assert selection(cluster(), Takes(((C,),))).select(0, A) == C


def test_a_strategy_that_remembers_nothing_is_asked_once_for_all_bundles_with_the_same_candidates() -> None:
    class Forgetful(Takes):
        asked = 0

        def choose(
            self, view: Any, candidates: Indices, bundle: int, settings: LoadBalancerSettings, memory: Any
        ) -> tuple[PlacementDecision, Any]:
            self.asked += 1
            return super().choose(view, candidates, bundle, settings, 0)[0], memory

    strategy = Forgetful(((C,),))
    select = replace(selection(cluster(), strategy), memory=NoMemory()).select
    assert [select(bundle, A) for bundle in range(4)] == [C] * 4
    assert strategy.asked == 1


def test_a_choice_above_the_overload_threshold_is_made_again() -> None:
    twice = selection(cluster(), Takes(((A,), (B,))))
    assert (twice.select(0, A), twice.memory) == (B, 2)


@pytest.mark.parametrize(
    ("load_manager", "release", "shedding", "candidates"),
    [
        # A Modular leader makes the bundle that it sheds from its range, which says nothing about topics.
        ("modular", "4.0.8", True, [C]),
        ("modular", "4.0.8", False, [B]),
        ("modular", "2.11.0", True, [B]),
        ("extensible", "4.0.8", True, [B]),
    ],
)
def test_a_leader_that_sheds_does_not_know_of_non_persistent_topics(
    load_manager: LoadManagerKind, release: str, shedding: bool, candidates: list[int]
) -> None:
    state = cluster_state(
        [BrokerRow("a:8080", available=False), BrokerRow("b:8080"), BrokerRow("c:8080")],
        [BundleRow("t/n", WHOLE, "a:8080", topics=1)],
        topics=["non-persistent://t/n/topic"],
        load_manager=load_manager,
    )
    one, other = np.array([True, False, True]), np.array([True, True, False])
    brokers = replace(state.brokers, persistent_topics_enabled=one, non_persistent_topics_enabled=other)
    topics = replace(state.topics, loaded=np.array([True]))
    state, settings = replace(state, brokers=brokers, topics=topics), resolve_settings(release).values
    assert CandidateSets.of(placement_facts(state, settings), shedding=shedding).first(0).brokers.tolist() == candidates


def in_turn(state: ClusterState, strategy: Takes) -> list[int]:
    """Where the first bundles go, if their namespace is excluded from shedding."""
    excluded = {"loadBalancerDistributeBundlesEvenlyEnabled": "false", "loadBalancerSheddingExcludedNamespaces": "t/n"}
    candidates = CandidateSets.of(placement_facts(state, resolve_settings("4.2.4", what_if=excluded).values))
    chosen = BrokerSelection(candidates, "Takes", strategy, view=None, memory=0, seed=0)
    return [chosen.select(bundle, A) for bundle in range(4)]


@pytest.mark.parametrize("load_manager", ["modular", "extensible"])
def test_brokers_take_the_bundles_of_a_namespace_excluded_from_shedding_in_turn(load_manager: LoadManagerKind) -> None:
    [first, second, third, again] = in_turn(cluster(load_manager, cpu=50.0), Takes(((A,),) * 4))
    assert (sorted([first, second, third]), again) == ([A, B, C], first)


def test_an_overloaded_broker_whose_turn_it_is_leaves_the_choice_to_the_strategy() -> None:
    assert sorted(in_turn(cluster(cpu=95.0), Takes(((B,), (B,))))[:3]) == [B, B, C]


def test_the_simple_manager_places_all_bundles_alike() -> None:
    assert in_turn(cluster("simple"), Takes(((C,),) * 4)) == [C] * 4


@pytest.mark.parametrize(("cpu", "chosen"), [(85.0, A), (85.1, B)])
def test_a_broker_at_the_threshold_is_not_above_it(cpu: float, chosen: int) -> None:
    assert selection(cluster(cpu=cpu), Takes(((A,), (B,)))).select(0, A) == chosen


@pytest.mark.parametrize("load_manager", ["extensible", "simple"])
def test_other_managers_do_not_choose_again(load_manager: LoadManagerKind) -> None:
    once = selection(cluster(load_manager), Takes(((A,), (B,))))
    assert (once.select(0, A), once.memory) == (A, 1)


def test_a_second_choice_of_nothing_leaves_the_first() -> None:
    assert selection(cluster(), Takes(((A,), ()))).select(0, A) == A


def test_filters_come_before_the_strategy() -> None:
    assert selection(cluster(policies=(ONLY_B,)), Takes()).select(0, A) == B


def test_without_candidates_there_is_no_broker() -> None:
    nowhere = IsolationPolicy("p", ("t/n",), primary=("elsewhere",), secondary=(), min_limit=0, usage_threshold=0)
    state = cluster(policies=(nowhere,))
    assert selection(state, Takes()).select(0, A) == NO_ROW
    assert not selection(state, Takes()).candidates.allowed(0).any()


@pytest.mark.parametrize("seed", range(5))
def test_a_draw_depends_on_seed_strategy_and_bundle_only(seed: int) -> None:
    state, free = cluster(), Takes(((B, C),) * 8)
    forwards, backwards = selection(state, free, seed), selection(state, free, seed)
    one = {bundle: forwards.select(bundle, A) for bundle in range(4)}
    other = {bundle: backwards.select(bundle, A) for bundle in reversed(range(4))}
    assert one == other
    assert set(one.values()) <= {B, C}


def test_different_seeds_draw_differently() -> None:
    state, free = cluster(bundles=8), Takes(((B, C),) * 8)
    drawn = {
        tuple(found.select(bundle, A) for bundle in range(8))
        for seed in range(8)
        for found in [selection(state, free, seed)]
    }
    assert len(drawn) > 1


def test_the_first_bundles_are_explained_filters_first() -> None:
    many = BUNDLES_EXPLAINED + 10
    found = selection(cluster(bundles=many), Takes(((B,),) * many))
    for bundle in range(many):
        found.select(bundle, A)
    assert [bundle for bundle, _ in found.explained] == [bundle for bundle in range(BUNDLES_EXPLAINED) for _ in (0, 1)]
    assert found.explained[1][1].explain(0) == "any broker will do"


def test_the_brokers_that_are_drawn_among_are_possible() -> None:
    chosen = selection(cluster(), Takes(choices=((1,), (1, 2))))
    assert chosen.select(0, 0) == 1
    assert chosen.possible == {0: (1,)}
    chosen.select(1, 0)
    assert chosen.possible[1] == (1, 2)


@pytest.mark.parametrize("seed", range(5))
def test_the_likeliest_outcome_of_a_draw_is_a_broker_that_has_not_the_bundle(seed: int) -> None:
    state, free = cluster(), Takes(((B, C), (A, C)))
    likeliest = replace(selection(state, free, seed), likeliest=True)
    assert (likeliest.select(0, B), likeliest.select(1, A)) == (C, C)
    assert likeliest.possible == {0: (B, C), 1: (A, C)}


def test_a_broker_that_has_the_bundle_is_drawn_like_the_others() -> None:
    state, free = cluster(), Takes(((B, C),))
    assert {selection(state, free, seed).select(0, B) for seed in range(16)} == {B, C}


def test_under_the_simple_manager_every_candidate_is_possible_as_the_leaders_quotas_are_unknown() -> None:
    chosen = selection(cluster("simple"), Takes(choices=((1,),)))
    chosen.select(0, 0)
    assert chosen.possible == {0: (1, 2)}


def test_what_bundles_are_assigned_to_is_noted_in_one_copy_of_the_state_that_others_share() -> None:
    state = cluster()
    chosen, before = selection(state, Takes(((B,), (C,)))), state.bundles.owner.copy()
    chosen.assign(0, A)
    noted = chosen.candidates.state.bundles.owner
    chosen.assign(1, A)
    assert chosen.candidates.state.bundles.owner is noted
    assert noted.tolist()[:2] == [B, C]
    assert state.bundles.owner.tolist() == before.tolist()


def test_the_topics_of_assigned_bundles_count_towards_the_brokers_limit() -> None:
    what_if = {"loadBalancerDistributeBundlesEvenlyEnabled": "false", "loadBalancerBrokerMaxTopics": "1"}
    facts = placement_facts(cluster(cpu=50.0), resolve_settings("4.0.8", what_if=what_if).values)
    chosen = BrokerSelection(CandidateSets.of(facts), "Takes", Takes(((B,),) * 2), view=None, memory=0, seed=0)
    assert B in chosen.candidates.first(2).brokers
    chosen.assign(0, A)
    chosen.assign(1, A)
    assert B not in chosen.candidates.first(2).brokers
