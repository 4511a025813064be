"""What becomes of a cluster: known pictures, and what holds for any cluster under any strategies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject
from hypothesis import strategies as st

from pulsar_advisor.model.cluster.cluster_state import ClusterState, IsolationPolicy, LoadManagerKind
from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings, resolve_settings
from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.placement.registry import PLACEMENTS
from pulsar_advisor.planning.plans.propose import propose
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.shedding.registry import SHEDDERS
from pulsar_advisor.simulation.load import Load, replayed
from pulsar_advisor.simulation.simulate import Simulation, simulate
from states import HALVES, cluster_state
from unit.any_cluster import OVERLAPPING, Rows, coherent_rows
from unit.planning.any_state import any_state
from unit.properties import examples
from unit.simulation.clusters import all_by_messages, cluster, situation

LEAST_RATE = "LeastLongTermMessageRate"
EAGER = {
    "loadBalancerBrokerOverloadedThresholdPercentage": "50",
    "loadBalancerBrokerComfortLoadLevelPercentage": "50",
    "loadBalancerBundleUnloadMinThroughputThreshold": "0",
    "loadBalancerSheddingConditionHitCountThreshold": "0",
    "loadBalancerBrokerLoadTargetStd": "0.05",
    "loadBalancerSheddingGracePeriodMinutes": "2",
    "minUnloadMessage": "0",
    "minUnloadMessageThroughput": "0",
    "lowerBoundarySheddingEnabled": "true",
}
ANY = resolve_settings("4.0.8", what_if=EAGER)
SPLITTING = resolve_settings("4.0.8", what_if={**EAGER, "loadBalancerNamespaceBundleMaxMsgRate": "20"})


def percent(simulation: Simulation, cycle: int = -1) -> list[float]:
    return (100 * simulation.cycles[cycle].usage).round().tolist()


def moves(simulation: Simulation) -> list[tuple[int, int, int]]:
    """Cycle, source and destination of each unload."""
    return [
        (cycle.number, source, destination)
        for cycle in simulation.cycles
        for source, destination in zip(cycle.source.tolist(), cycle.destination.tolist(), strict=True)
    ]


def test_threshold_shedder_overshoots_at_57_67_and_40_percent_as_seen_on_three_brokers() -> None:
    """Seen on live 4.0.8 brokers: a bundle in each of two minutes, and the idlest broker is the busiest."""
    usage = {"a": [11.4] * 5, "b": [16.4, 15.9, 7.0, 7.0, 7.0, 7.0, 6.3], "c": [10.0] * 4}
    simulation = all_by_messages("ThresholdShedder", LEAST_RATE, situation(cluster(usage, in_one_namespace=True)))
    assert percent(simulation, 0) == [57.0, 67.0, 40.0]
    assert moves(simulation)[:2] == [(1, 1, 2), (2, 1, 2)]
    assert percent(simulation, 2) == [57.0, 34.0, 72.0]


def test_history_keeps_shedding_a_broker_that_is_balanced_pip_364() -> None:
    """PIP-364, over-unloading: 90 and 10 % become 50 and 50, yet count as 86 and 14, and more is unloaded."""
    state = cluster({"a": [40.0, 16.0, 16.0, 18.0], "b": [10.0]})
    simulation = all_by_messages(
        "ThresholdShedder",
        "LeastResourceUsageWithWeight",
        situation(state, loadBalancerSheddingIntervalMinutes="3", loadBalancerDistributeBundlesEvenlyEnabled="false"),
    )
    assert percent(simulation, 1) == [50.0, 50.0]
    assert simulation.cycles[2].seen_usage.tolist() == pytest.approx([0.5, 0.5], abs=0.01)
    assert moves(simulation) == [(1, 0, 1), (2, 0, 1), (3, 0, 1)]
    assert percent(simulation) == [16.0, 84.0]


def test_a_bundle_may_land_on_another_hot_broker_pip_364() -> None:
    """PIP-364, over-placement: at 40, 40, 40, 40, 69 and 70 % every broker is a candidate, the hot ones included."""
    usage = {name: [10.0] * 4 for name in "abcd"} | {"e": [23.0] * 3, "f": [14.0] * 5}
    landed = set()
    for seed in range(20):
        simulation = simulate(
            "ThresholdShedder",
            "LeastResourceUsageWithWeight",
            situation(cluster(usage), loadBalancerDistributeBundlesEvenlyEnabled="false"),
            cycles=1,
            seed=seed,
        )
        landed |= {(source, destination) for _, source, destination in moves(simulation)}
    assert landed & {(4, 5), (5, 4)}


@pytest.mark.parametrize("usage", [[12.0, 2.0, 1.0, 1.0], [50.0, 50.0, 50.0, 50.0, 50.0, 0.0], [80.0] * 10 + [0.0]])
def test_threshold_shedder_leaves_an_idle_broker_idle_pip_220(usage: list[float]) -> None:
    """PIP-220's two cases, and apache/pulsar#17456's: no broker is above mean plus threshold."""
    state = cluster({f"b{row:02}": [share / 5] * 5 if share else [] for row, share in enumerate(usage)})
    simulation = simulate("ThresholdShedder", LEAST_RATE, situation(state))
    assert (simulation.ended, moves(simulation)) == ("settled", [])
    assert len(simulation.cycles) == 1 + 10


def test_with_the_lower_boundary_the_idle_broker_is_filled() -> None:
    state = cluster({f"b{row:02}": [8.0] * 10 for row in range(10)} | {"idle": []})
    simulation = simulate("ThresholdShedder", LEAST_RATE, situation(state, lowerBoundarySheddingEnabled="true"))
    assert moves(simulation)[0][2] == 10
    assert percent(simulation)[10] > 40


def test_transfer_shedder_fills_the_idle_broker_in_its_fourth_cycle_pip_220() -> None:
    state = cluster({f"b{row}": [10.0] * 5 for row in range(5)} | {"idle": []}, load_manager="extensible")
    simulation = simulate("TransferShedder", "extensions.LeastResourceUsageWithWeight", situation(state))
    first = moves(simulation)[0]
    assert first[0] == 4
    assert first[2] == 5
    assert 10 < percent(simulation)[5] < 50


@pytest.mark.parametrize(
    ("shedder", "placement", "load_manager", "counts"),
    [
        (
            "TransferShedder",
            "extensions.LeastResourceUsageWithWeight",
            "extensible",
            ("loadBalancerSheddingConditionHitCountThreshold",),
        ),
        (
            "AvgShedder",
            "AvgShedder",
            "modular",
            ("loadBalancerAvgShedderHitCountLowThreshold", "loadBalancerAvgShedderHitCountHighThreshold"),
        ),
    ],
)
def test_a_cluster_has_not_settled_while_its_shedder_counts(
    shedder: str, placement: str, load_manager: LoadManagerKind, counts: tuple[str, ...]
) -> None:
    uneven = cluster({"a": [10.0] * 9, "b": [1.0], "c": [1.0]}, load_manager=load_manager)
    found = simulate(shedder, placement, situation(uneven, minUnloadMessage="1", **dict.fromkeys(counts, "20")))
    acts = [cycle.number for cycle in found.cycles if len(cycle.bundle)]
    assert 20 <= acts[0] <= 21


def test_a_source_cools_down_before_the_next_transfer() -> None:
    state = cluster({"a": [10.0] * 9, "b": [10.0] * 9, "c": [10.0], "d": [10.0]}, load_manager="extensible")
    hasty = situation(
        state,
        loadBalancerMaxNumberOfBrokerSheddingPerCycle="1",
        loadBalancerSheddingConditionHitCountThreshold="0",
        loadBalancerReportUpdateMaxIntervalMinutes="1",
    )
    simulation = simulate("TransferShedder", "extensions.LeastResourceUsageWithWeight", hasty)
    assert sorted({cycle for cycle, _, _ in moves(simulation)}) == [1, 5]


@pytest.mark.parametrize(("minutes", "cycles"), [("0", [1, 3, 4, 6]), ("5", [1])])
def test_a_moved_bundle_stays_for_the_grace_period(minutes: str, cycles: list[int]) -> None:
    state = cluster({"a": [90.0, 1.0], "b": [1.0, 1.0]})
    simulation = simulate(
        "OverloadShedder", LEAST_RATE, situation(state, loadBalancerSheddingGracePeriodMinutes=minutes)
    )
    assert [cycle.number for cycle in simulation.cycles if 0 in cycle.bundle.tolist()] == cycles


def test_a_bundle_too_large_for_any_broker_goes_round() -> None:
    """Whichever broker has it is overloaded, so it moves on whenever its grace period is over."""
    state = cluster({"a": [90.0, 1.0], "b": [1.0, 1.0]})
    simulation = simulate(
        "OverloadShedder",
        LEAST_RATE,
        situation(
            state, loadBalancerSheddingGracePeriodMinutes="0", loadBalancerDistributeBundlesEvenlyEnabled="false"
        ),
    )
    assert simulation.ended == "repeats"
    assert simulation.repeats_cycle is not None
    assert {(source, destination) for _, source, destination in moves(simulation)} == {(0, 1), (1, 0)}


def test_the_last_cycle_may_come_first() -> None:
    state = cluster({"a": [30.0, 30.0, 30.0], "b": [10.0]})
    simulation = simulate("OverloadShedder", LEAST_RATE, situation(state), cycles=2)
    assert (simulation.ended, len(simulation.cycles)) == ("unfinished", 3)


def test_grace_periods_may_run_out_after_the_last_cycle_but_not_for_longer_than_all_cycles() -> None:
    def ends(cycles: int, minutes: str) -> tuple[str, int]:
        state = cluster({"a": [60.0, 30.0], "b": [10.0]})
        of = situation(state, loadBalancerSheddingGracePeriodMinutes=minutes)
        simulation = simulate("OverloadShedder", LEAST_RATE, of, cycles=cycles)
        return simulation.ended, len(simulation.cycles) - 1

    settled, last = ends(120, "30")
    assert settled == "settled" and last > 30
    assert ends(20, "30") == (settled, last)
    assert ends(20, "1440") == ("unfinished", 20)


@pytest.mark.parametrize("seed", [0, 2, 10])
def test_what_a_grace_period_held_back_until_after_the_last_cycle_is_not_done(seed: int) -> None:
    state = any_state(seed, "extensible")
    placement = "extensions.LeastResourceUsageWithWeight"
    longer, simulation = (
        simulate("TransferShedder", placement, situation(state), cycles=cycles) for cycles in (40, 20)
    )
    assert 20 < max(cycle.number for cycle in longer.cycles if len(cycle.bundle)) <= 40
    assert (simulation.ended, len(simulation.cycles) - 1) == ("unfinished", 20)


def test_more_load_makes_a_calm_cluster_act() -> None:
    state = cluster({"a": [20.0, 20.0, 20.0], "b": [10.0]})
    calm = simulate("OverloadShedder", LEAST_RATE, situation(state))
    grown = simulate("OverloadShedder", LEAST_RATE, situation(state), load=Load(scale=1.5))
    assert moves(calm) == []
    # The brokers measure the new load first.
    assert moves(grown)[0] == (3, 0, 1) or moves(grown)[0] == (2, 0, 1)


def test_noise_is_drawn_from_the_seed() -> None:
    state = cluster({"a": [20.0, 20.0, 20.0], "b": [10.0]})
    one, again, other = (
        simulate("OverloadShedder", LEAST_RATE, situation(state), cycles=5, load=Load(noise=0.2), seed=seed)
        for seed in (1, 1, 2)
    )
    assert np.array_equal(one.cycles[3].usage, again.cycles[3].usage)
    assert not np.array_equal(one.cycles[3].usage, other.cycles[3].usage)


def at(state: ClusterState, minutes: int, factor: float) -> ClusterState:
    """The same cluster, minutes earlier, with more or less traffic on every bundle."""
    earlier_ms = state.captured_at_ms - minutes * 60_000
    return replace(
        state, captured_at_ms=earlier_ms, bundles=replace(state.bundles, traffic=factor * state.bundles.traffic)
    )


def test_the_load_of_earlier_snapshots_is_replayed_and_then_ends() -> None:
    state = cluster({"a": [20.0, 20.0, 20.0], "b": [10.0]})
    load = Load(replayed=replayed(state, [at(state, 8, 0.5), at(state, 5, 1.2)]))
    simulation = all_by_messages("OverloadShedder", LEAST_RATE, situation(state), load=load)
    highest = [round(100 * float(cycle.usage.max())) for cycle in simulation.cycles[1:12]]
    assert highest == [30, 30, 30, 72, 72, 72, 72, 72, 60, 60]
    assert simulation.ended == "settled"


def test_a_bundle_that_was_not_there_or_is_idle_keeps_its_load() -> None:
    state = cluster({"a": [20.0, 20.0], "b": [10.0]})
    earlier = at(state, 5, 2.0)
    state.bundles.traffic[0] = 0.0
    earlier.bundles.reported[1] = False
    (_, factors), (until_ms, at_the_end) = replayed(state, [earlier])
    assert factors.tolist() == [1.0, 1.0, 2.0]
    assert (until_ms, at_the_end.tolist()) == (5 * 60_000, [1.0, 1.0, 1.0])


def test_isolation_policies_hold_in_every_cycle() -> None:
    policy = IsolationPolicy("p", ("t/a",), ("a", "b"), (), min_limit=1, usage_threshold=100)
    state = cluster({"a": [30.0, 30.0, 30.0], "b": [10.0], "c": [1.0]}, isolation_policies=(policy,))
    simulation = simulate("OverloadShedder", LEAST_RATE, situation(state, loadBalancerSheddingGracePeriodMinutes="1"))
    assert moves(simulation)
    assert {destination for _, _, destination in moves(simulation)} <= {0, 1}


shedder = st.sampled_from([entry.name for entry in SHEDDERS])
placement = st.sampled_from([entry.name for entry in PLACEMENTS])
APART = {OVERLAPPING[1]: HALVES[1]}
"""Ranges of bundles that overlap with others, and those that don't: names distinguish children."""
any_combination = examples(8, suppress_health_check=list(HealthCheck))


