"""Why a broker or bundle was chosen or left alone: one typed code and the inequality that decided it, as columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from pulsar_advisor.model.cluster_state import Floats, Indices

Subject = Literal["broker", "bundle"]


@dataclass(frozen=True)
class Outcome:
    """One possible answer of a strategy about one broker or bundle.

    `sentence` is a format text with `{left}` and `{right}`, the two sides of the deciding inequality, formatted by the
    sentence itself, e.g. "usage {left:.1%} is below mean plus threshold {right:.1%}".
    """

    code: str
    chosen: bool
    relation: str
    """The relation that held between left and right: one of < <= > >= == and, where nothing was compared, empty."""
    sentence: str


@dataclass(frozen=True, eq=False)
class Outcomes:
    """A strategy's answers about brokers or bundles, columnar: row i speaks of `index[i]`."""

    subject: Subject
    vocabulary: tuple[Outcome, ...]
    index: Indices
    """Row of the broker or bundle in the cluster state."""
    code: npt.NDArray[np.uint8]
    """Index into `vocabulary`."""
    left: Floats
    right: Floats

    def __len__(self) -> int:
        return len(self.index)

    def explain(self, row: int) -> str:
        """The sentence of one row with both numbers in it."""
        outcome: Outcome = self.vocabulary[self.code[row]]
        return outcome.sentence.format(left=self.left[row], right=self.right[row])

    def near_tie(self, relative: float = 1e-9) -> npt.NDArray[np.bool_]:
        """Rows whose inequality was settled by the last digits: a recomputation elsewhere may fall the other way."""
        scale = np.maximum(np.abs(self.left), np.abs(self.right))
        compared = np.array([bool(outcome.relation) for outcome in self.vocabulary], dtype=np.bool_)[self.code]
        with np.errstate(invalid="ignore"):
            close: npt.NDArray[np.bool_] = np.abs(self.left - self.right) <= relative * scale
        return compared & close
