"""Chooses the cheapest moves that bring brokers within a usage: `shedding.fewest_moves`, with policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, Floats, Indices, Integers
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.planning.kinds.answers import Answer, movable, moved_to, nowhere_clause
from pulsar_advisor.planning.kinds.room import Room
from pulsar_advisor.shedding.fewest_moves import (
    BEYOND_ALL_BOUNDS_PPM,
    EXACT_PAIRS,
    PPM,
    Balancing,
    Moves,
    counting_bound,
    few_moves,
    fewest_moves,
    ppm_per_unit,
)
from pulsar_advisor.shedding.minimal_move_shedder import TARGET_OF_MEAN

_FINENESS_PPM: Final = 5_000
"""Differences of a destination's usage that are not worth another search: half a point."""

_FEW_PAIRS: Final = 200
"""Most pairs of bundle and destination for which a less busy destination is worth several exact searches."""

_MOST_ROUNDS: Final = 20
"""How often what is left is tried again after other moves."""

_ROUNDING_PPM: Final = 10
"""Kept free below a ceiling: the sums of whole numbers and those of the forecast may differ by this."""


@dataclass(frozen=True, eq=False)
class Choice:
    """What moves, and how good that is proven to be."""

    after: Room
    answers: dict[int, Answer]
    """By bundle (a row), the largest moves first."""
    reached: bool
    cost: int
    least: int | None
    """Proven: no moves that reach the usages cost less. None if proven that none do."""


def target_of(goal: Goal, room: Room) -> float:
    """The usage (ratio) that no broker may exceed under a goal: by default 1.10 times the mean, within the ceiling."""
    wanted = TARGET_OF_MEAN * room.mean_ratio() if goal.target_ratio is None else goal.target_ratio
    return min(wanted, float(room.ceiling.max()))


def movable_above(room: Room, target_ratio: float) -> list[int]:
    """The bundles (rows) that may move from brokers above a usage."""
    return movable(room, np.flatnonzero(room.fit & (room.usage_at_first > target_ratio)).tolist())


def fewest_within(room: Room, bundles: Sequence[int], target_ratio: float) -> Choice:
    """The fewest moves of these bundles (rows) after which no broker is above a usage; a broker that has none of them
    may stay above it."""
    within = np.full(len(room.fit), target_ratio)
    choice = choose(room.up_to(target_ratio), bundles, within, np.ones(len(bundles), dtype=np.int64))
    if choice.reached and choice.after.highest_ratio() > target_ratio + _ROUNDING_PPM / PPM:
        return replace(choice, reached=False, least=None)
    return choice


def why_stays(room: Room, bundles: Sequence[int], broker: int, target_ratio: float) -> str | None:
    """Why a broker (a row) stays above a usage even if all of its movable bundles (rows) go; None if it doesn't.

    Judged by its likely usage then, and by the least that it may be.
    """

    def without(moved: Floats) -> float:
        return float(room.ratios(room.usage[[broker]] - moved[bundles].sum(axis=0), [broker])[0])

    likely, lowest = without(room.moved), without(room.arriving)
    if likely <= target_ratio:
        return None
    if lowest > target_ratio:
        return f"{lowest:.1%} stays even without any bundle that may move"
    return (
        f"{likely:.1%} probably stays even without any bundle that may move; less, and {lowest:.1%} at least, the more "
        "of its CPU follows messages, which moving one bundle would show"
    )


def why_none_goes(room: Room, bundles: Sequence[int], without_room: str) -> str:
    """Why none of these bundles (rows) goes elsewhere: what forbids those that may go nowhere, else `without_room`."""
    barred = [row for row in bundles if not len(room.allowed(row))]
    if not barred:
        return without_room
    nowhere = nowhere_clause(room, barred)
    return nowhere if len(barred) == len(bundles) else f"{without_room}; {nowhere}"


