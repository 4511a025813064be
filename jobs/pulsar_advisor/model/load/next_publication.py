"""The load that brokers will have published when their leader decides next.

An Extensible broker takes a sample every `loadBalancerReportUpdateMinIntervalMillis`. It publishes one that changed by
more than `loadBalancerReportUpdateThresholdPercentage`, and one after `loadBalancerReportUpdateMaxIntervalMinutes`.
The changes of the next minute are unknown; but how often a broker has published lately shows whether it will do so
again before the next cycle, and with every sample its smoothed load approaches its usage.

A Modular broker checks its report at the same pace, and writes it for the same two reasons, with the figures that it
answers when asked: if these differ by more than the threshold, the next check writes them. Every report adds a sample
to the averages, as does storing them every `loadBalancerResourceQuotaUpdateIntervalMinutes`.

Cycles start at a fixed rate and unload at once, so the unloads of one show when the next one starts.

Source: `BrokerLoadDataReporter`, `BrokerLoadData`, `UnloadScheduler` of `loadbalance.extensions` (3.0.7 to 5.0.1);
`ModularLoadManagerImpl.needBrokerDataUpdate`, `writeBrokerDataOnZooKeeper`, `writeBundleDataOnZooKeeper` (2.11.0 to
5.0.1).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pulsar_advisor.model.cluster.cluster_state import (
    NO_ROW,
    Booleans,
    Bundles,
    ClusterState,
    Floats,
    Integers,
    PublishedLoad,
    rate_per_s,
    throughput_bytes_per_s,
)
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.averages import with_samples
from pulsar_advisor.model.load.recent_unloads import MINUTE_MS, shedding_interval_ms
from pulsar_advisor.model.load.resource_usage import overload_usage, weighted_maximum_with_heap

_REPORTED: Final = ("usage", "limit", "traffic", "topics", "bundles", "producers", "consumers", "report_updated_at_ms")
"""What a Modular broker's report says of the broker."""


def next_cycle_at_ms(state: ClusterState, settings: LoadBalancerSettings) -> int:
    """When the leader's next cycle starts; half an interval from now if no unload shows it."""
    interval_ms = shedding_interval_ms(settings)
    now_ms = _now_ms(state)
    unloaded_at_ms = int(state.bundles.last_unloaded_at_ms.max(initial=0))
    if not unloaded_at_ms:
        return now_ms + interval_ms // 2
    return unloaded_at_ms - (unloaded_at_ms - now_ms) // interval_ms * interval_ms


