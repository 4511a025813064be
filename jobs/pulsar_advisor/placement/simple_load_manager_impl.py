"""`SimpleLoadManagerImpl`'s own placement: brokers ranked by the estimated needs of their bundles.

What Pulsar does: each candidate's load is the greatest percentage of its resources; the sum of its bundles' quotas
counts if it exceeds the actual usage. By `loadBalancerPlacementStrategy` brokers rank by load
(leastLoadedServer), by messages (leastMsgPerSecond) or by room, capacity × (free share)² (weightedRandomSelection). The
last draws with the ranks as weights. The others prefer the best busy broker, but take one without bundles if even the
best is above `loadBalancerBrokerUnderloadedThresholdPercentage`; leastLoadedServer falls back to the most room above
`loadBalancerBrokerOverloadedThresholdPercentage`, and on a rotating broker at 100 %.

Here quotas are settled (see `model.load.simple_load`), and bundles on their way are not counted.
Source: `SimpleLoadManagerImpl.findBrokerForPlacement`, `WRRPlacementStrategy`, `ResourceUnitRanking`, 2.11.0 to
5.0.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import (
    BANDWIDTH_IN,
    BANDWIDTH_OUT,
    CPU,
    MEMORY,
    NO_ROW,
    Booleans,
    ClusterState,
    Floats,
    Indices,
    Integers,
)
from pulsar_advisor.model.cluster.inputs import Input
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.java.numbers import to_long, total_order
from pulsar_advisor.model.load.simple_load import (
    QUOTA_IN,
    QUOTA_MEMORY,
    QUOTA_OUT,
    QUOTA_RATE_IN,
    QUOTA_RATE_OUT,
    SimpleLoad,
    simple_load,
)
from pulsar_advisor.model.strategy.decision import PlacementDecision
from pulsar_advisor.model.strategy.outcomes import Outcome, about_brokers, no, yes

READS: Final[frozenset[Input]] = frozenset({"broker_usage", "bundle_traffic", "bundle_counts"})
SETTING_KEYS: Final = (
    "loadBalancerPlacementStrategy",
    "loadBalancerBrokerUnderloadedThresholdPercentage",
    "loadBalancerBrokerOverloadedThresholdPercentage",
)

LEAST_LOADED_SERVER: Final = "leastLoadedServer"
LEAST_MSG_PER_SECOND: Final = "leastMsgPerSecond"
KBIT_IN_BYTES: Final = 128
"""1024 / 8, although NIC figures are decimal kbit/s; as in Pulsar."""
CLOSE_PERCENT: Final = 5
_TIE_BREAKERS: Final = (MEMORY, CPU, BANDWIDTH_IN, BANDWIDTH_OUT)
_ROTATION: Final = 1_000_000


class BrokerOutcome(Outcome):
    """The answers about a candidate."""

    NOT_BEST = no("load {left:.1f}%, capacity {right:,.0f} bundles: another broker is preferred")
    BEST_BUSY = yes("load {left:.1f}%: the best of the brokers with bundles")
    IDLE = yes("has no bundles, and the best busy broker is above the underload threshold {right:.0f}%")
    MOST_ROOM = yes("has most room; the best broker's load {left:.1f}% is above {right:.0f}%", ">")
    ROTATING = yes("next in turn: the best broker's load {left:.1f}% has reached {right:.0f}%", ">=")
    WEIGHTED = yes("is drawn at random with weight {left:,.0f}", ">")
    NO_WEIGHT = no("is not drawn: its weight is {left:,.0f}", "<=")
    ALL_WITHOUT_WEIGHT = yes("weight {left:,.0f}, as every candidate's, so the choice is random among all", "<=")


@dataclass(frozen=True)
class Memory:
    """Position of the rotation among hopelessly overloaded brokers."""

    cursor: int = 0


@dataclass(frozen=True, eq=False)
class Ranking:
    """Brokers as the Simple manager sees them; a row per broker."""

    percent: Floats
    """(n, 5), at most 100: the load, then the tie-breakers between loads that are close, most important first."""
    rate_per_s: Floats
    capacity: Floats
    """How many bundles of the default quota the broker could hold."""
    loaded: Booleans
    """Whether it has bundles."""

    @property
    def load_percent(self) -> Floats:
        """The greatest percentage of a resource."""
        return self.percent[:, 0]

    def of(self, brokers: Indices) -> Ranking:
        """A copy of these rows."""
        return Ranking(self.percent[brokers], self.rate_per_s[brokers], self.capacity[brokers], self.loaded[brokers])


@dataclass(frozen=True, eq=False)
class RankedLoad:
    """The input of `choose`: the Simple manager's view, and every broker ranked with all its bundles."""

    load: SimpleLoad
    ranking: Ranking


