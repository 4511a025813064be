"""Packs bundles that have to leave into the room of other brokers; says what finds none, and what would help."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import CPU, RESOURCES, Booleans, Floats
from pulsar_advisor.model.text.some_of import count
from pulsar_advisor.planning.kinds.answers import Answer, BundleOutcome, nowhere_clause, placed
from pulsar_advisor.planning.kinds.room import Room

_PERCENT: Final = 100
_SMALLEST_SHOWN: Final = 0.005
"""The smallest ratio that isn't rounded to 0 %."""


def packed(room: Room, bundles: Sequence[int]) -> tuple[list[Answer], Room]:
    """The answers about these bundles (rows), packed in this order, and the room that they leave.

    Each goes to the broker that is used least with it. If some then find no room, each goes to the fullest broker that
    has room for it, and the better of the two answers counts. If the moves of others left some no allowed broker, as
    those of their anti-affinity group may, these are tried first.
    """
    found = _filled(room, bundles)
    crowded = [
        answer.bundle
        for answer in found[0]
        if answer.outcome is BundleOutcome.NOT_ALLOWED and len(room.allowed(answer.bundle))
    ]
    if not crowded:
        return found
    return fewer_stay(found, _filled(room, [*crowded, *(row for row in bundles if row not in crowded)]))


def _filled(room: Room, bundles: Sequence[int]) -> tuple[list[Answer], Room]:
    tried = []
    for fullest in (False, True):
        left = room.copy()
        answers = [placed(left, bundle, fullest=fullest) for bundle in bundles]
        tried.append((answers, left))
        if not _without_room(answers):
            break
    return fewer_stay(*tried)


def fewer_stay(*tried: tuple[list[Answer], Room]) -> tuple[list[Answer], Room]:
    """The first of these answers, each with the room that it leaves, after which the fewest bundles stay."""
    return min(tried, key=lambda answers_and_room: staying(answers_and_room[0]))


def staying(answers: Sequence[Answer]) -> int:
    """How many bundles don't move."""
    return sum(not answer.moves for answer in answers)


def shortfall(
    before: Room, after: Room, answers: Sequence[Answer], answers_in: Callable[[Room], Sequence[Answer]]
) -> Iterator[str]:
    """What can't move, by how much room is missing, and what would help; the rooms before any move and after all.

    `answers_in` gives the answers in a room like `before` with another ceiling.
    """
    if left := _without_room(answers):
        yield (
            f"There is no room for {len(left)} of {count(len(answers), 'bundle')} under a ceiling of "
            f"{before.ceiling.max():.0%}: {'; '.join(_what_is_missing(before, left, answers_in))}."
        )
    if forbidden := [answer.bundle for answer in answers if answer.outcome is BundleOutcome.NOT_ALLOWED]:
        yield (f"{nowhere_clause(after, forbidden)}: start a broker that may take it, or lift what forbids the others.")


def _without_room(answers: Sequence[Answer]) -> list[int]:
    return [answer.bundle for answer in answers if answer.outcome is BundleOutcome.NO_ROOM]


def _what_is_missing(room: Room, left: Sequence[int], answers_in: Callable[[Room], Sequence[Answer]]) -> Iterator[str]:
    """How much room, the lowest ceiling up to the overload threshold at which all bundles find it, and how many more
    brokers would take those left over."""
    is_known = (room.state.brokers.limit[room.owner[list(left)], CPU] > 0).all()
    if is_known:
        yield f"{_up_to(sum(room.share_at_most(bundle) for bundle in left))} of a broker like theirs is missing"
    else:
        yield "how much is missing isn't known, as their broker reports no CPU limit"
    overloaded = room.settings.load_balancer_broker_overloaded_threshold_percentage
    lowest = round(float(room.ceiling.max()) * _PERCENT) + 1
    for percent in range(lowest, overloaded + 1):
        if not staying(answers_in(room.up_to(percent / _PERCENT))):
            yield f"all would fit with a ceiling of {percent}%"
            break
    if not is_known:
        return
    more, largest = _brokers_needed(room, left), max(left, key=room.share_at_most)
    if more is not None:
        named = ", if their isolation policies name it" if any(room.policy_names_brokers(row) for row in left) else ""
        yield f"{count(more, 'more broker')} like theirs would take them{named}"
    elif _fits(room, _without_bundles(room), largest).all():
        needs = f"{_up_to(room.share_at_most(largest))} of a broker"
        yield f"{room.state.bundle_name(largest)} alone needs {needs}: split it"
    else:
        yield "a broker without bundles would probably be above it, too"


def _up_to(ratio: float) -> str:
    return f"up to {ratio:.0%}" if ratio >= _SMALLEST_SHOWN else "less than 1%"


def _brokers_needed(room: Room, bundles: Sequence[int]) -> int | None:
    """How many empty brokers, like that of the first bundle, take these bundles; None if one bundle fits into none."""
    empty, most = _without_bundles(room), room.settings.load_balancer_broker_max_topics
    usage, topics = empty.copy(), np.zeros(1, dtype=np.int64)
    for bundle in bundles:
        arriving, closed = room.arriving[bundle], int(room.state.bundles.topics[bundle])
        has_room = np.flatnonzero(_fits(room, usage + arriving, bundles[0]) & (topics + closed <= most))
        if not len(has_room):
            if not _fits(room, empty + arriving, bundles[0]).all():
                return None
            usage, topics = np.concatenate((usage, empty)), np.append(topics, 0)
        number = has_room[0] if len(has_room) else -1
        usage[number] += arriving
        topics[number] += closed
    return len(usage)


def _without_bundles(room: Room) -> Floats:
    """(1, 5): the likely usage of a broker without bundles."""
    usage = np.zeros((1, len(RESOURCES)))
    usage[:, CPU] = np.median(room.base.likely)
    return usage


def _fits(room: Room, usage: Floats, bundle: int) -> Booleans:
    """Whether each usage, by resource, of a broker like that of a bundle (a row) is within the ceiling."""
    fits: Booleans = room.ratios(usage, room.owner[[bundle]]) <= room.ceiling.max()
    return fits
