"""What brokers measure, when they publish it, and what the leader has received: the published view as it lags.

Each broker samples its host and makes its statistics passes at its own moments. Every few seconds it compares what it
has measured with what it last published, and publishes if a figure changed by more than
`loadBalancerReportUpdateThresholdPercentage` or the last report is too old. Under Modular every publication by any
broker adds one sample to the averages of every reported bundle. Under Extensible a broker smooths its load at every
comparison; a broker that lost or gained a bundle forgets what it has smoothed and publishes anew.

Simplified: the moments at which a broker measures are drawn by the seed, since no snapshot shows them; publications
within one comparison interval count as simultaneous; of two reports that include a bundle, one adds samples to its
averages; the traffic of a moved bundle flows again at once.
Source: `LocalBrokerData`, `ModularLoadManagerImpl.needBrokerDataUpdate` and `updateBundleData`,
`BrokerLoadDataReporter`, `LinuxBrokerHostUsageImpl` (2.11.0 to 5.0.1).
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pulsar_advisor.model.cluster.cluster_state import (
    NO_ROW,
    Booleans,
    ClusterState,
    Floats,
    Indices,
    Integers,
    PublishedLoad,
)
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.averages import DEFAULT_FIGURES
from pulsar_advisor.model.load.broker_load_data import BrokerLoadData
from pulsar_advisor.model.load.extensible_load import extensible_load
from pulsar_advisor.simulation.cluster import BUNDLES, CONSUMERS, PRODUCERS, TOPICS, SimulatedCluster
from pulsar_advisor.simulation.intervals import Intervals
from pulsar_advisor.splitting.division import Division


@dataclass(frozen=True, eq=False)
class Figures:
    """A set of figures about n brokers and m bundles, as measured or as published."""

    usage: Floats
    """(n, 5), order of RESOURCES."""
    traffic: Floats
    """(n, 4), order of FIGURES."""
    counts: Floats
    """(n, 4), order of COUNTS."""
    reporter: Indices
    """Per bundle, the broker whose figures include it; NO_ROW if none do."""
    bundle_traffic: Floats
    """(m, 4), order of FIGURES."""


@dataclass(frozen=True, eq=False)
class Reports:
    """The state of all reports at one moment, epoch milliseconds."""

    now_ms: int
    measured: Figures
    published: Figures
    published_at_ms: Integers
    """Per broker; 0 for one that reports nothing."""
    sampled_at_ms: Integers
    """Per broker: its last sample of its host."""
    used_since: Floats
    """(n, 5): usage × milliseconds since that sample."""
    passed_at_ms: Integers
    """Per broker: its last statistics pass."""
    changed_at_ms: int
    """When the cluster last changed: a broker that has made a statistics pass since then knows everything."""
    short_term: Floats
    """(m, 4), order of FIGURES, as are the long-term averages."""
    short_term_samples: Integers
    long_term: Floats
    long_term_samples: Integers
    averages_written_at_ms: int
    smoothed: BrokerLoadData | None
    """What each Extensible broker has smoothed; None under the other managers, as the next two."""
    load: PublishedLoad | None
    restarted: Booleans
    """Brokers that have lost or gained a bundle and publish anew (Extensible)."""


def first_reports(
    state: ClusterState, cluster: SimulatedCluster, settings: LoadBalancerSettings, intervals: Intervals, seed: int
) -> Reports:
    """The reports at the moment of a snapshot: what it holds is both what brokers measured and what they published."""
    brokers, bundles, now_ms = state.brokers, state.bundles, state.captured_at_ms
    figures = Figures(
        usage=brokers.usage,
        traffic=brokers.traffic,
        counts=cluster.broker_counts,
        reporter=np.where(bundles.reported, bundles.owner, NO_ROW).astype(np.int32),
        bundle_traffic=bundles.traffic,
    )
    smoothed = load = None
    if state.load_manager == "extensible":
        view = extensible_load(state, settings, now_ms)
        top = state.published_load.top_position if state.published_load else np.full(len(bundles), NO_ROW)
        load = PublishedLoad(view.load, view.throughput_ema_bytes_per_s, top)
        at = np.full(len(brokers), now_ms, dtype=np.int64)
        smoothed = BrokerLoadData(load.weighted_max_ema, load.msg_throughput_ema, at)
    since_sample = _phases(brokers.ids, intervals.host_usage, f"{seed}/host usage")
    return Reports(
        now_ms=now_ms,
        measured=figures,
        published=figures,
        published_at_ms=brokers.report_updated_at_ms,
        sampled_at_ms=now_ms - since_sample,
        used_since=brokers.usage * since_sample[:, None],
        passed_at_ms=now_ms - _phases(brokers.ids, intervals.statistics, f"{seed}/statistics"),
        changed_at_ms=0,
        short_term=bundles.short_term,
        short_term_samples=bundles.short_term_samples,
        long_term=bundles.long_term,
        long_term_samples=bundles.long_term_samples,
        averages_written_at_ms=now_ms,
        smoothed=smoothed,
        load=load,
        restarted=np.zeros(len(brokers), dtype=np.bool_),
    )


def _phases(brokers: tuple[str, ...], interval_ms: int, seed: str) -> Integers:
    """How long ago each broker did what it does once an interval."""
    return np.array([random.Random(f"{seed}/{broker}").randrange(interval_ms) for broker in brokers], dtype=np.int64)


def after_change(reports: Reports, moved: npt.ArrayLike = ()) -> Reports:
    """The reports once the load has changed, and the brokers `moved` (rows) have lost or gained a bundle."""
    reports = replace(reports, changed_at_ms=reports.now_ms)
    if reports.smoothed is None:
        return reports
    restarted = reports.restarted.copy()
    restarted[np.asarray(moved, dtype=np.intp)] = True
    at = np.where(restarted, 0, reports.smoothed.updated_at_ms)
    return replace(reports, restarted=restarted, smoothed=replace(reports.smoothed, updated_at_ms=at))


def after_splits(reports: Reports, division: Division) -> Reports:
    """The reports once bundles have been split: none has figures of the children yet, and there are no averages."""
    parent, is_child = division.parent, division.is_child

    def children_unknown(figures: Figures) -> Figures:
        reporter = np.where(is_child, NO_ROW, figures.reporter[parent]).astype(np.int32)
        return replace(figures, reporter=reporter, bundle_traffic=figures.bundle_traffic[parent])

    load = reports.load
    if load is not None:
        load = replace(load, top_position=np.where(is_child, NO_ROW, load.top_position[parent]))
    return replace(
        reports,
        measured=children_unknown(reports.measured),
        published=children_unknown(reports.published),
        short_term=np.where(is_child[:, None], DEFAULT_FIGURES, reports.short_term[parent]),
        short_term_samples=np.where(is_child, 0, reports.short_term_samples[parent]),
        long_term=np.where(is_child[:, None], DEFAULT_FIGURES, reports.long_term[parent]),
        long_term_samples=np.where(is_child, 0, reports.long_term_samples[parent]),
        load=load,
    )


def state_seen(
    reports: Reports, state: ClusterState, cluster: SimulatedCluster, last_unloaded_at_ms: Integers
) -> ClusterState:
    """The cluster as its leader sees it now: `state` with what has been published since.

    Who owns a bundle is known at once under Extensible (by the ownership channel), from reports under the others.
    """
    published, bundles = reports.published, state.bundles
    reported = published.reporter != NO_ROW
    owner = cluster.owner
    if state.load_manager == "extensible":
        reported &= published.reporter == owner
    else:
        owner = np.where(reported, published.reporter, owner)
    counts = published.counts.astype(np.int64)
    return replace(
        state,
        captured_at_ms=reports.now_ms,
        brokers=replace(
            state.brokers,
            usage=published.usage,
            traffic=published.traffic,
            topics=counts[:, TOPICS],
            bundles=counts[:, BUNDLES],
            producers=counts[:, PRODUCERS],
            consumers=counts[:, CONSUMERS],
            report_updated_at_ms=reports.published_at_ms,
        ),
        bundles=replace(
            bundles,
            owner=owner,
            reported=reported,
            listed=np.where(bundles.reported, reported, bundles.listed),
            traffic=published.bundle_traffic,
            short_term=reports.short_term,
            short_term_samples=reports.short_term_samples,
            long_term=reports.long_term,
            long_term_samples=reports.long_term_samples,
            last_unloaded_at_ms=last_unloaded_at_ms,
        ),
        published_load=reports.load,
    )
