"""The answers of a split decider about a bundle, the same for the three managers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pulsar_advisor.model.strategy.outcomes import Outcome, Outcomes, Record, no, vocabulary, yes
from pulsar_advisor.splitting.limits import BundleFigures, SplitLimits, excess


class SplitOutcome(Outcome):
    """The answers of a split decider about a bundle.

    Two groups have one answer per limit, in the order of `limits.REASONS`: the limit plus SPLIT if it is exceeded (0
    is no limit, if the threshold of hits is below zero), plus BELOW_LIMITS_TOPICS less one if it is the nearest.
    """

    FEW_TOPICS = no("a bundle of fewer than {right:.0f} loaded topics is never split: it has {left:.0f}", "<")
    NOT_OWNER = no("the broker that reports the bundle is not its owner")
    NARROW_RANGE = no("the range has width {left:.0f}; only ranges wider than {right:.0f} can be split", "<=")
    BELOW_LIMITS_TOPICS = no("below all limits; closest: {left:,.0f} topics, limit {right:,.0f}", "<=")
    BELOW_LIMITS_SESSIONS = no(
        "below all limits; closest: {left:,.0f} sessions, limit {right:,.0f}", "<=", same_question=True
    )
    BELOW_LIMITS_MSG_RATE = no(
        "below all limits; closest: {left:,.1f} messages/s, limit {right:,.0f}", "<=", same_question=True
    )
    BELOW_LIMITS_BANDWIDTH = no(
        "below all limits; closest: {left:,.0f} bytes/s, limit {right:,.0f}", "<=", same_question=True
    )
    NAMESPACE_FULL = no(
        "too big, but its namespace has {left:.0f} bundles, with the splits chosen before; its maximum is {right:.0f}",
        ">=",
    )
    BUNDLE_COUNT_UNKNOWN = no("too big, but the bundles of its namespace can't be counted")
    PASS_FAILS = no("too big, but its broker's pass fails: the bundles of another namespace can't be counted")
    ONE_BROKER = no("too big, but Pulsar needs more than {right:.0f} known brokers: it has {left:.0f}", "<=")
    NOT_IN_BOUNDARIES = no("too big, but no longer among the bundles of its namespace")
    HITS_PENDING = no("too big {left:.0f} times in a row; split only after more than {right:.0f}", "<=")
    SPLITTING = no("too big, but a bundle of its namespace that shares a bound is being split")
    NO_SINGLE_BOUNDARY = no(
        "too big, but the algorithm gives {left:.0f} boundaries and the manager accepts exactly {right:.0f}"
    )
    ALGORITHM_FAILS = no("too big, but the configured algorithm refuses the bundle")
    BOUNDARY_OUTSIDE = no("too big, but the boundary {left:.0f} is not strictly inside the bundle")
    NOT_REACHED = no("not considered: the cycle stopped after {left:.0f} splits; the maximum is {right:.0f}", ">=")
    CYCLE_FAILS = no("the broker's cycle ends with an error: a boundary lies outside its bundle")
    TOPICS_UNKNOWN = no("too big, but its topic names are not completely known")
    SPLIT = yes("chosen without exceeding a limit: the hit threshold is negative")
    SPLIT_TOPICS = yes("{left:.0f} topics exceed the limit of {right:.0f}", ">")
    SPLIT_SESSIONS = yes("{left:.0f} sessions exceed the limit of {right:.0f}", ">")
    SPLIT_MSG_RATE = yes("{left:,.1f} messages/s exceed the limit of {right:,.0f}", ">")
    SPLIT_BANDWIDTH = yes("{left:,.0f} bytes/s exceed the limit of {right:,.0f}", ">")


class Verdicts(Record):
    """The answer about each row of a decider's figures."""

    @classmethod
    def by_limits(cls, figures: BundleFigures, limits: SplitLimits) -> Verdicts:
        """Every bundle that exceeds a limit is chosen, every other one is below its nearest limit."""
        found = excess(figures, limits)
        code = np.where(
            found.exceeded, SplitOutcome.SPLIT + found.limit, SplitOutcome.BELOW_LIMITS_TOPICS - 1 + found.limit
        )
        return cls(code.astype(np.uint8), found.left, found.right)

    def chosen(self) -> npt.NDArray[np.intp]:
        """Rows chosen so far, in visiting order."""
        return np.flatnonzero(self.code >= SplitOutcome.SPLIT)

    def outcomes(self, figures: BundleFigures) -> Outcomes:
        """The answers as columns, each with its sentence."""
        return Outcomes("bundle", vocabulary(SplitOutcome), figures.index, self.code, self.left, self.right)


def joined(parts: Sequence[Outcomes]) -> Outcomes:
    """The answers of several brokers, one after the other."""
    return Outcomes(
        subject="bundle",
        vocabulary=vocabulary(SplitOutcome),
        index=np.concatenate([*(part.index for part in parts), np.empty(0, dtype=np.int32)]),
        code=np.concatenate([*(part.code for part in parts), np.empty(0, dtype=np.uint8)]),
        left=np.concatenate([*(part.left for part in parts), np.empty(0)]),
        right=np.concatenate([*(part.right for part in parts), np.empty(0)]),
    )
