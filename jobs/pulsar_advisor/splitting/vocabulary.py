"""What a split decider can answer about a bundle: one vocabulary for the three managers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from pulsar_advisor.model.cluster_state import Booleans, Floats
from pulsar_advisor.model.outcomes import Outcome, Outcomes
from pulsar_advisor.splitting.limits import BundleFigures, SplitLimits, excess

Rows = npt.NDArray[np.intp] | Booleans | int


class Answer(IntEnum):
    """Position of an answer in `VOCABULARY`; two groups have one answer per limit, in the order of `limits.REASONS`."""

    FEW_TOPICS = 0
    NOT_OWNER = 1
    NARROW_RANGE = 2
    BELOW_TOPICS = 3
    """Plus the limit less one: below all limits, nearest to this one."""
    NAMESPACE_FULL = 7
    BUNDLE_COUNT_UNKNOWN = 8
    ONE_BROKER = 9
    NOT_IN_BOUNDARIES = 10
    HITS_PENDING = 11
    SPLITTING = 12
    NO_SINGLE_BOUNDARY = 13
    ALGORITHM_FAILS = 14
    BOUNDARY_OUTSIDE = 15
    NOT_REACHED = 16
    CYCLE_FAILS = 17
    TOPICS_UNKNOWN = 18
    SPLIT = 19
    """Plus the limit: chosen because it exceeds this one; 0 is none, where the threshold of hits is below zero."""


VOCABULARY: Final = (
    Outcome("few_topics", False, "<", "{left:.0f} loaded topics: a bundle of fewer than {right:.0f} is never split"),
    Outcome("not_owner", False, "", "the broker that reports the bundle is not its owner"),
    Outcome("narrow_range", False, "<=", "the range is {left:.0f} wide; only one wider than {right:.0f} can be split"),
    Outcome("below_limits_topics", False, "<=", "below all limits; nearest: {left:.0f} topics, limit {right:.0f}"),
    Outcome("below_limits_sessions", False, "<=", "below all limits; nearest: {left:.0f} sessions, limit {right:.0f}"),
    Outcome(
        "below_limits_msg_rate", False, "<=", "below all limits; nearest: {left:,.1f} messages/s, limit {right:,.0f}"
    ),
    Outcome(
        "below_limits_bandwidth", False, "<=", "below all limits; nearest: {left:,.0f} bytes/s, limit {right:,.0f}"
    ),
    Outcome(
        "namespace_full",
        False,
        ">=",
        "too big, but the namespace would have {left:.0f} bundles already, its maximum is {right:.0f}",
    ),
    Outcome("bundle_count_unknown", False, "", "too big, but the bundles of its namespace can't be counted"),
    Outcome(
        "one_broker", False, "<=", "too big, but {left:.0f} known brokers: Pulsar splits with more than {right:.0f}"
    ),
    Outcome("not_in_boundaries", False, "", "too big, but no longer among the bundles of its namespace"),
    Outcome("hits_pending", False, "<=", "too big {left:.0f} times in a row; split only after more than {right:.0f}"),
    Outcome("splitting", False, "", "too big, but a bundle of its namespace that shares a bound is being split"),
    Outcome(
        "no_single_boundary",
        False,
        "",
        "too big, but the algorithm gives {left:.0f} boundaries and the manager takes exactly {right:.0f}",
    ),
    Outcome("algorithm_fails", False, "", "too big, but the configured algorithm refuses the bundle"),
    Outcome("boundary_outside", False, "", "too big, but the boundary {left:.0f} is not strictly inside the bundle"),
    Outcome(
        "not_reached", False, ">=", "not looked at: the cycle stopped after {left:.0f} splits, its most is {right:.0f}"
    ),
    Outcome("cycle_fails", False, "", "the broker's cycle ends with an error: a boundary lies outside its bundle"),
    Outcome("topics_unknown", False, "", "too big, but the names of its topics are not completely known"),
    Outcome("split", True, "", "chosen without a limit exceeded: the threshold of hits is below zero"),
    Outcome("split_topics", True, ">", "{left:.0f} topics exceed the limit of {right:.0f}"),
    Outcome("split_sessions", True, ">", "{left:.0f} sessions exceed the limit of {right:.0f}"),
    Outcome("split_msg_rate", True, ">", "{left:,.1f} messages/s exceed the limit of {right:,.0f}"),
    Outcome("split_bandwidth", True, ">", "{left:,.0f} bytes/s exceed the limit of {right:,.0f}"),
)


@dataclass(frozen=True, eq=False)
class Verdicts:
    """The answer about each row of a decider's figures, written down while it decides."""

    code: npt.NDArray[np.uint8]
    left: Floats
    right: Floats

    @classmethod
    def by_limits(cls, figures: BundleFigures, limits: SplitLimits) -> Verdicts:
        """Every bundle that exceeds a limit chosen, every other one below its nearest limit."""
        found = excess(figures, limits)
        code = np.where(found.exceeded, Answer.SPLIT + found.limit, Answer.BELOW_TOPICS - 1 + found.limit)
        return cls(code.astype(np.uint8), found.left, found.right)

    def tell(self, rows: Rows, answer: Answer, left: npt.ArrayLike = math.nan, right: npt.ArrayLike = math.nan) -> None:
        """Replaces the answer about these rows."""
        self.code[rows] = answer
        self.left[rows] = left
        self.right[rows] = right

    def chosen(self) -> npt.NDArray[np.intp]:
        """Rows chosen so far, in visiting order."""
        return np.flatnonzero(self.code >= Answer.SPLIT)

    def outcomes(self, figures: BundleFigures) -> Outcomes:
        """The answers as columns, and each with its sentence."""
        return Outcomes("bundle", VOCABULARY, figures.index, self.code, self.left, self.right)


def joined(parts: Sequence[Outcomes]) -> Outcomes:
    """The answers of several brokers, one after the other."""
    return Outcomes(
        subject="bundle",
        vocabulary=VOCABULARY,
        index=np.concatenate([*(part.index for part in parts), np.empty(0, dtype=np.int32)]),
        code=np.concatenate([*(part.code for part in parts), np.empty(0, dtype=np.uint8)]),
        left=np.concatenate([*(part.left for part in parts), np.empty(0)]),
        right=np.concatenate([*(part.right for part in parts), np.empty(0)]),
    )
