"""How far a broker's clock is from ours, by the `Date` header of any answer."""

from __future__ import annotations

from dataclasses import dataclass
from email.utils import parsedate_to_datetime


@dataclass(frozen=True)
class ClockDifference:
    """The broker's clock minus ours, in seconds: somewhere between the two, as `Date` has whole seconds."""

    at_least_s: float
    at_most_s: float

    @property
    def certain_s(self) -> float:
        """What is certain of it, signed: 0 where both clocks may be the same."""
        return max(self.at_least_s, 0.0) + min(self.at_most_s, 0.0)


def clock_difference(date: str, asked_at_s: float, answered_at_s: float) -> ClockDifference | None:
    """By the `Date` of an answer that came between two moments of our clock (epoch seconds); None if it is no time."""
    try:
        date_s = parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError, LookupError, TypeError):  # of a date of the year 99999999999, among others
        return None
    return ClockDifference(date_s - answered_at_s, date_s + 1 - asked_at_s)
