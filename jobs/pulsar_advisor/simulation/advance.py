"""Reports as time passes: brokers measure, compare, and publish."""

from __future__ import annotations

from dataclasses import replace

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.simulation.cluster import SimulatedCluster
from pulsar_advisor.simulation.intervals import Intervals
from pulsar_advisor.simulation.measuring import Measuring
from pulsar_advisor.simulation.publishing import Publishing
from pulsar_advisor.simulation.reports import Reports


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