def observe(state: ClusterState, settings: LoadBalancerSettings, now_ms: int) -> RankedLoad:
    """The input of `choose`, made from a cluster state."""
    load = simple_load(state, settings, now_ms)
    everyone = np.arange(len(load.broker_ids), dtype=np.int32)
    return RankedLoad(load, _rank(load, everyone, load.broker_quota, np.diff(load.reports.offsets)))


@np.errstate(all="ignore")
def final_rank(ranking: Ranking, strategy: str) -> Floats:
    """The whole number by which brokers are ranked under a value of `loadBalancerPlacementStrategy`."""
    if strategy == LEAST_LOADED_SERVER:
        return to_long(ranking.load_percent)
    if strategy == LEAST_MSG_PER_SECOND:
        return to_long(ranking.rate_per_s)
    free = (100 - ranking.load_percent) / 100
    return to_long(ranking.capacity * free * free)


@np.errstate(all="ignore")
def choose(
    ranked: RankedLoad, candidates: Indices, bundle: int, settings: LoadBalancerSettings, memory: Memory
) -> tuple[PlacementDecision, Memory]:
    """Brokers from which Pulsar draws for one bundle (a row) out of `candidates` (rows)."""
    strategy = settings.load_balancer_placement_strategy
    rank = final_rank(ranked.ranking.of(candidates), strategy)
    if strategy not in (LEAST_LOADED_SERVER, LEAST_MSG_PER_SECOND):
        code = np.where(
            rank > 0,
            BrokerOutcome.WEIGHTED.value,
            BrokerOutcome.NO_WEIGHT.value if (rank > 0).any() else BrokerOutcome.ALL_WITHOUT_WEIGHT.value,
        )
        return _answer(candidates, code, rank, np.zeros(len(candidates))), memory
    by_messages = strategy == LEAST_MSG_PER_SECOND
    # The walk follows the ranking, which still counts the bundle. Rows of brokers are sorted by id, so equal ranks are
    # visited by id, as in Pulsar.
    walk = np.lexsort((candidates, rank))
    ranking = _candidates_without(ranked, candidates, bundle)
    code = np.full(len(candidates), BrokerOutcome.NOT_BEST.value)
    left, right = ranking.load_percent.copy(), ranking.capacity.copy()
    if not len(walk):
        return _answer(candidates, code, left, right), memory
    best = _best_busy(ranking, walk, by_messages)
    place, reason, held_against = _walk(ranking, walk, best, by_messages, settings, memory)
    code[place], right[place] = reason, held_against
    if reason in (BrokerOutcome.MOST_ROOM.value, BrokerOutcome.ROTATING.value):
        left[place] = ranking.load_percent[best]
    return _answer(candidates, code, left, right), Memory((memory.cursor + 1) % _ROTATION)


def _candidates_without(ranked: RankedLoad, candidates: Indices, bundle: int) -> Ranking:
    """The candidates without the bundle itself, which is subtracted from the broker that still reports it."""
    load, ranking = ranked.load, ranked.ranking.of(candidates)
    place = np.flatnonzero(candidates == load.bundles.owner[bundle])
    if len(place) and load.bundles.reported[bundle]:
        owner = candidates[place]
        quota, bundles = load.broker_quota[owner] - load.quota[bundle], np.diff(load.reports.offsets)[owner] - 1
        without = _rank(load, owner, quota, bundles)
        # Room depends on no bundle.
        ranking.percent[place], ranking.rate_per_s[place] = without.percent, without.rate_per_s
        ranking.loaded[place] = without.loaded
    return ranking


