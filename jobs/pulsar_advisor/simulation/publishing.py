"""What brokers publish of what they have measured, and the averages that the leader makes of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, Booleans, ClusterState, Floats, PublishedLoad
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.averages import with_samples
from pulsar_advisor.model.load.broker_load_data import updated
from pulsar_advisor.model.load.next_publication import change_percent
from pulsar_advisor.model.load.resource_usage import maximum, overload_usage
from pulsar_advisor.simulation.cluster import BUNDLES
from pulsar_advisor.simulation.intervals import NEVER_MS, Intervals
from pulsar_advisor.simulation.reports import Figures, Reports


class Publishing:
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
        self.due_ms = self._due_ms()
        """Until then there is nothing to do without news."""

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
        self.due_ms = self._due_ms()

    def _due_ms(self) -> int:
        reports, intervals = self.reports, self._intervals
        if reports.smoothed is not None:
            return 0
        too_old_ms = reports.published_at_ms + intervals.report_at_latest + 1
        due_ms = int(too_old_ms.min(where=self._reporting, initial=NEVER_MS))
        return min(due_ms, reports.averages_written_at_ms + intervals.bundle_data)

    def _change_percent(self, before: Figures, now: Figures) -> Floats:
        """The greatest change of a broker's figures, as its manager compares them."""
        extensible = self.reports.smoothed is not None

        def usage(figures: Figures) -> Floats:
            if extensible:
                return maximum(figures.usage, self._limit)
            return overload_usage(figures.usage, self._limit, self._settings)

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
        changed = reporter != published.reporter
        # Few of the bundles, as a rule: most times a single broker publishes.
        rows, bundle_traffic = np.flatnonzero(included), published.bundle_traffic.copy()
        bundle_traffic[rows] = measured.bundle_traffic[rows]
        changed[rows] |= (bundle_traffic[rows] != published.bundle_traffic[rows]).any(axis=1)
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
