"""balance: brings every broker within a usage of the operator's choice, with the fewest bundles moved.

What `MinimalMoveShedder` does for 1.10 times the mean, for any target, and with namespaces that have policies. Exact
where the problem is small, else a heuristic; the figures show the bound and the gap. A budget is a limit of the plan.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.strategy.decision import Figure
from pulsar_advisor.planning.kinds.answers import proposal
from pulsar_advisor.planning.kinds.choosing import fewest_within, movable_above, target_of, why_none_goes, why_stays
from pulsar_advisor.planning.kinds.room import ROOM_KEYS, ROOM_READS, Room
from pulsar_advisor.planning.proposals.proposal import Proposal

READS: Final = ROOM_READS
SETTING_KEYS: Final = ROOM_KEYS


def propose(goal: Goal, room: Room) -> Proposal:
    """The moves that bring every broker within the target of the goal."""
    target = target_of(goal, room)
    movable = movable_above(room, target)
    figures: dict[str, Figure] = {"target_ratio": target, "usage_ratio": room.highest_ratio()}
    if not movable:
        some_above = (room.usage_at_first[room.fit] > target).any()
        why = "no bundle of theirs may be moved" if some_above else f"every broker is within {target:.1%}"
        return proposal(goal, room, [], figures, why_nothing=why)
    choice = fewest_within(room, movable, target)
    reached = choice.after.highest_ratio()
    figures |= {
        "usage_ratio_after": reached,
        "usage_ratio_after_at_most": choice.after.most_ratio(),
        "moves_bound": choice.least,
        "moves_gap": None if choice.least is None or not choice.reached else choice.cost - choice.least,
    }
    fit = np.flatnonzero(room.fit)
    busiest = int(fit[np.argmax(choice.after.usage_of(fit))])
    after = choice.after
    stays = why_stays(room, [row for row in movable if room.owner[row] == busiest], busiest, target)
    left = [row for row in movable if after.owner[row] == busiest]
    why = stays or why_none_goes(after, left, "no more bundles fit elsewhere")
    caveat = f"The busiest broker only gets to {reached:.1%}, not to {target:.1%}: {why}."
    return proposal(
        goal,
        after,
        list(choice.answers.values()),
        figures,
        [] if choice.reached else [caveat],
        why_nothing=stays or why_none_goes(after, left, "no other broker has room for a bundle"),
    )
