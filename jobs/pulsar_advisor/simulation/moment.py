"""One moment of a simulated cluster: as it is, as its brokers have reported it, and how it goes on from there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Self

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import Booleans, ClusterState, Floats, Indices, Integers
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.resource_usage import weighted_maximum
from pulsar_advisor.simulation.cluster import SimulatedCluster
from pulsar_advisor.simulation.intervals import Intervals
from pulsar_advisor.simulation.leader import Unloads
from pulsar_advisor.simulation.measuring import Measuring
from pulsar_advisor.simulation.publishing import Publishing
from pulsar_advisor.simulation.reports import Reports, after_change, after_splits, first_reports, state_seen
from pulsar_advisor.splitting.division import Division

_SEEN_DIGITS: Final = 3
"""Digits of the usage (ratio) up to which a leader sees the same as before."""


@dataclass(frozen=True, eq=False)
class Moment:
    """Rows of bundles are those of `state`."""

    state: ClusterState
    """The snapshot's, with the children of all bundles that have been split since."""
    origin: Indices
    """Per bundle, its row in the snapshot: its own, or that of the bundle it comes from."""
    steady: SimulatedCluster
    """Under the snapshot's load."""
    factors: Floats
    """Per bundle of the snapshot, its load now relative to then; children vary together."""
    reports: Reports
    unloaded_at_ms: Integers
    """Per bundle, when its leader last unloaded it; 0 if never."""

    @classmethod
    def of(
        cls, state: ClusterState, base_cpu: Floats, settings: LoadBalancerSettings, intervals: Intervals, seed: int
    ) -> Self:
        """The moment of a snapshot; `base_cpu` is the CPU usage of each broker that no bundle takes."""
        steady = SimulatedCluster.of(state, base_cpu)
        return cls(
            state=state,
            origin=np.arange(len(state.bundles), dtype=np.int32),
            steady=steady,
            factors=np.ones(len(state.bundles)),
            reports=first_reports(state, steady, settings, intervals, seed),
            unloaded_at_ms=state.bundles.last_unloaded_at_ms,
        )

    @cached_property
    def cluster(self) -> SimulatedCluster:
        """As it is."""
        return self.steady.under(self.factors[self.origin])

    @cached_property
    def seen(self) -> ClusterState:
        """As the leader sees it."""
        return state_seen(self.reports, self.state, self.steady, self.unloaded_at_ms)

    @property
    def measured(self) -> ClusterState:
        """As each broker sees its own part."""
        own = replace(self.reports, published=self.reports.measured)
        return state_seen(own, self.state, self.steady, self.unloaded_at_ms)

    def under(self, factors: Floats) -> Self:
        """With other factors."""
        if np.array_equal(factors, self.factors):
            return self
        return replace(self, factors=factors, reports=after_change(self.reports))

    def divided(self, division: Division) -> Self:
        """After splits."""
        parent = division.parent
        brokers = np.unique(self.steady.owner[[split.bundle for split in division.splits]])
        return replace(
            self,
            state=division.state,
            origin=self.origin[parent],
            steady=self.steady.divided(division),
            reports=after_change(after_splits(self.reports, division), brokers[brokers >= 0]),
            unloaded_at_ms=np.where(division.is_child, 0, self.unloaded_at_ms[parent]),
        )

    def moved(self, unloads: Unloads) -> Self:
        """After bundles have moved that no grace period protects."""
        if not len(unloads.bundle):
            return self
        touched = np.union1d(self.steady.owner[unloads.bundle], unloads.destination)
        return replace(
            self, steady=self.steady.moved(*unloads), reports=after_change(self.reports, touched[touched >= 0])
        )

    def protected(self, bundles: Indices) -> Self:
        """With the grace period of these bundles beginning."""
        unloaded_at_ms = self.unloaded_at_ms.copy()
        unloaded_at_ms[bundles] = self.reports.now_ms
        return replace(self, unloaded_at_ms=unloaded_at_ms)

    def advanced(self, settings: LoadBalancerSettings, intervals: Intervals) -> Self:
        """At the leader's next cycle, if the cluster stays as it is until then."""
        until_ms = self.reports.now_ms + intervals.shedding
        return replace(self, reports=advanced(self.reports, self.state, self.cluster, settings, intervals, until_ms))

    def in_grace(self, intervals: Intervals) -> Booleans:
        """Per bundle, whether its grace period is running."""
        since_ms = self.reports.now_ms - intervals.grace
        return (self.unloaded_at_ms > 0) & (self.unloaded_at_ms >= since_ms)

    def circumstances(self, settings: LoadBalancerSettings, intervals: Intervals) -> bytes:
        """What the leader's next decisions depend on besides its memory: owners, grace periods, the usage it sees."""
        ages = np.where(self.in_grace(intervals), self.reports.now_ms - self.unloaded_at_ms, -1)
        usage = weighted_maximum(self.reports.published.usage, self.state.brokers.limit, settings).round(_SEEN_DIGITS)
        return self.steady.owner.tobytes() + ages.tobytes() + usage.tobytes()


def advanced(
    reports: Reports,
    state: ClusterState,
    cluster: SimulatedCluster,
    settings: LoadBalancerSettings,
    intervals: Intervals,
    until_ms: int,
) -> Reports:
    """The reports at `until_ms`, if the cluster stays as it is until then; `state` is that of the snapshot."""
    measuring = Measuring(reports, cluster, intervals)
    publishing = Publishing(reports, state, settings, intervals)
    comparisons = range(reports.now_ms + intervals.report_check, until_ms + 1, intervals.report_check)
    for now_ms in comparisons:
        if now_ms >= min(measuring.news_ms, publishing.due_ms) or now_ms == comparisons[-1]:
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
