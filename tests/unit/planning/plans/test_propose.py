"""One shedder, one placement, the split decider: what they want together, and why they don't."""

from dataclasses import replace

import numpy as np
import pytest

from pulsar_advisor.model.cluster.cluster_state import (
    ClusterState,
    IsolationPolicy,
    LoadManagerKind,
    Namespaces,
    PublishedLoad,
)
from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings, resolve_settings
from pulsar_advisor.planning.plans.propose import propose, propose_splits
from pulsar_advisor.planning.proposals.proposal import Proposal
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.planning.situation import Situation
from states import BrokerRow, BundleRow, cluster_state


def ask(state: ClusterState, settings: ResolvedSettings, shedder: str = "ThresholdShedder") -> Proposal:
    request = Request(shedder=shedder, placement="LeastLongTermMessageRate")
    [(_, proposal)] = propose(request, Situation.of_fit(state, settings))
    assert isinstance(proposal, Proposal)
    return proposal


def splits_of(state: ClusterState, settings: ResolvedSettings, **wanted: bool) -> Proposal:
    proposal = propose_splits(Request(**wanted), Situation.of_fit(state, settings))  # type: ignore[arg-type]
    assert proposal is not None
    return proposal


def test_the_hot_brokers_largest_bundle_goes_where_the_rate_is_lowest(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    move = ask(state, settings).moves[0]
    assert state.bundle_name(move.bundle) == "t/hot/0x00000000_0x40000000"
    # b owns a bundle of the namespace already, so only c is left after the even spread.
    assert (state.brokers.ids[move.source], state.brokers.ids[move.destination]) == ("a:8080", "c:8080")


def test_the_reason_holds_both_sides_of_the_inequality(state: ClusterState, settings: ResolvedSettings) -> None:
    assert "smoothed usage 90.00% has reached mean plus threshold 50.00%" in ask(state, settings).moves[0].reason


def test_a_bundle_over_a_limit_is_to_be_split_in_the_middle(state: ClusterState, settings: ResolvedSettings) -> None:
    [split] = splits_of(state, settings).splits
    assert state.bundle_name(split.bundle) == "t/hot/0x00000000_0x40000000"
    assert split.boundaries == (0x20000000,)


@pytest.mark.parametrize("manager", ["modular", "simple", "extensible"])
@pytest.mark.parametrize(("limit", "near_tie"), [(999, False), (1000, True)])
def test_a_split_knows_whether_the_last_digits_settled_it(
    state: ClusterState, manager: LoadManagerKind, limit: int, near_tie: bool
) -> None:
    a_hair_more = (500.0, 500.0 + 1e-9, 25.0, 25.0)
    for figures in (state.bundles.traffic, state.bundles.long_term):
        figures[0] = a_hair_more
    settings = resolve_settings("4.0.8", what_if={"loadBalancerNamespaceBundleMaxMsgRate": str(limit)})
    [split] = splits_of(replace(state, load_manager=manager), settings).splits
    assert (split.bundle, split.near_tie) == (0, near_tie)


def test_splits_are_the_proposal_of_the_managers_decider_and_no_other_has_any(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    assert (splits_of(state, settings).shedder, splits_of(state, settings).placement) == ("BundleSplitterTask", "")
    assert ask(state, settings).splits == ()


def test_children_are_placed_by_the_clusters_own_strategy(state: ClusterState, settings: ResolvedSettings) -> None:
    assert splits_of(state, settings, unload_children=True).placement == "LeastLongTermMessageRate"


def test_a_cluster_without_a_bundle_to_split_is_said_so(state: ClusterState) -> None:
    quiet = splits_of(state, resolve_settings("4.0.8"))
    assert (quiet.splits, quiet.why_nothing) == ((), "BundleSplitterTask finds no bundle to split.")


def test_splits_that_are_not_requested_are_not_proposed(state: ClusterState, settings: ResolvedSettings) -> None:
    assert propose_splits(Request(splits=False), Situation.of_fit(state, settings)) is None


def test_a_shedder_that_does_nothing_names_the_broker_nearest_to_acting(state: ClusterState) -> None:
    calm = resolve_settings("4.0.8", what_if={"loadBalancerBrokerOverloadedThresholdPercentage": "95"})
    proposal = ask(state, calm, "OverloadShedder")
    assert (proposal.moves, proposal.acts_in_cycle) == ((), None)
    assert proposal.why_nothing is not None and "a:8080" in proposal.why_nothing


def test_with_one_broker_pulsar_unloads_nothing_and_says_so() -> None:
    alone = cluster_state(
        [BrokerRow("a:8080", cpu=(95.0, 100.0), traffic=(10.0, 10.0, 1e9, 1e9))],
        [
            BundleRow("t/n", "0x00000000_0x80000000", "a:8080", (5.0, 5.0, 5e8, 5e8), topics=1),
            BundleRow("t/n", "0x80000000_0xffffffff", "a:8080", (5.0, 5.0, 5e8, 5e8), topics=1),
        ],
    )
    proposal = ask(alone, resolve_settings("4.0.8"), "OverloadShedder")
    assert proposal.moves == ()
    assert proposal.why_nothing is not None and "no other broker could take it" in proposal.why_nothing


def test_the_same_question_has_the_same_answer(state: ClusterState, settings: ResolvedSettings) -> None:
    assert ask(state, settings).moves == ask(state, settings).moves


def test_a_simple_cluster_gets_no_destinations(state: ClusterState, settings: ResolvedSettings) -> None:
    simple = replace(state, load_manager="simple")
    assert {move.destination for move in ask(simple, settings).moves} == {-1}


def test_a_simple_leader_unloads_a_bundle_that_comes_back_to_its_broker(state: ClusterState) -> None:
    # b and c have two bundles of the namespace each: a, which is overloaded, would get its own back.
    owner, namespace = np.array([0, 1, 1, 2, 2, -1]), np.array([0, 0, 0, 0, 0, 2])
    bundles = replace(state.bundles, owner=owner.astype(np.int32), namespace=namespace.astype(np.int32))
    settings = resolve_settings("4.0.8", {"loadBalancerBrokerOverloadedThresholdPercentage": "50"})
    proposal = ask(replace(state, load_manager="simple", bundles=bundles), settings, "OverloadShedder")
    assert [(move.bundle, move.destination, move.possible) for move in proposal.moves] == [(0, -1, (0,))]


@pytest.mark.parametrize(("release", "moves"), [("2.11.0", [(0, -1)]), ("3.0.7", [])])
def test_up_to_3_0_0_a_modular_leader_unloads_what_comes_back_to_its_broker(
    release: str, moves: list[tuple[int, int]]
) -> None:
    # a has the fewest bundles of the namespace.
    texts = [f"0x{number:x}0000000_0x{number + 1:x}0000000" for number in range(5)]
    state = cluster_state(
        [
            BrokerRow("a:8080", cpu=(60.0, 100.0), traffic=(100.0, 100.0, 5e8, 5e8)),
            BrokerRow("b:8080"),
            BrokerRow("c:8080"),
        ],
        [
            *(
                BundleRow("t/n", text, f"{owner}:8080", (90.0, 90.0, 4e8, 4e8) if owner == "a" else (0.0,) * 4, 1)
                for text, owner in zip(texts, "abbcc", strict=True)
            ),
            BundleRow("t/o", texts[0], "a:8080", (1.0, 1.0, 1e3, 1e3), topics=1),
        ],
    )
    found = ask(replace(state, pulsar_version=release), resolve_settings(release))
    assert [(move.bundle, move.destination) for move in found.moves] == moves
    assert moves or "placement would return it to its source" in str(found.why_nothing)


NATIVE = {"modular": "ThresholdShedder", "simple": "SimpleLoadManagerImpl", "extensible": "TransferShedder"}
EAGER = {
    "loadBalancerBrokerLoadTargetStd": "0.05",
    "loadBalancerSheddingConditionHitCountThreshold": "0",
    "loadBalancerSheddingBundlesWithPoliciesEnabled": "true",
}


def test_a_bundle_that_isolation_policies_allow_on_no_other_broker_stays(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    policy = IsolationPolicy("bound", ("t/.*",), ("a",), (), 1, 100)
    proposal = ask(replace(state, isolation_policies=(policy,)), settings)
    assert proposal.moves == ()
    assert (proposal.why_nothing or "").endswith(" was chosen, but isolation policies allow no other broker.")


@pytest.mark.parametrize(("manager", "moves"), [("modular", False), ("simple", True), ("extensible", True)])
def test_only_the_modular_leader_keeps_a_group_that_is_spread_evenly(manager: LoadManagerKind, moves: bool) -> None:
    # Both brokers have the group: its counts are equal, of namespaces (Modular) and of bundles (Extensible).
    spread = replace(two_brokers(manager), namespaces=Namespaces(("t/n",), ("group",)))
    found = ask(spread, resolve_settings("4.2.4", what_if=EAGER), NATIVE[manager])
    assert bool(found.moves) == moves
    assert found.moves or "its anti-affinity group is already spread evenly" in str(found.why_nothing)


@pytest.mark.parametrize("manager", ["modular", "simple"])
def test_only_the_simple_leader_does_not_know_excluded_namespaces(manager: LoadManagerKind) -> None:
    excluded = {"loadBalancerSheddingExcludedNamespaces": "t/n"}
    assert ask(two_brokers(manager), resolve_settings("4.2.4"), NATIVE[manager]).moves
    found = ask(two_brokers(manager), resolve_settings("4.2.4", what_if=excluded), NATIVE[manager])
    assert bool(found.moves) == (manager == "simple")


def two_brokers(manager: LoadManagerKind) -> ClusterState:
    """An overloaded broker and an idle one, with three bundles of one namespace each."""
    texts = [f"0x{number:x}0000000_0x{number + 1:x}0000000" for number in range(6)]
    return cluster_state(
        [
            BrokerRow("a:8080", cpu=(95.0, 100.0), bandwidth_in=(95.0, 100.0), traffic=(150.0, 150.0, 9e8, 9e8)),
            BrokerRow("b:8080", cpu=(5.0, 100.0), traffic=(15.0, 15.0, 9e6, 9e6)),
        ],
        [
            BundleRow("t/n", text, "a:8080" if number < 3 else "b:8080", (5.0, 5.0, size, size), topics=1)
            for number, text in enumerate(texts)
            for size in [(1e8, 3e8, 5e8, 1e6, 3e6, 5e6)[number]]
        ],
        load_manager=manager,
    )


NAMED_BY_THE_SHEDDER = pytest.mark.parametrize("shedder", ["MinimalMoveShedder", "TransferShedder"])


@NAMED_BY_THE_SHEDDER
def test_a_destination_named_by_the_shedder_is_kept(state: ClusterState, shedder: str) -> None:
    # Placement would send the bundle to c, for the even spread of the namespace; b is the idlest.
    move = ask(state, resolve_settings("4.0.8", what_if=EAGER), shedder).moves[0]
    assert (state.brokers.ids[move.source], state.brokers.ids[move.destination]) == ("a:8080", "b:8080")


@NAMED_BY_THE_SHEDDER
def test_no_bundle_is_sent_where_isolation_policies_forbid_it(state: ClusterState, shedder: str) -> None:
    policy = IsolationPolicy("p", ("t/hot",), primary=("a", "c"), secondary=(), min_limit=0, usage_threshold=0)
    isolated = replace(state, isolation_policies=(policy,))
    eager = {**EAGER, "loadBalancerSheddingBundlesWithPoliciesEnabled": "true"}
    proposal = ask(isolated, resolve_settings("4.0.8", what_if=eager), shedder)
    assert "b:8080" not in {state.brokers.ids[move.destination] for move in proposal.moves}


AT_ONCE = resolve_settings(
    "4.2.4",
    {"loadBalancerSheddingConditionHitCountThreshold": "0", "loadBalancerReportUpdateMinIntervalMillis": "1000"},
)


def publishing(cpu_percent: float, load: float) -> ClusterState:
    """`a` publishes every five seconds, and its load was `load` when it last did; `b` stays at 30 %."""
    found = cluster_state(
        [
            BrokerRow("a:8080", cpu=(cpu_percent, 100.0), traffic=(10.0, 10.0, 4e6, 4e6)),
            BrokerRow("b:8080", cpu=(30.0, 100.0), traffic=(5.0, 5.0, 4e6, 4e6)),
        ],
        [
            BundleRow("t/n", "0x00000000_0x80000000", "a:8080", (5.0, 5.0, 1e6, 1e6), topics=1),
            BundleRow("t/n", "0x80000000_0xffffffff", "a:8080", (5.0, 5.0, 3e6, 3e6), topics=1),
        ],
        load_manager="extensible",
        view="published",
    )
    often = PublishedLoad(np.array([load, 0.3]), np.array([8e6, 8e6]), np.array([0, 1]), np.array([5_000, 0]))
    now = np.full(2, found.captured_at_ms, dtype=np.int64)
    return replace(found, brokers=replace(found.brokers, report_updated_at_ms=now), published_load=often)


def test_an_unload_that_awaits_a_brokers_next_publication_names_the_broker() -> None:
    proposal = ask(publishing(100.0, 0.3), AT_ONCE, "TransferShedder")
    assert [move.awaits for move in proposal.moves] == [("a:8080",)]


def test_an_unload_that_is_decided_already_awaits_nothing() -> None:
    proposal = ask(publishing(100.0, 0.99), AT_ONCE, "TransferShedder")
    assert [move.awaits for move in proposal.moves] == [()]


def test_what_a_publication_would_prevent_is_said() -> None:
    proposal = ask(publishing(31.0, 0.9), AT_ONCE, "TransferShedder")
    assert proposal.moves == ()
    assert proposal.caveats == (
        "It hangs on what is published before the next cycle: without a new load from a:8080, TransferShedder also "
        "unloads t/n/0x00000000_0x80000000.",
    )


def test_a_destination_that_new_loads_would_make_the_idlest_is_possible() -> None:
    # Of a recording: b's published load was the lower one, c's fell below it in the two seconds before the cycle.
    found = cluster_state(
        [
            BrokerRow("a:8080", cpu=(90.0, 100.0), traffic=(10.0, 10.0, 4e6, 4e6)),
            BrokerRow("b:8080", cpu=(29.8, 100.0), traffic=(5.0, 5.0, 4e6, 4e6)),
            BrokerRow("c:8080", cpu=(24.8, 100.0), traffic=(5.0, 5.0, 4e6, 4e6)),
        ],
        [
            BundleRow("t/n", "0x00000000_0x80000000", "a:8080", (5.0, 5.0, 1e6, 1e6), topics=1),
            BundleRow("t/n", "0x80000000_0xffffffff", "a:8080", (5.0, 5.0, 3e6, 3e6), topics=1),
        ],
        load_manager="extensible",
        view="published",
    )
    now = np.full(3, found.captured_at_ms, dtype=np.int64)
    for of_c, possible in ((0.345, (1, 2)), (0.25, (2,))):
        load = PublishedLoad(
            np.array([0.9, 0.332, of_c]), np.full(3, 8e6), np.array([0, 1]), np.zeros(3, dtype=np.int64)
        )
        state = replace(found, brokers=replace(found.brokers, report_updated_at_ms=now), published_load=load)
        [move] = ask(state, AT_ONCE, "TransferShedder").moves
        assert (move.destination, move.possible) == (possible[0], possible)


@pytest.mark.parametrize("seed", range(5))
def test_a_bundle_that_pulsar_may_draw_back_to_its_broker_is_named(state: ClusterState, seed: int) -> None:
    # AvgShedder intends b, which has the most bundles of the namespace: so it draws among a and c.
    crowded = replace(state, bundles=replace(state.bundles, owner=np.array([0, 1, 1, 2, 2, -1], dtype=np.int32)))
    at_once = resolve_settings(
        "4.0.8", {"loadBalancerAvgShedderHitCountHighThreshold": "1", "maxUnloadPercentage": "0.9"}
    )
    request = Request(shedder="AvgShedder", placement="AvgShedder", splits=False, seed=seed)
    [(_, proposal)] = propose(request, Situation.of_fit(crowded, at_once))
    assert isinstance(proposal, Proposal)
    [move] = proposal.moves
    assert (move.bundle, move.source, move.destination) == (0, 0, 2)
    assert set(move.possible) == {0, 2}
