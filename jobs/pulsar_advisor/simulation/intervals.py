"""How often brokers measure and report and how often the leader acts, by the cluster's settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.errors import DataNotFit
from pulsar_advisor.model.load.recent_unloads import MINUTE_MS, shedding_interval_ms

SETTING_KEYS: Final = (
    "loadBalancerSheddingIntervalMinutes",
    "loadBalancerSheddingGracePeriodMinutes",
    "loadBalancerReportUpdateMinIntervalMillis",
    "loadBalancerReportUpdateMaxIntervalMinutes",
    "loadBalancerReportUpdateThresholdPercentage",
    "loadBalancerHostUsageCheckIntervalMinutes",
    "loadBalancerResourceQuotaUpdateIntervalMinutes",
    "statsUpdateFrequencyInSecs",
    "loadBalanceSheddingDelayInSeconds",
    "loadBalancerAutoBundleSplitEnabled",
    "loadBalancerAutoUnloadSplitBundlesEnabled",
    "loadBalancerSplitIntervalMinutes",
)
"""Pulsar's keys that a simulation reads besides those of its strategies."""

MOST_COMPARISONS: Final = 100_000
"""How often a broker may consider publishing in one cycle of a simulation: every five seconds in almost six days."""

NEVER_MS: Final = 1 << 62
"""Later than any moment."""

_SHORTEST_MS: Final = 1_000
"""Pulsar refuses an interval of zero, or would do nothing else."""


@dataclass(frozen=True)
class Intervals:
    """All in milliseconds."""

    shedding: int
    """Between two cycles of the leader."""
    grace: int
    """How long an unloaded bundle is left alone."""
    report_check: int
    """Between two moments at which a broker considers publishing its load."""
    report_at_latest: int
    """A broker publishes once its last report is older than this, even if nothing has changed."""
    host_usage: int
    """Between two samples of a host; a sample's CPU and bandwidth are averages over the time since the one before."""
    statistics: int
    """Between two statistics passes of a broker, in which the figures of its bundles change."""
    bundle_data: int
    """Between two writes of the bundles' averages by the leader of the Modular manager."""
    split: int
    """Between two passes in which a broker of the Extensible manager looks for bundles to split."""

    @classmethod
    def of(cls, settings: LoadBalancerSettings) -> Self:
        """The intervals in force. Raises `DataNotFit` if one cycle would take too long to simulate."""
        intervals = cls(
            shedding=shedding_interval_ms(settings),
            grace=settings.load_balancer_shedding_grace_period_minutes * MINUTE_MS,
            report_check=max(settings.load_balancer_report_update_min_interval_millis, _SHORTEST_MS),
            report_at_latest=_minutes(settings.load_balancer_report_update_max_interval_minutes),
            host_usage=_minutes(settings.load_balancer_host_usage_check_interval_minutes),
            statistics=max(settings.stats_update_frequency_in_secs * 1_000, _SHORTEST_MS),
            bundle_data=_minutes(settings.load_balancer_resource_quota_update_interval_minutes),
            split=_minutes(settings.load_balancer_split_interval_minutes),
        )
        if (comparisons := intervals.shedding // intervals.report_check) > MOST_COMPARISONS:
            raise DataNotFit(
                f"a cycle of {settings.load_balancer_shedding_interval_minutes:,} min can't be simulated: a broker "
                f"compares its load {comparisons:,} times in it, more than {MOST_COMPARISONS:,}. Try a shorter "
                "loadBalancerSheddingIntervalMinutes with --set"
            )
        return intervals


def _minutes(number: int) -> int:
    return max(number, 1) * MINUTE_MS
