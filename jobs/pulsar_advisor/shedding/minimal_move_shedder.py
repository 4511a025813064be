"""`MinimalMoveShedder`, our own strategy: bring the busiest broker near the mean with the fewest moved bundles.

No broker is to end above 1.10 times the mean usage of the brokers as found, each counted by its CPU limit. A bundle
that alone exceeds this stays where it is, and a broker that can't get there by giving gets a ceiling of 1.10 times the
usage that stays with it. Of all moves that reach this it takes the fewest, so it names destinations itself. If it finds
none, it raises 1.10 in steps of 0.05 until it does. What moves with a bundle follows the `proportional` model, so every
resource is a linear sum. Bound, heuristic and optimum are in `fewest_moves`.

It moves only what is safe without further review: never what Pulsar's own shedders leave alone, what validation found
unfit, what is being split, or what isolation policies and anti-affinity groups rule.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from pulsar_advisor.model.cluster.cluster_state import (
    NO_ROW,
    RESOURCES,
    Booleans,
    Brokers,
    ClusterState,
    Floats,
    Indices,
    Integers,
)
from pulsar_advisor.model.cluster.inputs import Input
from pulsar_advisor.model.cluster.isolation_policies import isolation_of, under_policies
from pulsar_advisor.model.cluster.namespaces import of_users
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.errors import DataNotFit
from pulsar_advisor.model.load.load_data import Exclusion, load_data
from pulsar_advisor.model.load.proportional import usage_of
from pulsar_advisor.model.load.resource_usage import WEIGHT_KEYS, mean_by_cpu_limit
from pulsar_advisor.model.strategy.decision import Figure, SheddingDecision
from pulsar_advisor.model.strategy.memory import NoMemory
from pulsar_advisor.model.strategy.outcomes import Outcome, Outcomes, about_brokers, no, vocabulary, yes
from pulsar_advisor.shedding.fewest_moves import (
    BEYOND_ALL_BOUNDS_PPM,
    PPM,
    Balancing,
    Moves,
    few_moves,
    fewest_moves,
    ppm_per_unit,
    whole_ppm,
)

READS: Final[frozenset[Input]] = frozenset(
    {
        "broker_usage",
        "broker_traffic",
        "broker_counts",
        "bundle_traffic",
        "bundle_counts",
        "recent_unloads",
        "isolation_policies",
        "anti_affinity",
    }
)
SETTING_KEYS: Final = (
    "loadBalancerSheddingGracePeriodMinutes",
    "loadBalancerSheddingExcludedNamespaces",
    "loadBalancerBrokerMaxTopics",
    *WEIGHT_KEYS,
)

TARGET_PERCENT: Final = 110
"""Maximum usage in percent of the mean. By default ThresholdShedder, too, tolerates 10 points above the mean; relative
to the mean, ten percent leave room for the error of the `proportional` model and for a bundle's own size."""
TARGET_OF_MEAN: Final = TARGET_PERCENT / 100

STEP_PERCENT: Final = 5
"""How much the target is raised at a time if it is out of reach."""


class BrokerOutcome(Outcome):
    """The answers about a broker."""

    UNFIT = no("its figures are incomplete or unfit, so it is neither source nor destination")
    NO_LOAD = no("the mean usage of all brokers is {left:.2%}: nothing to balance", "==")
    WITHIN = no("usage {left:.2%} is within the ceiling of {right:.2%}", "<=")
    RECEIVES = no(
        "ends at {left:.2%} after receiving bundles if CPU follows messages, within the ceiling of {right:.2%}", "<="
    )
    NOTHING_HELPS = no("usage {left:.2%} can't fall much: the load that must stay allows {right:.2%}", "<=")
    FITS_NOWHERE = no("usage {left:.2%} is above the target of {right:.2%}, but no moves lower it", ">")
    GIVES = yes("usage {left:.2%} is above the ceiling of {right:.2%}", ">")
    MAKES_ROOM = yes("usage {left:.2%} is within the ceiling of {right:.2%}; sheds to make room", "<=")


class BundleOutcome(Outcome):
    """The answers about a bundle."""

    UNFIT = no("validation found its figures, or those of its broker, unfit")
    NO_FIGURES = no("its figures are not numbers")
    IN_FLIGHT = no("is not among the namespace's boundaries: a split is in progress")
    NO_TOPICS = no("has no loaded topic: nothing would move")
    PULSARS_OWN = no("belongs to Pulsar's own namespaces, which are never moved")
    EXCLUDED_NAMESPACE = no("its namespace is in loadBalancerSheddingExcludedNamespaces")
    WITH_POLICIES = no("its namespace has an isolation policy or an anti-affinity group")
    TOO_LARGE = no("alone would use {left:.2%} of any broker, above the target of {right:.2%}", ">")
    NOT_NEEDED = no(
        "its broker ends at {left:.2%} without it if CPU follows messages, within the ceiling of {right:.2%}", "<="
    )
    CHOSEN = yes("its new broker ends at {left:.2%} if CPU follows messages, within the ceiling of {right:.2%}", "<=")


