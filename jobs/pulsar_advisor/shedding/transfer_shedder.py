"""`TransferShedder`: move bundles from the most to the least loaded broker, swapping if one does not fit.

What Pulsar does, with load = smoothed weighted maximum: a cycle is a hit when the standard deviation of the loads is
above `loadBalancerBrokerLoadTargetStd`, or the idlest broker is far under the mean, or the busiest is overloaded and
far above it; it acts after more consecutive hits than `loadBalancerSheddingConditionHitCountThreshold`. Then, for
up to `loadBalancerMaxNumberOfBrokerSheddingPerCycle` pairs of busiest and idlest broker, it moves the source's top
bundles, lightest first, until half the gap in load, as a share of the source's throughput, is moved; a bundle that
would exceed it goes only in exchange for bundles of the destination. Traffic gained in exchanges counts in debug mode
only.

Releases: bundles without throughput are passed over from 4.0 on, excluded namespaces from 4.2 on.
Source: `org.apache.pulsar.broker.loadbalance.extensions.scheduler.TransferShedder`, 3.0.7 to 5.0.1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, Booleans, Floats
from pulsar_advisor.model.cluster.inputs import Input
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.java.numbers import total_order
from pulsar_advisor.model.load.extensible_load import ExtensibleLoad, TopBundle, extensible_load
from pulsar_advisor.model.load.resource_usage import WEIGHT_KEYS
from pulsar_advisor.model.strategy.decision import Figure, SheddingDecision
from pulsar_advisor.model.strategy.memory import ShedderMemory
from pulsar_advisor.model.strategy.outcomes import Outcome, Outcomes, Record, no, vocabulary, yes

READS: Final[frozenset[Input]] = frozenset(
    {
        "broker_usage",
        "broker_traffic",
        "bundle_traffic",
        "bundle_counts",
        "recent_unloads",
        "isolation_policies",
        "anti_affinity",
    }
)
SETTING_KEYS: Final = (
    "loadBalancerBrokerLoadTargetStd",
    "loadBalancerSheddingConditionHitCountThreshold",
    "loadBalancerTransferEnabled",
    "loadBalancerMaxNumberOfBrokerSheddingPerCycle",
    "loadBalanceSheddingDelayInSeconds",
    "loadBalancerBrokerLoadDataTTLInSeconds",
    "loadBalancerMaxNumberOfBundlesInBundleLoadReport",
    "loadBalancerBrokerOverloadedThresholdPercentage",
    "loadBalancerHistoryResourcePercentage",
    "loadBalancerSheddingBundlesWithPoliciesEnabled",
    "loadBalancerSheddingExcludedNamespaces",
    "loadBalancerDebugModeEnabled",
    *WEIGHT_KEYS,
)

observe: Final = extensible_load

GREATEST_UNDERLOAD_FACTOR: Final = 0.5
SWAP_GAIN: Final = 0.75
"""A swap must bring the source below this share of its throughput."""
_IDLE_PASSED_OVER: Final = (4, 0, 0)


class BrokerOutcome(Outcome):
    """The answers about a broker."""

    OUTDATED = no("load data is {left:,.0f} s old; the limit is {right:,.0f} s", ">")
    COOLING_DOWN = no("load data is only {left:,.0f} s newer than its last unload, {right:,.0f} s needed", "<")
    NO_LOAD_DATA = no("a registered broker has no load data, so the whole cycle is skipped")
    TOO_FEW_HITS = no("{left:.0f} hits in a row; it acts at more than {right:.0f}", "<=")
    BALANCED = no("loads deviate by {left:.4f} from their mean, the tolerance is {right:.4f}", "<=")
    NOT_REACHED = no("is neither source nor destination in this cycle")
    NO_TOP_BUNDLES = no("is the busiest, but reports no top bundles")
    ONE_TOP_BUNDLE = no("is the busiest, but reports {left:.0f} top bundle; it keeps one", "<=")
    NOTHING_MOVES = no("is the busiest, but none of its top bundles can move")
    RECEIVES = no("load {left:.2%} is the lowest; the source's is {right:.2%}", "<")
    GIVES = yes("load {left:.2%} is the highest; the destination's is {right:.2%}", ">")


class BundleOutcome(Outcome):
    """The answers about a bundle."""

    NOT_OWNED = no("is no longer owned by the broker that reports it")
    EXCLUDED_NAMESPACE = no("is in a namespace that is excluded from shedding")
    RECENTLY_UNLOADED = no("was unloaded within the grace period, so it stays")
    NOT_TRANSFERABLE = no("policies or filters exclude the destination")
    LAST_OF_SOURCE = no("{left:.0f} top bundle is left, and the broker keeps one", "<=")
    NO_THROUGHPUT = no("carries {left:.0f} B/s: moving it would not help", "==")
    EXCEEDS_GOAL = no("{left:,.0f} B/s would move with it; the goal is {right:,.0f} B/s, and no swap fits", ">")
    AFTER_THE_END = no("comes after the bundle at which this broker stopped")
    CHOSEN = yes("{left:,.0f} B/s move with it; the goal is {right:,.0f} B/s", "<=")
    CHOSEN_FOR_SWAP = yes("{left:,.0f} B/s move with it, above the goal of {right:,.0f}, in exchange for others", ">")
    SWAPPED_IN = yes("moves the other way in exchange")


@dataclass(frozen=True)
class Memory(ShedderMemory):
    """What persists between cycles."""

    hits: int = 0
    counters: Mapping[str, int] = field(default_factory=dict)
    """`<label>/<reason>` -> how often, since the leader started."""
    recently_unloaded_brokers: Mapping[str, int] = field(default_factory=dict)
    """Broker id -> epoch milliseconds of its last unload as a source."""

    def after_unloads(self, sources: Collection[str], now_ms: int, /) -> Memory:
        """The sources cool down. Source: `UnloadManager`, `UnloadScheduler.execute`."""
        return replace(
            self, recently_unloaded_brokers={**self.recently_unloaded_brokers, **dict.fromkeys(sources, now_ms)}
        )


@dataclass(frozen=True)
class _Spread:
    """Mean and standard deviation of the loads that count."""

    sum_of_squares: np.float64
    count: int
    mean: np.float64
    deviation: np.float64

    def after(self, source: np.float64, destination: np.float64, moved: np.float64) -> _Spread:
        """The spread after `moved` of the source's load has moved to the destination."""
        left, filled = np.maximum(0.0, source - moved), destination + moved
        squares = self.sum_of_squares - (source * source + destination * destination) + (left * left + filled * filled)
        deviation = np.sqrt(np.abs(squares / self.count - self.mean * self.mean))
        return _Spread(squares, self.count, self.mean, deviation)


