"""The order of a rolling restart that moves each bundle least often: every broker is drained, then restarted.

The first broker's bundles have nowhere to go but to brokers that will be restarted themselves, so each moves at least
twice; from then on a broker is drained into those that were restarted already, where there is room. So no order needs
fewer moves than all bundles and those of the broker with the fewest once more. That broker begins, unless bundles then
stay or move more often and the order that follows after another one is better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar, Final, TypeVar

import numpy as np

from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.text.some_of import count
from pulsar_advisor.planning.advice.capacity import only_more_brokers
from pulsar_advisor.planning.kinds.answers import movable
from pulsar_advisor.planning.kinds.choosing import fewest_within, movable_above, target_of
from pulsar_advisor.planning.kinds.restarting import Restart, Turn, turn
from pulsar_advisor.planning.kinds.room import Room

CANDIDATES: Final = 20
"""Brokers tried for the next place in the order, unless an earlier one fits whole into restarted brokers."""
BUNDLES_TRIED: Final = 1000
"""Bundles placed, besides one broker's, to find the next in the order, and bundles in all orders that are tried: more
would take minutes and gain few moves."""


@dataclass(frozen=True)
class RestartOrder:
    """The order, and how good it is."""

    SCHEMA: ClassVar = "pulsar-advisor/restart-order/1"

    balance_first: str | None
    """Why not to begin with a restart yet, and what to do before; None if the brokers have room for one another."""
    restarts: tuple[Restart, ...]
    moves: int
    moves_bound: int
    """No order in which every bundle leaves its broker needs fewer: the first broker's bundles move twice."""


def restart_order(room: Room, spare: Sequence[int] = (), last: int | None = None) -> RestartOrder:
    """The order in which to restart all fit brokers but the `spare` ones (rows); `room` is as the snapshot found them.

    Spare brokers take bundles first, and aren't restarted. One broker may have to be the `last`.
    """
    fit = [row for row in np.flatnonzero(room.fit).tolist() if row not in spare]
    bundles = {broker: len(movable(room, [broker])) for broker in fit}
    number, firsts = sum(bundles.values()), [row for row in fit if row != last]
    again = min((bundles[row] for row in firsts), default=0) if len(fit) > 1 and not spare else 0
    affordable = _candidates(room, firsts, bundles, spare)[: BUNDLES_TRIED // max(number, 1)]
    orders = (_restarts(room, bundles, spare, last, first) for first in (None, *affordable))
    restarts = _first_or_best(orders, _left_and_moves, (0, number + again))
    _, moves = _left_and_moves(restarts)
    return RestartOrder(_balance_first(room, restarts), tuple(restarts), moves, number + again)


def _restarts(
    room: Room, bundles: Mapping[int, int], spare: Sequence[int], last: int | None, first: int | None
) -> list[Restart]:
    """The turns of these brokers (rows): of the `first`, if any, then always of the one that leaves least to do."""
    others, kept = [row for row in bundles if row != last], [row for row in bundles if row == last]
    restarted = list(spare)
    restarts = []
    while waiting := others or kept:
        tried = [first] if first is not None and first in waiting else _candidates(room, waiting, bundles, restarted)
        broker, best = _first_or_best(((row, turn(room, row, restarted)) for row in tried), _rank, (0, 0))
        restarts.append(best.restart)
        restarted.append(broker)
        waiting.remove(broker)
        room = best.back
    return restarts


def _left_and_moves(restarts: Sequence[Restart]) -> tuple[int, int]:
    """The bundles that stay in an order, and the moves that it needs."""
    return sum(one.stay for one in restarts), sum(one.bundles for one in restarts)


def _balance_first(room: Room, restarts: Sequence[Restart]) -> str | None:
    """`room` is as the snapshot found it."""
    rows, usage = np.flatnonzero(room.fit), room.usage_at_first
    if (reason := only_more_brokers(usage[rows], room.settings)) is not None:
        return f"Add a broker first: {reason}"
    above = rows[usage[rows] > room.ceiling[rows]]
    without_room = sum(one.without_room for one in restarts)
    if not (len(above) or without_room):
        return None
    target, ceiling = target_of(Goal("balance"), room), float(room.ceiling.max(initial=0))
    within = next((to for to in dict.fromkeys((target, ceiling)) if _has_moves(room, to)), None)
    is_default = within == target and (target < ceiling or ceiling >= room.settings.overloaded_ratio)
    to = "" if within is None or is_default else f" --to {ceiling:.0%}"
    has_moves = within is not None
    balance = f"Balance (pulsar-advisor balance{to})"
    if len(above):
        hottest = int(above[usage[above].argmax()])
        others = f" and {count(len(above) - 1, 'other')} are" if len(above) > 1 else " is"
        return (
            f"{balance if has_moves else 'Split bundles, or add a broker,'} first: "
            f"{room.state.brokers.ids[hottest]} (at {usage[hottest]:.1%}){others} above {ceiling:.0%}. Until its own "
            "turn such a broker takes no bundle, so all that is drained goes to the other brokers"
        )
    return (
        f"{f'{balance}, or add a broker,' if has_moves else 'Add a broker'} first: "
        f"{count(without_room, 'bundle')} would find no room under {ceiling:.0%} and go wherever Pulsar decides"
    )


def _has_moves(room: Room, target_ratio: float) -> bool:
    """Whether `balance` to a usage moves anything."""
    bundles = movable_above(room, target_ratio)
    return bool(bundles and (fewest_within(room, bundles, target_ratio).after.owner != room.owner).any())


_Candidate = tuple[int, Turn]
"""A broker (a row), and its turn if it were the next."""

_Tried = TypeVar("_Tried")


def _first_or_best(
    candidates: Iterator[_Tried], rank: Callable[[_Tried], tuple[int, int]], enough: tuple[int, int]
) -> _Tried:
    """The first candidate that ranks no higher than `enough`, else the best."""
    best = next(candidates)
    while rank(best) > enough and (candidate := next(candidates, None)) is not None:
        best = min(best, candidate, key=rank)
    return best


def _rank(candidate: _Candidate) -> tuple[int, int]:
    """The bundles that stay in a turn, and those that have to move again."""
    restart = candidate[1].restart
    return restart.stay, restart.will_move_again


def _candidates(
    room: Room, waiting: Sequence[int], bundles: Mapping[int, int], restarted: Sequence[int]
) -> Sequence[int]:
    if restarted:
        usage = room.usage_of(list(waiting))
        ranked = [waiting[row] for row in np.argsort(-usage, kind="stable")]
    else:
        ranked = sorted(waiting, key=lambda broker: (bundles[broker], broker))
    placed = accumulate(bundles[broker] for broker in ranked)
    affordable = sum(1 for number in placed if number <= BUNDLES_TRIED)
    return ranked[: min(max(affordable, 1), CANDIDATES)]
