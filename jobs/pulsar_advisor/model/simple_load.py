"""What the Simple manager decides on: load reports, and the quota it estimates for each bundle.

Pulsar smooths quotas over half an hour and more. Here each is taken as settled: equal to the bundle's own figures,
within the limits. The same applies to the two factors that convert messages to CPU and connections to memory.
Source: `SimpleLoadManagerImpl`, `LoadReport`, `ResourceQuota`, `SimpleResourceUnit` (2.11.0 to 5.0.1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from pulsar_advisor.model.cluster_state import (
    CPU,
    MEMORY,
    NO_ROW,
    RATE_IN,
    RATE_OUT,
    THROUGHPUT_IN,
    THROUGHPUT_OUT,
    Booleans,
    Bundles,
    ClusterState,
    Floats,
    Indices,
    Integers,
)
from pulsar_advisor.model.settings import LoadBalancerSettings

QUOTAS: Final = ("rate_per_s", "bandwidth_in_bytes_per_s", "bandwidth_out_bytes_per_s", "memory_mib")
QUOTA_RATE, QUOTA_IN, QUOTA_OUT, QUOTA_MEMORY = range(len(QUOTAS))
"""Column order of quota arrays."""

DEFAULT_QUOTA: Final = (160.0, 100_000.0, 300_000.0, 80.0)
LOWEST_RATE_QUOTA: Final = 5.0
BANDWIDTH_QUOTA_LIMITS: Final = (10_000.0, 1_000_000.0)
MEMORY_QUOTA_LIMITS: Final = (2.0, 200.0)
STARTING_CPU_FACTOR: Final = 0.025
CPU_FACTOR_LIMITS: Final = (0.01, 0.1)
STARTING_MEMORY_FACTOR: Final = 25.0
MEMORY_FACTOR_LIMITS: Final = (10.0, 50.0)
RATE_FOR_FACTORS: Final = 1000
GROUPS_FOR_FACTORS: Final = 30
CONNECTIONS_PER_GROUP: Final = 500


@dataclass(frozen=True, eq=False)
class SimpleLoad:
    """The Simple manager's view at one moment; rows as in the cluster state."""

    broker_ids: tuple[str, ...]
    reporting: Indices
    """Rows of the registered brokers with a report, by id."""
    usage: Floats
    """(n, 5), order of RESOURCES."""
    limit: Floats
    """(n, 5), order of RESOURCES."""
    bundles: Bundles
    offsets: Integers
    """Bundles that broker row b reports are `reported[offsets[b]:offsets[b + 1]]`."""
    reported: Indices
    recently_unloaded: Booleans
    """Per bundle row, whether it was unloaded within the grace period."""
    quota: Floats
    """(m, 4), order of QUOTAS: per bundle row, zero where no broker reports the bundle."""
    broker_quota: Floats
    """(n, 4), order of QUOTAS: sums over the bundles each broker reports."""
    cpu_factor: float
    """Estimated CPU percent points per message per second."""
    allowed: Callable[[int], Booleans]
    """Per broker row, whether policies let a bundle (row) go there."""

    def of_broker(self, broker: int) -> Indices:
        """Rows of the bundles a broker reports."""
        return self.reported[self.offsets[broker] : self.offsets[broker + 1]]


@np.errstate(all="ignore")
def simple_load(state: ClusterState, settings: LoadBalancerSettings, now_ms: int) -> SimpleLoad:
    """The view of a cluster state. Policies are not applied here: `allowed` requires a registered broker only."""
    brokers, bundles = state.brokers, state.bundles
    grace_ms = settings.load_balancer_shedding_grace_period_minutes * 60_000
    reported = np.flatnonzero(bundles.reported & (bundles.owner != NO_ROW)).astype(np.int32)
    reported = reported[np.argsort(bundles.owner[reported], kind="stable")]
    with_report = brokers.available & (brokers.report_updated_at_ms > 0)
    cpu_factor, memory_factor = _factors(bundles, reported, brokers.usage[with_report])
    return SimpleLoad(
        broker_ids=brokers.ids,
        reporting=np.flatnonzero(with_report).astype(np.int32),
        usage=brokers.usage,
        limit=brokers.limit,
        bundles=bundles,
        offsets=np.searchsorted(bundles.owner[reported], np.arange(len(brokers) + 1)).astype(np.int64),
        reported=reported,
        recently_unloaded=(bundles.last_unloaded_at_ms > 0) & (bundles.last_unloaded_at_ms >= now_ms - grace_ms),
        quota=(quota := _quotas(bundles, reported, memory_factor)),
        broker_quota=np.stack(
            [
                np.bincount(bundles.owner[reported], weights=quota[reported, column], minlength=len(brokers))
                for column in range(len(QUOTAS))
            ],
            axis=1,
        ),
        cpu_factor=cpu_factor,
        allowed=lambda _bundle: brokers.available,
    )


def _groups(bundles: Bundles, rows: Indices) -> Integers:
    connections = bundles.topics[rows] + bundles.producers[rows] + bundles.consumers[rows]
    return 1 + connections // CONNECTIONS_PER_GROUP


def _factors(bundles: Bundles, reported: Indices, usage: Floats) -> tuple[float, float]:
    """CPU per message and memory per group of connections: measured on a cluster with enough of both."""
    rate = float(bundles.traffic[reported][:, (RATE_IN, RATE_OUT)].sum())
    groups = int(_groups(bundles, reported).sum())
    if not (rate > RATE_FOR_FACTORS and groups > GROUPS_FOR_FACTORS):
        return STARTING_CPU_FACTOR, STARTING_MEMORY_FACTOR
    cpu, memory = (float(usage[:, resource].sum()) for resource in (CPU, MEMORY))
    return float(np.clip(cpu / rate, *CPU_FACTOR_LIMITS)), float(np.clip(memory / groups, *MEMORY_FACTOR_LIMITS))


def _quotas(bundles: Bundles, reported: Indices, memory_factor: float) -> Floats:
    quota = np.zeros((len(bundles), len(QUOTAS)))
    traffic = bundles.traffic[reported]
    rates = np.maximum(LOWEST_RATE_QUOTA, traffic[:, (RATE_IN, RATE_OUT)])
    quota[reported, QUOTA_RATE] = rates.sum(axis=1)
    quota[reported, QUOTA_IN : QUOTA_OUT + 1] = np.clip(
        traffic[:, (THROUGHPUT_IN, THROUGHPUT_OUT)], *BANDWIDTH_QUOTA_LIMITS
    )
    quota[reported, QUOTA_MEMORY] = np.clip(_groups(bundles, reported) * memory_factor, *MEMORY_QUOTA_LIMITS)
    return quota
