"""A run that waits without a process: why, for how long, and with what pace it goes on afterwards.

A parked run stays active in the ledger, so no other run starts on its cluster, and no process holds it. Whoever parked
it waits in its place, and continues it with the same `Parking`: a wait that is over isn't waited again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from pulsar_advisor.execution.run.pace import Pace


@dataclass(frozen=True)
class Parking:
    """One wait."""

    why: Literal["hold", "pause", "request"]
    """hold: the first step's result must last. pause: between two waves. request: until whoever asked lets it go on."""
    wait_s: float
    pace: Pace = field(default_factory=Pace)

    @property
    def sentence(self) -> str:
        """The wait, for a person."""
        if self.why == "request":
            return "paused, until somebody lets it go on"
        return f"waits {self.wait_s:g} s {'while the first step holds' if self.why == 'hold' else 'between two waves'}"

    def as_document(self) -> dict[str, Any]:
        """The wait as JSON data."""
        return asdict(self)


def parking_of(document: Mapping[str, Any]) -> Parking:
    """The opposite of `as_document`."""
    return Parking(document["why"], document["wait_s"], Pace(**document["pace"]))


class Parked(Exception):
    """The run is to wait here without this process."""

    def __init__(self, parking: Parking) -> None:
        super().__init__(parking.sentence)
        self.parking = parking
