"""conform: moves bundles off brokers where their isolation policy or their anti-affinity group forbids them.

Pulsar applies a policy when a bundle is assigned. Setting an isolation policy unloads the namespaces that it names,
but not those on brokers that it reserves, and removing one unloads nothing. A bundle breaks its isolation policy if its
broker is not among those that the policies allow; its namespace breaks anti-affinity if a broker that Pulsar's filters
allow has fewer other namespaces of the group.
Source: `ClustersBase.filterAndUnloadMatchedNamespaceAsync` (2.11.0 to 4.2.4).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.planning.kinds.answers import Answer, any_stays, fixed, parted, placed, proposal
from pulsar_advisor.planning.kinds.packing import packed, shortfall
from pulsar_advisor.planning.kinds.room import ROOM_KEYS, ROOM_READS, Room
from pulsar_advisor.planning.proposals.proposal import Proposal

READS: Final = ROOM_READS
SETTING_KEYS: Final = ROOM_KEYS


def propose(goal: Goal, room: Room) -> Proposal:
    """The moves after which no bundle is where its policies forbid it; what can't move, and why."""
    owned = room.bundles_of(np.flatnonzero(room.fit).tolist())
    isolated = [row for row in owned if not room.policies_allow(row)]
    going, stays = parted(room, isolated)
    answers, after = packed(room, going)
    spread = list(_spread(after, [row for row in owned if room.policies_allow(row)]))
    return proposal(
        goal,
        after,
        [*answers, *spread, *stays],
        {"against_isolation": len(answers), "against_anti_affinity": len(spread)},
        list(shortfall(room, after, [*answers, *spread])),
        why_nothing="no bundle on a broker that its policies forbid can move"
        if any_stays([*answers, *spread, *stays])
        else "no bundle that may move is on a broker that its policies forbid",
    )


def _spread(room: Room, bundles: list[int]) -> Iterator[Answer]:
    """The answers about bundles whose anti-affinity group is thinner on another broker; those with room have moved."""
    for bundle in bundles:
        thinner = room.with_fewer_peers(bundle)
        if len(thinner) and fixed(room, bundle) is None:
            yield placed(room, bundle, among=thinner)
