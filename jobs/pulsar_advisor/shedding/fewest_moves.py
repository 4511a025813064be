"""The fewest moves that bring every broker under its ceiling: a lower bound, a heuristic, and an exact search.

The problem: each bundle stays or moves to one broker; no broker ends above its ceiling in any resource; minimise the
cost of the moves, which is their number if every bundle costs one. Loads are whole parts per million of a broker's
limit, so sums are exact in any order.

* Bound: a broker must give at least as many bundles as its largest ones need to cover its excess in one resource;
  these numbers, or the costs of that many of its cheapest bundles, add up over the brokers.
* Heuristic: the broker furthest above its ceiling gives the bundle that removes most of the excess for its cost (the
  smallest of those that remove all of it), until every excess is gone or nothing fits. It runs twice: each bundle
  goes to the broker that it fills least, then to the one that it fills most; the better answer counts.
* Exact: if the two differ and the problem is small, an integer program searches for fewer moves, or for any that
  suffice, and may also take bundles from brokers below their ceiling to make room. Bounded by nodes, not by time, so
  that the answer doesn't depend on the machine.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from pulsar_advisor.model.cluster.cluster_state import CPU, NO_ROW, RESOURCES, Booleans, Floats, Indices, Integers
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.resource_usage import weighted_maximum
from pulsar_advisor.shedding.integer_program import Rows, cheapest

EXACT_PAIRS: Final = 2_000
"""Most pairs of bundle and destination for which the search is worthwhile: ten brokers with two hundred bundles."""

EXACT_NODES: Final = 100
"""Nodes of the branch-and-bound tree after which the search stops with its current bound."""

PPM: Final = 1_000_000

_IS_CPU: Final = np.arange(len(RESOURCES)) == CPU

BEYOND_ALL_BOUNDS_PPM: Final = 1e12
"""A million times a limit: no such load fits anywhere, and sums up to it are exact."""

RowNumbers = npt.NDArray[np.signedinteger] | int


def whole_ppm(amount: Floats, ppm_per_unit: Floats) -> Integers:
    """Amounts in whole parts per million, capped at BEYOND_ALL_BOUNDS_PPM."""
    with np.errstate(over="ignore"):
        return np.rint(np.minimum(amount * ppm_per_unit, BEYOND_ALL_BOUNDS_PPM)).astype(np.int64)


def ppm_per_unit(limit: Floats, settings: LoadBalancerSettings) -> Floats:
    """(n, 5): the weighted share, in parts per million, that one unit of each resource takes at each broker."""
    # A fully used resource while the others idle reveals its own weight.
    weights = weighted_maximum(np.eye(len(RESOURCES)), np.ones((len(RESOURCES), len(RESOURCES))), settings)
    with np.errstate(all="ignore"):
        return np.minimum(np.where(limit > 0, weights * PPM / limit, 0.0), np.finfo(np.float64).max)


@dataclass(frozen=True, eq=False)
class Balancing:
    """n brokers and m bundles that may move; resources as columns, in the order of RESOURCES."""

    load: Integers
    """(n, 5), parts per million of the broker's limit, weights applied."""
    ceiling: Integers
    """(n,): the ceiling that no resource of the broker may end above."""
    receives: Booleans
    """(n,): whether bundles may move there."""
    spare: Integers
    """(n,): how many bundles may leave."""
    source: Indices
    """(m,): row of the broker that has the bundle."""
    moved: Floats
    """(m, 5): what leaves with the bundle, in the resource's unit."""
    arriving: Floats
    """(m, 5): what a destination must have room for, at least that."""
    dearer: Floats
    """(n, n), at least 1: the factor by which it takes more CPU at a destination (the column) than at a source."""
    ppm_per_unit: Floats
    """(n, 5): the share that one unit of the resource takes at the broker."""
    cost: Integers
    """(m,), above 0: what moving the bundle costs."""
    may_go: Booleans
    """(m, n): where each bundle may go, of the brokers that receive."""

    def demand(self, bundles: RowNumbers, brokers: RowNumbers) -> Integers:
        """The load that bundles (rows) cause at brokers (rows) that they move to."""
        dearer = np.where(_IS_CPU, self.dearer[self.source[bundles], brokers, None], 1.0)
        return whole_ppm(self.arriving[bundles] * dearer, self.ppm_per_unit[brokers])

    def demand_at_source(self) -> Integers:
        """(m, 5): the load of which each bundle relieves the broker where it is."""
        return whole_ppm(self.moved, self.ppm_per_unit[self.source])

    def load_after(self, destination: Indices) -> Integers:
        """(n, 5): loads when every bundle is at its destination; NO_ROW for one that stays."""
        goes = np.flatnonzero(destination != NO_ROW)
        load = self.load.copy()
        np.subtract.at(load, self.source[goes], self.demand_at_source()[goes])
        np.add.at(load, destination[goes], self.demand(goes, destination[goes]))
        return load

    def reached(self, destination: Indices) -> bool:
        """Whether no broker is then above its ceiling."""
        return bool((self.load_after(destination) <= self.ceiling[:, None]).all())


