"""How many brokers a load needs at a target usage, and what fewer or more of them would look like.

Every broker is taken for the median one: its limits, and its base load, which each broker has whatever it serves. The
rest of the load is divided evenly. That is a bound: with bundles of any size the busiest broker is above it, and a
single bundle may need more than a whole broker has left. Isolation policies aren't considered in it; they are in the
answer about the loss of a broker, which packs its bundles into the others.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from pulsar_advisor.model.cluster_state import NO_ROW, Floats
from pulsar_advisor.model.resource_usage import weighted_maximum
from pulsar_advisor.planning.kinds.answers import BundleOutcome, fixed
from pulsar_advisor.planning.kinds.packing import packed
from pulsar_advisor.planning.kinds.room import Room

MOST_BROKERS: Final = 100_000


@dataclass(frozen=True)
class Size:
    """The cluster with this many brokers: the usage (ratio) of each if the load were divided evenly."""

    brokers: int
    even_usage_ratio: float


@dataclass(frozen=True)
class Scale:
    """What the load needs; ratios 0..1."""

    brokers: int
    """Those that are fit now."""
    target_ratio: float
    needed: int | None
    """The fewest brokers that would be within the target on average; None if no number is."""
    sizes: tuple[Size, ...]
    """Two brokers less to one more, and the number that is needed."""
    largest_bundle: str
    largest_bundle_ratio: float
    """The share of a median broker that it needs, base load included."""
    losses_that_do_not_fit: tuple[str, ...]
    """Brokers whose bundles find no room on the others under the ceiling, should they fail."""


def scale(room: Room, target_ratio: float) -> Scale:
    """What a cluster's load needs at a target usage; `room` is as the snapshot found its brokers."""
    rows = np.flatnonzero(room.fit)
    limit = np.median(room.state.brokers.limit[rows], axis=0)
    usage, stays = room.staying(rows)
    each, load = np.median(stays, axis=0), (usage - stays).sum(axis=0)

    def even(brokers: int) -> float:
        return _ratio(room, each + load / brokers, limit)

    needed = _fewest(lambda brokers: even(brokers) <= target_ratio)
    shown = {size for size in range(len(rows) - 2, len(rows) + 2) if size > 0} | ({needed} if needed else set())
    moved = weighted_maximum(each + room.moved, np.broadcast_to(limit, room.moved.shape), room.settings)
    largest = int(np.argmax(moved)) if len(moved) else NO_ROW
    return Scale(
        brokers=len(rows),
        target_ratio=target_ratio,
        needed=needed,
        sizes=tuple(Size(size, even(size)) for size in sorted(shown)),
        largest_bundle="" if largest == NO_ROW else room.state.bundle_name(largest),
        largest_bundle_ratio=0.0 if largest == NO_ROW else float(moved[largest]),
        losses_that_do_not_fit=tuple(
            room.state.brokers.ids[broker] for broker in rows.tolist() if not _loss_fits(room, broker)
        ),
    )


def _ratio(room: Room, usage: Floats, limit: Floats) -> float:
    return float(weighted_maximum(usage[None, :], limit[None, :], room.settings)[0])


def _fewest(suffice: Callable[[int], bool]) -> int | None:
    """The fewest brokers that suffice, if more of them never do worse; None if `MOST_BROKERS` don't."""
    if not suffice(MOST_BROKERS):
        return None
    return bisect_left(range(1, MOST_BROKERS), True, key=suffice) + 1


def _loss_fits(room: Room, broker: int) -> bool:
    """Whether the bundles of a broker (a row) that clients use find room on the others."""
    bundles = [bundle for bundle in room.bundles_of([broker]) if fixed(room, bundle) is None]
    answers, _ = packed(room.emptying([broker]), bundles)
    return all(answer.outcome is BundleOutcome.MOVES for answer in answers)
