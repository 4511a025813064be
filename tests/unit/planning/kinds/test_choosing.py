"""Which of the moves that reach the usages are chosen, and which are left out because they are not needed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, Indices
from pulsar_advisor.model.load.base_load import BaseLoad
from pulsar_advisor.planning.kinds.choosing import _without_needless, fewest_within, movable_above
from pulsar_advisor.planning.kinds.room import Room
from pulsar_advisor.shedding.fewest_moves import Balancing, Moves, few_moves
from unit.planning.kinds.clusters import SETTINGS, cluster
from unit.properties import examples
from unit.shedding.balancings import problem, problems


def without_needless_by_trying_each(problem: Balancing, destination: Indices) -> Indices:
    going = np.flatnonzero(destination != NO_ROW)
    for bundle in going[np.argsort(-problem.cost[going], kind="stable")].tolist():
        without = destination.copy()
        without[bundle] = NO_ROW
        destination = without if problem.reached(without) else destination
    return destination


def with_costs(problem: Balancing, *costs: int) -> Balancing:
    return replace(problem, cost=np.array(costs, dtype=np.int64))


def test_a_cheap_move_that_a_later_one_makes_needless_is_left_out() -> None:
    """The first relieves most for its cost, but not enough; the second would have been enough alone."""
    both = with_costs(problem([(0, (3, 0)), (0, (10, 0))], [50, 50], base=[47, 0]), 1, 5)
    moves = few_moves(both)
    assert moves.destination.tolist() == [1, 1]
    assert _without_needless(both, moves).tolist() == [NO_ROW, 1]


def test_of_moves_that_cost_the_same_those_count_that_surely_reach_the_usage() -> None:
    """At most 10 of the 60 are base: of 26 surely only 21.7 leave, of 34 at least 28.3, and 25 have to."""
    base = BaseLoad(np.zeros(2), np.zeros(2), np.array([10.0, 0.0]), ("history", "history"))
    room = Room(cluster({"a": [26, 34], "b": []}), SETTINGS.values, base, 0.85)
    choice = fewest_within(room, movable_above(room, 0.35), 0.35)
    assert choice.after.owner.tolist() == [0, 1]
    assert choice.after.most_ratio() <= 0.35


@st.composite
def choices(draw: st.DrawFn) -> tuple[Balancing, Moves]:
    """A problem with costs, and moves, whoever chose them; most reach its ceilings."""
    problem = draw(problems())
    problem = replace(problem, ceiling=3 * problem.ceiling, spare=np.full_like(problem.spare, len(problem.source)))
    brokers = [NO_ROW, *np.flatnonzero(problem.receives).tolist()]
    to = [draw(st.sampled_from([broker for broker in brokers if broker != source])) for source in problem.source]
    destination = np.array(to, dtype=np.int32)
    problem = with_costs(problem, *(draw(st.integers(1, 9)) for _ in to))
    return problem, Moves(destination, problem.reached(destination), 0, None)


@examples(200)
@given(choices())
def test_a_move_is_left_out_if_every_broker_is_within_its_ceiling_without_it(choice: tuple[Balancing, Moves]) -> None:
    problem, moves = choice
    found = _without_needless(problem, moves)
    if moves.reached:
        assert found.tolist() == without_needless_by_trying_each(problem, moves.destination).tolist()
    else:
        assert found.tolist() == moves.destination.tolist()
