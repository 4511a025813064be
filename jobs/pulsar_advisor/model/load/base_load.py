"""The `base_load` model: the part of a broker's CPU usage that doesn't move with messages.

A broker uses CPU even if it serves nothing: for its statistics, its sessions, garbage collection. So its usage is a
base plus a share for each message, and only the shares move with a bundle. One snapshot can't separate the two: all of
the usage may be base (compaction, functions, a noisy neighbour), or none. The base is therefore a range between these
two ends, which evidence narrows:

* A broker's own reports at different message rates show both ends; what the last one uses above their line may all be
  base.
* Other brokers with the same CPU limit show how much base such a machine has at most, if their usage follows their
  message rates: by the line through all, or by what messages cost the others at least, as the line follows a broker
  with far more messages than theirs whatever it uses. They don't show a minimum: what they have in common may still
  follow the messages.

Within the range, the likely base is that of the line through these reports, else what an idle broker uses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import (
    CPU,
    LEAST_CPU,
    ClusterState,
    Floats,
    Indices,
    rate_per_s,
    throughput_bytes_per_s,
)
from pulsar_advisor.model.load.proportional import usage_of

Origin = Literal["history", "peers", "default"]

FEWEST_SAMPLES: Final = 4
"""How many samples of one broker, or of brokers with the same limit, it takes to compute a base."""
LEAST_SPREAD: Final = 1.25
"""Ratio of the highest to the lowest message rate from which they say something about the base."""
STEADY_RATIO: Final = 0.1
"""A report's CPU usage belongs to its message rate if that has changed by no more than this since the report before."""
SHORTLY_MS: Final = 150_000
"""The CPU sample may not show yet that the rate has changed since a report this long ago or less: two samples."""
DEFAULT_RATIO: Final = 0.05
"""Base of a broker about which nothing else is known, as a share of its CPU: what an idle broker of 4.0.8 used."""
_STUDENT_T: Final = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23)
"""Student's t by degrees of freedom from 1 on: 95 % of all estimates are within as many standard errors. The last one
counts for more degrees, too."""


@dataclass(frozen=True, eq=False)
class BaseLoad:
    """Base CPU usage of n brokers, in the unit of `Brokers.usage`; never above the usage itself."""

    least: Floats
    likely: Floats
    greatest: Floats
    origin: tuple[Origin, ...]


@np.errstate(over="ignore", invalid="ignore")
def base_load(state: ClusterState, earlier: Sequence[ClusterState] = ()) -> BaseLoad:
    """The base of every broker of a state; `earlier` are states of the same cluster before it."""
    usage = _finite(state.brokers.usage[:, CPU])
    limit = np.maximum(_finite(state.brokers.limit[:, CPU]), 0.0)
    least, likely, greatest = np.zeros(len(usage)), DEFAULT_RATIO * limit, usage.copy()
    origin: list[Origin] = ["default"] * len(usage)
    samples = steady_samples([*earlier, state])
    reporting = np.flatnonzero(state.brokers.fit)
    now = {row: samples.get(broker, [])[-1:] for row, broker in enumerate(state.brokers.ids)}
    for alike in _with_one_limit(limit, [row for row in reporting.tolist() if now[row]]):
        rates, _, usages = _columns([now[row][0] for row in alike])
        if varied(rates):
            (intercept, slope), (error, _) = non_negative_line(rates, usages)
            likely[alike] = intercept
            of_all = intercept + error + np.maximum(usages - intercept - slope * rates, 0.0)
            for place, row in enumerate(alike):
                cost = _least_cost(np.delete(rates, place), np.delete(usages, place))
                greatest[row], origin[row] = max(of_all[place], usages[place] - cost * rates[place]), "peers"
    for row in reporting.tolist():
        rates, _, usages = _columns(samples.get(state.brokers.ids[row], ()))
        if varied(rates):
            (intercept, slope), (error, _) = non_negative_line(rates, usages)
            likely[row], origin[row] = intercept, "history"
            above_the_line = max(usages[-1] - intercept - slope * rates[-1], 0.0)
            least[row], greatest[row] = intercept - error, intercept + error + above_the_line
    most = np.maximum(usage, 0.0)
    least, likely, greatest = (np.clip(base, 0.0, most) for base in (least, likely, greatest))
    return BaseLoad(least, likely, greatest, tuple(origin))


