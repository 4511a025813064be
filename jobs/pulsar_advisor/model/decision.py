"""What a shedder, a placement strategy and a split decider answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pulsar_advisor.model.cluster_state import Indices
from pulsar_advisor.model.outcomes import Outcomes


@dataclass(frozen=True, eq=False)
class SheddingDecision:
    """Bundles to unload, in the order Pulsar would unload them, and the answer about everything that was looked at."""

    source: Indices
    bundle: Indices
    destination: Indices
    """NOBODY where the placement strategy is to decide."""
    brokers: Outcomes
    bundles: Outcomes
    figures: Mapping[str, object] = field(default_factory=dict)
    """What the strategy computed on the way and a reader wants to see: averages, thresholds, counters, by name."""


@dataclass(frozen=True, eq=False)
class PlacementDecision:
    """The brokers a bundle may go to after the strategy had its say, and the answer about every candidate."""

    eligible: Indices
    """Brokers among which Pulsar draws; one where the choice is not random; empty where there is none."""
    brokers: Outcomes


@dataclass(frozen=True)
class Split:
    """One bundle to split: where, by which algorithm, and why."""

    bundle: int
    algorithm: str
    boundaries: tuple[int, ...]
    """Distinct, ascending, strictly inside the bundle; empty where the algorithm finds nothing to do."""
    reason: str
    near_tie: bool
    """Whether the deciding inequality was decided by a near-ties."""


@dataclass(frozen=True, eq=False)
class SplittingDecision:
    """Bundles to split, in the order in which they would be, and the answer about every bundle looked at."""

    splits: tuple[Split, ...]
    bundles: Outcomes
