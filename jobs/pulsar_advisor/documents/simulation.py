"""The result of `simulate`: how each simulation ends, and what it costs until then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from pulsar_advisor.documents.document import OfSnapshot, Part
from pulsar_advisor.model.configuration.kinds import View
from pulsar_advisor.simulation.scores import Ending


@dataclass(frozen=True, kw_only=True)
class _Key:
    shedder: str
    placement: str
    what_if: str
    """The settings that differ from the cluster's own, `KEY=VALUE` with blanks between."""
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class SimulatedScore(Ending, _Key):
    """How one combination of strategies and settings ends."""

    error: None = None


@dataclass(frozen=True, kw_only=True)
class NotSimulated(_Key):
    """A combination that could not be simulated, and why."""

    error: str


class Strategies(Part):
    """A shedder and a placement strategy."""

    shedder: str
    placement: str


class Simulated(Part):
    """What was simulated."""

    what_if: Mapping[str, str]
    grid: Mapping[str, tuple[str, ...]]
    seed: int
    seeds: int
    cycles: int
    load: float
    noise: float
    replay: int


class SimulationResult(OfSnapshot):
    """How simulations end, one row for each."""

    SCHEMA: ClassVar = "pulsar-advisor/simulation/1"
    MADE_BY: ClassVar = "simulate"

    view: View
    model: Literal["base_load"]
    request: Simulated
    interval_minutes: int
    own: Strategies
    """The cluster's own."""
    switched_off_by: tuple[str, ...] = ()
    """Switches that keep it from shedding; the simulations take them as on."""
    not_simulated: str | None = None
    """What of this cluster the simulations leave out, as a sentence."""
    scores: tuple[SimulatedScore | NotSimulated, ...]
