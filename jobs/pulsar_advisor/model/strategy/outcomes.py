"""Why a broker or bundle was chosen or left alone: one typed code and the inequality that decided it, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Any, Final, Literal, Self

import numpy as np
import numpy.typing as npt

from pulsar_advisor.model.cluster.cluster_state import Booleans, Floats, Indices

Subject = Literal["broker", "bundle"]
Codes = npt.NDArray[np.uint8]
Rows = npt.NDArray[np.integer[Any]] | Booleans | Sequence[int] | int

NEAR_TIE: Final = 1e-9
"""Margin, relative, up to which an inequality is decided by its last digits."""


class Outcome(IntEnum):
    """The answers of a strategy about one broker or bundle; a subclass lists them in the order of the questions.

    A member is `yes` if the strategy acts and `no` if it doesn't; its value is its position. Columns of codes are made
    from, and compared with, values, not members: numpy reads a plain integer ten times faster.

        class BrokerOutcome(Outcome):
            BELOW_THRESHOLD = no("usage {left:.2%} is below the overload threshold {right:.2%}", "<")
            OVERLOADED = yes("usage {left:.2%} has reached the overload threshold {right:.2%}", ">=")
    """

    sentence: str
    """A format text with `{left}` and `{right}`, the two sides of the deciding inequality."""
    relation: str
    """The relation that held between left and right: one of < <= > >= ==, or empty where nothing was compared."""
    chosen: bool
    question: int
    """The position of the first member that answers the same question, about another figure."""
    counted: bool
    """Whether the sides are counts, which are exact: computed elsewhere, they don't differ in the last digit."""

    def __new__(cls, sentence: str, relation: str, chosen: bool, same_question: bool) -> Self:
        """The next member; its value is its position."""
        position = len(cls.__members__)
        outcome = int.__new__(cls, position)
        outcome._value_ = position
        outcome.sentence, outcome.relation, outcome.chosen = sentence, relation, chosen
        outcome.question = [*cls][-1].question if same_question else position
        outcome.counted = "{left:.0f}" in sentence
        return outcome

    @property
    def code(self) -> str:
        """Its name in tables and reports."""
        return self.name.lower()


@cache
def vocabulary(*answers: type[Outcome]) -> tuple[Outcome, ...]:
    """The members of these classes, one class after the other."""
    return tuple(outcome for one in answers for outcome in one)


def yes(sentence: str, relation: str = "") -> tuple[str, str, bool, bool]:
    """An `Outcome` of something chosen. A left side written as `{left:.0f}` is a count."""
    return sentence, relation, True, False


def no(sentence: str, relation: str = "", *, same_question: bool = False) -> tuple[str, str, bool, bool]:
    """The same for something left alone; `same_question`: as in the member before, about another figure."""
    return sentence, relation, False, same_question


@dataclass(frozen=True, eq=False)
class Outcomes:
    """A strategy's answers about brokers or bundles, columnar: row i is about `index[i]`."""

    subject: Subject
    vocabulary: tuple[Outcome, ...]
    index: Indices
    """Row of the broker or bundle in the cluster state."""
    code: Codes
    """Index into `vocabulary`."""
    left: Floats
    right: Floats

    def __len__(self) -> int:
        return len(self.index)

    def explain(self, row: int) -> str:
        """The sentence of one row with both numbers filled in."""
        outcome: Outcome = self.vocabulary[self.code[row]]
        return outcome.sentence.format(left=self.left[row], right=self.right[row])

    def chosen(self) -> Booleans:
        """Per row, whether the strategy acts on it."""
        return np.array([outcome.chosen for outcome in self.vocabulary], dtype=np.bool_)[self.code]

    def decisive(self) -> int:
        """The row that decided when nothing was chosen: the nearest one. There must be at least one row."""
        return int(self.nearest_first(np.arange(len(self)))[0])

    def nearest_first(self, rows: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.integer[Any]]:
        """These rows: chosen ones first, by descending margin; then those that got furthest through the questions, by
        ascending margin.
        """
        question = np.array([outcome.question for outcome in self.vocabulary], dtype=np.int64)
        # Classes of a vocabulary are asked one after the other.
        starts = np.array([row - outcome for row, outcome in enumerate(self.vocabulary)], dtype=np.int64)
        asked = (starts + question)[self.code[rows]]
        margin, chosen = self.margin()[rows], self.chosen()[rows]
        return rows[np.lexsort((np.where(chosen, -margin, margin), -asked, ~chosen))]

    def near_tie(self) -> Booleans:
        """Rows whose inequality was a near tie: a recomputation elsewhere may decide differently."""
        counted = np.array([outcome.counted for outcome in self.vocabulary], dtype=np.bool_)[self.code]
        return (self.margin() <= NEAR_TIE) & ~counted

    def margin(self) -> Floats:
        """Per row, how far apart the two sides of its inequality are, relative to the greater: 0 is a tie.

        Infinite where nothing was compared, or a side isn't a number.
        """
        scale = np.maximum(np.abs(self.left), np.abs(self.right))
        compared = np.array([bool(outcome.relation) for outcome in self.vocabulary], dtype=np.bool_)[self.code]
        with np.errstate(invalid="ignore", divide="ignore"):
            apart = np.where(scale == 0, 0.0, np.abs(self.left - self.right) / scale)
        return np.where(compared & ~np.isnan(apart), apart, np.inf)


def about_brokers(
    rows: Indices,
    answers: type[Outcome],
    code: npt.NDArray[np.integer[Any]],
    left: npt.ArrayLike = np.nan,
    right: npt.ArrayLike = np.nan,
) -> Outcomes:
    """Answers about brokers: a code for each, and the sides of its inequality, for each or for all."""
    sides = (np.broadcast_to(np.asarray(side, dtype=np.float64), len(rows)) for side in (left, right))
    return Outcomes("broker", vocabulary(answers), rows, code.astype(np.uint8), *sides)


@dataclass(frozen=True, eq=False)
class Record:
    """The answer about each row, written down while a strategy decides: a later one replaces an earlier one."""

    code: Codes
    left: Floats
    right: Floats

    @classmethod
    def of(cls, number: int, answer: int, left: npt.ArrayLike = np.nan, right: npt.ArrayLike = np.nan) -> Self:
        """The same answer for this many rows; the sides of its inequality may differ between them."""
        sides = (np.full(number, side, dtype=np.float64) for side in (left, right))
        return cls(np.full(number, answer, dtype=np.uint8), *sides)

    def record(self, rows: Rows, answer: int, left: npt.ArrayLike = np.nan, right: npt.ArrayLike = np.nan) -> None:
        """Replace the answer about these rows."""
        self.code[rows], self.left[rows], self.right[rows] = answer, left, right

    def about_brokers(self, rows: Indices, answers: type[Outcome]) -> Outcomes:
        """The answers about these brokers, of a record with a row for each of the cluster's."""
        return about_brokers(rows, answers, self.code[rows], self.left[rows], self.right[rows])
