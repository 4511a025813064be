"""Simulations against brokers and a leader that act one after the other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.cluster.cluster_state import NO_ROW
from pulsar_advisor.model.load.base_load import base_load
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.simulation.cluster import SimulatedCluster
from pulsar_advisor.simulation.moment import advanced
from pulsar_advisor.simulation.reports import after_change, first_reports
from pulsar_advisor.simulation.simulate import simulate
from unit.properties import examples
from unit.simulation.brute_force import (
    INTERVALS,
    LIMIT,
    MINUTE_MS,
    RESOLVED,
    SETTINGS,
    Broker,
    BruteCluster,
    own_namespaces,
)

OVERLOADED = 0.85
MARGIN = 0.05


@examples(20)
@given(st.data())
def test_what_the_leader_has_received_after_moves_and_changes_of_load(data: st.DataObject) -> None:
    number = data.draw(st.integers(2, 4))
    rates = [data.draw(st.integers(1, 30)) for _ in range(data.draw(st.integers(1, 8)))]
    state = own_namespaces(number, rates, [data.draw(st.integers(0, number - 1)) for _ in rates])
    steady = SimulatedCluster.of(state)
    reports = first_reports(state, steady, SETTINGS, INTERVALS, seed=data.draw(st.integers(0, 5)))
    brute = BruteCluster.of(state, reports, [0.0] * number)

    for _ in range(data.draw(st.integers(1, 4))):
        bundle, to = data.draw(st.integers(0, len(rates) - 1)), data.draw(st.integers(0, number - 1))
        factor = data.draw(st.sampled_from([1.0, 2.0]))
        steady = steady.moved([bundle], [to])
        cluster = steady.under(factor)
        brute.change({bundle: to}, factor)
        until_ms = brute.now_ms + MINUTE_MS * data.draw(st.integers(1, 20))
        reports = advanced(after_change(reports, [to]), state, cluster, SETTINGS, INTERVALS, until_ms)
        brute.advance(until_ms)

    published, brokers = reports.published, brute.brokers
    assert reports.published_at_ms.tolist() == [broker.published_ms for broker in brokers]
    assert published.usage[:, 0].tolist() == pytest.approx([broker.published["usage"] for broker in brokers])
    assert published.traffic[:, 0].tolist() == pytest.approx([broker.published["rate"] for broker in brokers])
    assert published.counts[:, 0].tolist() == [broker.published["bundles"] for broker in brokers]
    for bundle in brute.owner:
        claims = {broker.row for broker in brokers if bundle in broker.published_bundles}
        row = int(published.reporter[bundle])
        assert (row in claims) if claims else row == NO_ROW
        if bundle not in brute.claimed_twice:  # simplified in a simulation
            assert reports.short_term[bundle, 0] == pytest.approx(brute.short_term[bundle].value)


@examples(30)
@given(st.data())
def test_overload_shedder_cycle_by_cycle(data: st.DataObject) -> None:
    number = data.draw(st.integers(2, 4))
    rates = data.draw(st.lists(st.integers(5, 60), min_size=2, max_size=9, unique=True))
    state = own_namespaces(number, rates, [data.draw(st.integers(0, number - 1)) for _ in rates])
    seed = data.draw(st.integers(0, 5))
    simulation = simulate(
        "OverloadShedder", "LeastLongTermMessageRate", Situation.of_fit(state, RESOLVED), cycles=12, seed=seed
    )

    reports = first_reports(state, SimulatedCluster.of(state), SETTINGS, INTERVALS, seed)
    brute = BruteCluster.of(state, reports, base_load(state).likely.tolist())
    unloaded: set[int] = set()  # twelve minutes are less than the grace period
    for cycle in simulation.cycles[1:]:
        seen = [broker.published["usage"] / LIMIT for broker in brute.brokers]
        assert cycle.seen_usage.tolist() == pytest.approx(seen, rel=1e-5)  # Pulsar's ratios are binary32
        shed = {bundle for broker in brute.brokers for bundle in overload_shedder(broker, brute, unloaded)}
        went = dict(zip(cycle.bundle.tolist(), cycle.destination.tolist(), strict=True))
        places = {bundle: least_long_term_message_rate(bundle, brute) for bundle in shed}
        assert went.keys() <= shed
        for bundle, brokers in places.items():
            assert went.get(bundle, NO_ROW) in brokers
        if went:
            brute.change(went)
        unloaded |= went.keys()
        brute.advance(brute.now_ms + MINUTE_MS)


def overload_shedder(broker: Broker, brute: BruteCluster, unloaded: set[int]) -> list[int]:
    """`OverloadShedder.findBundlesForUnloading` for one broker; throughput is as much as the rate."""
    usage = broker.published["usage"] / LIMIT
    if usage < OVERLOADED or len(broker.published_bundles) < 2:
        return []
    wanted = (usage - OVERLOADED + MARGIN) * broker.published["rate"]
    flow = {bundle: brute.short_term[bundle].value for bundle in broker.published_bundles if bundle not in unloaded}
    chosen: list[int] = []
    for bundle in sorted(flow, key=lambda bundle: -flow[bundle]):
        if not chosen or sum(flow[each] for each in chosen) < wanted:
            chosen.append(bundle)
    return chosen


def least_long_term_message_rate(bundle: int, brute: BruteCluster) -> set[int]:
    """The brokers (rows) that `LeastLongTermMessageRate` may choose; the namespace has no other bundle.

    If all that it could choose are overloaded, the leader chooses again, its source included: any may be the result.
    """
    score = {}
    for broker in brute.brokers:
        if bundle in broker.published_bundles:  # the even spread of the namespace leaves it out
            continue
        overloaded = broker.published["usage"] / LIMIT > OVERLOADED
        rate = sum(brute.long_term[each].value for each in broker.published_bundles)
        score[broker.row] = float("inf") if overloaded else rate
    least = min(score.values(), default=0.0)
    if least == float("inf"):
        return {NO_ROW, *range(len(brute.brokers))}
    return {row for row, value in score.items() if value == pytest.approx(least)}


def test_overload_shedder_acts_on_such_a_cluster() -> None:
    state = own_namespaces(3, [40, 30, 20, 10, 5], [0, 0, 0, 1, 2])
    simulation = simulate("OverloadShedder", "LeastLongTermMessageRate", Situation.of_fit(state, RESOLVED), cycles=12)
    assert sum(len(cycle.bundle) for cycle in simulation.cycles) == 1