def simulated(
    shedder: str, placement: str, state: ClusterState, settings: ResolvedSettings = ANY, cycles: int = 8
) -> Simulation:
    """A simulation; a combination that is refused in words is none."""
    try:
        return simulate(shedder, placement, Situation.of_fit(state, settings), cycles=cycles, seed=3)
    except AdvisorError as refusal:
        assert str(refusal)
        reject()


@any_combination
@given(coherent_rows(), shedder, placement)
def test_bundles_and_load_are_conserved(rows: Rows, shedder: str, placement: str) -> None:
    brokers, bundles = rows
    state = cluster_state(brokers, [replace(one, range=APART.get(one.range, one.range)) for one in bundles])
    simulation = simulated(shedder, placement, state, SPLITTING)
    owner = {state.bundle_name(row): int(broker) for row, broker in enumerate(state.bundles.owner)}
    total = simulation.cycles[0].broker_traffic.sum(axis=0)
    for cycle in simulation.cycles:
        if cycle.division is not None:
            before, after = cycle.division.before, cycle.division.state
            for split in cycle.division.splits:
                children = list(cycle.division.children(split))
                bounds = [int(after.bundles.lower[children[0]]), *after.bundles.upper[children].tolist()]
                assert (bounds[0], bounds[-1]) == (
                    before.bundles.lower[split.bundle],
                    before.bundles.upper[split.bundle],
                )
                assert bounds == sorted(set(bounds))
                assert after.bundles.lower[children].tolist() == bounds[:-1]
                broker = owner.pop(before.bundle_name(split.bundle))
                owner |= {after.bundle_name(child): broker for child in children}
        names = [cycle.state.bundle_name(row) for row in range(len(cycle.state.bundles))]
        assert sorted(names) == sorted(owner)
        moved = [names[row] for row in cycle.bundle.tolist()]
        assert [owner[name] for name in moved] == cycle.source.tolist()
        owner |= dict(zip(moved, cycle.destination.tolist(), strict=True))
        assert state.brokers.available[cycle.destination].all()
        assert cycle.broker_traffic.sum(axis=0) == pytest.approx(total, rel=1e-9, abs=1e-6)
        assert len(set(moved)) == len(moved)


