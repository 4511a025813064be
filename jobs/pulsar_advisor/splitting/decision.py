"""What a split decider answers, and what it remembers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from pulsar_advisor.model.decision import SplitDecision
from pulsar_advisor.model.outcomes import Outcomes


@dataclass(frozen=True, eq=False)
class SplittingDecision:
    """Bundles to split, in the order in which they would be, and the answer about every bundle looked at."""

    splits: tuple[SplitDecision, ...]
    bundles: Outcomes


@dataclass(frozen=True)
class SplitMemory:
    """Hits of every broker's bundles between two cycles: broker id -> full bundle name -> hits.

    Only the Extensible manager counts hits; the others remember nothing.
    """

    hits: Mapping[str, Mapping[str, int]] = field(default_factory=lambda: MappingProxyType({}))
