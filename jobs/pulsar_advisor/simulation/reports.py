"""What brokers measure, when they publish it, and what the leader has received: the published view as it lags.

Each broker samples its host and passes through its statistics at its own moments. Every few seconds it compares what it
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
from pulsar_advisor.model.load.averages import DEFAULT_FIGURES, with_samples
from pulsar_advisor.model.load.broker_load_data import BrokerLoadData, updated
from pulsar_advisor.model.load.extensible_load import extensible_load
from pulsar_advisor.model.load.next_publication import change_percent
from pulsar_advisor.model.load.resource_usage import maximum, weighted_maximum
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
    """When the cluster last changed: a broker that has passed through its statistics since then knows everything."""
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
        smoothed = BrokerLoadData(
            maximum(brokers.usage, brokers.limit), load.weighted_max_ema, load.msg_throughput_ema, at
        )
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


def advanced(
    reports: Reports,
    state: ClusterState,
    cluster: SimulatedCluster,
    settings: LoadBalancerSettings,
    intervals: Intervals,
    until_ms: int,
) -> Reports:
    """The reports at `until_ms`, if the cluster stays as it is until then; `state` is that of the snapshot."""
    measuring = _Measuring(reports, cluster, intervals)
    publishing = _Publishing(reports, state, settings, intervals)
    for now_ms in range(reports.now_ms + intervals.report_check, until_ms + 1, intervals.report_check):
        news = measuring.until(now_ms)
        publishing.at(now_ms, measuring.figures, news)
    measuring.rest(until_ms)
    return replace(
        publishing.folded(),
        now_ms=until_ms,
        measured=measuring.figures,
        sampled_at_ms=measuring.sampled_at_ms,
        used_since=measuring.used_since,
        passed_at_ms=measuring.passed_at_ms,
    )


class _Measuring:
    """What brokers measure of a cluster that stays as it is, one comparison interval after the other."""

    def __init__(self, reports: Reports, cluster: SimulatedCluster, intervals: Intervals) -> None:
        self.figures = reports.measured
        self.sampled_at_ms = reports.sampled_at_ms
        self.used_since = reports.used_since
        self.passed_at_ms = reports.passed_at_ms
        self._changed_at_ms = reports.changed_at_ms
        self._since_ms = np.full(len(reports.sampled_at_ms), reports.now_ms, dtype=np.int64)
        """Per broker, from when on its usage is not yet in `used_since`."""
        self._cluster, self._intervals = cluster, intervals
        self._usage, self._traffic = cluster.broker_usage, cluster.broker_traffic
        self._counts = cluster.broker_counts

    def until(self, now_ms: int) -> bool:
        """Take the samples and passes that are due; whether any figure may have changed."""
        sampled = self._sample(now_ms)
        passed = self._pass(now_ms)
        return sampled or passed

    def rest(self, now_ms: int) -> None:
        """Add the usage since the last samples."""
        self.used_since = self.used_since + self._usage * (now_ms - self._since_ms)[:, None]
        self._since_ms = np.full_like(self._since_ms, now_ms)

    def _sample(self, now_ms: int) -> bool:
        at, due = _last_of(self.sampled_at_ms, self._intervals.host_usage, now_ms)
        # Two samples after a change nothing of the time before it is left.
        news = due & (self.sampled_at_ms - self._intervals.host_usage < self._changed_at_ms)
        if news.any():
            used = self.used_since[news] + self._usage[news] * (at - self._since_ms)[news][:, None]
            usage = self.figures.usage.copy()
            usage[news] = used / (at - self.sampled_at_ms)[news][:, None]
            self.figures = replace(self.figures, usage=usage)
        self.used_since = np.where(due[:, None], 0.0, self.used_since)
        self.sampled_at_ms = np.where(due, at, self.sampled_at_ms)
        self._since_ms = np.where(due, at, self._since_ms)
        return bool(news.any())

    def _pass(self, now_ms: int) -> bool:
        at, due = _last_of(self.passed_at_ms, self._intervals.statistics, now_ms)
        news = due & (self.passed_at_ms <= self._changed_at_ms)
        self.passed_at_ms = np.where(due, at, self.passed_at_ms)
        if not news.any():
            return False
        figures, owner = self.figures, self._cluster.owner
        known = np.append(news, False)  # NO_ROW is the last one
        served = known[owner] & (self._cluster.counts[:, BUNDLES] > 0)
        reporter = np.where(known[figures.reporter], NO_ROW, figures.reporter)
        self.figures = replace(
            figures,
            traffic=np.where(news[:, None], self._traffic, figures.traffic),
            counts=np.where(news[:, None], self._counts, figures.counts),
            reporter=np.where(served, owner, reporter).astype(np.int32),
            bundle_traffic=np.where(served[:, None], self._cluster.traffic, figures.bundle_traffic),
        )
        return True


def _last_of(last_ms: Integers, interval_ms: int, now_ms: int) -> tuple[Integers, Booleans]:
    """When each broker last did what it does once an interval, and whether that is news."""
    times = (now_ms - last_ms) // interval_ms
    return last_ms + times * interval_ms, times > 0


class _Publishing:
    """What brokers publish of what they have measured, and what the leader makes of it."""

    def __init__(
        self, reports: Reports, state: ClusterState, settings: LoadBalancerSettings, intervals: Intervals
    ) -> None:
        self.reports = reports
        self._samples = 0
        """Samples that the leader has taken of all published figures (Modular)."""
        self._folded = np.zeros(len(reports.published.reporter), dtype=np.int64)
        """Per bundle, how many of them are in its averages, or were taken while no report included it."""
        self._manager, self._limit = state.load_manager, state.brokers.limit
        self._settings, self._intervals = settings, intervals
        self._reporting = state.brokers.available & (reports.published_at_ms > 0)

    def at(self, now_ms: int, measured: Figures, news: bool) -> None:
        """Compare and publish; without `news`, brokers publish only what is too old."""
        reports = self.reports
        if reports.smoothed is not None:
            smoothed = updated(reports.smoothed, measured.usage, self._limit, measured.traffic, self._settings, now_ms)
            reports = replace(reports, smoothed=smoothed)
        publishing = now_ms - reports.published_at_ms > self._intervals.report_at_latest
        publishing |= reports.restarted
        if news:
            threshold = self._settings.load_balancer_report_update_threshold_percentage
            publishing |= self._change_percent(reports.published, measured) > threshold
        publishing &= self._reporting
        self.reports = reports
        if publishing.any():
            self.reports = self._published(measured, publishing, now_ms)
        if self._manager == "modular":
            self._count(int(publishing.sum()), now_ms)

    def _change_percent(self, before: Figures, now: Figures) -> Floats:
        """The greatest change of a broker's figures, as its manager compares them."""
        extensible = self.reports.smoothed is not None

        def usage(figures: Figures) -> Floats:
            if extensible:
                return maximum(figures.usage, self._limit)
            return weighted_maximum(figures.usage, self._limit, self._settings)

        return change_percent(
            (before.traffic, now.traffic),
            (before.counts[:, BUNDLES], now.counts[:, BUNDLES]),
            (usage(before), usage(now)),
        )

    def _published(self, measured: Figures, publishing: Booleans, now_ms: int) -> Reports:
        published, each = self.reports.published, publishing[:, None]
        known = np.append(publishing, False)  # NO_ROW is the last one
        included = known[measured.reporter]
        withdrawn = known[published.reporter] & (measured.reporter != published.reporter)
        reporter = np.where(included, measured.reporter, np.where(withdrawn, NO_ROW, published.reporter))
        bundle_traffic = np.where(included[:, None], measured.bundle_traffic, published.bundle_traffic)
        changed = (reporter != published.reporter) | (bundle_traffic != published.bundle_traffic).any(axis=1)
        self._fold(np.flatnonzero(changed))
        figures = Figures(
            usage=np.where(each, measured.usage, published.usage),
            traffic=np.where(each, measured.traffic, published.traffic),
            counts=np.where(each, measured.counts, published.counts),
            reporter=reporter.astype(np.int32),
            bundle_traffic=bundle_traffic,
        )
        reports = self.reports
        load = reports.load
        if load is not None and reports.smoothed is not None:
            load = PublishedLoad(
                np.where(publishing, reports.smoothed.weighted_max_ema, load.weighted_max_ema),
                np.where(publishing, reports.smoothed.msg_throughput_ema, load.msg_throughput_ema),
                np.where(included, NO_ROW, load.top_position),
            )
        at = np.where(publishing, now_ms, reports.published_at_ms)
        return replace(
            reports, published=figures, published_at_ms=at, load=load, restarted=reports.restarted & ~publishing
        )

    def _count(self, publications: int, now_ms: int) -> None:
        """One sample for each publication and for each write of the averages."""
        self._samples += publications
        if now_ms - self.reports.averages_written_at_ms >= self._intervals.bundle_data:
            self._samples += 1
            self.reports = replace(self.reports, averages_written_at_ms=now_ms)

    def folded(self) -> Reports:
        """The reports with every sample in the averages."""
        self._fold(np.arange(len(self._folded)))
        return self.reports

    def _fold(self, bundles: npt.NDArray[np.intp]) -> None:
        """Add the samples that were taken of these bundles' present figures, all at once, to their averages."""
        reports, missing = self.reports, self._samples - self._folded[bundles]
        self._folded[bundles] = self._samples
        sampled = (missing > 0) & (reports.published.reporter[bundles] != NO_ROW)
        rows, number = bundles[sampled], missing[sampled]
        if not len(rows):
            return
        sample = reports.published.bundle_traffic[rows]
        self.reports = replace(reports, **with_samples(reports, rows, sample, number))
