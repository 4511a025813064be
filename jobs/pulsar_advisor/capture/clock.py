"""How far a broker's clock is from ours, by the `Date` header of any answer."""

from __future__ import annotations

import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from pulsar_advisor.admin.transport import AdminTransport, NoAnswer


@dataclass(frozen=True)
class ClockDifference:
    """The broker's clock minus ours, in seconds: somewhere between the two, as `Date` has whole seconds."""

    at_least_s: float
    at_most_s: float

    @property
    def certain_s(self) -> float:
        """What is certain of it, signed: 0 where both clocks may be the same."""
        return max(self.at_least_s, 0.0) + min(self.at_most_s, 0.0)


def clock_difference(transport: AdminTransport, web_address: str) -> ClockDifference | None:
    """Ask a broker for its release and look at the time of its answer; None if there is no answer, or no time in it."""
    asked_at_s = time.time()
    try:
        answer = transport.request("GET", "/admin/v2/brokers/version", broker_url=web_address)
    except NoAnswer:
        return None
    answered_at_s = time.time()
    try:
        date_s = parsedate_to_datetime(answer.date).timestamp()
    except ValueError:
        return None
    return ClockDifference(date_s - answered_at_s, date_s + 1 - asked_at_s)
