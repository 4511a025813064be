"""The cheapest choice of columns within bounds."""

from __future__ import annotations

import numpy as np
import pytest

from pulsar_advisor.shedding.integer_program import Rows, cheapest

COLUMN = np.arange(3)
WEIGHT = np.array([4.0, 3.0, 2.0])
ONE_ROW = np.zeros(3, dtype=np.int64)


def weighing(least: float) -> Rows:
    return Rows(((WEIGHT, ONE_ROW, COLUMN),), least, np.array([np.inf]))


def test_the_cheapest_columns_that_reach_a_sum_are_chosen() -> None:
    answer = cheapest(np.array([5.0, 2.0, 2.0]), [weighing(5)], nodes=100)
    assert answer.feasible
    assert answer.bound == pytest.approx(4)
    assert answer.chosen is not None
    assert answer.chosen.tolist() == [False, True, True]


def test_all_rows_hold_at_once() -> None:
    not_both_light = Rows(((np.ones(2), np.zeros(2, dtype=np.int64), np.array([1, 2])),), -np.inf, np.array([1.0]))
    answer = cheapest(np.array([5.0, 2.0, 2.0]), [weighing(5), not_both_light], nodes=100)
    assert answer.chosen is not None
    assert answer.chosen.tolist() == [True, False, True] or answer.chosen.tolist() == [True, True, False]
    assert answer.bound == pytest.approx(7)


def test_entries_of_several_rows_and_signs_add_up() -> None:
    """A column that fills one row and empties another, as a bundle does that moves."""
    fills = np.array([2.0, 2.0]), np.array([0, 1]), np.array([0, 1])
    empties = np.array([-2.0, -2.0]), np.array([1, 0]), np.array([0, 1])
    answer = cheapest(np.ones(2), [Rows((fills, empties), -np.inf, np.array([3.0, -1.0]))], nodes=100)
    assert answer.chosen is not None
    assert answer.chosen.tolist() == [True, False]


def test_a_choice_that_no_column_allows_is_proven_impossible() -> None:
    answer = cheapest(np.ones(3), [weighing(10)], nodes=100)
    assert not answer.feasible
    assert answer.chosen is None


def test_of_numbers_that_no_solver_can_use_nothing_is_found_nor_proven() -> None:
    too_much = Rows(((np.array([4.0, 1e16, 2.0]), ONE_ROW, COLUMN),), 5, np.array([np.inf]))
    answer = cheapest(np.ones(3), [too_much], nodes=100)
    assert answer.feasible
    assert not np.isfinite(answer.bound)
    assert answer.chosen is None


def test_the_solver_writes_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """Standard output belongs to the commands' results."""
    cheapest(np.ones(3), [weighing(5)], nodes=100)
    assert capfd.readouterr() == ("", "")
