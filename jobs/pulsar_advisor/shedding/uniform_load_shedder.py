"""`UniformLoadShedder`: narrow the gap between the busiest and the idlest broker, by messages or by bytes.

What Pulsar does: taking the maximum and minimum over all brokers, message rates differ too much when
(max - min) × 100 / min exceeds `loadBalancerMsgRateDifferenceShedderThreshold`, throughputs when max / min exceeds
`loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold`; a minimum of zero counts as 1. The busiest broker
gives up `maxUnloadPercentage` of the gap, by rate if the rates differ too much, else by throughput: the largest bundles
that still fit, each reducing what is left, at most `maxUnloadBundleNumPerShedding`. The budget is a 32-bit integer.

Releases: in 2.11 both dimensions share one busiest and one idlest broker, and either budget suffices. A bundle may
exceed the budget by 1000: in 2.11 in the message dimension, from 3.0.7 to 4.0 in both, from 4.1 on not at all.
Source: `org.apache.pulsar.broker.loadbalance.impl.UniformLoadShedder`, 2.11.0 to 5.0.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, Floats
from pulsar_advisor.model.cluster.inputs import Input
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.java.numbers import to_int, wrap_int
from pulsar_advisor.model.load.load_data import LoadData, load_data
from pulsar_advisor.model.strategy.decision import Figure, SheddingDecision
from pulsar_advisor.model.strategy.memory import NoMemory
from pulsar_advisor.model.strategy.outcomes import Outcome, Outcomes, Record, no, yes
from pulsar_advisor.shedding.candidates import bundle_outcomes, rank

READS: Final[frozenset[Input]] = frozenset({"broker_traffic", "broker_counts", "short_term_averages", "recent_unloads"})
SETTING_KEYS: Final = (
    "loadBalancerMsgRateDifferenceShedderThreshold",
    "loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold",
    "minUnloadMessage",
    "minUnloadMessageThroughput",
    "maxUnloadPercentage",
    "maxUnloadBundleNumPerShedding",
)

observe: Final = load_data

SLACK: Final = 1000
NO_CAP: Final = -1
NO_MINIMUM: Final = 2147483647.0
"""Initial value of the search for the minimum; if all brokers are above it, it becomes a false minimum."""
_ALMOST_ZERO: Final = 1e-6
SEPARATE_DIMENSIONS: Final = (3, 0, 7)
"""The release from which on each figure has its own extremes and minimum; before, either minimum is enough."""
_NO_SLACK: Final = (4, 1, 0)


class BrokerOutcome(Outcome):
    """The answers about a broker."""

    RATES_ALIKE = no("message rates differ by {left:,.1f}%, the tolerance is {right:,.1f}%", "<=")
    THROUGHPUTS_ALIKE = no("highest throughput is {left:,.2f} times the lowest; the tolerance is {right:,.2f}", "<=")
    NOT_BUSIEST_BY_RATE = no("{left:,.1f} msg/s is not above the busiest broker's {right:,.1f} msg/s", "<=")
    NOT_BUSIEST_BY_THROUGHPUT = no("{left:,.0f} B/s is not above the busiest's {right:,.0f} B/s", "<=")
    ONE_BUNDLE = no("is the busiest, but lists {left:.0f} bundle(s): a broker keeps its last one", "<=")
    TOO_LITTLE_RATE = no("only {left:,.0f} msg/s would move; the minimum is {right:,.0f} msg/s", "<")
    TOO_LITTLE_THROUGHPUT = no("only {left:,.0f} B/s would move; the minimum is {right:,.0f} B/s", "<")
    NOTHING_FITS = no("is the busiest, but none of its bundles is both movable and small enough")
    BUSIEST_BY_RATE = yes("message rates differ by {left:,.1f}%, the tolerance is {right:,.1f}%", ">")
    BUSIEST_BY_THROUGHPUT = yes("its throughput is {left:,.2f} times the lowest; the tolerance is {right:,.2f}", ">")


class BundleOutcome(Outcome):
    """The answers about a bundle."""

    RATE_TOO_LARGE = no("{left:,.1f} msg/s exceeds the {right:,.0f} msg/s still to be moved", ">")
    THROUGHPUT_TOO_LARGE = no("{left:,.0f} B/s exceeds the {right:,.0f} B/s still to be moved", ">", same_question=True)
    RATE_FITS = yes("{left:,.1f} msg/s fits within the {right:,.0f} msg/s still to be moved", "<=")
    THROUGHPUT_FITS = yes("{left:,.0f} B/s fits within the {right:,.0f} B/s still to be moved", "<=")
    CAP_REACHED = no("{left:.0f} bundles are already chosen; the limit per cycle is {right:.0f}", ">=")


Memory = NoMemory


@dataclass(frozen=True)
class _Extremes:
    """Busiest broker (row or NO_ROW) of one dimension, maximum and minimum."""

    busiest: int
    greatest: float
    least: float


@np.errstate(all="ignore")
def decide(load: LoadData, settings: LoadBalancerSettings, memory: Memory) -> tuple[SheddingDecision, Memory]:
    """One cycle of the shedder: what to unload from which broker, and why nothing from the others."""
    brokers = load.brokers
    limits = (
        settings.load_balancer_msg_rate_difference_shedder_threshold,
        settings.load_balancer_msg_throughput_multiplier_difference_shedder_threshold,
    )
    values = brokers.rate_per_s(), brokers.throughput_bytes_per_s()
    separate = settings.behaviour >= SEPARATE_DIMENSIONS
    both = [_extremes(load, value) for value in values] if separate else _shared_extremes(load, *values)
    rate, throughput = both
    gaps = (rate.greatest - rate.least) * 100 / rate.least, throughput.greatest / throughput.least
    exceeded = [limit > 0 and gap > limit for gap, limit in zip(gaps, limits, strict=True)]
    figures: dict[str, Figure] = {"rate_gap_percent": gaps[0], "throughput_multiple": gaps[1]}

    count = len(brokers.ids)
    if not any(exceeded):
        alike = 0 if limits[0] > 0 else 1
        answers = Record.of(count, BrokerOutcome.RATES_ALIKE + alike, gaps[alike], limits[alike])
        return _decision(load, NO_ROW, answers, _not_walked(load), figures), memory

    dimension = 0 if exceeded[0] else 1
    busiest = both[dimension].busiest
    needs = [to_int((found.greatest - found.least) * settings.max_unload_percentage) for found in both]
    worth = (settings.min_unload_message, settings.min_unload_message_throughput)
    enough = [need >= minimum for need, minimum in zip(needs, worth, strict=True)]
    worth_it = enough[dimension] if separate else any(enough)

    reason = BrokerOutcome.NOT_BUSIEST_BY_RATE + dimension
    answers = Record.of(count, reason, values[dimension], both[dimension].greatest)
    bundles = _not_walked(load)
    if brokers.published_bundles[busiest] <= 1:
        answers.record(busiest, BrokerOutcome.ONE_BUNDLE, brokers.published_bundles[busiest], 1)
    elif not worth_it:
        answers.record(busiest, BrokerOutcome.TOO_LITTLE_RATE + dimension, needs[dimension], worth[dimension])
    else:
        bundles = _walk(load, busiest, dimension, needs[dimension], settings)
        answer = BrokerOutcome.BUSIEST_BY_RATE + dimension if bundles.chosen().any() else BrokerOutcome.NOTHING_FITS
        answers.record(busiest, answer, gaps[dimension], limits[dimension])
    return _decision(load, busiest, answers, bundles, figures), memory


def _extremes(load: LoadData, value: Floats) -> _Extremes:
    in_order = value[load.brokers.order]
    # Comparisons with NaN are false in Java, so it can be neither; the first of equals wins.
    highest = np.append(np.where(np.isnan(in_order), -np.inf, in_order), -1.0)
    lowest = np.append(np.where(np.isnan(in_order), np.inf, in_order), NO_MINIMUM)
    busiest = int(np.argmax(highest))
    found = busiest < len(in_order) and highest[busiest] > -1.0
    return _Extremes(
        int(load.brokers.order[busiest]) if found else NO_ROW, float(highest.max()), not_zero(float(lowest.min()))
    )


def _shared_extremes(load: LoadData, rates: Floats, throughputs: Floats) -> list[_Extremes]:
    """In 2.11: both dimensions share one broker, and a new extreme in either one replaces both."""
    busiest, most_rate, most_bytes, least_rate, least_bytes = NO_ROW, -1.0, -1.0, NO_MINIMUM, NO_MINIMUM
    for row in load.brokers.order.tolist():
        rate, throughput = float(rates[row]), float(throughputs[row])
        if rate > most_rate or throughput > most_bytes:
            busiest, most_rate, most_bytes = row, rate, throughput
        if rate < least_rate or throughput < least_bytes:
            least_rate, least_bytes = rate, throughput
    return [
        _Extremes(busiest, most_rate, not_zero(least_rate)),
        _Extremes(busiest, most_bytes, not_zero(least_bytes)),
    ]


def not_zero(least: float) -> float:
    """The lowest figure as it is compared: 1 in place of 0."""
    return 1.0 if -_ALMOST_ZERO <= least <= _ALMOST_ZERO else least


def _not_walked(load: LoadData) -> Outcomes:
    ranked = rank(load, np.empty(0, dtype=np.int32), np.empty(0))
    return bundle_outcomes(load, ranked, BundleOutcome, np.empty(0, dtype=np.uint8), np.empty(0), np.empty(0))


def _walk(load: LoadData, busiest: int, dimension: int, need: int, settings: LoadBalancerSettings) -> Outcomes:
    """Walk the bundles of the busiest broker, greatest first, and choose those that still fit into `need`."""
    value = load.bundles.rate_per_s() if dimension == 0 else load.bundles.throughput_bytes_per_s()
    ranked = rank(load, np.array([busiest], dtype=np.int32), value)
    cap = settings.max_unload_bundle_num_per_shedding
    with_slack = settings.behaviour < _NO_SLACK and (dimension == 0 or settings.behaviour >= SEPARATE_DIMENSIONS)
    slack = SLACK if with_slack else 0
    code = np.zeros(len(ranked.bundle), dtype=np.uint8)
    left, right = ranked.value.copy(), np.zeros(len(ranked.bundle))
    chosen = 0
    for place, own in enumerate(ranked.value.tolist()):
        if cap != NO_CAP and chosen >= cap:
            code[place:], left[place:], right[place:] = BundleOutcome.CAP_REACHED.value, chosen, cap
            break
        right[place] = wrap_int(need + slack)
        if own <= right[place]:
            code[place] = BundleOutcome.RATE_FITS.value + dimension
            need = wrap_int(need + to_int(-own))
            chosen += 1
        else:
            code[place] = BundleOutcome.RATE_TOO_LARGE.value + dimension
    return bundle_outcomes(load, ranked, BundleOutcome, code, left, right)


def _decision(
    load: LoadData, busiest: int, answers: Record, bundles: Outcomes, figures: dict[str, Figure]
) -> SheddingDecision:
    bundle = bundles.index[bundles.chosen()]
    return SheddingDecision(
        source=np.full(len(bundle), busiest, dtype=np.int32),
        bundle=bundle,
        destination=np.full(len(bundle), NO_ROW, dtype=np.int32),
        brokers=answers.about_brokers(load.brokers.order, BrokerOutcome),
        bundles=bundles,
        figures=figures,
    )
