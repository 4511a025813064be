"""The answers of a strategy: one member per answer, and columns that refer to them."""

from __future__ import annotations

import numpy as np

from pulsar_advisor.model.outcomes import Outcome, Outcomes, no, vocabulary, yes


class Sort(Outcome):
    RIPE = yes("{left:.0f} days old, {right:.0f} are enough", ">=")
    GREEN = no("{left:.0f} days old, {right:.0f} are needed", "<")
    ROTTEN = no("past use")


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
    assert [int(answer) for answer in Sort] == [0, 1, 2]
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