Memory = NoMemory


@dataclass(frozen=True, eq=False)
class MovableLoad:
    """The brokers and bundles that moves may involve; rows as in the cluster state."""

    brokers: Brokers
    rows: Indices
    """Of the brokers that are registered and report, ascending."""
    fit: Booleans
    """Per broker row, whether it takes part."""
    receives: Booleans
    """Per broker row, whether a bundle without policies may move there."""
    bundles: Indices
    """Rows of the bundles that those brokers list, ascending."""
    source: Indices
    """Broker row, parallel to `bundles`."""
    exclusion: npt.NDArray[np.int64]
    """Parallel to `bundles`, why it may not move: a `BundleOutcome` (NOT_NEEDED if it may), or numbered after these an
    `Exclusion`."""
    moved: Floats
    """(bundles, 5): what moves with each of `bundles`, order of RESOURCES, in their units."""


def observe(state: ClusterState, settings: LoadBalancerSettings, now_ms: int) -> MovableLoad:
    """What may move in a cluster state, and what would move with it."""
    brokers, bundles = state.brokers, state.bundles
    load = load_data(state, settings, now_ms)
    rows = np.sort(load.brokers.order)
    fit = np.zeros(len(brokers), dtype=np.bool_)
    fit[rows] = brokers.complete[rows]

    listed = np.concatenate((load.candidates.bundle, load.excluded.bundle))
    reason = np.concatenate(
        (
            np.full(len(load.candidates.bundle), BundleOutcome.NOT_NEEDED),
            load.exclusion.astype(np.int64) + len(BundleOutcome),
        )
    )
    order = np.argsort(listed)
    listed, reason = listed[order], reason[order]
    seen = np.isin(bundles.owner[listed], rows)
    listed, reason = listed[seen], reason[seen]
    namespace, source = bundles.namespace[listed], bundles.owner[listed]
    isolation = isolation_of(state, settings)
    users = of_users(state.namespaces.names)
    excluded = state.namespaces.among(settings.load_balancer_shedding_excluded_namespaces)
    has_figures = np.asarray(np.isfinite(bundles.traffic[listed]).all(axis=1))
    refusals: tuple[tuple[int, Booleans], ...] = (
        (BundleOutcome.UNFIT, ~(bundles.usable[listed] & fit[source])),
        (BundleOutcome.NO_FIGURES, ~has_figures),
        (BundleOutcome.IN_FLIGHT, ~bundles.in_boundaries[listed]),
        (BundleOutcome.NO_TOPICS, bundles.topics[listed] <= 0),
        (BundleOutcome.PULSARS_OWN, ~users[namespace]),
        (BundleOutcome.EXCLUDED_NAMESPACE, excluded[namespace]),
        (BundleOutcome.WITH_POLICIES, under_policies(state, isolation)[namespace]),
    )
    for code, refused in refusals:
        reason[(reason == BundleOutcome.NOT_NEEDED) & refused] = code

    return MovableLoad(
        brokers=brokers,
        rows=rows,
        fit=fit,
        receives=fit
        & ~brokers.doubtful
        & isolation.shared
        & brokers.persistent_topics_enabled
        & brokers.non_persistent_topics_enabled
        & (brokers.topics < settings.load_balancer_broker_max_topics),
        bundles=listed,
        source=source,
        exclusion=reason,
        moved=usage_of(bundles.traffic[listed], brokers.traffic[source], brokers.usage[source]),
    )


def decide(load: MovableLoad, settings: LoadBalancerSettings, memory: Memory) -> tuple[SheddingDecision, Memory]:
    """The fewest moves, their bound, and why the rest stays. Raises `DataNotFit` for a usage beyond all bounds."""
    goal = _goal(load, settings)
    movable = goal.movable
    target = _within(goal, TARGET_PERCENT)
    problem, moves, percent = target, fewest_moves(target), TARGET_PERCENT
    target_least = moves.least
    if not moves.reached:
        percent, moves = _lowest_percent(goal)
        problem = _within(goal, percent)
    after = problem.load_after(moves.destination).max(axis=1)
    figures: dict[str, Figure] = {
        "mean_usage_ratio": goal.mean / PPM,
        "target_of_mean_ratio": TARGET_OF_MEAN,
        "target_proven_out_of_reach": target_least is None,
        "reached_of_mean_ratio": percent / 100,
        "maximum_usage_ratio_after": int(after[load.fit].max(initial=0)) / PPM,
        "moves": moves.cost,
        "moves_bound": moves.least,
        "moves_gap": None if moves.least is None else moves.cost - moves.least,
    }
    goes = np.flatnonzero(moves.destination != NO_ROW)
    source, destination = problem.source[goes], moves.destination[goes]
    size = problem.demand_at_source()[goes].max(axis=1)
    busiest_first = np.lexsort((movable[goes], -size, source, -problem.load[source].max(axis=1)))
    order = _passing_low(problem, goes, destination, busiest_first.tolist())
    return SheddingDecision(
        source=source[order],
        bundle=load.bundles[movable[goes]][order],
        destination=destination[order],
        brokers=_broker_outcomes(load, goal, target, problem, source, destination, after),
        bundles=_bundle_outcomes(load, goal, problem, moves, after),
        figures=figures,
    ), memory


