"""A run that waits without a process: why, for how long, and at what pace it continues.

A parked run stays active in the ledger, so no other run starts on its cluster, and no process holds it. Whoever parked
it waits in its place, and continues it with the same `Parking`, so that no wait is repeated.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pydantic import TypeAdapter

from pulsar_advisor.execution.ledger.tables import Hold
from pulsar_advisor.execution.run.pace import Pace
from pulsar_advisor.model.plans.canonical_json import Json


@dataclass(frozen=True)
class Parking:
    """One wait."""

    why: Literal["hold", "pause", "request"]
    """hold: the first step's result must last. pause: between two waves. request: until whoever asked lets it go on."""
    wait_s: float
    pace: Pace = field(default_factory=Pace)
    hold: Hold | None = None
    """What whoever parked the run had of it; None if it isn't parked yet, or an earlier release parked it."""

    @property
    def sentence(self) -> str:
        """The wait, for a person."""
        if self.why == "request":
            return "paused, until somebody lets it go on"
        return f"waits {self.wait_s:g} s {'while the first step holds' if self.why == 'hold' else 'between two waves'}"


def parking_of(fields: Json) -> Parking:
    """The wait from which this or an earlier release's `as_json` made the text."""
    return TypeAdapter(Parking).validate_python(fields)


class Parked(Exception):
    """Raised where the run is to wait without this process."""

    def __init__(self, parking: Parking) -> None:
        super().__init__(parking.sentence)
        self.parking = parking