@dataclass(frozen=True, eq=False)
class Moves:
    """What to move, and how good that is proven to be."""

    destination: Indices
    """(m,): NO_ROW for a bundle that stays."""
    reached: bool
    """Whether every broker ends within its ceiling."""
    cost: int
    """The number of moves, or what they cost."""
    least: int | None
    """Proven: no cheaper moves reach the ceilings. None if proven that no moves do."""


def few_moves(problem: Balancing) -> Moves:
    """The heuristic's answer, for problems of any size."""
    least = counting_bound(problem)
    moves = (_moves(problem, _greedy(problem, fill_most), least) for fill_most in (False, True))
    return min(moves, key=lambda answer: (not answer.reached, answer.cost))


def _moves(problem: Balancing, destination: Indices, least: int | None) -> Moves:
    cost = int(problem.cost[destination != NO_ROW].sum())
    return Moves(destination, problem.reached(destination), cost, least)


def fewest_moves(problem: Balancing, enough: int = 0) -> Moves:
    """The heuristic's answer, improved or proven optimal by the exact search if the problem is small.

    Moves that cost no more than `enough` aren't improved, and where all cost more none are looked for.
    """
    moves = few_moves(problem)
    if moves.least is None or (moves.reached and moves.cost <= max(moves.least, enough)):
        return moves
    if 0 < enough < moves.least:
        return moves
    pairs = np.count_nonzero(problem.demand_at_source().any(axis=1)) * np.count_nonzero(problem.receives)
    return _exact(problem, moves) if pairs <= EXACT_PAIRS else moves


def counting_bound(problem: Balancing) -> int | None:
    """A lower bound on the cost of any solution; None if some broker can't give enough."""
    fewest, costs = _fewest_to_leave(problem), problem.cost
    if fewest is None:
        return None
    giving = np.flatnonzero(fewest)
    members = _members(problem) if len(giving) else []
    return sum(int(np.sort(costs[members[broker]])[: fewest[broker]].sum()) for broker in giving.tolist())


def _fewest_to_leave(problem: Balancing) -> Integers | None:
    """Per broker, how many bundles must leave at least."""
    demand = problem.demand_at_source()
    excess = np.maximum(problem.load - problem.ceiling[:, None], 0)
    fewest = np.zeros(len(problem.load), dtype=np.int64)
    members = _members(problem)
    for broker in np.flatnonzero(excess.any(axis=1)).tolist():
        for resource in np.flatnonzero(excess[broker]).tolist():
            largest_first = np.sort(demand[members[broker], resource])[::-1]
            enough = int(np.searchsorted(np.cumsum(largest_first), excess[broker, resource])) + 1
            if enough > min(len(largest_first), problem.spare[broker]):
                return None
            fewest[broker] = max(fewest[broker], enough)
    return fewest


def _members(problem: Balancing) -> list[npt.NDArray[np.intp]]:
    """Bundles of each broker, ascending."""
    by_source = np.argsort(problem.source, kind="stable")
    starts = np.searchsorted(problem.source[by_source], np.arange(1, len(problem.load)))
    return np.split(by_source, starts)


