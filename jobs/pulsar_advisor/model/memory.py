"""What a shedder's memory owes its leader, and the memory of strategies that remember nothing."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Self


class ShedderMemory:
    """What a shedder carries from one cycle to the next."""

    def forget_departed(self, _active: Collection[str], /) -> Self:
        """What is left of it once only the brokers with these ids are active.

        Source: Pulsar `LoadSheddingStrategy.onActiveBrokersChange`, which forgets nothing by default.
        """
        return self


@dataclass(frozen=True)
class NoMemory(ShedderMemory):
    """Of a shedder that remembers nothing between cycles, or a placement strategy that remembers nothing."""
