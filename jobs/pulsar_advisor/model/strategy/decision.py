"""The answers of a shedder, a placement strategy and a split decider."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pulsar_advisor.model.cluster.cluster_state import Indices
from pulsar_advisor.model.strategy.outcomes import Outcomes

Figure = int | float | tuple[str, ...] | Mapping[str, float] | None
"""An intermediate result of a decision; a mapping holds one for each broker id."""


@dataclass(frozen=True, eq=False)
class SheddingDecision:
    """Bundles to unload, in Pulsar's order, and an answer for everything that was examined."""

    source: Indices
    bundle: Indices
    destination: Indices
    """NO_ROW where the placement strategy decides."""
    brokers: Outcomes
    bundles: Outcomes
    figures: Mapping[str, Figure]
    """Intermediate results worth showing, by name: averages, thresholds, counters."""


@dataclass(frozen=True, eq=False)
class PlacementDecision:
    """The brokers a bundle may go to after the strategy's choice, and the answer about every candidate."""

    eligible: Indices
    """Brokers that Pulsar draws from; a single one if the choice is not random; empty without a candidate."""
    brokers: Outcomes
    otherwise: Indices | None = None
    """All brokers that it may draw from, if the figures that decide are only in the leader's memory; else None."""


@dataclass(frozen=True)
class Split:
    """One bundle to split: where, by which algorithm, and why."""

    bundle: int
    algorithm: str
    boundaries: tuple[int, ...]
    """Distinct, ascending, strictly inside the bundle; empty if the algorithm finds nothing to do."""
    reason: str
    near_tie: bool
    """Whether the deciding inequality was a near tie."""
    destinations: tuple[int, ...] = ()
    """Where each child is to go (a broker row), in order; empty where that is a placement strategy's choice."""


@dataclass(frozen=True, eq=False)
class SplittingDecision:
    """Bundles to split, in Pulsar's order, and the answer about every bundle that was examined."""

    splits: tuple[Split, ...]
    bundles: Outcomes
