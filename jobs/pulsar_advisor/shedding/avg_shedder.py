"""`AvgShedder`: pair the busiest with the idlest brokers and move part of the difference between them.

What Pulsar does: brokers are sorted by score (weighted usage × 100) and paired from both ends, the middle one of an odd
number with itself. A pair whose scores differ by `loadBalancerAvgShedderLowThreshold` or more counts a low hit for
both, from `...HighThreshold` on a high hit too; a pair closer together loses its hits. Once a broker of a pair has
`...HitCountHighThreshold` high or `...HitCountLowThreshold` low hits, the hits of both are dropped and
`maxUnloadPercentage` of the gap in message rate (if above `minUnloadMessage`), else in throughput (if above
`minUnloadMessageThroughput`), moves: the largest bundles that still fit. The idler broker is remembered as the
destination, which matters only if `AvgShedder` is the placement strategy too.

Releases: up to 3.3, scores less than a point apart count as equal; what is remembered changed in 4.0.14, 4.2.5 and
5.0.1 (see `model.strategy.avg_memory`). Source: `org.apache.pulsar.broker.loadbalance.impl.AvgShedder`, 3.0.7 to 5.0.1.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, Floats, Indices
from pulsar_advisor.model.cluster.inputs import Input
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.java.maps import hash_map_buckets, hash_map_order
from pulsar_advisor.model.java.numbers import to_int, total_order
from pulsar_advisor.model.java.sort import java_sort
from pulsar_advisor.model.load.load_data import LoadData, load_data
from pulsar_advisor.model.load.resource_usage import WEIGHT_KEYS
from pulsar_advisor.model.strategy.avg_memory import AvgMemory, keeps_by_name, key_of
from pulsar_advisor.model.strategy.decision import SheddingDecision
from pulsar_advisor.model.strategy.outcomes import Codes, Outcome, Record, no, yes
from pulsar_advisor.shedding.candidates import RankedBundles, bundle_outcomes, in_result_order, rank

READS: Final[frozenset[Input]] = frozenset({"broker_usage", "broker_traffic", "short_term_averages", "recent_unloads"})
SETTING_KEYS: Final = (
    "loadBalancerAvgShedderLowThreshold",
    "loadBalancerAvgShedderHighThreshold",
    "loadBalancerAvgShedderHitCountLowThreshold",
    "loadBalancerAvgShedderHitCountHighThreshold",
    "maxUnloadPercentage",
    "minUnloadMessage",
    "minUnloadMessageThroughput",
    *WEIGHT_KEYS,
)

observe: Final = load_data

_EXACT_ORDER: Final = (4, 0, 0)


class BrokerOutcome(Outcome):
    """The answers about a broker."""

    PAIR_ALIKE = no("its pair's scores are {left:,.2f} points apart, below the low threshold {right:.0f}", "<")
    TOO_FEW_HITS = no("its pair is above the threshold for {left:.0f} hits; {right:.0f} are needed", "<")
    TOO_LITTLE_GAP = no("too few messages, and only {left:,.0f} B/s would move; the minimum is {right:,.0f}", "<=")
    RECEIVES = no("is the idler of a pair {left:,.2f} points apart; the low threshold is {right:.0f}", ">=")
    NOTHING_FITS = no("is the busier of its pair, but none of its bundles is both movable and small enough")
    GIVES = yes("is the busier of a pair {left:,.2f} points apart; the low threshold is {right:.0f}", ">=")


class BundleOutcome(Outcome):
    """The answers about a bundle."""

    RATE_TOO_LARGE = no("{left:,.1f} msg/s exceeds the {right:,.1f} msg/s still to be moved", ">")
    THROUGHPUT_TOO_LARGE = no("{left:,.0f} B/s exceeds the {right:,.0f} B/s still to be moved", ">", same_question=True)
    RATE_FITS = yes("{left:,.1f} msg/s fits within the {right:,.1f} msg/s still to be moved", "<=")
    THROUGHPUT_FITS = yes("{left:,.0f} B/s fits within the {right:,.0f} B/s still to be moved", "<=")
    IDLE = no("moves {left:.0f} msg/s or B/s: it would not help", "<=")


Memory = AvgMemory


@np.errstate(all="ignore")
def decide(load: LoadData, settings: LoadBalancerSettings, memory: AvgMemory) -> tuple[SheddingDecision, AvgMemory]:
    """One cycle of the shedder: what to unload from which broker, and why nothing from the others."""
    ids, order = load.brokers.ids, load.brokers.order
    scores = load.brokers.weighted_usage * 100
    by_hash = order[hash_map_order(load.brokers.hashes[order], memory.score_buckets)]
    ascending = _ascending(by_hash, scores, settings)
    paired = list(zip(ascending[: (len(ascending) + 1) // 2], ascending[::-1], strict=False))

    hits_high, hits_low = dict(memory.hits_high), dict(memory.hits_low)
    answers = Record.of(len(ids), BrokerOutcome.PAIR_ALIKE, 0.0, settings.load_balancer_avg_shedder_low_threshold)
    kept = _count_hits(paired, scores, ids, settings, hits_high, hits_low, answers.left)
    if not kept:
        hits_high.clear()
        hits_low.clear()

    rates, throughputs = load.brokers.rate_per_s().tolist(), load.brokers.throughput_bytes_per_s().tolist()
    givers: list[int] = []
    receivers: list[int] = []
    budgets: list[float] = []
    dimensions: list[int] = []
    for low, high in kept:
        seen, needed = _hits(ids[low], ids[high], settings, hits_high, hits_low)
        if seen < needed:
            answers.record([low, high], BrokerOutcome.TOO_FEW_HITS, seen, needed)
            continue
        _drop(hits_high, (ids[low], ids[high]))
        _drop(hits_low, (ids[low], ids[high]))
        rate_need = (rates[high] - rates[low]) * settings.max_unload_percentage
        throughput_need = (throughputs[high] - throughputs[low]) * settings.max_unload_percentage
        by_rate = rate_need > settings.min_unload_message
        least = settings.min_unload_message_throughput
        if not by_rate and not throughput_need > least:
            answers.record([low, high], BrokerOutcome.TOO_LITTLE_GAP, throughput_need, least)
            continue
        answers.code[low], answers.code[high] = BrokerOutcome.RECEIVES, BrokerOutcome.NOTHING_FITS
        givers.append(high)
        receivers.append(low)
        budgets.append(rate_need if by_rate else throughput_need)
        dimensions.append(0 if by_rate else 1)

    figures = np.stack((load.bundles.rate_per_s(), load.bundles.throughput_bytes_per_s()))
    ranked = rank(load, np.array(givers, dtype=np.int32), figures, np.array(dimensions, dtype=np.int64))
    bundle_code, budget_before = _fit(ranked, budgets, dimensions)
    bundles = bundle_outcomes(load, ranked, BundleOutcome, bundle_code, ranked.value, budget_before)
    chosen = bundles.chosen()[: len(ranked.bundle)]
    answers.code[ranked.sources[np.unique(ranked.source_position()[chosen])]] = BrokerOutcome.GIVES
    source, bundle = in_result_order(load, ranked, chosen, settings)

    pending = {} if keeps_by_name(settings) else dict(memory.destinations)
    for position, row in zip(ranked.source_position()[chosen].tolist(), ranked.bundle[chosen].tolist(), strict=True):
        pending[key_of(load, row, settings)] = (ids[givers[position]], ids[receivers[position]])
    decision = SheddingDecision(
        source=source,
        bundle=bundle,
        destination=np.full(len(bundle), NO_ROW, dtype=np.int32),
        brokers=answers.about_brokers(order, BrokerOutcome),
        bundles=bundles,
        figures={"scores": {ids[row]: float(scores[row]) for row in order.tolist()}},
    )
    buckets = hash_map_buckets(len(order), memory.score_buckets)
    return decision, AvgMemory(hits_high, hits_low, pending, buckets)


def _ascending(brokers: Indices, scores: Floats, settings: LoadBalancerSettings) -> list[int]:
    """Brokers by score. Whole points, as up to 3.3, define no order: the result depends on the input's order."""
    if settings.behaviour >= _EXACT_ORDER:
        return list(brokers[np.argsort(total_order(scores[brokers]), kind="stable")].tolist())

    score = scores.tolist()
    return java_sort(brokers.tolist(), lambda one, other: to_int(score[one] - score[other]))