def _greedy(problem: Balancing, fill_most: bool) -> Indices:
    load, spare = problem.load.copy(), problem.spare.copy()
    ceiling = problem.ceiling[:, None]
    demand, costs = problem.demand_at_source(), problem.cost
    destination = np.full(len(problem.source), NO_ROW, dtype=np.int32)
    above = (load > ceiling).any(axis=1)
    receivers = np.flatnonzero(problem.receives & ~above)
    least_per_unit = problem.ppm_per_unit[receivers].min(axis=0, initial=np.inf)
    may_go = np.asarray(problem.may_go[:, receivers].any(axis=1))

    def that_may_fit(bundles: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """Receivers only fill up: what fits nowhere now never will, so it is not tried (again)."""
        room = (ceiling[receivers] - load[receivers]).max(axis=0, initial=-BEYOND_ALL_BOUNDS_PPM)
        fits: Booleans = (whole_ppm(problem.arriving[bundles], least_per_unit) <= room).all(axis=1)
        return bundles[fits]

    members = [that_may_fit(mine[may_go[mine]]) for mine in _members(problem)]
    furthest = [(-int((load[broker] - ceiling[broker]).max()), broker) for broker in np.flatnonzero(above).tolist()]
    heapq.heapify(furthest)
    while furthest and len(receivers):
        _, source = heapq.heappop(furthest)
        excess = np.maximum(load[source] - ceiling[source], 0)
        mine = members[source]
        relief = np.minimum(demand[mine], excess).sum(axis=1)
        if spare[source] <= 0 or not relief.any():
            continue
        for_its_cost = relief / costs[mine]
        best = np.flatnonzero(for_its_cost == for_its_cost.max())
        place = best[np.argmin(demand[mine[best]].max(axis=1))]
        bundle, members[source] = int(mine[place]), np.delete(mine, place)
        filled = (load[receivers] + problem.demand(bundle, receivers) - ceiling[receivers]).max(axis=1)
        fits = np.flatnonzero((filled <= 0) & problem.may_go[bundle, receivers])
        if len(fits):
            to = int(receivers[fits[np.argmax(filled[fits]) if fill_most else np.argmin(filled[fits])]])
            destination[bundle] = to
            spare[source] -= 1
            load[source] -= demand[bundle]
            load[to] += problem.demand(bundle, to)
        else:
            members[source] = that_may_fit(members[source])
        if (still_above := int((load[source] - ceiling[source]).max())) > 0:
            heapq.heappush(furthest, (-still_above, source))
    return destination


def _exact(problem: Balancing, known: Moves) -> Moves:
    """Search for fewer moves than known, or for any that reach the ceilings; returns what was found and proven.

    The program has a row per bundle (goes to one broker), per broker and resource (its ceiling), and per broker (how
    many may leave, how many must), and a column per pair of bundle and destination. It asks for fewer moves only, so
    `known` is proven optimal if there is no solution.
    """
    demand = problem.demand_at_source()
    fewest = _fewest_to_leave(problem)
    bundles, brokers = np.flatnonzero(demand.any(axis=1)), np.flatnonzero(problem.receives)
    bundle, to = (axis.ravel() for axis in np.meshgrid(bundles, brokers, indexing="ij"))
    # A bundle can only move to a broker where it fits once every bundle that may leave has left.
    rest = problem.load.copy()
    np.subtract.at(rest, problem.source, demand)
    possible = (rest[to] + problem.demand(bundle, to) <= problem.ceiling[to, None]).all(axis=1)
    possible &= (problem.source[bundle] != to) & problem.may_go[bundle, to]
    bundle, to = bundle[possible], to[possible]
    if fewest is None or not len(bundle):
        return replace(known, least=None)
    source, column = problem.source[bundle], np.arange(len(bundle))
    one, costs = np.ones(len(bundle)), problem.cost[bundle].astype(np.float64)
    arriving, leaving = problem.demand(bundle, to), demand[bundle]
    rows = [
        Rows(((one, bundle, column),), -np.inf, np.ones(len(problem.source))),
        Rows(((one, source, column),), fewest, np.maximum(problem.spare, 0)),
    ]
    for resource in np.flatnonzero(demand.any(axis=0)).tolist():
        # In percent: the solver's tolerance is then far below the rounding of the loads.
        change = (arriving[:, resource] / 1e4, to, column), (-leaving[:, resource] / 1e4, source, column)
        rows.append(Rows(change, -np.inf, (problem.ceiling - problem.load[:, resource]) / 1e4))
    if known.reached:
        rows.append(Rows(((costs, np.zeros_like(column), column),), -np.inf, np.array([known.cost - 1])))
    answer = cheapest(costs, rows, EXACT_NODES)
    if not answer.feasible:
        return replace(known, least=known.cost if known.reached else None)
    least = counting_bound(problem) or 0
    if np.isfinite(answer.bound):
        least = max(least, int(np.ceil(answer.bound - 1e-6)))
    if answer.chosen is not None:
        destination = np.full(len(problem.source), NO_ROW, dtype=np.int32)
        destination[bundle[answer.chosen]] = to[answer.chosen]
        # The solver's sums are rounded, ours are not: accept only what adds up exactly.
        if problem.reached(destination):
            return _moves(problem, destination, least)
    return replace(known, least=min(least, known.cost) if known.reached else least)
