"""What is gained and disturbed by whatever can be done about a cluster, so that it can be compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SAME_RATIO: Final = 0.0005
"""Usages that read the same when written with a decimal."""


@dataclass(frozen=True)
class Cost:
    """What an option disturbs; in a simulation, once for each unload."""

    unloads: int = 0
    splits: int = 0
    topics: int = 0
    producers: int = 0
    consumers: int = 0
    moved_throughput_bytes_per_s: float = 0.0

    @property
    def disturbed(self) -> int:
        """Topics closed, and producers and consumers that have to connect again."""
        return self.topics + self.producers + self.consumers


@dataclass(frozen=True)
class Merit:
    """What an option is worth: the usage that it reaches (ratios), and what it costs."""

    maximum_ratio: float
    highest_maximum_ratio: float | None
    """At the worse end of the range; None where no range is known."""
    standard_deviation_ratio: float
    cost: Cost

    def is_as_good(self, other: Merit, floor_ratio: float) -> bool:
        """Whether it reaches as much as the other to within the noise floor, at the worse end too, and costs no more in
        any respect."""
        noise = max(floor_ratio, SAME_RATIO)
        worst, allowed = self.highest_maximum_ratio, other.highest_maximum_ratio
        return (
            self.maximum_ratio <= other.maximum_ratio + noise
            and (worst is None or allowed is None or worst <= allowed + noise)
            and self.standard_deviation_ratio <= other.standard_deviation_ratio + noise
            and self.cost.splits <= other.cost.splits
            and self.cost.disturbed <= other.cost.disturbed
            and self.cost.unloads <= other.cost.unloads
        )
