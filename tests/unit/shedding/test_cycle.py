"""Cycles over a steady snapshot, and what the Modular manager makes of a shedder's choice."""

from __future__ import annotations

import numpy as np
import pytest

from conformance import codes
from pulsar_advisor.model.cluster.cluster_state import NO_ROW
from pulsar_advisor.shedding.cycle import LoadManagerOutcome, Surroundings, carry_out, steady_state
from pulsar_advisor.shedding.registry import load as load_shedder
from unit.shedding.leader import broker, bundle, settings, unloads, view

BUNDLES = {"big": bundle(mib_per_s=60, rate_per_s=2000), "small": bundle(mib_per_s=10, rate_per_s=1500)}
BROKERS = {"hot": broker(95, list(BUNDLES), mib_per_s=70, rate_per_s=12_000), "cold": broker(5, [])}


@pytest.mark.parametrize(("name", "cycle"), [("OverloadShedder", 1), ("AvgShedder", 2)])
def test_the_answer_says_in_which_cycle_a_shedder_acts(name: str, cycle: int) -> None:
    shedder, view_of = load_shedder(name), view(BROKERS, BUNDLES)
    steady = steady_state(shedder, view_of, settings(), shedder.Memory())
    assert steady.acts_in_cycle == cycle
    assert unloads(view_of, steady.decision)


def test_a_shedder_that_never_acts_gets_ten_cycles() -> None:
    shedder = load_shedder("AvgShedder")
    patient = settings(loadBalancerAvgShedderHitCountHighThreshold=11, loadBalancerAvgShedderHitCountLowThreshold=11)
    steady = steady_state(shedder, view(BROKERS, BUNDLES), patient, shedder.Memory())
    assert steady.acts_in_cycle is None
    assert steady.memory.hits_high["hot"] == 10


def test_memory_of_earlier_snapshots_counts() -> None:
    shedder, view_of = load_shedder("AvgShedder"), view(BROKERS, BUNDLES)
    _, memory = shedder.decide(view_of, settings(), shedder.Memory())
    assert steady_state(shedder, view_of, settings(), memory).acts_in_cycle == 1


def carried_out(**questions: object) -> tuple[int, str]:
    """Number of unloads left, and what became of the chosen bundle."""
    shedder, view_of = load_shedder("OverloadShedder"), view(BROKERS, BUNDLES)
    chosen, _ = shedder.decide(view_of, settings(), shedder.Memory())
    hot, cold = (view_of.brokers.ids.index(name) for name in ("hot", "cold"))
    surroundings = Surroundings(
        available_brokers=int(questions.get("brokers", 2)),
        excluded_namespace=np.full(2, bool(questions.get("excluded"))),
        obstacle=lambda _bundle, _source: questions.get("obstacle"),
        destination=lambda _bundle, _source: {"cold": cold, "hot": hot, None: NO_ROW}[questions.get("to", "cold")],
    )
    left, outcomes = carry_out(chosen, surroundings)
    return len(left.bundle), next(iter(codes(outcomes).values()))


@pytest.mark.parametrize(
    ("questions", "answer"),
    [
        ({}, (1, "unload")),
        ({"brokers": 1}, (0, "one_broker")),
        ({"excluded": True}, (0, "excluded_namespace")),
        ({"obstacle": LoadManagerOutcome.POLICIES}, (0, "policies")),
        ({"to": None}, (0, "no_destination")),
        ({"to": "hot"}, (0, "same_broker")),
    ],
)
def test_the_manager_asks_before_it_unloads(questions: dict[str, object], answer: tuple[int, str]) -> None:
    assert carried_out(**questions) == answer
