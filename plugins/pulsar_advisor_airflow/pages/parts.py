"""Parts of lists: how many rows a page shows, and where the next ones begin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.tables import Event

ROWS_SHOWN: Final = 30
"""Rows shown of each of a cluster's lists."""
STEPS_SHOWN: Final = 200
EVENTS_SHOWN: Final = 100

Shown = TypeVar("Shown")


@dataclass(frozen=True)
class Part(Generic[Shown]):
    """A part of a list, and what the address of the next part contains; None: there is no next part."""

    rows: Sequence[Shown]
    rest: str | int | None


_Offset = Annotated[int, Field(ge=0, le=2**31)]


class Offsets(BaseModel):
    """Where the requested parts of a page's lists begin; by default the first ones."""

    model_config = ConfigDict(frozen=True)

    snapshots_before: Annotated[str | None, Field(pattern=r"^[0-9]{8}T[0-9]{6}Z$")] = None
    plans_from: _Offset = 0
    runs_from: _Offset = 0
    steps_from: _Offset = 0
    events_before: _Offset | None = None


def part(rows: Sequence[Shown], count: int, rest: Callable[[Shown], str | int]) -> Part[Shown]:
    """The first `count` rows; if there are more, `rest` of the last one shown says where they begin."""
    return Part(rows[:count], rest(rows[count - 1]) if len(rows) > count else None)


def events_of_plan(ledger: Ledger, digest: str, offsets: Offsets, run: int | None = None) -> Part[Event]:
    """The newest events, or those before one, oldest first."""
    events = ledger.events(digest, run, offsets.events_before, EVENTS_SHOWN + 1)
    newest_first = part(events[::-1], EVENTS_SHOWN, lambda event: event.id)
    return Part(newest_first.rows[::-1], newest_first.rest)
