"""The offset of a broker's clock from ours, measured by the `Date` header of any response."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime


@dataclass(frozen=True)
class ClockDifference:
    """The broker's clock minus ours, in seconds: a value between the two bounds, as `Date` counts whole seconds."""

    at_least_s: float
    at_most_s: float

    @property
    def certain_s(self) -> float:
        """The offset that is certain, signed: 0 where both clocks may agree."""
        return max(self.at_least_s, 0.0) + min(self.at_most_s, 0.0)


def clock_difference(date: str, asked_at_s: float, answered_at_s: float) -> ClockDifference | None:
    """The offset, given a `Date` received between two moments of our clock (epoch seconds); None if it isn't a time."""
    try:
        found = parsedate_to_datetime(date)
        # The forms of RFC 9110, 5.6.7, that name no zone are in UTC.
        date_s = (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, LookupError, TypeError):  # raised for the year 99999999999, among others
        return None
    return ClockDifference(date_s - answered_at_s, date_s + 1 - asked_at_s)