def choose(room: Room, bundles: Sequence[int], within_ratio: Floats, cost: Integers) -> Choice:
    """The cheapest moves of these bundles (rows) after which no broker is above its usage in `within_ratio`.

    Of equally cheap ones, such as reach it at the worse end, too. If none are found, those after which the busiest of
    the brokers that stay above it ends low; what is left is tried again, as a broker that gave may then take, and
    anti-affinity may allow more. A broker above its usage that has none of these bundles counts as within it, and takes
    nothing. `cost` is that of each bundle, above 0.
    """
    choice = _chosen(room, bundles, within_ratio, cost)
    for _ in range(_MOST_ROUNDS):
        moved = _moved(choice.answers)
        left = [position for position, row in enumerate(bundles) if row not in moved]
        if choice.reached or not moved or not left:
            break
        again = _chosen(choice.after, [bundles[position] for position in left], within_ratio, cost[left])
        if not _moved(again.answers):
            break
        least = counting_bound(_problem(room, bundles, within_ratio, cost))
        choice = replace(again, answers=moved | again.answers, cost=choice.cost + again.cost, least=least)
    return choice


def _moved(answers: Mapping[int, Answer]) -> dict[int, Answer]:
    """The answers about the bundles that have moved."""
    return {row: answer for row, answer in answers.items() if answer.moves}


def _chosen(room: Room, bundles: Sequence[int], within_ratio: Floats, cost: Integers) -> Choice:
    """The same, where each bundle may go only where it may before any moves."""
    at_first = _problem(room, bundles, within_ratio, cost)
    proven = fewest_moves(at_first)
    if proven.reached:
        problem, moves = _surest(at_first, _problem(room, bundles, within_ratio, cost, surely=True), proven)
    else:
        problem, moves = _nearest(at_first, proven)
    destination = _without_needless(problem, _lowest(problem, moves))
    after, answers = room.copy(), {}
    going = {row: int(to) for row, to in zip(bundles, destination, strict=True) if to != NO_ROW}
    for bundle in sorted(going, key=lambda row: (-room.share(row), row)):
        # After the moves before it, anti-affinity or the number of topics may forbid a destination.
        answers[bundle] = moved_to(after, bundle, going[bundle])
    moved = _moved(answers)
    total = sum(int(each) for row, each in zip(bundles, cost, strict=True) if row in moved)
    least = counting_bound(at_first) if _in_groups(room, bundles) else proven.least
    return Choice(after, answers, proven.reached and len(moved) == len(going), total, least)


def _in_groups(room: Room, bundles: Sequence[int]) -> bool:
    """Whether any of these bundles (rows) is in an anti-affinity group, so that moves change where others may go."""
    state = room.state
    return bool(state.namespaces.in_groups[state.bundles.namespace[list(bundles)]].any())


def _nearest(problem: Balancing, moves: Moves) -> tuple[Balancing, Moves]:
    """Where the moves that were found don't reach the ceilings: the lowest ceilings of the brokers that stay above
    theirs that a search reaches, and its moves. No broker ends above where the moves that were found leave it.
    """
    after = problem.load_after(moves.destination).max(axis=1)
    stays = after > problem.ceiling
    pairs = len(problem.source) * np.count_nonzero(problem.receives)
    nearest = problem, moves
    if pairs > EXACT_PAIRS:
        return nearest
    search = fewest_moves if pairs <= _FEW_PAIRS else few_moves
    low, high = int(problem.ceiling[stays].min(initial=0)), int(after[stays].max(initial=0))
    while high - low > _FINENESS_PPM:
        level = (low + high) // 2
        raised = replace(problem, ceiling=np.where(stays, np.clip(level, problem.ceiling, after), problem.ceiling))
        found = search(raised)
        if found.reached:
            nearest, high = (raised, found), level
        else:
            low = level
    return nearest


def _surest(problem: Balancing, surely: Balancing, moves: Moves) -> tuple[Balancing, Moves]:
    """The problem of reaching the ceilings `surely`, and moves that do and cost no more, if a search finds some."""
    if surely.reached(moves.destination):
        return surely, moves
    found = fewest_moves(surely, enough=moves.cost)
    is_as_cheap = found.reached and found.cost <= moves.cost
    return (surely, replace(found, least=moves.least)) if is_as_cheap else (problem, moves)


