"""The `base_load` model: the part of a broker's CPU usage that doesn't move with messages.

A broker uses CPU when it serves nothing: for its statistics, its sessions, garbage collection. So its usage is a base
and a share for each message, and only the share moves with a bundle. The base comes from the broker's own history, else
from the least loaded broker, else from a default; it is a range, since none of these measures it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

import numpy as np

from pulsar_advisor.model.cluster_state import (
    CPU,
    Booleans,
    ClusterState,
    Floats,
    Indices,
    rate_per_s,
    throughput_bytes_per_s,
)
from pulsar_advisor.model.proportional import usage_of

Origin = Literal["history", "least_loaded", "default"]

FEWEST_SAMPLES: Final = 4
"""Samples of one broker that its base can be computed from."""
LEAST_SPREAD: Final = 1.25
"""Ratio of the message rates (highest to lowest) at which two of them say something about the base."""
STEADY_RATIO: Final = 0.1
"""Change of the message rate since the report before, up to which a report's CPU usage belongs to its rate."""
SHORTLY_MS: Final = 150_000
"""Time within which a change between two reports can be one that the CPU sample doesn't show yet: two samples."""
DEFAULT_RATIO: Final = 0.05
"""Base of a broker that can't be compared with any other, as a share of its CPU: what an idle broker of 4.0.8 used."""
GREATEST_DEFAULT_RATIO: Final = 0.15


@dataclass(frozen=True, eq=False)
class BaseLoad:
    """Base CPU usage of n brokers, in the unit of `Brokers.usage`; never above the usage itself."""

    least: Floats
    likely: Floats
    greatest: Floats
    origin: tuple[Origin, ...]


@np.errstate(over="ignore", invalid="ignore")
def base_load(state: ClusterState, history: Sequence[ClusterState] = ()) -> BaseLoad:
    """The base of every broker of a state; `history` are earlier states of the same cluster."""
    usage, rate = _finite(state.brokers.usage[:, CPU]), _finite(rate_per_s(state.brokers.traffic))
    limit = np.maximum(_finite(state.brokers.limit[:, CPU]), 0.0)
    reporting = state.brokers.fit
    least, likely, greatest = np.zeros(len(usage)), DEFAULT_RATIO * limit, GREATEST_DEFAULT_RATIO * limit
    origin: list[Origin] = ["default"] * len(usage)
    samples = steady_samples([*history, state])
    own = (Sample(*figures) for figures in zip(rate, np.zeros(len(rate)), usage, strict=True))
    steady = [samples.get(broker, [now])[-1] for broker, now in zip(state.brokers.ids, own, strict=True)]
    steady_rate, _, steady_usage = _columns(steady)
    _from_least_loaded(steady_rate, steady_usage, reporting, likely, greatest, origin)
    for row in np.flatnonzero(reporting).tolist():
        rates, _, usages = _columns(samples.get(state.brokers.ids[row], ()))
        if varied(rates):
            (intercept, _), error = non_negative_line(rates, usages)
            likely[row], origin[row] = intercept, "history"
            least[row], greatest[row] = intercept - 2 * error, intercept + 2 * error
    most = np.maximum(usage, 0.0)
    least, likely, greatest = (np.clip(base, 0.0, most) for base in (least, likely, greatest))
    return BaseLoad(least, likely, greatest, tuple(origin))


@np.errstate(over="ignore", invalid="ignore")
def with_usage_of_rates(state: ClusterState, history: Sequence[ClusterState], base: BaseLoad) -> ClusterState:
    """The state with the CPU usage that each broker's message rate will show as soon as it is sampled.

    A broker's CPU usage is the mean over the time between its last two samples
    (`LinuxBrokerHostUsageImpl.calculateBrokerHostUsage`, 4.0.8). Where the rate changed since then, it is partly that
    of the former rate. What counts there is the broker's last sample whose figures belong together, at the new rate:
    the likely `base`, and the same share for each message. Without such a sample the usage stays as it is.
    """
    brokers = state.brokers
    samples = steady_samples([*history, state])
    usage = brokers.usage.copy()
    for row, now in _reported(state):
        steady = samples.get(brokers.ids[row], [now])
        last = steady[-1]
        if now not in steady and last.rate_per_s > 0:
            stays = base.likely[row]
            share = max(last.cpu - stays, 0.0) / last.rate_per_s
            most = max(float(brokers.limit[row, CPU]), now.cpu)
            usage[row, CPU] = min(stays + share * now.rate_per_s, most)
    return replace(state, brokers=replace(brokers, usage=usage))


def varied(rates: Floats) -> bool:
    """Whether these message rates say enough about a broker to fit a line to its usage."""
    return len(rates) >= FEWEST_SAMPLES and float(rates.max()) >= LEAST_SPREAD * max(float(rates.min()), 1.0)


