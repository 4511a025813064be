"""drain: moves every bundle off brokers that are to be stopped, so that clients are handed over one bundle at a time.

The largest bundles come first (`packing`). Idle bundles (no loaded topic) and those of Pulsar's own namespaces stay:
nothing would move, and the broker gives them up when it stops. Nothing else keeps a bundle on the broker, except that
no other broker is allowed, or has room.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from pulsar_advisor.model.load.resource_usage import weighted_maximum
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.text.some_of import some_of
from pulsar_advisor.planning.kinds.answers import Answer, BundleOutcome, parted, proposal
from pulsar_advisor.planning.kinds.packing import packed, shortfall
from pulsar_advisor.planning.kinds.room import ROOM_KEYS, ROOM_READS, Room
from pulsar_advisor.planning.proposals.proposal import Proposal

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
    return proposal(
        goal,
        after,
        [*answers, *staying],
        {"bundles": len(rows), "may_have_arrived": len(arrived), "mean_ratio_if_one_more_fails": headroom},
        [*shortfall(before, answers), *_unreported(before, arrived), *without_headroom(after, headroom)],
        why_nothing=_why_nothing([*answers, *staying], arrived),
    )


def _why_nothing(answers: Sequence[Answer], arrived: Sequence[int]) -> str:
    if any_stays(answers):
        return "no bundle can move"
    return "no bundle has a loaded topic that is known yet" if arrived else "no bundle has a loaded topic"


def any_stays(answers: Sequence[Answer]) -> bool:
    """Whether any bundle stays that clients use, and that isn't one of Pulsar's own."""
    return any(answer.outcome not in (BundleOutcome.NO_TOPICS, BundleOutcome.PULSARS_OWN) for answer in answers)


def _unreported(room: Room, arrived: Sequence[int]) -> Iterator[str]:
    """A sentence about bundles (rows) that clients may use, unreported so far."""
    if arrived:
        bundles = some_of([room.state.bundle_name(row) for row in arrived])
        yield (
            f"Whether clients use {bundles} isn't known: topics are there, but not reported, as of a bundle that has "
            "just come. A snapshot a minute later shows it; so does `apply`, which looks once its steps are done."
        )


def mean_if_one_more_fails(room: Room) -> float | None:
    """The usage (ratio) that the remaining brokers may have on average without the one whose loss hurts most.

    All of its load may have to be taken over; None if fewer than two brokers remain.
    """
    rows = np.flatnonzero(room.fit & ~room.leaving)
    if len(rows) < 2:
        return None
    limit, (usage, stays) = room.state.brokers.limit[rows], room.staying(rows, room.base.least)
    rest, of = usage.sum(axis=0) - stays, limit.sum(axis=0) - limit
    return float(weighted_maximum(rest, of, room.settings).max())


def without_headroom(room: Room, mean_ratio: float | None) -> Iterator[str]:
    """A sentence if one more broker couldn't fail; `mean_ratio` is the answer of `mean_if_one_more_fails`."""
    threshold = room.settings.overloaded_ratio
    if mean_ratio is None:
        yield "There is no headroom: fewer than two brokers remain, so none could take the load of one that fails."
    elif mean_ratio > threshold:
        yield (
            f"There is no headroom: if one more broker failed, the others could be at {mean_ratio:.0%} on average, "
            f"above the overload threshold of {threshold:.0%}."
        )
