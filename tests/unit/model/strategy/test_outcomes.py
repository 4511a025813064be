"""The answers of a strategy: one member per answer, and columns that refer to them."""

from __future__ import annotations

import numpy as np

from pulsar_advisor.model.strategy.outcomes import Outcome, Outcomes, no, vocabulary, yes


class Sort(Outcome):
    RIPE = yes("{left:g} days old, {right:g} are enough", ">=")
    GREEN = no("{left:g} days old, {right:g} are needed", "<")
    SOUR = no("{left:g} g of sugar, {right:g} are needed", "<", same_question=True)
    ROTTEN = no("past use")
    IN_PAIRS = no("{left:.0f} on the branch, {right:.0f} are needed", "<=")


def outcomes(*rows: tuple[Sort, float, float]) -> Outcomes:
    code, left, right = zip(*rows, strict=True)
    return Outcomes(
        "bundle",
        vocabulary(Sort),
        np.arange(len(rows)),
        np.array(code, dtype=np.uint8),
        np.array(left),
        np.array(right),
    )


def test_an_answer_is_its_position_and_is_spelt_in_lower_case() -> None:
    assert [int(answer) for answer in Sort] == [0, 1, 2, 3, 4]
    assert Sort.GREEN.code == "green"


def test_a_row_is_explained_with_both_sides_of_its_inequality() -> None:
    answers = outcomes((Sort.GREEN, 3.0, 7.0), (Sort.ROTTEN, np.nan, np.nan))
    assert [answers.explain(row) for row in range(2)] == ["3 days old, 7 are needed", "past use"]


def test_a_vocabulary_lists_the_answers_of_one_class_after_those_of_another() -> None:
    class More(Outcome):
        EATEN = no("is gone")

    assert vocabulary(Sort, More) == (*Sort, *More)
    assert vocabulary(Sort, More)[len(Sort)].code == "eaten"


def test_each_row_says_whether_it_is_chosen() -> None:
    assert outcomes((Sort.RIPE, 8.0, 7.0), (Sort.GREEN, 3.0, 7.0)).chosen().tolist() == [True, False]


def test_equal_sides_are_a_near_tie_only_where_they_were_compared() -> None:
    answers = outcomes((Sort.RIPE, 7.0, 7.0), (Sort.GREEN, 6.0, 7.0), (Sort.ROTTEN, 1.0, 1.0))
    assert answers.near_tie().tolist() == [True, False, False]


def test_equal_counts_have_no_last_digit() -> None:
    assert outcomes((Sort.IN_PAIRS, 2.0, 2.0)).near_tie().tolist() == [False]


def test_the_nearest_got_furthest_and_among_those_missed_by_least_whatever_the_figure() -> None:
    answers = outcomes(
        (Sort.GREEN, 6.5, 7.0), (Sort.SOUR, 1.0, 7.0), (Sort.GREEN, 1.0, 7.0), (Sort.SOUR, 6.9, 7.0), (Sort.RIPE, 9, 7)
    )
    assert answers.nearest_first(np.arange(5)).tolist() == [4, 3, 0, 1, 2]
    assert outcomes((Sort.GREEN, 6.9, 7.0), (Sort.IN_PAIRS, 1.0, 2.0)).decisive() == 1


def test_of_the_chosen_the_clearest_comes_first() -> None:
    answers = outcomes((Sort.RIPE, 7.0, 7.0), (Sort.RIPE, 9.0, 7.0), (Sort.RIPE, 8.0, 7.0), (Sort.GREEN, 6.0, 7.0))
    assert answers.nearest_first(np.arange(4)).tolist() == [1, 2, 0, 3]


def test_too_much_by_far_is_further_away_than_too_much_by_little() -> None:
    class Load(Outcome):
        TOO_LARGE = no("{left:g} exceeds {right:g}", ">")

    left, right = np.array([2000.0, 110.0]), np.array([100.0, 100.0])
    answers = Outcomes("bundle", vocabulary(Load), np.arange(2), np.zeros(2, dtype=np.uint8), left, right)
    assert answers.decisive() == 1