def _columns(samples: Sequence[Sample]) -> Floats:
    """(3, k): rates, throughputs and usages."""
    columns: Floats = np.array(samples, dtype=np.float64).reshape(-1, len(Sample._fields)).T
    return columns


def _from_least_loaded(
    rate: Floats, usage: Floats, reporting: Booleans, likely: Floats, greatest: Floats, origin: list[Origin]
) -> None:
    """Bases by the line through the least loaded broker and each other one; at most what the least loaded one uses.

    Its own base is the median of those of the others.
    """
    rows = np.flatnonzero(reporting & (rate > 0) & (usage > 0))
    if not len(rows):
        return
    idlest = int(rows[np.argmin(rate[rows])])
    others = rows[rate[rows] >= LEAST_SPREAD * rate[idlest]]
    if not len(others):
        return
    slopes = (usage[others] - usage[idlest]) / (rate[others] - rate[idlest])
    bases = np.clip(usage[idlest] - slopes * rate[idlest], 0.0, usage[idlest])
    likely[others], greatest[others] = bases, usage[idlest]
    likely[idlest], greatest[idlest] = float(np.median(bases)), usage[idlest]
    for row in (*others.tolist(), idlest):
        origin[row] = "least_loaded"


@np.errstate(over="ignore", invalid="ignore")
def usage_that_moves(state: ClusterState, base_cpu: Floats | float, traffic: Floats, owner: Indices) -> Floats:
    """(k, 5): the usage that each of k bundles or topics takes along; `traffic` is (k, 4), `owner` their brokers.

    Each has its share of what its broker uses beyond `base_cpu`, the CPU usage that none of them takes along.
    """
    movable = state.brokers.usage.copy()
    movable[:, CPU] -= base_cpu
    return usage_of(traffic, state.brokers.traffic[owner], movable[owner])


def non_negative_line(rates: Floats, usages: Floats) -> tuple[tuple[float, float], float]:
    """(intercept, slope), both at least 0, with the least squared error, and the standard error of the intercept.

    With two coefficients, non-negative least squares is the free solution, or the better one of those with one of the
    coefficients at zero. There must be at least three samples, not all with the same rate.
    """
    spread = rates - rates.mean()
    slope = float(spread @ usages / (spread @ spread))
    intercept = float(usages.mean() - slope * rates.mean())
    if intercept < 0 or slope < 0:
        through_zero = (0.0, max(float(rates @ usages / (rates @ rates)), 0.0))
        level = (max(float(usages.mean()), 0.0), 0.0)
        intercept, slope = min(
            (through_zero, level), key=lambda line: float(((usages - line[0] - line[1] * rates) ** 2).sum())
        )
    residual = usages - intercept - slope * rates
    variance = float(residual @ residual) / (len(rates) - 2)
    error = np.sqrt(variance * (1.0 / len(rates) + rates.mean() ** 2 / (spread @ spread)))
    return (intercept, slope), float(error)


class Sample(NamedTuple):
    """Figures of one report of a broker that belong together."""

    rate_per_s: float
    """Messages, in and out."""
    throughput_bytes_per_s: float
    """In and out."""
    cpu: float
    """In the unit of `Brokers.usage`."""


def steady_samples(moments: Sequence[ClusterState]) -> dict[str, list[Sample]]:
    """Broker -> rates and CPU usages that belong together, oldest first, each report once.

    Both figures of a report are up to a minute old, but not equally old: CPU is sampled every
    `loadBalancerHostUsageCheckIntervalMinutes`, rates every `statsUpdateFrequencyInSecs`. They don't belong together
    where the rate has changed since a report shortly before.
    """
    found: dict[str, dict[Sample, None]] = {}
    last: dict[str, tuple[float, int]] = {}
    for moment in moments:
        for row, sample in _reported(moment):
            broker, rate = moment.brokers.ids[row], sample.rate_per_s
            at_ms = int(moment.brokers.report_updated_at_ms[row])
            before, before_ms = last.get(broker, (rate, at_ms))
            last[broker] = rate, at_ms
            shortly_before = 0 < at_ms - before_ms <= SHORTLY_MS
            if not shortly_before or abs(rate - before) <= STEADY_RATIO * max(rate, before):
                found.setdefault(broker, {})[sample] = None
    return {broker: list(samples) for broker, samples in found.items()}


def _reported(state: ClusterState) -> Iterator[tuple[int, Sample]]:
    """The row and the figures of each broker that reports some."""
    rates, usages = rate_per_s(state.brokers.traffic), state.brokers.usage[:, CPU]
    throughputs = _finite(throughput_bytes_per_s(state.brokers.traffic))
    for row in np.flatnonzero(state.brokers.fit & np.isfinite(rates) & np.isfinite(usages)).tolist():
        yield row, Sample(float(rates[row]), float(throughputs[row]), float(usages[row]))


def _finite(figures: Floats) -> Floats:
    return np.where(np.isfinite(figures), figures, 0.0)
