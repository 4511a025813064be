"""Simulated cycles are counted against recorded ones, minute by minute."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from decisions.recording import Cycle, Recording, Unload
from decisions.simulated import MINUTE_MS, Comparison, Tally, compare, until_the_load_changes
from pulsar_advisor.simulation.simulate import Simulation, simulate
from unit.simulation.clusters import cluster, situation

OWN = ("ThresholdShedder", "LeastLongTermMessageRate")
USAGE = {"a": [11.4] * 5, "b": [16.4, 15.9, 7.0, 7.0, 7.0, 7.0, 6.3], "c": [10.0] * 4}
"""A bundle goes from b to c in each of two minutes."""


def overshoot() -> Simulation:
    return simulate(*OWN, situation(cluster(USAGE, in_one_namespace=True)), cycles=2)


def as_recorded(simulation: Simulation, minutes: Sequence[float]) -> list[Cycle]:
    """Its cycles with unloads as if brokers had made them, at these minutes."""
    brokers, recorded = simulation.state.brokers.ids, []
    for cycle, minute in zip(simulation.cycles[1:], minutes, strict=True):
        moves = zip(cycle.bundle.tolist(), cycle.source.tolist(), cycle.destination.tolist(), strict=True)
        unloads = tuple(Unload(cycle.state.bundle_name(row), brokers[of], brokers[to]) for row, of, to in moves)
        recorded.append(Cycle(round(minute * MINUTE_MS), "before", "after", unloads, ()))
    return recorded


def compared(recorded: Sequence[Cycle], simulation: Simulation) -> Comparison:
    found = Comparison("title")
    compare(found, recorded, [simulation], [cycle.seen_usage for cycle in simulation.cycles[1 : 1 + len(recorded)]])
    return found


def test_a_simulation_that_is_right_in_everything() -> None:
    simulation = overshoot()
    found = compared(as_recorded(simulation, [0.0, 1.05]), simulation)
    assert (found.named_first, found.named_later, found.named_in_time) == (Tally(1, 1), Tally(1, 1), Tally(1, 1))
    assert (found.inside, found.near, found.last) == (Tally(2, 2), Tally(3, 3), Tally(1, 1))
    assert found.superfluous == Tally(0, 2)
    assert found.row()[:3] == ("title", "1 (2)", "1 of 1")


def test_a_bundle_that_goes_later_than_simulated_is_named_in_time_only() -> None:
    simulation = overshoot()
    first, second = as_recorded(simulation, [0.0, 1.0])
    late = Cycle(3 * MINUTE_MS, "before", "after", second.unloads, ())
    found = Comparison("title")
    compare(found, [first, late], [simulation], [None, None])
    assert (found.named_later, found.named_in_time) == (Tally(0, 1), Tally(1, 1))
    assert (found.inside, found.near) == (Tally(1, 1), Tally(0, 0))
    assert found.last == Tally(0, 1)


def test_what_the_brokers_left_alone_is_counted() -> None:
    simulation = overshoot()
    first, _ = as_recorded(simulation, [0.0, 1.0])
    assert compared([first], simulation).superfluous == Tally(1, 2)


def test_destinations_that_any_seed_draws_are_candidates() -> None:
    usage = {name: [10.0] * 4 for name in "abcd"} | {"e": [23.0] * 3, "f": [14.0] * 5}
    drawn = [
        simulate("ThresholdShedder", "LeastResourceUsageWithWeight", situation(cluster(usage)), cycles=1, seed=seed)
        for seed in range(5)
    ]
    one, other = next(
        pair
        for pair in pairwise(drawn)
        if not np.array_equal(pair[0].cycles[1].destination, pair[1].cycles[1].destination)
    )
    found = Comparison("title")
    compare(found, as_recorded(other, [0.0]), [one, other], [None])
    assert found.inside.right == found.inside.of == found.named_first.right


def test_a_start_ends_where_the_load_changes() -> None:
    cycles = tuple(Cycle(number, "before", after, (), ()) for number, after in enumerate(["x", "y", None, "z"]))
    recording = Recording("4.0.8", "modular", "ThresholdShedder", {}, cycles, {})
    assert [cycle.at_ms for cycle in until_the_load_changes(recording, 1)] == [1, 2]
    assert [cycle.at_ms for cycle in until_the_load_changes(recording, 3)] == [3]
