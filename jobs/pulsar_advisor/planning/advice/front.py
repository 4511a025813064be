"""The Pareto front of disruption against balance: plans for which no other disturbs less and balances better."""

from __future__ import annotations

from collections.abc import Sequence


def on_front(points: Sequence[tuple[float, float]]) -> tuple[bool, ...]:
    """Per point (disruption, highest usage), whether no other point is as low in both and lower in one."""

    def is_beaten(point: tuple[float, float]) -> bool:
        return any(other[0] <= point[0] and other[1] <= point[1] and other != point for other in points)

    return tuple(not is_beaten(point) for point in points)
