"""What to simulate: one request, from the command line to Spark's executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Final

from pulsar_advisor.model.bounds import CYCLES, DEFAULT_CYCLES, REPLAY, SEED, SEEDS
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.planning.requests.request import Request

MOST_SCALE: Final = 1_000.0
MOST_NOISE: Final = 3.0


@dataclass(frozen=True)
class SimulationRequest:
    """Which combinations are simulated, under which settings and which load, and for how long."""

    combinations: Request
    """Shedders and placement strategies, the view, the history, the first seed; without a what-if."""
    what_if: Mapping[str, str] = field(default_factory=dict)
    grid: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Key -> values: every combination of values is simulated."""
    seeds: int = 1
    """How many seeds, counted from that of `combinations`; each draws other destinations and moments of measurement."""
    cycles: int = DEFAULT_CYCLES
    """The last cycle that is simulated."""
    scale: float = 1.0
    """Load of every bundle, relative to the snapshot's."""
    noise: float = 0.0
    """Standard deviation of the logarithm of each bundle's load, drawn anew in every cycle."""
    replay: int = 0
    """How many earlier snapshots give the load, one after the other, before it is the snapshot's."""

    def __post_init__(self) -> None:
        """Refuse unusable settings and numbers out of bounds before anything is read."""
        CYCLES.check(self.cycles)
        SEEDS.check(self.seeds)
        REPLAY.check(self.replay)
        SEED.check(self.combinations.seed + self.seeds - 1)
        for option, value, greatest in (("--load", self.scale, MOST_SCALE), ("--noise", self.noise, MOST_NOISE)):
            if not 0 <= value <= greatest:
                raise UsageError(f"{option} {value:g} is out of bounds: give a number from 0 to {greatest:g}")
        if both := sorted(self.what_if.keys() & self.grid.keys()):
            raise UsageError(f"{both[0]} is in --set and in --grid: give it once")
        if not (self.what_if or self.grid):
            return
        from pulsar_advisor.planning.requests.what_if import check_what_if  # loads numpy: other refusals do without
        from pulsar_advisor.simulation.intervals import SETTING_KEYS

        given = [*self.what_if.items(), *((key, value) for key, values in self.grid.items() for value in values)]
        for key, text in given:
            check_what_if(key, text, also=frozenset(SETTING_KEYS))

    def points(self) -> Iterator[dict[str, str]]:
        """The what-if settings of each point of the grid; one point without a grid."""
        for values in product(*self.grid.values()):
            yield {**self.what_if, **dict(zip(self.grid, values, strict=True))}


def grid(pairs: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Settings given as `KEY=A,B,C`. Raises `UsageError` for anything else; a request checks keys and values."""
    values = {}
    for pair in pairs:
        key, separator, texts = pair.partition("=")
        each = tuple(dict.fromkeys(text.strip() for text in texts.split(",")))
        if not separator or not all(each):
            raise UsageError(f"'{pair}' is not KEY=A,B,C, for example loadBalancerSheddingGracePeriodMinutes=5,15,30")
        values[key.strip()] = each
    return values
