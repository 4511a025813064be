"""Whether the brokers that remain after a plan could take the load of one more that fails."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pulsar_advisor.model.load.resource_usage import weighted_maximum
from pulsar_advisor.planning.kinds.room import Room


def mean_if_one_more_fails(room: Room) -> float | None:
    """The usage (ratio) that the remaining brokers may have on average without the one whose loss hurts most.

    All of its load may have to be taken over; None if fewer than two brokers remain.
    """
    rows = np.flatnonzero(room.fit & ~room.leaving)
    if len(rows) < 2:
        return None
    limit, (usage, stays) = room.state.brokers.limit[rows], room.staying(rows, room.base.least)
    rest, of = usage.sum(axis=0) - stays, limit.sum(axis=0) - limit
    return float(weighted_maximum(rest, of, room.settings).max())


def without_headroom(room: Room, mean_ratio: float | None) -> Iterator[str]:
    """A sentence if one more broker couldn't fail; `mean_ratio` is the answer of `mean_if_one_more_fails`."""
    threshold = room.settings.overloaded_ratio
    if mean_ratio is None:
        yield "There is no headroom: fewer than two brokers remain, so none could take the load of one that fails."
    elif mean_ratio > threshold:
        yield (
            f"There is no headroom: if one more broker failed, the others could be at {mean_ratio:.0%} on average, "
            f"above the overload threshold of {threshold:.0%}."
        )