@any_combination
@given(coherent_rows(), shedder, placement)
def test_the_first_cycle_that_acts_is_the_one_a_recommendation_predicts(
    rows: Rows, shedder: str, placement: str
) -> None:
    state = cluster_state(*rows)
    [(_, proposal)] = propose(Request(shedder, placement, splits=False, seed=3), Situation.of_fit(state, ANY))
    if isinstance(proposal, AdvisorError) or not proposal.moves or proposal.acts_in_cycle is None:
        reject()
    if proposal.acts_in_cycle > 1 and (state.bundles.last_unloaded_at_ms > 0).any():
        # Grace periods end in between, which a recommendation from one snapshot leaves out.
        reject()
    simulation = simulated(shedder, placement, state, cycles=proposal.acts_in_cycle)
    last = simulation.cycles[-1]
    assert [move.bundle for move in proposal.moves] == last.bundle.tolist()
    assert not any(len(cycle.bundle) for cycle in simulation.cycles[:-1])
    if proposal.acts_in_cycle == 1:
        assert [move.destination for move in proposal.moves] == last.destination.tolist()


@any_combination
@given(coherent_rows(), shedder, placement)
def test_the_same_seed_gives_the_same_future(rows: Rows, shedder: str, placement: str) -> None:
    state = cluster_state(*rows)
    one, other = (simulated(shedder, placement, state) for _ in range(2))
    assert (one.ended, moves(one)) == (other.ended, moves(other))