@dataclass(frozen=True, eq=False)
class _Answers:
    """Answers collected during the cycle."""

    brokers: Record
    """A row for each."""
    bundles: dict[int, tuple[int, float, float]] = field(default_factory=dict)
    """Bundle row -> code, left, right."""
    moves: dict[tuple[int, int, int], str] = field(default_factory=dict)
    """(source, bundle, destination) -> reason; a set in Pulsar, so a repeated move counts once."""


@np.errstate(all="ignore")
def decide(load: ExtensibleLoad, settings: LoadBalancerSettings, memory: Memory) -> tuple[SheddingDecision, Memory]:
    """One cycle of the shedder: what moves where, and why the rest stays."""
    figures: dict[str, Figure] = {}

    def passes(counter: str, answer: BrokerOutcome, *sides: npt.ArrayLike) -> tuple[SheddingDecision, Memory]:
        """Nothing is done, for a reason that applies to every broker."""
        answers = _Answers(Record.of(len(load.broker_ids), answer, *sides))
        return _decision(load, answers, figures), _counted(memory, counter)

    memory, cooling = _cool_down(load, settings, memory)
    if cooling is not None:
        return passes("CoolDown", BrokerOutcome.COOLING_DOWN, *cooling)
    current = load.stored[~_outdated(load, settings)[load.stored]]
    if not len(current):
        counter = "OutDatedData" if len(load.stored) else "NoBrokers"  # then no broker has an answer
        age_s = (load.now_ms - load.updated_at_ms) / 1000
        trusted_s = settings.load_balancer_broker_load_data_ttl_in_seconds
        return passes(counter, BrokerOutcome.OUTDATED, age_s, trusted_s)
    without_data = load.available.copy()
    without_data[load.stored] = False
    if without_data.any():
        return passes("NoLoadData", BrokerOutcome.NO_LOAD_DATA)

    spread = _spread(load.load[current])
    ascending = load.stored[np.argsort(total_order(load.load[load.stored]), kind="stable")].tolist()
    figures |= {"mean_load_ratio": float(spread.mean), "deviation": float(spread.deviation)}
    reason = _reason(load, settings, spread, ascending[0], ascending[-1])
    memory = replace(memory, hits=memory.hits + 1 if reason else 0)
    needed = settings.load_balancer_shedding_condition_hit_count_threshold
    if memory.hits <= needed:
        figures["deviation_after"] = float(spread.deviation)
        if reason:
            return passes("HitCount", BrokerOutcome.TOO_FEW_HITS, memory.hits, needed)
        target = settings.load_balancer_broker_load_target_std
        return passes("HitCount", BrokerOutcome.BALANCED, spread.deviation, target)
    answers = _Answers(Record.of(len(load.broker_ids), BrokerOutcome.NOT_REACHED))
    spread, why_nothing = _transfer(load, settings, spread, ascending, answers)
    figures["deviation_after"] = float(spread.deviation)
    memory = replace(memory, hits=0) if answers.moves else _counted(memory, why_nothing)
    return _decision(load, answers, figures), memory


