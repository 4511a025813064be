"""roll: the beginning of a rolling restart: drains the first of the brokers to be restarted, in the goal's order.

The plan's steps are the first broker's turn. Its figures and sentences show the other turns on the same snapshot;
before each of them the plan is made anew on a fresh one, for the brokers that are left. A broker that isn't in the
order is spare, or was restarted already: it takes bundles first, because they needn't leave it again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.text.some_of import count
from pulsar_advisor.planning.kinds.answers import any_stays, parted, proposal
from pulsar_advisor.planning.kinds.headroom import mean_if_one_more_fails, without_headroom
from pulsar_advisor.planning.kinds.packing import shortfall
from pulsar_advisor.planning.kinds.restarting import Turn, turn, turns_of
from pulsar_advisor.planning.kinds.room import ROOM_KEYS, ROOM_READS, Room
from pulsar_advisor.planning.proposals.proposal import Proposal

READS: Final = ROOM_READS
SETTING_KEYS: Final = ROOM_KEYS


def propose(goal: Goal, room: Room) -> Proposal:
    """The moves that empty the first broker of the goal, and what the turns of the others would be."""
    order = room.rows_of(goal.brokers)
    others = [row for row in np.flatnonzero(room.fit).tolist() if row not in order]
    turns = list(turns_of(room, order, others))
    now = turns[0]
    _, staying = parted(room, room.bundles_of([order[0]]))
    moves = Counter(bundle for each in turns for bundle in each.moved)
    headroom = mean_if_one_more_fails(now.drained)
    return proposal(
        goal,
        now.drained,
        [*now.answers, *staying],
        {
            "restarts": len(turns),
            "moves_in_all": moves.total(),
            "clients_in_all": sum(each.restart.clients for each in turns),
            "moves_of_a_bundle": max(moves.values(), default=0),
            "left_behind_in_all": sum(each.restart.stay for each in turns),
            "highest_usage_ratio": max(each.restart.highest_usage_ratio for each in turns),
            "mean_ratio_if_one_more_fails": headroom,
        },
        [
            *shortfall(
                room.emptying([order[0]]),
                now.drained,
                now.answers,
                lambda higher: turn(higher, order[0], others).answers,
            ),
            *without_headroom(now.drained, headroom),
            *_later(turns[1:]),
        ],
        why_nothing=f"no bundle of {goal.brokers[0]} can move"
        if any_stays([*now.answers, *staying])
        else f"{goal.brokers[0]} has no bundle with a loaded topic: restart it, and roll the others",
    )


def _later(turns: Sequence[Turn]) -> Iterator[str]:
    """A sentence about each turn after the first."""
    for number, each in enumerate(turns, 2):
        restart = each.restart
        onto = ", ".join(f"{broker} ({bundles:,})" for broker, bundles in restart.onto.items())
        moves = f"{count(restart.bundles, 'bundle')} of {count(restart.clients, 'client')}"
        again = f", {restart.will_move_again:,} of them again later" if restart.will_move_again else ""
        stay = f", {restart.stay:,} {'stays' if restart.stay == 1 else 'stay'}" if restart.stay else ""
        yield (
            f"Turn {number}, {restart.broker}: {moves}{f' to {onto}' if onto else ''}{again}{stay}; the busiest other "
            f"broker is then at {restart.highest_usage_ratio:.1%}."
        )
