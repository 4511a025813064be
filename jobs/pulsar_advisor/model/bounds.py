"""The numbers a user may choose, each with its minimum and maximum, and durations as people write them.

The command line, the Spark job and the forms of the DAGs take the same bounds from here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import strptime
from typing import Final

from pulsar_advisor.model.errors import UsageError

_SECONDS_OF: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "y": 365 * 86_400}
_WHOLE_NUMBER: Final = re.compile(r"\d{1,15}", re.ASCII)
"""Longer digit strings are refused: Python can't convert every one of them."""


def seconds(text: str) -> int:
    """A duration such as 90s, 30m, 4h, 1d or 1y (365 days), in seconds. Raises `UsageError`."""
    number, unit = text[:-1], text[-1:]
    if unit not in _SECONDS_OF or not _WHOLE_NUMBER.fullmatch(number):
        raise UsageError(f"'{text}' is not a duration: give a whole number with s, m, h, d or y, for example 4h")
    return int(number) * _SECONDS_OF[unit]


def next_time(text: str, now: datetime) -> datetime:
    """The next moment after `now` at a time of day such as 06:00, in the time zone of `now`. Raises `UsageError`.

    Pass a local `now` without a zone: a fixed offset would be wrong after a change of the clocks. A time that comes
    twice that day counts both times, and one that is skipped comes as much later as the clocks are set ahead.
    """
    try:
        time = strptime(text, "%H:%M")
    except ValueError:
        raise UsageError(f"'{text}' is not a time of day: give hours and minutes, for example 06:00") from None
    today = now.replace(hour=time.tm_hour, minute=time.tm_min, second=0, microsecond=0, fold=0)
    times = (today, today.replace(fold=1), today + timedelta(days=1))
    at_s = next(at_s for at_s in (one.timestamp() for one in times) if at_s > now.timestamp())
    return datetime.fromtimestamp(at_s, now.tzinfo)


def duration(seconds: float) -> str:
    """Seconds as `seconds` reads them, in the largest unit that leaves no remainder."""
    unit = next((unit for unit in "dhm" if seconds and seconds % _SECONDS_OF[unit] == 0), "s")
    return f"{seconds / _SECONDS_OF[unit]:.15g}{unit}"


def ratio(text: str) -> float:
    """A percentage such as 60% or 60, as a ratio. Raises `UsageError`."""
    number = text.removesuffix("%")
    if not _WHOLE_NUMBER.fullmatch(number):
        raise UsageError(f"'{text}' is not a percentage: give a whole number, for example 60%")
    return int(number) / 100


@dataclass(frozen=True)
class Bounds:
    """The minimum and maximum of an option, both inclusive; seconds where `is_duration`."""

    option: str
    least: int
    greatest: int
    is_duration: bool = False

    def check(self, value: float | None) -> None:
        """Raise `UsageError` with option, value and bounds if the value is out of bounds; None means not chosen."""
        if value is None or self.least <= value <= self.greatest:
            return
        kind = "duration" if self.is_duration else "whole number"
        raise UsageError(
            f"{self.option} {self.text(value)} is out of bounds: give a {kind} from {self.text(self.least)} to "
            f"{self.text(self.greatest)}"
        )

    def text(self, value: float) -> str:
        """A value as a user types it."""
        return duration(value) if self.is_duration else f"{value:,}"


MAX_UNLOADS: Final = Bounds("--max-unloads", 0, 10_000)
MAX_SPLITS: Final = Bounds("--max-splits", 0, 1_000)
MAX_PER_SOURCE: Final = Bounds("--max-per-source", 1, 10_000)
MAX_TOPICS: Final = Bounds("--max-topics", 1, 100_000_000)
MAX_MEGABYTES: Final = Bounds("--max-megabytes-per-s", 1, 10_000_000)
HISTORY: Final = Bounds("--history", 0, 1_000)
SEED: Final = Bounds("--seed", 0, 2**53 - 1)  # the greatest whole number that canonical JSON writes exactly
CYCLES: Final = Bounds("--cycles", 1, 100_000)
DEFAULT_CYCLES: Final = 120
"""Of a simulation. Two hours at Pulsar's default interval: four grace periods."""
SEEDS: Final = Bounds("--seeds", 1, 10_000)
REPLAY: Final = Bounds("--replay", 0, HISTORY.greatest)
EXPIRES: Final = Bounds("--expires", 1, 3 * 86_400, is_duration=True)
VALID_FOR_S: Final = 4 * 3600
"""How long an approval is valid by default."""
MAX_AGE: Final = Bounds("--max-age", 0, 3_650 * 86_400, is_duration=True)
PAUSE_BETWEEN: Final = Bounds("--pause-between", 0, 3_600, is_duration=True)
CANARY_HOLD: Final = Bounds("--canary-hold", 0, 3_600, is_duration=True)
ERROR_BUDGET: Final = Bounds("--error-budget", 0, 100)
IN_FLIGHT: Final = Bounds("--in-flight", 1, 100)
PER_SOURCE: Final = Bounds("--per-source", 1, 100)
PER_DESTINATION: Final = Bounds("--per-destination", 1, 100)
PER_NAMESPACE: Final = Bounds("--per-namespace", 1, 100)
TOPICS_PER_MINUTE: Final = Bounds("--topics-per-minute", 1, 10_000_000)
PROBE_GAP: Final = Bounds("--probe-gap", 1, 600, is_duration=True)
MAX_REQUESTS: Final = Bounds("--max-requests", 1, 10_000_000)
LISTEN: Final = Bounds("--listen", 0, 900, is_duration=True)
KEEP_DAYS: Final = Bounds("--keep-days", 1, 36_500)
KEEP_COUNT: Final = Bounds("--keep-count", 1, 1_000_000)
TREND_DAYS: Final = Bounds("--days", 1, 3_660)
DEFAULT_DAYS: Final = 28
"""Days of a cluster's history that are shown or imported: whole weeks."""
IMPORT_DAYS: Final = Bounds("--days", 1, 400)
IMPORT_STEP: Final = Bounds("--step", 10, 3_600, is_duration=True)
WATCH: Final = Bounds("--watch", 1, 86_400)