def _cool_down(
    load: ExtensibleLoad, settings: LoadBalancerSettings, memory: Memory
) -> tuple[Memory, tuple[float, float] | None]:
    """Forget sources that have cooled down; returns how long ago and how long it takes (s) if one has not."""
    unloaded = dict(memory.recently_unloaded_brokers)
    delay_ms = settings.load_balance_shedding_delay_in_seconds * 1000
    outdated = _outdated(load, settings)
    for row in load.stored.tolist() if unloaded else ():
        broker = load.broker_ids[row]
        if outdated[row] or broker not in unloaded:
            continue
        elapsed_ms = int(load.updated_at_ms[row]) - unloaded[broker]
        if elapsed_ms < delay_ms:
            return replace(memory, recently_unloaded_brokers=unloaded), (elapsed_ms / 1000, delay_ms / 1000)
        del unloaded[broker]
    return replace(memory, recently_unloaded_brokers=unloaded), None


def _outdated(load: ExtensibleLoad, settings: LoadBalancerSettings) -> Booleans:
    outdated: Booleans = (
        load.now_ms - load.updated_at_ms > settings.load_balancer_broker_load_data_ttl_in_seconds * 1000
    )
    return outdated


def _spread(loads: Floats) -> _Spread:
    """Added one after the other, as in Java. The root of a difference that rounds below zero is NaN: balanced."""
    total, squares = np.add.accumulate(loads)[-1], np.add.accumulate(loads * loads)[-1]
    mean = total / len(loads)
    return _Spread(squares, len(loads), mean, np.sqrt(squares / len(loads) - mean * mean))


def _reason(
    load: ExtensibleLoad, settings: LoadBalancerSettings, spread: _Spread, idlest: int, busiest: int
) -> str | None:
    """Why the loads of this pair are out of balance; None if they aren't."""
    target = settings.load_balancer_broker_load_target_std
    if spread.deviation > target:
        return "Overloaded"
    factor = min(GREATEST_UNDERLOAD_FACTOR, max(0.0, target / 2))
    throughput = load.throughput_ema_bytes_per_s
    if load.load[idlest] < spread.mean * factor or throughput[idlest] < throughput[busiest] * factor:
        return "Underloaded"
    highest = load.load[busiest]
    overload = settings.overloaded_ratio
    return "Overloaded" if highest > overload and highest > spread.mean + target else None


def _transfer(
    load: ExtensibleLoad, settings: LoadBalancerSettings, spread: _Spread, ascending: list[int], answers: _Answers
) -> tuple[_Spread, str]:
    """Pair the busiest with the idlest broker until the loads are balanced; fills `answers`.

    Returns the spread expected afterwards and, if nothing moves, the counter for it.
    """
    served = without_data = too_few = 0
    low, high = 0, len(ascending) - 1
    while served < settings.load_balancer_max_number_of_broker_shedding_per_cycle and low < high:
        destination, source = ascending[low], ascending[high]
        reason = _reason(load, settings, spread, destination, source)
        if reason is None:
            break
        high -= 1
        top = load.top(source)
        if len(top) <= 1:
            answers.brokers.record(
                source, BrokerOutcome.ONE_TOP_BUNDLE if top else BrokerOutcome.NO_TOP_BUNDLES, len(top), 1
            )
            without_data, too_few = without_data + (not top), too_few + len(top)
            continue
        marked, gained = _serve(load, settings, source, destination, reason, answers)
        if marked > 0:
            loads = load.load[source], load.load[destination]
            spread = spread.after(*loads, (marked - gained) * loads[0] / load.throughput_bytes_per_s[source])
            answers.brokers.record(source, BrokerOutcome.GIVES, loads[0], loads[1])
            answers.brokers.record(destination, BrokerOutcome.RECEIVES, loads[1], loads[0])
            served, low = served + 1, low + 1
        else:
            answers.brokers.record(source, BrokerOutcome.NOTHING_MOVES)
            too_few += 1
    few = "NoBundles" if too_few else "HitCount"
    return spread, "NoLoadData" if without_data else few


