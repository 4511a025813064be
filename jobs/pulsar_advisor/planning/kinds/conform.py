"""conform: moves bundles off brokers where their isolation policy or their anti-affinity group forbids them.

Pulsar applies a policy when a bundle is assigned. Setting an isolation policy unloads the namespaces that it names,
but not those on brokers that it reserves, and removing one unloads nothing. A bundle breaks its isolation policy if its
broker is not among those that the policies allow; its namespace breaks anti-affinity if a broker that Pulsar's filters
allow has fewer other namespaces of the group.
Source: `ClustersBase.filterAndUnloadMatchedNamespaceAsync` (2.11.0 to 4.2.4).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.text.some_of import some_of
from pulsar_advisor.planning.kinds.answers import Answer, any_stays, fixed, parted, placed, proposal
from pulsar_advisor.planning.kinds.packing import packed, shortfall
from pulsar_advisor.planning.kinds.room import ROOM_KEYS, ROOM_READS, Room
from pulsar_advisor.planning.proposals.proposal import Proposal

READS: Final = ROOM_READS
SETTING_KEYS: Final = ROOM_KEYS


def propose(goal: Goal, room: Room) -> Proposal:
    """The moves after which no bundle is where its policies forbid it, unless a caveat says so; what can't move."""
    owned = room.bundles_of(np.flatnonzero(room.fit).tolist())
    isolated = [row for row in owned if not room.policies_allow(row)]
    going, stays = parted(room, isolated)
    others = [row for row in owned if room.policies_allow(row)]
    answers, after = _asked_until_none_moves(room, going, others)
    moved = [answer.bundle for answer in answers if answer.moves]
    again = [row for row in moved if len(after.with_fewer_peers(row))]
    return proposal(
        goal,
        after,
        [*answers, *stays],
        {
            "against_isolation": len(going),
            "against_anti_affinity": len(answers) - len(going),
            **({"against_afterwards": len(again)} if again else {}),
        },
        [
            *shortfall(room, after, answers, lambda higher: _asked_until_none_moves(higher, going, others)[0]),
            *_crowded_again(after, again),
        ],
        why_nothing="no bundle on a broker that its policies forbid can move"
        if any_stays([*answers, *stays])
        else "no bundle that may move is on a broker that its policies forbid",
    )


def _crowded_again(room: Room, bundles: Sequence[int]) -> Iterator[str]:
    """A sentence about bundles (rows) that a later move brought together with more of their group than necessary."""
    if bundles:
        names = some_of([room.state.bundle_name(row) for row in bundles])
        yield (
            f"Other brokers may then have less of the anti-affinity group of {names}, as later moves change where it "
            "is, and a plan moves a bundle once: `conform` again afterwards moves those that have room."
        )


def _asked_until_none_moves(room: Room, isolated: Sequence[int], others: Sequence[int]) -> tuple[list[Answer], Room]:
    """The answers about bundles (rows) that have to leave their broker, and about those of the others whose
    anti-affinity group is thinner on another one; and the room that they leave.

    Each move changes where there is room and where a group is thin, so what hasn't moved is asked again.
    """
    moved: list[Answer] = []
    while True:
        answers, room = packed(room, isolated)
        answers += [
            placed(room, bundle, among=thinner)
            for bundle in others
            if fixed(room, bundle) is None and len(thinner := room.with_fewer_peers(bundle))
        ]
        going = {answer.bundle: answer for answer in answers if answer.moves}
        if not going:
            return [*moved, *answers], room
        moved += going.values()
        isolated, others = ([row for row in rows if row not in going] for rows in (isolated, others))
