"""The id of a snapshot: the second in which its capture began, or the next one that was free."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from pulsar_advisor.model.errors import UsageError

_DAY_DIGITS: Final = 8
_HOUR_DIGITS: Final = slice(9, 11)
_SNAPSHOT_ID: Final = re.compile(r"[0-9]{8}T[0-9]{6}Z")


def snapshot_id(moment: datetime) -> str:
    """`20261121T083000Z` for an aware datetime."""
    return moment.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")


def snapshot_moment(snapshot: str) -> datetime:
    """When a snapshot began, by its id; aware. Raises `ValueError` if it is not an id, or not a valid date."""
    if not _SNAPSHOT_ID.fullmatch(snapshot):
        raise ValueError("not a snapshot id of the form 20261121T083000Z")
    return datetime.strptime(snapshot, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)


def midnight(day: str) -> datetime:
    """When a day (`YYYYMMDD`, UTC) began; aware. Raises as `snapshot_moment`."""
    return snapshot_moment(f"{day}T000000Z")


def day_of(snapshot: str) -> str:
    """The day (UTC) of a snapshot's id, `YYYYMMDD`."""
    return snapshot[:_DAY_DIGITS]


def hour_of(snapshot: str) -> int:
    """The hour (UTC, 0 to 23) of a snapshot's id."""
    return int(snapshot[_HOUR_DIGITS])


def require_day(text: str) -> str:
    """A day as `day_of` gives it. Raises `UsageError` for any other text."""
    if not is_snapshot_id(f"{text}T000000Z"):
        raise UsageError(f"'{text}' is not a day; expected the form 20261121, in UTC")
    return text


def is_snapshot_id(text: str) -> bool:
    """Whether a text is an id: of the right form, with a date and time that exist."""
    try:
        snapshot_moment(text)
    except ValueError:
        return False
    return True
