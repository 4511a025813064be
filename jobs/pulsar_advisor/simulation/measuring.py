"""What brokers measure: each samples its host and makes its statistics passes at its own moments."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, Booleans, Integers
from pulsar_advisor.simulation.cluster import BUNDLES, SimulatedCluster
from pulsar_advisor.simulation.intervals import NEVER_MS, Intervals
from pulsar_advisor.simulation.reports import Reports


class Measuring:
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
        self.news_ms = self._news_ms()
        """Samples and passes before then change no figure: they may be taken later, all at once."""

    def until(self, now_ms: int) -> bool:
        """Take the samples and passes that are due; whether any figure may have changed."""
        sampled = self._sample(now_ms)
        passed = self._pass(now_ms)
        self.news_ms = self._news_ms()
        return sampled or passed

    def rest(self, now_ms: int) -> None:
        """Add the usage since the last samples."""
        self.used_since = self.used_since + self._usage * (now_ms - self._since_ms)[:, None]
        self._since_ms = np.full_like(self._since_ms, now_ms)

    def _news_ms(self) -> int:
        intervals = self._intervals
        samples, passes = self.sampled_at_ms + intervals.host_usage, self.passed_at_ms + intervals.statistics
        sample_ms = samples.min(where=self._sample_is_news(), initial=NEVER_MS)
        return int(passes.min(where=self._pass_is_news(), initial=sample_ms))

    def _sample_is_news(self) -> Booleans:
        # Two samples after a change nothing of the time before it is left.
        return self.sampled_at_ms - self._intervals.host_usage < self._changed_at_ms

    def _pass_is_news(self) -> Booleans:
        return self.passed_at_ms <= self._changed_at_ms

    def _sample(self, now_ms: int) -> bool:
        due = now_ms - self.sampled_at_ms >= self._intervals.host_usage
        if not due.any():
            return False
        at = _last_of(self.sampled_at_ms, self._intervals.host_usage, now_ms)
        news = due & self._sample_is_news()
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
        due = now_ms - self.passed_at_ms >= self._intervals.statistics
        if not due.any():
            return False
        at = _last_of(self.passed_at_ms, self._intervals.statistics, now_ms)
        news = due & self._pass_is_news()
        self.passed_at_ms = np.where(due, at, self.passed_at_ms)
        if not news.any():
            return False
        figures, owner = self.figures, self._cluster.owner
        known = np.append(news, False)  # NO_ROW is the last one
        served = known[owner] & (self._cluster.counts[:, BUNDLES] > 0)
        reporter = np.where(known[figures.reporter], NO_ROW, figures.reporter)
        rows, bundle_traffic = np.flatnonzero(served), figures.bundle_traffic.copy()
        bundle_traffic[rows] = self._cluster.traffic[rows]
        self.figures = replace(
            figures,
            traffic=np.where(news[:, None], self._traffic, figures.traffic),
            counts=np.where(news[:, None], self._counts, figures.counts),
            reporter=np.where(served, owner, reporter).astype(np.int32),
            bundle_traffic=bundle_traffic,
        )
        return True


def _last_of(last_ms: Integers, interval_ms: int, now_ms: int) -> Integers:
    """When each broker last did what it does once an interval, if that has passed since `last_ms`."""
    return last_ms + (now_ms - last_ms) // interval_ms * interval_ms
