"""The order of a roll: which brokers are restarted one after the other, the leader last, and what each turn moves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.text.some_of import count, some_of
from pulsar_advisor.planning.kinds.goal import brokers_in_order
from pulsar_advisor.planning.kinds.restarting import Restart, turns_of
from pulsar_advisor.planning.kinds.room import Room
from pulsar_advisor.planning.proposals.executable import why_no_destination
from pulsar_advisor.planning.questions.restart_order import restart_order


@dataclass(frozen=True)
class RollOrder:
    """The order, and what it takes."""

    brokers: tuple[str, ...]
    turns: tuple[Restart, ...]
    """In that order."""
    at_rest: tuple[str, ...]
    """Brokers that have no bundle to move, so that they need no turn; they take bundles first."""
    leader: str | None
    """None if the snapshot doesn't know it, or no turn is the leader's."""
    balance_first: str | None
    """Why not to begin yet, and what to do before; None if the brokers have room for one another."""
    why_none: str | None = None
    """Why no broker can be drained, in any order: then no plan can make these turns."""
    unfit: tuple[str, ...] = ()
    """Of all brokers, if none was named: those that can't have a turn now, as they are inactive or can't be judged."""

    def left_out(self) -> Iterator[str]:
        """Which brokers the roll doesn't restart, though it was to restart all, and what to do: a sentence each."""
        if self.at_rest:
            yield (
                f"{some_of(self.at_rest)}: nothing to move, so the roll leaves them out; "
                f"restart {count(len(self.at_rest), 'such broker')} before it begins"
            )
        if self.unfit:
            yield (
                f"{some_of(self.unfit)}: not active, or without figures fit for use, so the roll leaves them out and "
                "they are not restarted: capture again, and make the plan anew"
            )


def roll_order(room: Room, leader: str | None, names: Sequence[str] = (), spare: Sequence[str] = ()) -> RollOrder:
    """The order of all fit brokers but the `spare` ones, or of those that are named, in that order; `leader` is an id.

    Raises `UsageError` for a broker that can't be restarted this way, and if no broker has a bundle to move.
    """
    ids = room.state.brokers.ids
    fit = {ids[row] for row in np.flatnonzero(room.fit).tolist()}
    named, kept = brokers_in_order(names, ids), brokers_in_order(spare, ids)
    if both := sorted({*named} & {*kept}):
        raise UsageError(f"{some_of(both)} can't be restarted and spare at once: omit one of the two")
    if unfit := sorted({*named, *kept} - fit):
        are, their = ("is", "its") if len(unfit) == 1 else ("are", "their")
        raise UsageError(f"{some_of(unfit)} {are} not active, or {their} figures are not fit for use: capture again")
    others = [broker for broker in sorted(fit) if broker not in named] if named else kept
    last = room.rows_of([leader])[0] if leader is not None and leader in fit.difference(others) else None
    best = restart_order(room, room.rows_of(others), last)
    order = named or [one.broker for one in best.restarts if one.bundles or one.stay]
    if not order:
        raise UsageError("no broker has a bundle to move: restart them one after the other")
    order = leader_last(order, leader)
    at_rest = [broker for broker in sorted(fit) if broker not in (*order, *others)]
    turns = best.restarts
    if order != tuple(one.broker for one in turns):
        again = turns_of(room, room.rows_of(order), room.rows_of([*others, *at_rest]))
        turns = tuple(each.restart for each in again)
    return RollOrder(
        brokers=order,
        turns=turns,
        at_rest=tuple(at_rest),
        leader=leader if leader in order else None,
        balance_first=best.balance_first,
        why_none=why_no_destination(room.state, room.settings),
        unfit=() if named else tuple(sorted({*ids} - fit)),
    )


def leader_last(brokers: Iterable[str], leader: str | None) -> tuple[str, ...]:
    """The brokers in the same order, but for the leader."""
    return tuple(sorted(brokers, key=lambda broker: broker == leader))
