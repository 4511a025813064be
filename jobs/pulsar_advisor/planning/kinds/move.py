"""move: sends the bundles that an operator names to one broker, which placement and its room have to allow.

Every other rule holds as for the kinds that choose bundles themselves. A bundle that may not go there is a step that
isn't executable; one that is there already is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, ClusterState
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.text.some_of import some_of
from pulsar_advisor.planning.kinds.answers import Answer, BundleOutcome, parted, proposal
from pulsar_advisor.planning.kinds.packing import packed
from pulsar_advisor.planning.kinds.room import ROOM_KEYS, ROOM_READS, Room
from pulsar_advisor.planning.proposals.executable import why_move_not
from pulsar_advisor.planning.proposals.proposal import Move, Proposal

READS: Final = ROOM_READS
SETTING_KEYS: Final = ROOM_KEYS


def propose(goal: Goal, room: Room) -> Proposal:
    """The moves that bring the bundles of the goal to its broker; what can't go there, and why."""
    state, (to,), names = room.state, room.rows_of(goal.onto), frozenset(goal.bundles)
    named = [row for row in range(len(state.bundles)) if state.bundle_name(row) in names]
    there = [row for row in named if room.owner[row] == to]
    unowned = [row for row in named if room.owner[row] == NO_ROW]
    elsewhere = {*named} - {*there, *unowned}
    going, staying = parted(room, [row for row in room.bundles_of(range(len(room.fit))) if row in elsewhere])
    answers, after = packed(room, going)
    made = proposal(
        goal,
        after,
        [*answers, *staying, *(Answer(row, BundleOutcome.NOT_NEEDED) for row in there)],
        {"bundles": len(named), "there_already": len(there), "unowned": len(unowned)},
        why_nothing=f"{some_of(goal.bundles)} {'is' if len(named) == 1 else 'are'} on {goal.onto[0]} already",
    )
    caveats = (*_refused(state, made.moves), *_without_owner(state, unowned))
    return replace(made, caveats=caveats, why_nothing=made.why_nothing and next(iter(caveats), made.why_nothing))


def _refused(state: ClusterState, moves: Sequence[Move]) -> Iterator[str]:
    """What can't be moved, with the reason of the first."""
    refused = [(move.bundle, why) for move in moves if (why := move.obstacle or why_move_not(state, move))]
    if refused:
        (first, why), *others = refused
        more = f" {some_of([state.bundle_name(row) for row, _ in others])} can't go there either." if others else ""
        yield f"{state.bundle_name(first)} stays: {why}.{more}"


def _without_owner(state: ClusterState, unowned: Sequence[int]) -> Iterator[str]:
    if unowned:
        names = some_of([state.bundle_name(row) for row in unowned])
        yield f"No broker owns {names}: there is nothing to unload, and Pulsar chooses when a client looks a topic up."
