"""fill: gives a new or idle broker its share, which Pulsar's shedders may leave undone for months.

The busiest broker gives its largest bundle that fits, again and again. A bundle fits if the filled broker ends neither
above the target, by default the mean usage of all brokers, nor above what the giving broker has left.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import NO_ROW
from pulsar_advisor.model.load.resource_usage import ROUNDING_RATIO
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.strategy.decision import Figure
from pulsar_advisor.planning.kinds.answers import Answer, fixed, movable, moved_to, proposal, why_closed, why_not_to
from pulsar_advisor.planning.kinds.room import ROOM_KEYS, ROOM_READS, Place, Room
from pulsar_advisor.planning.proposals.proposal import Proposal

READS: Final = ROOM_READS
SETTING_KEYS: Final = ROOM_KEYS


def propose(goal: Goal, room: Room) -> Proposal:
    """The moves that bring the brokers of the goal up to their target."""
    filled = room.rows_of(goal.brokers)
    wanted = room.mean_ratio() if goal.target_ratio is None else goal.target_ratio
    target = min(wanted, float(room.ceiling.max()))
    after = room.up_to(target).onto(filled)
    answers: list[Answer] = []
    sources = [broker for broker in np.flatnonzero(room.fit).tolist() if broker not in filled]
    waiting = {broker: room.bundles_of([broker]) for broker in sources}
    busiest = [(-float(room.usage_at_first[broker]), broker) for broker in sources]
    heapq.heapify(busiest)
    while busiest:
        _, source = heapq.heappop(busiest)
        waiting[source] = _that_may_fit(after, source, waiting[source])
        for position, bundle in enumerate(waiting[source]):
            place = _place(after, source, bundle)
            if place.broker != NO_ROW and fixed(room, bundle) is None:
                answers.append(moved_to(after, bundle, place.broker))
                # What didn't fit never will: the filled brokers only fill up, and the source only empties.
                waiting[source] = waiting[source][position + 1 :]
                heapq.heappush(busiest, (-float(after.usage_of([source])[0]), source))
                break
    usage, reached = float(room.usage_at_first[filled].min()), float(after.usage_of(filled).min())
    figures: dict[str, Figure] = {"target_ratio": target, "usage_ratio": usage, "usage_ratio_after": reached}
    why_nothing = ""
    if not answers and usage >= target:
        why_nothing = f"its usage of {usage:.1%} has reached {target:.1%}"
    elif not answers:
        barred = _barred(room, filled, [row for broker in sources for row in movable(room, [broker])])
        why_nothing = barred or (
            f"no bundle is small enough: the filled broker would end above {target:.1%}, or above the bundle's own"
        )
        if barred is None and all(movable(room, [broker]) for broker in filled):
            figures["is_full"] = True  # not so an idle broker: it is where it was
    return proposal(goal, after, answers, figures, why_nothing=why_nothing)


def _that_may_fit(room: Room, source: int, bundles: Sequence[int]) -> list[int]:
    """These bundles of a broker (rows) without those for which `_place` surely finds none: it takes a while for each.

    What arrives may cost more CPU than counted here, never less.
    """
    rows, least = np.array(bundles, dtype=np.intp), np.full(len(bundles), np.inf)
    for broker in np.flatnonzero(room.receives).tolist():
        usage = room.ratios(room.most[broker] + room.arriving[rows], np.full(len(rows), broker))
        least = np.minimum(least, usage)
    left = room.ratios(room.usage[source] - room.moved[rows], np.full(len(rows), source))
    kept: list[int] = rows[~(least > np.minimum(left, room.ceiling.max() + ROUNDING_RATIO))].tolist()
    return kept


def _place(room: Room, source: int, bundle: int) -> Place:
    """The filled broker for a bundle (a row) of another one, unless it would then be used more than its source."""
    place = room.place(bundle)
    left = float(room.ratios(room.usage[[source]] - room.moved[bundle], [source])[0])
    return place if place.usage_ratio <= left else Place(NO_ROW, place.usage_ratio)


def _barred(room: Room, filled: Sequence[int], bundles: Sequence[int]) -> str | None:
    """Why none of the others' bundles (rows) may go to the filled brokers, however small; None if one may."""
    if not room.receives[filled].any():
        return f"{room.state.brokers.ids[filled[0]]} takes nothing: {why_closed(room, filled[0])}"
    if not bundles:
        return "no other broker has a bundle that may move"
    onto = room.onto(filled)
    if any(len(onto.allowed(bundle)) for bundle in bundles):
        return None
    first = max(bundles, key=room.share)
    return f"{room.state.bundle_name(first)} may not go there: {why_not_to(room, first, filled[0])}"
