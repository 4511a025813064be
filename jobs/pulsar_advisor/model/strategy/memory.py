"""What strategies remember from one cycle to the next; a shedder with more to remember defines another type."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Self

MOST_CYCLES: Final = 10
"""How often the same figures are fed, cycle after cycle, before a strategy counts as not acting on them."""


class ShedderMemory:
    """What a shedder carries from one cycle to the next."""

    def forget_departed(self, _active: Collection[str], /) -> Self:
        """What remains of it when only the brokers with these ids are active.

        Source: Pulsar `LoadSheddingStrategy.onActiveBrokersChange`, which forgets nothing by default.
        """
        return self

    def after_unloads(self, _sources: Collection[str], _now_ms: int, /) -> Self:
        """What it is once bundles have been unloaded from the brokers with these ids, at this time (epoch ms).

        Most shedders learn of their unloads only from the load that changes.
        """
        return self


@dataclass(frozen=True)
class NoMemory(ShedderMemory):
    """For a shedder or placement strategy that remembers nothing."""


@dataclass(frozen=True)
class SplitMemory:
    """Hits of every broker's bundles between two cycles: broker id -> full bundle name -> hits.

    Only the Extensible manager counts hits; the others remember nothing.
    """

    hits: Mapping[str, Mapping[str, int]] = field(default_factory=lambda: MappingProxyType({}))
