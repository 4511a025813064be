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
from pulsar_advisor.planning.kinds.answers import Answer, BundleOutcome, clients, fixed, proposal
from pulsar_advisor.planning.kinds.choosing import choose, target_of, why_stays
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
        left = _completed(answers, {}, reached=usage <= target)
        return proposal(goal, room, left, {"target_ratio": target, "usage_ratio": usage}, why_nothing=why)
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
    left = _completed(answers, choice.answers, reached=choice.reached)
    stays = why_stays(room, movable, broker, target)
    why = stays or f"no other broker surely has room for more within {highest:.1%}, or may take it"
    caveats = [] if choice.reached else [f"{goal.brokers[0]} only falls to {reached:.1%}, not to {target:.1%}: {why}."]
    why_nothing = stays or "no other broker may take, or has room for, a bundle"
    return proposal(goal, after, left, figures, caveats, why_nothing=why_nothing)


def _completed(answers: Mapping[int, Answer | None], chosen: Mapping[int, Answer], *, reached: bool) -> list[Answer]:
    """An answer about every bundle; once the target is reached, one that can't be moved needn't be, either."""
    return [
        chosen.get(row, Answer(row, BundleOutcome.NOT_NEEDED))
        if answer is None or (reached and answer.outcome is BundleOutcome.UNFIT)
        else answer
        for row, answer in answers.items()
    ]
