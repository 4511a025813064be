"""The order of a rolling restart that moves each bundle least often: every broker is drained, then restarted.

The first broker's bundles have nowhere to go but to brokers that will be restarted themselves, so each moves at least
twice; from then on a broker is drained into those that were restarted already, where there is room. So the first one is
the broker with the fewest bundles, and no order needs fewer moves than all bundles and those of that broker once more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, Final

import numpy as np

from pulsar_advisor.model.text.some_of import count
from pulsar_advisor.planning.advice.capacity import only_more_brokers
from pulsar_advisor.planning.kinds.answers import Answer, BundleOutcome, clients, fixed
from pulsar_advisor.planning.kinds.packing import packed
from pulsar_advisor.planning.kinds.room import Room

CANDIDATES: Final = 20
"""Brokers tried for the next place in the order, unless an earlier one fits whole into restarted brokers."""


@dataclass(frozen=True)
class Restart:
    """One broker's turn: the bundles that it hands over before it stops."""

    broker: str
    bundles: int
    clients: int
    """Producers and consumers that have to connect again."""
    onto: Mapping[str, int]
    """Bundles by destination."""
    will_move_again: int
    """Those that find room only on brokers whose turn is yet to come."""
    stay: int
    """Those that find no room at all, or may go nowhere: Pulsar assigns them when the broker stops."""
    without_room: int
    """Of these, the ones that other brokers may take but have no room for."""
    highest_usage_ratio: float
    """Of the other brokers, once it is drained."""


@dataclass(frozen=True)
class RestartOrder:
    """The order, and how good it is."""

    SCHEMA: ClassVar = "pulsar-advisor/restart-order/1"

    balance_first: str | None
    """Why not to begin with a restart yet, and what to do before; None if the brokers have room for one another."""
    restarts: tuple[Restart, ...]
    moves: int
    moves_bound: int
    """No order needs fewer, as every bundle has to leave its broker, and those of the first one twice."""


def restart_order(room: Room) -> RestartOrder:
    """The order in which to restart all fit brokers; `room` is as the snapshot found them."""
    at_first, waiting = room, np.flatnonzero(room.fit).tolist()
    movable = {broker: len(_movable(room, broker)) for broker in waiting}
    restarted: list[int] = []
    restarts = []
    while waiting:
        turns = (_turn(room, broker, restarted) for broker in _candidates(room, waiting, movable, restarted))
        broker, restart, room = _first_or_best(turns)
        restarts.append(restart)
        restarted.append(broker)
        waiting.remove(broker)
    again = min(movable.values(), default=0) if len(movable) > 1 else 0
    moves, bound = sum(one.bundles for one in restarts), sum(movable.values()) + again
    return RestartOrder(_balance_first(at_first, restarts), tuple(restarts), moves, bound)


def _balance_first(room: Room, restarts: Sequence[Restart]) -> str | None:
    """`room` is as the snapshot found it."""
    rows, usage = np.flatnonzero(room.fit), room.usage_at_first
    if (reason := only_more_brokers(usage[rows], room.settings)) is not None:
        return f"Add a broker first: {reason}"
    above = rows[usage[rows] > room.ceiling[rows]]
    if len(above):
        hottest = int(above[usage[above].argmax()])
        others = f" and {count(len(above) - 1, 'other')} are" if len(above) > 1 else " is"
        return (
            f"Balance first: {room.state.brokers.ids[hottest]} (at {usage[hottest]:.1%}){others} above "
            f"{room.ceiling[hottest]:.0%}. Until its own turn such a broker takes no bundle, so all that is drained "
            "goes to the rest: pulsar-advisor balance"
        )
    if without_room := sum(one.without_room for one in restarts):
        return (
            f"Balance, or add a broker, first: {count(without_room, 'bundle')} would find no room under "
            f"{room.ceiling.max(initial=0):.0%} and go wherever Pulsar puts them: pulsar-advisor balance"
        )
    return None


_Turn = tuple[int, Restart, Room]


def _first_or_best(turns: Iterator[_Turn]) -> _Turn:
    """The first turn after which no bundle has to move again, else the best."""
    best = next(turns)
    while _rank(best) > (0, 0) and (turn := next(turns, None)) is not None:
        best = min(best, turn, key=_rank)
    return best


def _rank(turn: _Turn) -> tuple[int, int]:
    return turn[1].stay, turn[1].will_move_again


def _candidates(
    room: Room, waiting: Sequence[int], movable: Mapping[int, int], restarted: Sequence[int]
) -> Sequence[int]:
    if not restarted:
        return sorted(waiting, key=lambda broker: (movable[broker], broker))[:CANDIDATES]
    usage = room.usage_of(list(waiting))
    return list(islice((waiting[row] for row in np.argsort(-usage, kind="stable")), CANDIDATES))


def _movable(room: Room, broker: int) -> list[int]:
    return [bundle for bundle in room.bundles_of([broker]) if fixed(room, bundle) is None]


def _turn(room: Room, broker: int, restarted: Sequence[int]) -> _Turn:
    """The broker drained onto restarted ones, then onto the others, and the room once it is back."""
    bundles = _movable(room, broker)
    emptying = room.emptying([broker])
    answers, left = packed(emptying.onto(restarted), bundles)
    lasting = _moved(answers)
    others, left = packed(left.onto(np.flatnonzero(room.fit).tolist()), [row for row in bundles if row not in lasting])
    again = _moved(others)
    going = {**lasting, **again}
    ids = room.state.brokers.ids
    rest = np.flatnonzero(room.fit & ~emptying.leaving)
    restart = Restart(
        broker=ids[broker],
        bundles=len(going),
        clients=sum(clients(room, bundle) for bundle in going),
        onto=dict(sorted(Counter(ids[to] for to in going.values()).items())),
        will_move_again=len(again),
        stay=len(bundles) - len(going),
        without_room=sum(answer.outcome is BundleOutcome.NO_ROOM for answer in others),
        highest_usage_ratio=float(left.usage_of(rest).max()) if len(rest) else 0.0,
    )
    return broker, restart, left.emptying([])


def _moved(answers: Sequence[Answer]) -> dict[int, int]:
    return {answer.bundle: answer.place.broker for answer in answers if answer.outcome is BundleOutcome.MOVES}
