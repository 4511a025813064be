"""The moves that a choice leaves out because the usages are reached without them."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, Indices
from pulsar_advisor.planning.kinds.choosing import _without_needless
from pulsar_advisor.shedding.fewest_moves import Balancing, few_moves
from unit.properties import examples
from unit.shedding.balancings import problems


def without_needless_by_trying_each(problem: Balancing, destination: Indices) -> Indices:
    going = np.flatnonzero(destination != NO_ROW)
    for bundle in going[np.argsort(-problem.cost[going], kind="stable")].tolist():
        without = destination.copy()
        without[bundle] = NO_ROW
        destination = without if problem.reached(without) else destination
    return destination


@examples(200)
@given(problems())
def test_a_move_is_left_out_if_every_broker_is_within_its_ceiling_without_it(problem: Balancing) -> None:
    moves = few_moves(problem)
    found = _without_needless(problem, moves)
    if moves.reached:
        assert found.tolist() == without_needless_by_trying_each(problem, moves.destination).tolist()
    else:
        assert found.tolist() == moves.destination.tolist()
