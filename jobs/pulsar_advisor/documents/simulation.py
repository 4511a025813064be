"""The result of `simulate`: how each simulation ends, and what it costs until then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

from pulsar_advisor.documents.document import Document, Part
from pulsar_advisor.model.configuration.kinds import View
from pulsar_advisor.simulation.scores import SimulationScore
from pulsar_advisor.simulation.simulate import Ended


class Ending(Part):
    """How a simulation ends, and what it costs until then: a row of the table `scores` without its key.

    What is disturbed is counted once for each unload. `first_` is the snapshot, `last_` the last cycle; usage is the
    weighted maximum, throughput is in and out.
    """

    ended: Ended
    worst_ended: Ended | None = None
    """At the worst of what is known of the base loads; null in earlier releases."""
    cycles: int
    repeats_cycle: int | None
    settles_in_cycles: int | None
    settles_in_minutes: float | None
    splits: int = 0
    unloads: int
    bundles: int
    bundles_moved_again: int
    topics: int
    producers: int
    consumers: int
    moved_throughput_bytes_per_s: float
    brokers_overshot: int
    highest_ratio: float
    lowest_maximum_ratio: float | None = None
    """The range of the busiest broker at the end; null where only the likely base loads were simulated."""
    highest_maximum_ratio: float | None = None
    first_usage_maximum_ratio: float
    first_usage_mean_ratio: float
    first_usage_standard_deviation_ratio: float
    first_usage_range_ratio: float
    first_usage_gini: float
    first_throughput_maximum_bytes_per_s: float
    first_throughput_mean_bytes_per_s: float
    first_throughput_standard_deviation_bytes_per_s: float
    first_throughput_range_bytes_per_s: float
    first_throughput_gini: float
    last_usage_maximum_ratio: float
    last_usage_mean_ratio: float
    last_usage_standard_deviation_ratio: float
    last_usage_range_ratio: float
    last_usage_gini: float
    last_throughput_maximum_bytes_per_s: float
    last_throughput_mean_bytes_per_s: float
    last_throughput_standard_deviation_bytes_per_s: float
    last_throughput_range_bytes_per_s: float
    last_throughput_gini: float

    @classmethod
    def of(cls, score: SimulationScore, **more: object) -> Self:
        """The ending of a simulation with this score."""
        return cls.model_validate({**score.columns(), **more})

    @property
    def happens(self) -> bool:
        """Whether anything is unloaded or split."""
        return bool(self.unloads or self.splits)

    @property
    def maximum_range_ratio(self) -> tuple[float, float]:
        """Least and greatest usage of the busiest broker at the end."""
        likely = self.last_usage_maximum_ratio
        lowest, highest = self.lowest_maximum_ratio, self.highest_maximum_ratio
        return likely if lowest is None else lowest, likely if highest is None else highest


class _Key(Part):
    shedder: str
    placement: str
    what_if: str
    """The settings that differ from the cluster's own, `KEY=VALUE` with blanks between."""
    seed: int = 0


class SimulatedScore(Ending, _Key):
    """How one combination of strategies and settings ends."""

    error: None = None


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


class SimulationResult(Document):
    """How simulations end, one row for each."""

    SCHEMA: ClassVar = "pulsar-advisor/simulation/1"
    MADE_BY: ClassVar = "simulate"

    cluster: str
    snapshot: str
    manifest_sha256: str
    view: View
    model: Literal["base_load"]
    request: Simulated
    interval_minutes: int
    own: Strategies
    """The cluster's own."""
    switched_off_by: tuple[str, ...] = ()
    """Switches that keep it from shedding; the simulations take them as on."""
    scores: tuple[SimulatedScore | NotSimulated, ...]
