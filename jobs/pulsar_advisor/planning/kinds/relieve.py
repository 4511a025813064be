"""relieve: brings one broker down to a usage by moving the bundles with the fewest clients, as operators do by hand.

Clients are producers and consumers, which have to connect again; among moves with equally many, the fewest bundles
count. Choosing them is the problem of `shedding.fewest_moves` with a cost for each bundle: a bound, a heuristic, and
the optimum where the problem is small. Without a target the broker is brought down to the mean usage of all brokers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from pulsar_advisor.model.cluster_state import NO_ROW, Indices
from pulsar_advisor.model.goal import Goal
from pulsar_advisor.model.inputs import Input
from pulsar_advisor.planning.fitness import EVERY_UNLOAD_READS
from pulsar_advisor.planning.kinds.answers import Answer, BundleOutcome, clients, fixed, moved_to, proposal
from pulsar_advisor.planning.kinds.room import ROOM_KEYS, Room
from pulsar_advisor.planning.proposal import Proposal
from pulsar_advisor.shedding.fewest_moves import (
    BEYOND_ALL_BOUNDS_PPM,
    PPM,
    Balancing,
    Moves,
    fewest_moves,
    ppm_per_unit,
)

READS: Final[frozenset[Input]] = EVERY_UNLOAD_READS | {"bundle_counts"}
SETTING_KEYS: Final = ROOM_KEYS

_ROUNDING_PPM: Final = 10
"""Kept free below a ceiling: the sums of whole numbers and those of the forecast may differ by this."""


def propose(goal: Goal, room: Room) -> Proposal:
    """The moves that bring the broker of the goal down to its target."""
    (broker,) = room.rows_of(goal.brokers)
    target = room.mean_ratio() if goal.target_ratio is None else goal.target_ratio
    usage = float(room.usage_at_first[broker])
    answers = {row: fixed(room, row) for row in room.bundles_of([broker])}
    movable = [row for row, answer in answers.items() if answer is None]
    if usage <= target or not movable:
        why = f"its usage of {usage:.1%} is within {target:.1%}" if usage <= target else "no bundle may be moved"
        left = [answer or Answer(row, BundleOutcome.NOT_NEEDED) for row, answer in answers.items()]
        return proposal(goal, room, left, {"target_ratio": target, "usage_ratio": usage}, why_nothing=why)
    problem = _problem(room, broker, movable, target)
    moves = fewest_moves(problem)
    destination = _without_needless(problem, moves)
    after, carried_out = _carried_out(room, movable, destination)
    reached = float(after.usage_of([broker])[0])
    unit = len(movable) + 1
    found = sum(clients(room, row) for row in carried_out)
    figures = {
        "target_ratio": target,
        "usage_ratio": usage,
        "usage_ratio_after": reached,
        "clients_bound": None if moves.least is None else moves.least // unit,
        "clients_gap": None if moves.least is None or not moves.reached else found - moves.least // unit,
    }
    left = [answer or carried_out.get(row, Answer(row, BundleOutcome.NOT_NEEDED)) for row, answer in answers.items()]
    caveats = [] if moves.reached else list(_short_of_it(goal, room, movable, broker, target, reached))
    why = "no other broker may take, or has room for, a bundle"
    return proposal(goal, after, left, figures, caveats, why_nothing=why)


def _problem(room: Room, broker: int, movable: Sequence[int], target_ratio: float) -> Balancing:
    """The choice among these bundles of one broker; loads in parts per million, as whole numbers."""
    state = room.state
    per_unit = ppm_per_unit(state.brokers.limit, room.settings)
    with np.errstate(all="ignore"):
        usage = np.where(per_unit > 0, np.nan_to_num(room.usage) * per_unit, 0.0)
    load = np.rint(np.clip(usage, -BEYOND_ALL_BOUNDS_PPM, BEYOND_ALL_BOUNDS_PPM)).astype(np.int64)
    ceiling = np.maximum((room.ceiling * PPM).astype(np.int64) - _ROUNDING_PPM, load.max(axis=1))
    ceiling[broker] = round(target_ratio * PPM)
    may_go = np.zeros((len(movable), len(load)), dtype=np.bool_)
    for position, row in enumerate(movable):
        may_go[position, room.allowed(row)] = True
    number = np.array([clients(room, row) for row in movable], dtype=np.int64)
    receives = room.receives.copy()
    receives[broker] = False
    return Balancing(
        load=load,
        ceiling=ceiling,
        receives=receives,
        spare=np.full(len(load), len(movable)),
        source=np.full(len(movable), broker, dtype=np.int32),
        moved=room.moved[movable],
        ppm_per_unit=per_unit,
        cost=number * (len(movable) + 1) + 1,  # fewest clients first, then fewest bundles
        may_go=may_go,
    )


def _without_needless(problem: Balancing, moves: Moves) -> Indices:
    """The destinations without the moves that the target doesn't need, the most expensive first."""
    destination = moves.destination.copy()
    if not moves.reached:
        return destination
    going = np.flatnonzero(destination != NO_ROW)
    for bundle in going[np.argsort(-problem.costs[going], kind="stable")].tolist():
        without = destination.copy()
        without[bundle] = NO_ROW
        if problem.reached(without):
            destination = without
    return destination


def _carried_out(room: Room, movable: Sequence[int], destination: Indices) -> tuple[Room, dict[int, Answer]]:
    """The room after these moves, and the answer about each bundle; the largest moves first.

    A bundle whose destination is no longer allowed after the moves before it (anti-affinity, topics) goes to another.
    """
    after, answers = room.copy(), {}
    going = {row: int(to) for row, to in zip(movable, destination, strict=True) if to != NO_ROW}
    for bundle in sorted(going, key=lambda row: (-room.share(row), row)):
        answers[bundle] = moved_to(after, bundle, going[bundle])
    return after, answers


def _short_of_it(
    goal: Goal, room: Room, movable: Sequence[int], broker: int, target: float, reached: float
) -> Iterator[str]:
    empty = room.copy()
    empty.usage[broker] -= room.moved[movable].sum(axis=0)
    stays = float(empty.usage_of([broker])[0])
    why = (
        f"{stays:.1%} stays even without any bundle that may move"
        if stays > target
        else f"no other broker has room for more under its ceiling of {room.ceiling.max():.0%}, or may take it"
    )
    yield f"{goal.brokers[0]} only falls to {reached:.1%}, not to {target:.1%}: {why}."