@np.errstate(all="ignore")
def at_next_cycle(published: PublishedLoad, state: ClusterState, settings: LoadBalancerSettings) -> PublishedLoad:
    """What is published by then, given the last samples of usage and traffic; unchanged if the topic was not read."""
    if published.publishes_every_ms is None:
        return published
    brokers = state.brokers
    longest_ms = settings.load_balancer_report_update_max_interval_minutes * MINUTE_MS
    every_ms = np.where(published.publishes_every_ms > 0, published.publishes_every_ms, longest_ms)
    every_ms = np.maximum(np.minimum(every_ms, longest_ms), 1)
    ahead_ms = next_cycle_at_ms(state, settings) - brokers.report_updated_at_ms
    sample_ms = max(settings.load_balancer_report_update_min_interval_millis, 1)
    samples = np.maximum(ahead_ms // every_ms * every_ms // sample_ms, 0)
    kept = settings.load_balancer_history_resource_percentage**samples

    def later(past: Floats, sample: Floats) -> Floats:
        return np.where(samples > 0, past * kept + (1 - kept) * sample, past)

    return replace(
        published,
        weighted_max_ema=later(
            published.weighted_max_ema, weighted_maximum_with_heap(brokers.usage, brokers.limit, settings)
        ),
        msg_throughput_ema=later(published.msg_throughput_ema, throughput_bytes_per_s(brokers.traffic)),
    )


def unprompted_report_ms(longest_ms: int, check_ms: int) -> int:
    """After how long a Modular broker writes its report even if nothing changed.

    At the first check at which the report is older than `loadBalancerReportUpdateMaxIntervalMinutes`.
    """
    return (longest_ms // check_ms + 1) * check_ms


def with_due_reports(published: ClusterState, fresh: ClusterState, settings: LoadBalancerSettings) -> ClusterState:
    """The published view of a Modular cluster with what is bound to happen before the next cycle.

    Brokers write reports with the figures of `fresh`, which they answered in the same snapshot, unless validation set
    these aside; and the leader stores its averages. Each of these adds a sample to the averages of all bundles. If no
    unload shows when the next cycle starts, only what is overdue or has changed counts: a check takes far less time
    than an interval.
    """
    brokers, answered = published.brokers, fresh.brokers
    fit = answered.complete & (answered.report_updated_at_ms > 0)
    row_of = {answered.ids[row]: row for row in np.flatnonzero(fit).tolist()}
    rows = np.array([row_of.get(broker, NO_ROW) for broker in brokers.ids], dtype=np.intp)
    shows_cycles = published.bundles.last_unloaded_at_ms.any()
    at_ms = next_cycle_at_ms(published, settings) if shows_cycles else _now_ms(published)
    check_ms = max(settings.load_balancer_report_update_min_interval_millis, 1)
    longest_ms = settings.load_balancer_report_update_max_interval_minutes * MINUTE_MS
    due_at_ms = brokers.report_updated_at_ms + unprompted_report_ms(longest_ms, check_ms)
    is_due = due_at_ms <= at_ms
    changed = _differ(published, fresh, rows, settings)
    next_check_ms = _now_ms(published) + check_ms - (_now_ms(published) - brokers.report_updated_at_ms) % check_ms
    due_at_ms = np.where(changed, np.minimum(due_at_ms, next_check_ms), due_at_ms)
    is_due |= changed & (due_at_ms <= next_cycle_at_ms(published, settings))
    due = np.flatnonzero(is_due & (rows != NO_ROW))
    due = due[np.argsort(due_at_ms[due], kind="stable")]
    stored_at_ms = published.averages_stored_at_ms
    stored_at_ms += settings.load_balancer_resource_quota_update_interval_minutes * MINUTE_MS
    stores = published.captured_at_ms < stored_at_ms <= at_ms
    if not (stores or len(due)):
        return published
    # How many samples come before each due report; all of them for the other brokers, and for NO_ROW (the last entry).
    turn = np.full(len(brokers) + 1, len(due) + stores)
    turn[due] = np.arange(len(due)) + (stores & (due_at_ms[due] > stored_at_ms))

    def then(name: str) -> Any:
        figures = getattr(brokers, name).copy()
        figures[due] = getattr(answered, name)[rows[due]]
        return figures

    return replace(
        published,
        brokers=replace(brokers, **{name: then(name) for name in _REPORTED}),
        bundles=_bundles_then(published, fresh, turn),
    )


def _differ(
    published: ClusterState, fresh: ClusterState, rows: npt.NDArray[np.intp], settings: LoadBalancerSettings
) -> Booleans:
    """Per broker, whether what it answers (`rows` of `fresh`) differs from its report by more than the threshold."""
    before, now = published.brokers, fresh.brokers
    greatest = change_percent(
        (before.traffic, now.traffic[rows]),
        (before.bundles, now.bundles[rows]),
        (overload_usage(before.usage, before.limit, settings), overload_usage(now.usage, now.limit, settings)[rows]),
    )
    differ: Booleans = greatest > settings.load_balancer_report_update_threshold_percentage
    return differ


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def change_percent(
    traffic: tuple[Floats, Floats], bundles: tuple[Floats | Integers, Floats | Integers], usage: tuple[Floats, Floats]
) -> Floats:
    """The greatest change of each broker's figures, each given before and now: what decides whether it publishes.

    Percent of its message rate, throughput and number of bundles; points of its usage (a ratio). `traffic` is (n, 4).
    """
    changes = (
        _percent_change(*map(rate_per_s, traffic)),
        _percent_change(*map(throughput_bytes_per_s, traffic)),
        _percent_change(*bundles),
        100 * np.abs(usage[0] - usage[1]),
    )
    greatest: Floats = np.fmax.reduce(changes)
    return greatest


def _percent_change(before: Floats | Integers, now: Floats | Integers) -> Floats:
    """As Pulsar computes it: none between two zeros, infinite from zero to anything else."""
    return np.where((before == 0) & (now == 0), 0.0, 100 * np.abs((before - now) / before))


def _bundles_then(published: ClusterState, fresh: ClusterState, turn: npt.NDArray[np.intp]) -> Bundles:
    """The published bundles after as many samples as the last `turn` says.

    Up to its broker's turn, a bundle's samples are its last published figures; from then on, the answered ones.
    """
    bundles, number = published.bundles, int(turn[NO_ROW])
    past = turn[bundles.owner]
    traffic = bundles.traffic.copy()
    reported_anew = np.flatnonzero(bundles.reported & (past < number))
    answered = _answered(published, fresh, reported_anew)
    traffic[reported_anew[answered != NO_ROW]] = fresh.bundles.traffic[answered[answered != NO_ROW]]
    for figures, times in ((bundles.traffic, past), (traffic, number - past)):
        rows = np.flatnonzero(published.bundles.reported & (times > 0))
        bundles = replace(bundles, **with_samples(bundles, rows, figures[rows], times[rows]))
    return replace(bundles, traffic=traffic)


def _answered(published: ClusterState, fresh: ClusterState, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """The fresh rows of these published bundles; NO_ROW where no broker answered with figures for one."""
    fit = fresh.bundles.reported & fresh.bundles.usable
    row_of = {fresh.bundle_name(row): row for row in np.flatnonzero(fit).tolist()}
    return np.array([row_of.get(published.bundle_name(row), NO_ROW) for row in rows.tolist()], dtype=np.intp)


def _now_ms(state: ClusterState) -> int:
    return max(state.captured_at_ms, int(state.brokers.report_updated_at_ms.max(initial=0)))
