"""The busiest bundles of a broker as the Extensible manager reports them: how bundles compare, and the partial sort.

Bundles are compared by rounded figures from 4.0 on; before, two figures within a fixed distance were equal.
Source: `NamespaceBundleStats`, `extensions.models.TopKBundles` (3.0.7 to 5.0.1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pulsar_advisor.model.cluster.cluster_state import Bundles, Floats, Integers
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.java.sort import java_sort
from pulsar_advisor.model.java.tree import first_in_tree

_ROUNDED_SINCE: Final = (4, 0, 0)
_WITHOUT_IDLE_SINCE: Final = (4, 0, 0)
_LONG: Final = 2.0**63


@dataclass(frozen=True)
class NamespaceBundleStats:
    """Figures of a bundle from its broker's last statistics pass."""

    msg_rate_in: float = 0.0
    msg_rate_out: float = 0.0
    msg_throughput_in: float = 0.0
    msg_throughput_out: float = 0.0
    topics: int = 0
    consumers: int = 0
    producers: int = 0
    cache_size_bytes: int = 0

    def throughput_bytes_per_s(self) -> float:
        """In and out together."""
        return self.msg_throughput_in + self.msg_throughput_out


def stats_of(bundles: Bundles, row: int) -> NamespaceBundleStats:
    """The figures of a row of a cluster state."""
    rate_in, rate_out, throughput_in, throughput_out = bundles.traffic[row].tolist()
    return NamespaceBundleStats(
        msg_rate_in=rate_in,
        msg_rate_out=rate_out,
        msg_throughput_in=throughput_in,
        msg_throughput_out=throughput_out,
        topics=int(bundles.topics[row]),
        consumers=int(bundles.consumers[row]),
        producers=int(bundles.producers[row]),
        cache_size_bytes=int(bundles.cache_size_bytes[row]),
    )


Comparison = Callable[[NamespaceBundleStats, NamespaceBundleStats], int]
"""Negative, zero or positive, as `Comparable.compareTo`."""


@dataclass(frozen=True)
class _Criterion:
    """A figure by which bundles are compared, in steps."""

    figure: Callable[[NamespaceBundleStats], float]
    step: int
    is_count: bool = False
    """Whether it is rounded down; otherwise to the nearest step."""

    def in_steps(self, figure: float) -> float:
        """A figure in whole steps."""
        return figure // self.step if self.is_count else _rounded(figure / self.step)

    def comparison(self, rounded: bool) -> Comparison:
        """Compares figures in whole steps if `rounded`; otherwise figures no more than a step apart are equal."""

        def compare(one: NamespaceBundleStats, other: NamespaceBundleStats) -> int:
            left, right = self.figure(one), self.figure(other)
            if rounded:
                left, right = self.in_steps(left), self.in_steps(right)
            elif not abs(left - right) > self.step:
                return 0
            return (left > right) - (left < right)

        return compare


_CRITERIA: Final = {
    "byBandwidthIn": _Criterion(lambda stats: stats.msg_throughput_in, 100_000),
    "byBandwidthOut": _Criterion(lambda stats: stats.msg_throughput_out, 100_000),
    "byMsgRate": _Criterion(lambda stats: stats.msg_rate_in + stats.msg_rate_out, 100),
    "byTopicConnections": _Criterion(
        lambda stats: stats.topics + stats.consumers + stats.producers, 500, is_count=True
    ),
    "byCacheSize": _Criterion(lambda stats: stats.cache_size_bytes, 100_000, is_count=True),
}
"""By Pulsar's name, in the order of the natural comparison."""


def comparisons(settings: LoadBalancerSettings) -> dict[str, Comparison]:
    """Every criterion by Pulsar's name for it, in the order of the natural comparison."""
    rounded = settings.behaviour >= _ROUNDED_SINCE
    return {name: criterion.comparison(rounded) for name, criterion in _CRITERIA.items()}


def greatest(name: str, figures: Floats | Integers, settings: LoadBalancerSettings) -> int:
    """Position of the first bundle in the Simple manager's sorted map; `figures` are what the criterion compares.

    That is the first of the greatest. Up to 3.3 it can be another one: the comparison isn't transitive there.
    """
    criterion, values = _CRITERIA[name], figures.tolist()
    if settings.behaviour < _ROUNDED_SINCE:
        return first_in_tree(len(values), lambda new, old: values[new] - values[old] > criterion.step)
    in_steps = list(map(criterion.in_steps, values))
    return in_steps.index(max(in_steps))


def natural_comparison(settings: LoadBalancerSettings) -> Comparison:
    """The first criterion in which two bundles differ decides."""
    criteria = tuple(comparisons(settings).values())

    def compare(one: NamespaceBundleStats, other: NamespaceBundleStats) -> int:
        return next((result for criterion in criteria if (result := criterion(one, other))), 0)

    return compare


def top_bundles(
    stats: Sequence[NamespaceBundleStats], shown: Sequence[bool], count: int, settings: LoadBalancerSettings
) -> list[int]:
    """Positions of the `count` busiest bundles, lightest first, as a broker reports them.

    `shown`, parallel to `stats`, is whether namespace and policies let the bundle be reported. A `count` of zero or
    less gives nothing (in Pulsar it can also fail, depending on the data).
    """
    positions = [
        position
        for position, figures in enumerate(stats)
        if (settings.behaviour < _WITHOUT_IDLE_SINCE or figures.throughput_bytes_per_s() != 0) and shown[position]
    ]
    count = min(count, len(positions))
    if count <= 0:
        return []
    compare = natural_comparison(settings)
    partially_sort(positions, count, lambda one, other: compare(stats[one], stats[other]))
    return positions[:count][::-1]


def partially_sort(items: list[int], count: int, compare: Callable[[int, int], int]) -> None:
    """Move the `count` largest to the front, descending, with exactly Pulsar's swaps: ties depend on them."""
    start, end, target = 0, len(items) - 1, count - 1
    while start < end:
        low, middle, high = start, start, end
        pivot = items[end]
        while middle <= high:
            order = compare(items[middle], pivot)
            if order > 0:
                items[low], items[middle] = items[middle], items[low]
                low, middle = low + 1, middle + 1
            elif order < 0:
                items[middle], items[high] = items[high], items[middle]
                high -= 1
            else:
                middle += 1
        if low <= target < middle:
            end = low
            break
        if target < low:
            end = low - 1
        else:
            start = middle

    items[:end] = java_sort(items[:end], lambda one, other: compare(other, one))


def _rounded(value: float) -> float:
    """`Math.round`: to the nearest whole number, halves up, NaN to 0, saturating at 64 bits."""
    if math.isnan(value):
        return 0.0
    if math.isinf(value) or abs(value) >= _LONG:
        return math.copysign(_LONG, value)
    whole = math.floor(value)
    return float(whole + (value - whole >= 0.5))