def _passing_low(problem: Balancing, bundles: npt.NDArray[np.intp], to: Indices, order: Sequence[int]) -> list[int]:
    """The moves of bundles (rows) in this order, but a broker that also gives takes only once it has room.

    Where brokers exchange bundles, so that none has room, the one that reaches the lowest usage takes first.
    """
    load, most = problem.load.copy(), np.maximum(problem.ceiling, problem.load.max(axis=1))
    leaves, joins, source = problem.demand_at_source()[bundles], problem.demand(bundles, to), problem.source[bundles]

    def reached(move: int) -> int:
        return int((load[to[move]] + joins[move]).max())

    left, ordered = list(order), list[int]()
    while left:
        fits = (move for move in left if reached(move) <= most[to[move]])
        first = next(fits, None)
        ordered.append(min(left, key=reached) if first is None else first)
        left.remove(ordered[-1])
        load[source[ordered[-1]]] -= leaves[ordered[-1]]
        load[to[ordered[-1]]] += joins[ordered[-1]]
    return ordered


@dataclass(frozen=True, eq=False)
class _Goal:
    """The inputs of the ceilings; usage in parts per million."""

    movable: npt.NDArray[np.intp]
    """Positions in `MovableLoad.bundles`."""
    alone: Integers
    """The load that each of `MovableLoad.bundles` causes at the broker where it causes least."""
    unbounded: Balancing
    """The problem, with its ceilings left open."""
    mean: int
    stays: Integers
    """Per broker row, the usage that moves from it can't go below."""

    @property
    def target(self) -> int:
        """Ceiling of a broker that can get there."""
        return self.mean * TARGET_PERCENT // 100


