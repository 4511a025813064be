"""relieve: brings one broker down to a usage by moving the bundles with the fewest clients, as operators do by hand.

Clients are producers and consumers, which have to connect again; among moves with equally many, the fewest bundles
count, and then the lowest usage of the brokers that take them. None of these may end above the target, or above the
ceiling, which doesn't concern the relieved broker. Choosing bundles is the problem of `shedding.fewest_moves` with a
cost for each: a bound, a heuristic, and the optimum where the problem is small. Without a target it is 1.10 times the
mean usage, as for `balance`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.planning.kinds.answers import Answer, BundleOutcome, clients, fixed, placed, proposal
from pulsar_advisor.planning.kinds.choosing import choose, target_of, why_none_goes, why_stays
from pulsar_advisor.planning.kinds.room import ROOM_KEYS, ROOM_READS, Room
from pulsar_advisor.planning.proposals.proposal import Proposal

READS: Final = ROOM_READS
SETTING_KEYS: Final = ROOM_KEYS


def propose(goal: Goal, room: Room) -> Proposal:
    """The moves that bring the broker of the goal down to its target."""
    (broker,) = room.rows_of(goal.brokers)
    target = target_of(goal, room.up_to(room.settings.overloaded_ratio))
    highest = min(target, float(room.ceiling.max()))
    usage = float(room.usage_at_first[broker])
    answers = {row: fixed(room, row) for row in room.bundles_of([broker])}
    movable = [row for row, answer in answers.items() if answer is None]
    if usage <= target or not movable:
        why = f"its usage of {usage:.1%} is within {target:.1%}" if usage <= target else "no bundle may be moved"
        completed = _completed(answers, {}, None if usage <= target else room)
        return proposal(goal, room, completed, {"target_ratio": target, "usage_ratio": usage}, why_nothing=why)
    unit = len(movable) + 1  # fewest clients first, then fewest bundles
    cost = np.array([clients(room, row) * unit + 1 for row in movable], dtype=np.int64)
    within = np.full(len(room.fit), highest)
    within[broker] = target
    choice = choose(room.up_to(highest), movable, within, cost)
    after, reached = choice.after, float(choice.after.usage_of([broker])[0])
    bound = None if choice.least is None else choice.least // unit
    figures = {
        "target_ratio": target,
        "usage_ratio": usage,
        "usage_ratio_after": reached,
        "usage_ratio_after_at_most": float(after.most_of([broker])[0]),
        "clients_bound": bound,
        "clients_gap": None if bound is None or not choice.reached else choice.cost // unit - bound,
    }
    completed = _completed(answers, choice.answers, None if choice.reached else after)
    stays, left = why_stays(room, movable, broker, target), [row for row in movable if after.owner[row] == broker]
    why = stays or why_none_goes(after, left, f"no other broker surely has room for more within {highest:.1%}")
    caveats = [] if choice.reached else [f"{goal.brokers[0]} only falls to {reached:.1%}, not to {target:.1%}: {why}."]
    why_nothing = stays or why_none_goes(after, left, "no other broker has room for a bundle")
    return proposal(goal, after, completed, figures, caveats, why_nothing=why_nothing)


def _completed(
    answers: Mapping[int, Answer | None], chosen: Mapping[int, Answer], missed_in: Room | None
) -> list[Answer]:
    """An answer about every bundle (a row): those found before, the `chosen` ones, and about the others.

    Once the target is reached, none of the others has to move, nor what can't. In a room that misses it, they stay if
    they find no place.
    """
    return [
        chosen.get(row) or _left(row, missed_in)
        if answer is None or (missed_in is None and answer.outcome is BundleOutcome.UNFIT)
        else answer
        for row, answer in answers.items()
    ]


def _left(bundle: int, missed_in: Room | None) -> Answer:
    """The answer about a bundle (a row) that wasn't chosen."""
    found = None if missed_in is None else placed(missed_in.copy(), bundle)
    return found if found and not found.moves else Answer(bundle, BundleOutcome.NOT_NEEDED)
