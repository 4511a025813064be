"""drain: moves every bundle off brokers that are to be stopped, so that clients are handed over one bundle at a time.

The largest bundles come first (`packing`). Idle bundles (no loaded topic) and those of Pulsar's own namespaces stay:
nothing would move, and the broker gives them up when it stops. Nothing else keeps a bundle on the broker, except that
no other broker is allowed, or has room.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.namespaces import SYSTEM_NAMESPACE
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.text.some_of import some_of
from pulsar_advisor.planning.kinds.answers import Answer, BundleOutcome, any_stays, parted, proposal
from pulsar_advisor.planning.kinds.headroom import mean_if_one_more_fails, without_headroom
from pulsar_advisor.planning.kinds.packing import packed, shortfall
from pulsar_advisor.planning.kinds.room import ROOM_KEYS, ROOM_READS, Room
from pulsar_advisor.planning.proposals.proposal import Proposal
from pulsar_advisor.planning.usage.noise import DEFAULT_RATIO

READS: Final = ROOM_READS
SETTING_KEYS: Final = ROOM_KEYS


def propose(goal: Goal, room: Room) -> Proposal:
    """The moves that empty the brokers of the goal; what can't move, why, and what would help."""
    drained = room.rows_of(goal.brokers)
    before = room.emptying(drained)
    rows = before.bundles_of(drained)
    going, staying = parted(before, rows)
    answers, after = packed(before, going)
    headroom = mean_if_one_more_fails(after)
    arrived = [
        one.bundle for one in staying if one.outcome is BundleOutcome.NO_TOPICS and before.may_have_arrived[one.bundle]
    ]
    own = [one.bundle for one in staying if one.outcome is BundleOutcome.PULSARS_OWN]
    return proposal(
        goal,
        after,
        [*answers, *staying],
        {"bundles": len(rows), "may_have_arrived": len(arrived), "mean_ratio_if_one_more_fails": headroom},
        [
            *shortfall(before, after, answers, lambda room: packed(room, going)[0]),
            *_left_to_pulsar(before, own),
            *_unreported(before, arrived),
            *without_headroom(after, headroom),
        ],
        why_nothing=_why_nothing([*answers, *staying], arrived),
    )


def _why_nothing(answers: Sequence[Answer], arrived: Sequence[int]) -> str:
    if any_stays(answers):
        return "no bundle can move"
    return "no bundle has a loaded topic that is known yet" if arrived else "no bundle has a loaded topic"


def _left_to_pulsar(room: Room, own: Sequence[int]) -> Iterator[str]:
    """A sentence about bundles (rows) of `pulsar/system` that some broker will feel when it gets them.

    Pulsar's other own namespaces, of heartbeats, belong to one broker each, and stop with it.
    """
    system = [row for row in own if room.state.namespace_of(row) == SYSTEM_NAMESPACE]
    felt = {row: share for row in system if (share := room.share_at_most(row)) > DEFAULT_RATIO}
    if felt:
        most = np.bincount(room.owner[list(felt)], weights=list(felt.values())).max()
        yield (
            f"No step moves {some_of([room.state.bundle_name(row) for row in felt])}: Pulsar itself places that load "
            f"when its broker stops, up to {most:.0%} of a broker like it."
        )


def _unreported(room: Room, arrived: Sequence[int]) -> Iterator[str]:
    """A sentence about bundles (rows) that clients may use though no report shows it."""
    if arrived:
        bundles = some_of([room.state.bundle_name(row) for row in arrived])
        yield (
            f"Whether clients use {bundles} isn't known: topics are there, but not reported, as of a bundle that has "
            "just come. A snapshot a minute later shows it; so does `apply`, which looks once its steps are done."
        )
