"""One broker's turn in a rolling restart: its bundles go to brokers that were restarted already, where there is room.

From there they needn't move again. What finds no room goes to a broker whose turn is yet to come, and moves once more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pulsar_advisor.planning.kinds.answers import Answer, BundleOutcome, clients, movable
from pulsar_advisor.planning.kinds.packing import fewer_stay, packed, staying

if TYPE_CHECKING:
    from pulsar_advisor.planning.kinds.room import Room


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
    """Bundles that find room only on brokers whose turn is yet to come."""
    stay: int
    """Bundles that find no room at all, or may go nowhere: Pulsar assigns them when the broker stops."""
    without_room: int
    """Of these, the ones that other brokers may take but have no room for."""
    highest_usage_ratio: float
    """Of the other brokers, once it is drained."""


@dataclass(frozen=True, eq=False)
class Turn:
    """A broker's turn, in rows of the state."""

    restart: Restart
    answers: Sequence[Answer]
    """About each bundle that may move: where it goes, or why it stays."""
    drained: Room
    """The room while the broker is away."""
    back: Room
    """The room once it is back, with nothing on it."""

    @property
    def moved(self) -> tuple[int, ...]:
        """The bundles that move."""
        return tuple(answer.bundle for answer in self.answers if answer.moves)


def turn(room: Room, broker: int, restarted: Sequence[int]) -> Turn:
    """The broker (rows) drained onto restarted ones, then onto the others; onto all at once if fewer stay that way."""
    bundles, fit = movable(room, [broker]), np.flatnonzero(room.fit).tolist()
    emptying = room.emptying([broker])
    first, left = packed(emptying.onto(restarted), bundles)
    lasting = {answer.bundle: answer for answer in first if answer.moves}
    others, left = packed(left.onto(fit), [row for row in bundles if row not in lasting])
    answers = [*lasting.values(), *others]
    if staying(answers):
        answers, left = fewer_stay((answers, left), packed(emptying.onto(fit), bundles))
    going = [answer for answer in answers if answer.moves]
    ids = room.state.brokers.ids
    rest = np.flatnonzero(room.fit & ~emptying.leaving)
    restart = Restart(
        broker=ids[broker],
        bundles=len(going),
        clients=sum(clients(room, answer.bundle) for answer in going),
        onto=dict(sorted(Counter(ids[answer.place.broker] for answer in going).items())),
        will_move_again=sum(answer.place.broker not in restarted for answer in going),
        stay=staying(answers),
        without_room=sum(answer.outcome is BundleOutcome.NO_ROOM for answer in answers),
        highest_usage_ratio=float(left.usage_of(rest).max()) if len(rest) else 0.0,
    )
    return Turn(restart, answers, left, left.emptying([]))


def turns_of(room: Room, brokers: Sequence[int], restarted: Sequence[int]) -> Iterator[Turn]:
    """The turns of brokers (rows), one after the other; `restarted` need no restart, or had theirs."""
    for number, broker in enumerate(brokers):
        now = turn(room, broker, [*restarted, *brokers[:number]])
        yield now
        room = now.back