@np.errstate(all="ignore")
def _rank(load: SimpleLoad, brokers: Indices, quota: Floats, bundles: Integers) -> Ranking:
    """The ranking of brokers (rows), given the number of their bundles and the sums of these bundles' quotas."""
    used, limit = load.usage[brokers], load.limit[brokers]
    needed = used.copy()
    rate = quota[:, QUOTA_RATE_IN] + quota[:, QUOTA_RATE_OUT]
    needed[:, CPU] = np.maximum(used[:, CPU], load.cpu_factor * rate)
    needed[:, MEMORY] = np.maximum(used[:, MEMORY], quota[:, QUOTA_MEMORY])
    needed[:, BANDWIDTH_IN] = np.maximum(used[:, BANDWIDTH_IN], quota[:, QUOTA_IN] / KBIT_IN_BYTES)
    needed[:, BANDWIDTH_OUT] = np.maximum(used[:, BANDWIDTH_OUT], quota[:, QUOTA_OUT] / KBIT_IN_BYTES)
    percent = np.where(limit > 0, np.minimum(100, 100 * needed / limit), 0.0)
    default = load.default_quota
    room = np.stack(
        (
            limit[:, CPU] / load.cpu_factor / (default[QUOTA_RATE_IN] + default[QUOTA_RATE_OUT]),
            limit[:, MEMORY] / default[QUOTA_MEMORY],
            limit[:, BANDWIDTH_IN] * KBIT_IN_BYTES / default[QUOTA_IN],
            limit[:, BANDWIDTH_OUT] * KBIT_IN_BYTES / default[QUOTA_OUT],
        )
    )
    capacity = to_long(np.maximum(room.min(axis=0), 0.0))
    compared = np.column_stack((percent.max(axis=1, initial=0.0), percent[:, _TIE_BREAKERS]))
    return Ranking(compared, rate, capacity, bundles > 0)


def _walk(
    ranking: Ranking, walk: Integers, best: int, by_messages: bool, settings: LoadBalancerSettings, memory: Memory
) -> tuple[int, int, float]:
    """Position of the chosen candidate, why, and the load it was compared with; `best` is the best busy candidate's."""
    underload = settings.load_balancer_broker_underloaded_threshold_percentage
    overload = settings.load_balancer_broker_overloaded_threshold_percentage
    without_bundles = walk[~ranking.loaded[walk]]
    idle = int(without_bundles[0]) if len(without_bundles) else NO_ROW
    best_percent = 101.0 if best == NO_ROW else float(ranking.load_percent[best])
    if idle != NO_ROW and (best == NO_ROW or best_percent > underload):
        return idle, BrokerOutcome.IDLE.value, underload
    if best_percent >= 100 and not by_messages:
        return int(walk[memory.cursor % len(walk)]), BrokerOutcome.ROTATING.value, 100
    if best_percent > overload and not by_messages:
        room = to_long(ranking.capacity * np.maximum(0, (100 - ranking.load_percent) / 100))
        return int(walk[np.argmax(room[walk])]), BrokerOutcome.MOST_ROOM.value, overload
    return best, BrokerOutcome.BEST_BUSY.value, overload


def _best_busy(ranking: Ranking, walk: Integers, by_messages: bool) -> int:
    """The best candidate with bundles, NO_ROW without one. The comparison is not transitive, so the order counts."""
    busy = walk[ranking.loaded[walk]]
    if not len(busy):
        return NO_ROW
    if by_messages:
        return int(busy[np.argmin(total_order(ranking.rate_per_s[busy]))])
    best = 0
    while (lighter := _are_lighter(ranking.percent[busy[best + 1 :]], ranking.percent[busy[best]])).any():
        best += 1 + int(np.argmax(lighter))
    return int(busy[best])


def _are_lighter(ones: Floats, other: Floats) -> Booleans:
    """By the first percentage that differs clearly, load first; else by the exact load. NaN is the heaviest."""
    differs = np.abs(ones - other) > CLOSE_PERCENT
    # If none differs, argmax gives the load.
    first = np.argmax(differs, axis=1)
    lighter: Booleans = (total_order(ones) < total_order(other))[np.arange(len(ones)), first]
    return lighter


def _answer(
    candidates: Indices, code: np.ndarray[tuple[int], np.dtype[np.int64]], left: Floats, right: Floats
) -> PlacementDecision:
    outcomes = about_brokers(candidates, BrokerOutcome, code, left, right)
    return PlacementDecision(candidates[outcomes.chosen()], outcomes)