@np.errstate(over="ignore", invalid="ignore")
def with_usage_of_rates(state: ClusterState, earlier: Sequence[ClusterState], base: BaseLoad) -> ClusterState:
    """The state with the CPU usage that each broker's message rate will show as soon as it is sampled.

    A broker's CPU usage is the mean over the time between its last two samples
    (`LinuxBrokerHostUsageImpl.calculateBrokerHostUsage`, 4.0.8). If the rate has changed meanwhile, part of the usage
    is due to the old rate. Then the broker's last sample whose figures belong together is scaled to the new rate: the
    likely `base`, plus the same share for each message. Without such a sample the usage stays as it is, as it does if
    it is above the result for a rate that rose, or below that for one that fell: it is a mean over both rates.
    """
    brokers = state.brokers
    samples = steady_samples([*earlier, state])
    before = {one.brokers.ids[row]: sample.rate_per_s for one in earlier for row, sample in _reported(one)}
    usage = brokers.usage.copy()
    for row, now in _reported(state):
        steady = samples.get(brokers.ids[row], [now])
        last = steady[-1]
        if now not in steady and last.rate_per_s > 0:
            stays = base.likely[row]
            share = max(last.cpu - stays, 0.0) / last.rate_per_s
            most = max(float(brokers.limit[row, CPU]), now.cpu)
            settled = min(stays + share * now.rate_per_s, most)
            if now.cpu >= LEAST_CPU:
                settled = (max if now.rate_per_s > before[brokers.ids[row]] else min)(settled, now.cpu)
            usage[row, CPU] = settled
    return replace(state, brokers=replace(brokers, usage=usage))


def varied(rates: Floats) -> bool:
    """Whether these message rates vary enough to fit a line to a broker's usage."""
    return len(rates) >= FEWEST_SAMPLES and float(rates.max()) >= LEAST_SPREAD * max(float(rates.min()), 1.0)


def _least_cost(rates: Floats, usages: Floats) -> float:
    """The least that a message costs, as three brokers or more show; 0 if their rates vary too little."""
    if float(rates.max()) < LEAST_SPREAD * max(float(rates.min()), 1.0):
        return 0.0
    (_, slope), (_, error) = non_negative_line(rates, usages)
    return max(slope - error, 0.0)


def _columns(samples: Sequence[Sample]) -> Floats:
    """(3, k): rates, throughputs and usages."""
    return np.array(samples, dtype=np.float64).reshape(-1, len(Sample._fields)).T


def _with_one_limit(limit: Floats, rows: Sequence[int]) -> list[list[int]]:
    """These rows in groups of brokers with the same CPU limit: machines that can be compared."""
    groups: dict[float, list[int]] = {}
    for row in rows:
        groups.setdefault(float(limit[row]), []).append(row)
    return list(groups.values())


@np.errstate(over="ignore", invalid="ignore")
def usage_that_moves(state: ClusterState, base_cpu: Floats | float, traffic: Floats, owner: Indices) -> Floats:
    """(k, 5): the usage that each of k bundles or topics takes along; `traffic` is (k, 4), `owner` their brokers.

    Each has its share of what its broker uses beyond `base_cpu`, the CPU usage that none of them takes along.
    """
    movable = state.brokers.usage.copy()
    movable[:, CPU] = np.maximum(movable[:, CPU] - base_cpu, 0.0)
    return usage_of(traffic, state.brokers.traffic[owner], movable[owner])


def non_negative_line(rates: Floats, usages: Floats) -> tuple[tuple[float, float], tuple[float, float]]:
    """(intercept, slope), both at least 0, with the least squared error, and by how much either may be wrong.

    The latter are their standard errors times Student's t, which covers 95 % of all lines.

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
    of_slope = np.sqrt(variance / (spread @ spread))
    within = _STUDENT_T[min(len(rates) - 2, len(_STUDENT_T)) - 1]
    return (intercept, slope), (float(error) * within, float(of_slope) * within)


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
            if sample.cpu < LEAST_CPU < rate:
                continue  # not sampled yet
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
