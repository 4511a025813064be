"""What a leader carries from one cycle to the next."""

from __future__ import annotations

from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.placement.filters import placement_facts
from pulsar_advisor.shedding import registry as shedders
from pulsar_advisor.simulation.leader import Leader
from unit.simulation.clusters import cluster, settings

HOT = cluster({"a": [20.0, 20.0, 20.0, 20.0], "b": [1.0, 1.0], "c": [1.0, 1.0]})


def leader(shedder: str, placement: str, values: LoadBalancerSettings) -> Leader:
    return Leader(shedder, placement, placement_facts(HOT, values), seed=0)


def test_avg_shedder_is_one_object_in_both_roles() -> None:
    values = settings("5.0.1", loadBalancerAvgShedderHitCountHighThreshold="1", maxUnloadPercentage="0.5")
    both = leader("AvgShedder", "AvgShedder", values)
    unloads, memories = both.lead(HOT, 1, both.first_memories(shedders.load("AvgShedder").Memory()))
    assert unloads.destination.tolist()
    assert memories.shedder is memories.placement


def test_a_shedder_counts_its_hits_from_cycle_to_cycle() -> None:
    values = settings(loadBalancerAvgShedderHitCountHighThreshold="3", maxUnloadPercentage="0.5")
    avg = leader("AvgShedder", "LeastLongTermMessageRate", values)
    memories = avg.first_memories(shedders.load("AvgShedder").Memory())
    acted = []
    for cycle in range(1, 5):
        unloads, memories = avg.lead(HOT, cycle, memories)
        acted.append(bool(len(unloads.bundle)))
    assert acted == [False, False, True, False]


def test_a_placement_that_takes_turns_goes_on_where_it_was() -> None:
    values = settings(
        loadBalancerBrokerOverloadedThresholdPercentage="50", loadBalancerDistributeBundlesEvenlyEnabled="false"
    )
    turns = leader("OverloadShedder", "RoundRobinBrokerSelector", values)
    unloads, memories = turns.lead(HOT, 1, turns.first_memories(shedders.load("OverloadShedder").Memory()))
    assert memories.placement.counter >= len(unloads.bundle)
    _, later = turns.lead(HOT, 2, memories)
    assert later.placement.counter == 2 * memories.placement.counter