def _serve(
    load: ExtensibleLoad, settings: LoadBalancerSettings, source: int, destination: int, reason: str, answers: _Answers
) -> tuple[float, float]:
    """Move the source's top bundles until the goal is reached; returns throughput that leaves and that comes back."""
    top = load.top(source)
    own = load.throughput_bytes_per_s[source]
    goal = float(own * ((load.load[source] - load.load[destination]) / 2) / load.load[source])
    transfer = settings.load_balancer_transfer_enabled
    offered = iter(load.top(destination)) if transfer else iter(())
    marked = gained = 0.0
    remaining = len(top)
    for place, entry in enumerate(top):
        refusal = _refusal(load, entry, source, destination)
        if refusal is not None:
            answers.bundles[entry.bundle] = (refusal, np.nan, np.nan)
            continue
        if remaining <= 1:
            answers.bundles[entry.bundle] = (BundleOutcome.LAST_OF_SOURCE, remaining, 1)
            _rest_unreached(top[place + 1 :], answers)
            break
        throughput = entry.throughput_bytes_per_s
        if throughput == 0 and settings.behaviour >= _IDLE_PASSED_OVER:
            answers.bundles[entry.bundle] = (BundleOutcome.NO_THROUGHPUT, 0.0, 0.0)
            continue
        with_it = marked - gained + throughput
        exchange: list[TopBundle] = []
        if with_it > goal:
            exchange = _swap(load, settings, source, destination, marked, gained, throughput, offered)
            if not exchange:
                answers.bundles[entry.bundle] = (BundleOutcome.EXCEEDS_GOAL, with_it, goal)
                _rest_unreached(top[place + 1 :], answers)
                break
        returned = 0.0
        for back in exchange:
            returned += back.throughput_bytes_per_s
            answers.moves[destination, back.bundle, source] = reason
            answers.bundles[back.bundle] = (BundleOutcome.SWAPPED_IN, np.nan, np.nan)
        if settings.load_balancer_debug_mode_enabled:
            gained += returned
        answers.moves[source, entry.bundle, destination if transfer else NO_ROW] = reason
        answers.bundles[entry.bundle] = (
            BundleOutcome.CHOSEN_FOR_SWAP if exchange else BundleOutcome.CHOSEN,
            with_it,
            goal,
        )
        marked += throughput
        remaining -= 1
    return marked, gained


def _refusal(load: ExtensibleLoad, entry: TopBundle, source: int, destination: int) -> int | None:
    if not entry.owned:
        return BundleOutcome.NOT_OWNED
    if entry.excluded_namespace:
        return BundleOutcome.EXCLUDED_NAMESPACE
    if entry.recently_unloaded:
        return BundleOutcome.RECENTLY_UNLOADED
    return None if load.transferable(entry.bundle, source, destination) else BundleOutcome.NOT_TRANSFERABLE


def _rest_unreached(rest: tuple[TopBundle, ...], answers: _Answers) -> None:
    for entry in rest:
        answers.bundles[entry.bundle] = (BundleOutcome.AFTER_THE_END, np.nan, np.nan)


def _swap(
    load: ExtensibleLoad,
    settings: LoadBalancerSettings,
    source: int,
    destination: int,
    marked: float,
    gained: float,
    throughput: float,
    offered: Iterator[TopBundle],
) -> list[TopBundle]:
    """Bundles of the destination that make room for one more of the source; none if they can't.

    `offered` continues where the source's previous bundle left it. As in Pulsar, the destination's side is checked for
    neither ownership, recent unloads nor excluded namespaces.
    """
    own = float(load.throughput_bytes_per_s[source])
    at_source = own - marked + gained - throughput
    at_destination = float(load.throughput_bytes_per_s[destination]) + marked - gained + throughput
    exchange = []
    for entry in offered:
        back = entry.throughput_bytes_per_s
        if not load.transferable(entry.bundle, destination, source):
            continue
        if back == 0 and settings.behaviour >= _IDLE_PASSED_OVER:
            continue
        if at_source + back < own and at_destination - back < own:
            exchange.append(entry)
            at_source, at_destination = at_source + back, at_destination - back
            if at_destination <= at_source and at_source < own * SWAP_GAIN:
                return exchange
    return []


def _counted(memory: Memory, reason: str) -> Memory:
    key = f"Skip/{reason}"
    return replace(memory, counters={**memory.counters, key: memory.counters.get(key, 0) + 1})


def _decision(load: ExtensibleLoad, answers: _Answers, figures: dict[str, Figure]) -> SheddingDecision:
    moves = np.array(list(answers.moves), dtype=np.int32).reshape(-1, 3)
    judged = np.array(list(answers.bundles.values()), dtype=np.float64).reshape(-1, 3)
    index = np.array(list(answers.bundles), dtype=np.int32)
    return SheddingDecision(
        source=moves[:, 0],
        bundle=moves[:, 1],
        destination=moves[:, 2],
        brokers=answers.brokers.about_brokers(load.stored, BrokerOutcome),
        bundles=Outcomes(
            "bundle", vocabulary(BundleOutcome), index, judged[:, 0].astype(np.uint8), judged[:, 1], judged[:, 2]
        ),
        figures={**figures, "reasons": tuple(answers.moves.values())},
    )
