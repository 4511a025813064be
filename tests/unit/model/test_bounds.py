from __future__ import annotations

from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.bounds import Bounds, duration, next_time, ratio, seconds
from pulsar_advisor.model.errors import UsageError

STEPS = Bounds("--steps", 0, 10_000)
PAUSE = Bounds("--pause", 1, 7200, is_duration=True)


@pytest.mark.parametrize(("text", "expected"), [("90s", 90), ("30m", 1800), ("4h", 14_400), ("1d", 86_400)])
def test_a_duration_is_a_whole_number_and_its_unit(text: str, expected: int) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "s", "4", "-5s", "1.5h", "4 h", "4w", "\u0664h", "9" * 5000 + "s"])
def test_anything_else_is_no_duration(text: str) -> None:
    with pytest.raises(UsageError, match="is not a duration: give a whole number with s, m, h, d or y"):
        seconds(text)


@pytest.mark.parametrize("text", ["", "%", "-5%", "1.5", "\u0664", "9" * 400])
def test_anything_else_is_no_percentage(text: str) -> None:
    with pytest.raises(UsageError, match="is not a percentage: give a whole number, for example 60%"):
        ratio(text)


@given(st.integers(0, 10**9))
def test_a_duration_is_read_back_as_it_is_written(number: int) -> None:
    assert seconds(duration(number)) == number


NIGHT = datetime(2026, 11, 22, 23, 30, tzinfo=timezone(timedelta(hours=1)))


@pytest.mark.parametrize(
    ("text", "expected"), [("23:31", (22, 23, 31)), ("06:00", (23, 6, 0)), ("23:30", (23, 23, 30))]
)
def test_the_next_time_of_day_may_be_tomorrow(text: str, expected: tuple[int, int, int]) -> None:
    found = next_time(text, NIGHT)
    assert (found.day, found.hour, found.minute, found.tzinfo) == (*expected, NIGHT.tzinfo)


BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ("2026-10-25T02:10+02:00", "2026-10-25T02:30+02:00"),
        ("2026-10-25T02:50+02:00", "2026-10-25T02:30+01:00"),
        ("2026-10-25T02:50+01:00", "2026-10-26T02:30+01:00"),
        ("2026-03-29T01:50+01:00", "2026-03-29T03:30+02:00"),
        ("2026-03-29T03:50+02:00", "2026-03-30T02:30+02:00"),
    ],
)
def test_a_time_of_day_may_come_twice_or_be_skipped(now: str, expected: str) -> None:
    found = next_time("02:30", datetime.fromisoformat(now).astimezone(BERLIN))
    assert found.isoformat(timespec="minutes") == expected


@pytest.mark.parametrize("text", ["", "6", "24:00", "06:60", "06:00:00", "six"])
def test_anything_else_is_no_time_of_day(text: str) -> None:
    with pytest.raises(UsageError, match="is not a time of day: give hours and minutes"):
        next_time(text, NIGHT)


@pytest.mark.parametrize("value", [None, 0, 10_000])
def test_both_ends_are_within_and_so_is_no_choice(value: int | None) -> None:
    STEPS.check(value)


@pytest.mark.parametrize(
    ("bounds", "value", "says"),
    [
        (STEPS, -3, "--steps -3 is out of bounds: give a whole number from 0 to 10,000"),
        (STEPS, 10_001, "--steps 10,001 is out of bounds"),
        (PAUSE, 86_400, "--pause 1d is out of bounds: give a duration from 1s to 2h"),
        (PAUSE, 0.5, "--pause 0.5s is out of bounds"),
    ],
)
def test_a_value_out_of_bounds_is_refused_with_the_bounds(bounds: Bounds, value: float, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        bounds.check(value)