def _problem(
    room: Room, bundles: Sequence[int], within_ratio: Floats, cost: Integers, *, surely: bool = False
) -> Balancing:
    """The choice among these bundles; loads in parts per million, as whole numbers.

    Brokers that give are judged by their likely usage, or `surely`, as those that take, by the most that they may use.
    """
    per_unit = ppm_per_unit(room.state.brokers.limit, room.settings)
    source = room.owner[list(bundles)].astype(np.int32)
    gives = np.isin(np.arange(len(per_unit)), source)
    with np.errstate(all="ignore"):
        found = np.where(gives[:, None] & (not surely), room.usage, room.most)
        usage = np.where(per_unit > 0, np.nan_to_num(found) * per_unit, 0.0)
    load = np.rint(np.clip(usage, -BEYOND_ALL_BOUNDS_PPM, BEYOND_ALL_BOUNDS_PPM)).astype(np.int64)
    highest, wanted = load.max(axis=1), np.rint(within_ratio * PPM).astype(np.int64)
    falls = gives & (highest > wanted)
    ceiling = np.where(falls, wanted, np.maximum(wanted - _ROUNDING_PPM, highest))
    may_go = np.zeros((len(bundles), len(load)), dtype=np.bool_)
    for position, row in enumerate(bundles):
        may_go[position, room.allowed(row)] = True
    return Balancing(
        load=load,
        ceiling=ceiling,
        receives=room.receives & (highest <= wanted),
        spare=np.full(len(load), len(bundles)),
        source=source,
        moved=(room.moved_at_least if surely else room.moved)[list(bundles)],
        arriving=room.arriving[list(bundles)],
        dearer=room.dearer,
        ppm_per_unit=per_unit,
        cost=cost,
        may_go=may_go,
    )


def _lowest(problem: Balancing, moves: Moves) -> Moves:
    """Moves that cost no more and leave the busiest destination least used, as far as a search finds."""
    if not moves.reached or not moves.cost:
        return moves
    before = problem.load.max(axis=1)

    def highest(found: Moves) -> int:
        takes = found.destination[found.destination != NO_ROW]
        return int(problem.load_after(found.destination)[takes].max())

    best = moves
    pairs = len(problem.source) * np.count_nonzero(problem.receives)
    searches = (few_moves, partial(fewest_moves, enough=moves.cost)) if pairs <= _FEW_PAIRS else (few_moves,)
    for search in searches:
        low, step = int(before[problem.receives].min(initial=PPM)), _FINENESS_PPM
        while (reached := highest(best)) - low > _FINENESS_PPM:
            level = max(low, reached - step)
            lowered = np.where(
                problem.receives, np.minimum(problem.ceiling, np.maximum(level, before)), problem.ceiling
            )
            found = search(replace(problem, ceiling=lowered, receives=problem.receives & (before <= level)))
            if found.reached and found.cost <= moves.cost:
                best, step = replace(found, least=moves.least), 2 * step
            else:
                low, step = level, _FINENESS_PPM
    return best


def _without_needless(problem: Balancing, moves: Moves) -> Indices:
    """The destinations without the moves that aren't needed, the most expensive first."""
    destination = moves.destination.copy()
    if not moves.reached:
        return destination
    going = np.flatnonzero(destination != NO_ROW)
    going = going[np.argsort(-problem.cost[going], kind="stable")]
    load, ceiling = problem.load_after(destination), problem.ceiling
    back, gone = problem.demand_at_source()[going], problem.demand(going, destination[going])
    for place, bundle in enumerate(going.tolist()):
        # The other brokers are within their ceilings, and stay as they are.
        source, to = problem.source[bundle], destination[bundle]
        with_it, without_it = load[source] + back[place], load[to] - gone[place]
        if (with_it <= ceiling[source]).all() and (without_it <= ceiling[to]).all():
            load[source], load[to] = with_it, without_it
            destination[bundle] = NO_ROW
    return destination