def _count_hits(
    paired: list[tuple[int, int]],
    scores: Floats,
    ids: tuple[str, ...],
    settings: LoadBalancerSettings,
    hits_high: dict[str, int],
    hits_low: dict[str, int],
    distance: Floats,
) -> list[tuple[int, int]]:
    """Advance the hits in place and record each broker's distance to its partner; returns pairs far enough apart."""
    kept = []
    for low, high in paired:
        apart = float(scores[high]) - float(scores[low])
        distance[[low, high]] = apart
        both = (ids[low], ids[high])
        if apart < settings.load_balancer_avg_shedder_low_threshold:
            _drop(hits_high, both)
            _drop(hits_low, both)
            continue
        kept.append((low, high))
        _count(hits_low, both)
        if apart < settings.load_balancer_avg_shedder_high_threshold:
            _drop(hits_high, both)
        else:
            _count(hits_high, both)
    return kept


def _drop(hits: dict[str, int], brokers: tuple[str, str]) -> None:
    for broker in brokers:
        hits.pop(broker, None)


def _count(hits: dict[str, int], brokers: tuple[str, str]) -> None:
    for broker in brokers:
        hits[broker] = hits.get(broker, 0) + 1


def _hits(
    low: str, high: str, settings: LoadBalancerSettings, hits_high: dict[str, int], hits_low: dict[str, int]
) -> tuple[int, int]:
    """The first hits that suffice and their threshold, else the nearest. Missing entries become zero."""
    tests = (
        (hits_high, low, settings.load_balancer_avg_shedder_hit_count_high_threshold),
        (hits_high, high, settings.load_balancer_avg_shedder_hit_count_high_threshold),
        (hits_low, low, settings.load_balancer_avg_shedder_hit_count_low_threshold),
        (hits_low, high, settings.load_balancer_avg_shedder_hit_count_low_threshold),
    )
    nearest = (0, 2**31)
    for hits, broker, needed in tests:
        seen = hits.setdefault(broker, 0)
        if seen >= needed:
            return seen, needed
        if needed - seen < nearest[1] - nearest[0]:
            nearest = (seen, needed)
    return nearest


def _fit(ranked: RankedBundles, budgets: list[float], dimensions: list[int]) -> tuple[Codes, Floats]:
    """Walk each giver's bundles, greatest first, and choose those that still fit into its budget."""
    code: list[int] = []
    before: list[float] = []
    values = ranked.value.tolist()
    for giver, (budget, dimension) in enumerate(zip(budgets, dimensions, strict=True)):
        fits, too_large = BundleOutcome.RATE_FITS.value + dimension, BundleOutcome.RATE_TOO_LARGE.value + dimension
        for value in values[ranked.starts[giver] : ranked.starts[giver + 1]]:
            before.append(budget)
            if not value > 0:
                code.append(BundleOutcome.IDLE.value)
            elif value <= budget:
                code.append(fits)
                budget -= value
            else:
                code.append(too_large)
    return np.array(code, dtype=np.uint8), np.array(before, dtype=np.float64)
