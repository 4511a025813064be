"""The moves that a choice leaves out because the usages are reached without them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, Indices
from pulsar_advisor.planning.kinds.choosing import _without_needless
from pulsar_advisor.shedding.fewest_moves import Balancing, Moves, few_moves
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