def _goal(load: MovableLoad, settings: LoadBalancerSettings) -> _Goal:
    usage, per_unit = _usage(load, settings)
    mean = max(0, int(mean_by_cpu_limit(usage.max(axis=1), load.brokers.limit, load.fit)))
    least_per_unit = np.where(load.receives.any(), per_unit[load.receives].min(axis=0, initial=np.inf), 0.0)
    alone = whole_ppm(load.moved, least_per_unit).max(axis=1)
    movable = np.flatnonzero((load.exclusion == BundleOutcome.NOT_NEEDED) & (alone <= mean * TARGET_PERCENT // 100))
    problem = Balancing(
        load=usage,
        ceiling=np.zeros(len(usage), dtype=np.int64),
        receives=load.receives,
        spare=load.brokers.bundles - 1,
        source=load.source[movable],
        moved=load.moved[movable],
        arriving=load.moved[movable],
        dearer=np.broadcast_to(1.0, (len(usage), len(usage))),
        ppm_per_unit=per_unit,
        cost=np.ones(len(movable), dtype=np.int64),
        may_go=np.broadcast_to(True, (len(movable), len(usage))),
    )
    return _Goal(movable, alone, problem, mean, _stays(problem))


def _usage(load: MovableLoad, settings: LoadBalancerSettings) -> tuple[Integers, Floats]:
    """(n, 5) each: weighted usage in parts per million of the limit, and the share that one unit of the resource takes.

    As in Pulsar, NaN figures and resources without a limit count as idle; so do brokers that take no part.
    """
    brokers, per_unit = load.brokers, ppm_per_unit(load.brokers.limit, settings)
    with np.errstate(all="ignore"):
        usage = np.where((per_unit > 0) & ~np.isnan(brokers.usage), brokers.usage * per_unit, 0.0)
    beyond = np.argwhere(load.fit[:, None] & ~(np.abs(usage) < BEYOND_ALL_BOUNDS_PPM))
    if len(beyond):
        row, resource = beyond[0]
        raise DataNotFit(
            f"broker {brokers.ids[row]} reports {brokers.usage[row, resource]} of {brokers.limit[row, resource]} "
            f"{RESOURCES[resource]}: no usage to balance. Capture again, or let validation exclude the broker"
        )
    return np.where(load.fit[:, None], np.rint(usage), 0.0).astype(np.int64), per_unit


def _stays(problem: Balancing) -> Integers:
    """Per broker, the usage that remains when every bundle that may leave has left; it keeps one bundle."""
    demand = problem.demand_at_source()
    rest = problem.load.copy()
    np.subtract.at(rest, problem.source, demand)
    stays = rest.max(axis=1)
    keeps_one = np.bincount(problem.source, minlength=len(rest)) > problem.spare
    with_one = np.full(len(rest), np.iinfo(np.int64).max)
    np.minimum.at(with_one, problem.source, (rest[problem.source] + demand).max(axis=1))
    return np.where(keeps_one & (with_one < np.iinfo(np.int64).max), with_one, stays)


def _within(goal: _Goal, percent: int) -> Balancing:
    """The problem of staying within this percentage of the mean, or of what stays anyway."""
    return replace(
        goal.unbounded,
        ceiling=np.maximum(goal.mean, goal.stays) * percent // 100,
        receives=goal.unbounded.receives & (goal.stays <= goal.mean),
    )


def _lowest_percent(goal: _Goal) -> tuple[int, Moves]:
    """The lowest step above the target that any moves reach, as far as a search finds, and the fewest of them.

    At the last step, none are needed.
    """
    usage, of = goal.unbounded.load.max(axis=1), np.maximum(np.maximum(goal.mean, goal.stays), 1)
    needs_none = int((-(-usage * 100 // of)).max()) + STEP_PERCENT
    steps = range(TARGET_PERCENT + STEP_PERCENT, needs_none + STEP_PERCENT, STEP_PERCENT)
    searched: dict[int, Moves] = {}

    def is_reached(percent: int) -> bool:
        searched[percent] = fewest_moves(_within(goal, percent))
        return searched[percent].reached

    at_most = bisect_left(steps, True, key=lambda percent: few_moves(_within(goal, percent)).reached)
    percent = steps[bisect_left(steps, True, hi=at_most, key=is_reached)]
    return percent, searched.get(percent) or fewest_moves(_within(goal, percent))


def _broker_outcomes(
    load: MovableLoad,
    goal: _Goal,
    target: Balancing,
    problem: Balancing,
    source: Indices,
    destination: Indices,
    after: Integers,
) -> Outcomes:
    usage, rows = problem.load.max(axis=1), load.rows
    gives, receives = (np.bincount(side, minlength=len(usage)) > 0 for side in (source, destination))
    code = np.full(len(usage), BrokerOutcome.WITHIN)
    code[usage > goal.target] = BrokerOutcome.NOTHING_HELPS
    code[usage > target.ceiling] = BrokerOutcome.FITS_NOWHERE
    code[receives] = BrokerOutcome.RECEIVES
    code[gives] = BrokerOutcome.MAKES_ROOM
    code[gives & (usage > problem.ceiling)] = BrokerOutcome.GIVES
    if goal.mean == 0:
        code[:] = BrokerOutcome.NO_LOAD
    code[~load.fit] = BrokerOutcome.UNFIT
    left = np.where(code == BrokerOutcome.RECEIVES, after, usage) / PPM
    right = np.where(code == BrokerOutcome.FITS_NOWHERE, target.ceiling, problem.ceiling) / PPM
    left[code == BrokerOutcome.UNFIT] = right[code == BrokerOutcome.UNFIT] = np.nan
    left[code == BrokerOutcome.NO_LOAD] = right[code == BrokerOutcome.NO_LOAD] = 0.0
    return about_brokers(rows, BrokerOutcome, code[rows], left[rows], right[rows])


def _bundle_outcomes(load: MovableLoad, goal: _Goal, problem: Balancing, moves: Moves, after: Integers) -> Outcomes:
    code, ends_at = load.exclusion.copy(), load.source.copy()
    code[(code == BundleOutcome.NOT_NEEDED) & (goal.alone > goal.target)] = BundleOutcome.TOO_LARGE
    goes = np.flatnonzero(moves.destination != NO_ROW)
    code[goal.movable[goes]] = BundleOutcome.CHOSEN
    ends_at[goal.movable[goes]] = moves.destination[goes]
    left = np.where(code == BundleOutcome.TOO_LARGE, goal.alone, after[ends_at]) / PPM
    right = np.where(code == BundleOutcome.TOO_LARGE, goal.target, problem.ceiling[ends_at]) / PPM
    nothing_compared = ~np.isin(code, (BundleOutcome.TOO_LARGE, BundleOutcome.NOT_NEEDED, BundleOutcome.CHOSEN))
    left[nothing_compared] = right[nothing_compared] = np.nan
    # In the order of the questions: an excluded bundle got nowhere.
    answers = vocabulary(Exclusion, BundleOutcome)
    in_order = (code + len(Exclusion)) % len(answers)
    return Outcomes("bundle", answers, load.bundles, in_order.astype(np.uint8), left, right)
