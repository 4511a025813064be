"""The fewest moves against exhaustive search, and the bound against both."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.cluster.cluster_state import NO_ROW
from pulsar_advisor.shedding.fewest_moves import Balancing, counting_bound, few_moves, fewest_moves
from unit.properties import examples
from unit.shedding.balancings import PERCENT, problem, problems


def fewest_by_trying_all(balancing: Balancing) -> int | None:
    """Cost of the best of all assignments; None if none reaches the ceilings."""
    choices = [
        [NO_ROW, *(to for to in np.flatnonzero(balancing.receives).tolist() if to != source)]
        for source in balancing.source.tolist()
    ]
    best = None
    for assignment in product(*choices):
        destination = np.array(assignment, dtype=np.int32)
        leaving = np.bincount(balancing.source[destination != NO_ROW], minlength=len(balancing.load))
        number = int(balancing.cost[destination != NO_ROW].sum())
        if (best is None or number < best) and (leaving <= balancing.spare).all() and balancing.reached(destination):
            best = number
    return best


@given(problems())
@examples(300)
def test_a_small_cluster_gets_the_optimum_and_knows_it(balancing: Balancing) -> None:
    best, moves = fewest_by_trying_all(balancing), fewest_moves(balancing)
    assert (moves.reached, moves.least) == (best is not None, best)
    if moves.reached:
        assert moves.cost == best


@given(problems(), st.lists(st.integers(1, 50), min_size=6, max_size=6))
@examples(200)
def test_where_bundles_cost_the_cheapest_moves_are_found(balancing: Balancing, costs: list[int]) -> None:
    priced = replace(balancing, cost=np.array(costs[: len(balancing.source)], dtype=np.int64))
    best, moves = fewest_by_trying_all(priced), fewest_moves(priced)
    assert (moves.reached, moves.least) == (best is not None, best)
    if moves.reached:
        assert moves.cost == best


def test_a_bundle_goes_only_where_it_may() -> None:
    free = problem([(0, (30, 0)), (0, (30, 0))], [40, 90, 90])
    bound = replace(free, may_go=np.array([[False, False, True], [False, False, False]]))
    assert fewest_moves(bound).destination.tolist() == [2, NO_ROW]
    assert not fewest_moves(replace(free, may_go=np.zeros((2, 3), dtype=np.bool_))).reached


@given(problems())
@examples(300)
def test_the_heuristic_never_claims_more_than_it_has(balancing: Balancing) -> None:
    best, moves = fewest_by_trying_all(balancing), few_moves(balancing)
    if best is None:
        assert not moves.reached
    else:
        assert moves.least is not None and moves.least <= best
        assert not moves.reached or best <= moves.cost


@given(problems())
@examples(200)
def test_no_bundle_goes_where_it_may_not_and_no_broker_gives_more_than_it_may(balancing: Balancing) -> None:
    for moves in (few_moves(balancing), fewest_moves(balancing)):
        goes = moves.destination != NO_ROW
        assert balancing.receives[moves.destination[goes]].all()
        assert (moves.destination[goes] != balancing.source[goes]).all()
        leaving = np.bincount(balancing.source[goes], minlength=len(balancing.load))
        assert (leaving <= np.maximum(balancing.spare, 0)).all()


def test_the_bound_counts_the_largest_bundles_of_each_broker() -> None:
    # 25 must leave the first: 20 + 5; 10 the second: 15.
    balancing = problem([(0, (20, 0)), (0, (10, 0)), (0, (15, 0)), (1, (15, 0)), (1, (15, 0))], [20, 20, 100])
    assert counting_bound(balancing) == 3


def test_the_scarcest_resource_decides_the_bound() -> None:
    # One bundle frees enough CPU, two are needed for the bandwidth.
    balancing = problem([(0, (40, 10)), (0, (10, 20)), (0, (10, 20))], [40, 100])
    assert counting_bound(balancing) == 1
    tighter = problem([(0, (40, 10)), (0, (10, 20)), (0, (10, 20))], [25, 100])
    assert counting_bound(tighter) == 2


def test_what_a_broker_can_not_give_is_proven_out_of_reach() -> None:
    assert fewest_moves(problem([(0, (20, 0))], [30, 100], base=[40, 0])).least is None


def test_a_swap_is_found_where_nothing_fits_at_first() -> None:
    # 70 and 50 with ceilings of 60: 20 does not fit until 10 has come back.
    balancing = problem([(0, (50, 0)), (0, (20, 0)), (1, (40, 0)), (1, (10, 0))], [60, 60])
    moves = fewest_moves(balancing)
    assert moves.destination.tolist() == [NO_ROW, 1, NO_ROW, 0]
    assert (moves.cost, moves.least) == (2, 2)


def test_a_problem_too_large_to_search_keeps_its_gap() -> None:
    swap = [(0, (500, 0)), (0, (200, 0)), (1, (400, 0)), (1, (100, 0))]
    crowd = [(2, (1, 0))] * 1000
    moves = fewest_moves(problem(swap + crowd, [600, 600, 1000]))
    assert moves.least == 1
    assert not moves.reached


def test_the_order_of_equal_bundles_does_not_change_the_number() -> None:
    bundles = [(0, (20, 5)), (0, (20, 5)), (0, (10, 30)), (1, (5, 5)), (1, (30, 1))]
    forward = fewest_moves(problem(bundles, [40, 40, 40]))
    backward = fewest_moves(problem(bundles[::-1], [40, 40, 40]))
    assert (forward.cost, forward.least) == (backward.cost, backward.least)


def test_what_is_dearer_at_a_destination_needs_more_of_its_room() -> None:
    balancing = problem([(0, (40, 5)), (0, (40, 5))], [50, 50, 50], receives=[False, True, True])
    dearer = np.ones((3, 3))
    dearer[0, 1] = 1.5
    moves = fewest_moves(replace(balancing, dearer=dearer))
    assert (moves.reached, sorted(moves.destination.tolist())) == (True, [NO_ROW, 2])
    after = replace(balancing, dearer=dearer).load_after(np.array([1, NO_ROW], dtype=np.int32))
    assert after[1, [0, 3]].tolist() == [60 * PERCENT, 5 * PERCENT]
