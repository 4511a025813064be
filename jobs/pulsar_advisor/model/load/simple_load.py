"""What the Simple manager decides on: load reports, and the quota it estimates for each bundle.

Pulsar smooths quotas over half an hour and more. Here each is taken as settled: equal to the bundle's own figures,
within the limits. The same applies to the two factors that convert messages to CPU and connections to memory, and to
the default quota, which follows the average bundle where there are more than 30. Quotas that an operator fixed are not
known. Sums and visits are in the order of Java's maps.
Source: `SimpleLoadManagerImpl`, `LoadReport`, `ResourceQuota`, `SimpleResourceUnit` (2.11.0 to 5.0.1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import (
    CPU,
    MEMORY,
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
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.java.maps import (
    Hashes,
    copied_map_buckets,
    copied_set_buckets,
    hash_map_order,
    hash_map_orders,
    string_hashes,
)
from pulsar_advisor.model.load.load_reports import ReportedBundles, reported_bundles
from pulsar_advisor.model.load.recent_unloads import recently_unloaded

QUOTAS: Final = ("rate_in_per_s", "rate_out_per_s", "in_bytes_per_s", "out_bytes_per_s", "memory_mib")
QUOTA_RATE_IN, QUOTA_RATE_OUT, QUOTA_IN, QUOTA_OUT, QUOTA_MEMORY = range(len(QUOTAS))
"""Column order of quota arrays."""

INITIAL_QUOTA: Final = (40.0, 120.0, 100_000.0, 300_000.0, 80.0)
LOWEST_QUOTA: Final = (5.0, 5.0, 10_000.0, 10_000.0, 2.0)
HIGHEST_QUOTA: Final = (np.inf, np.inf, 1_000_000.0, 1_000_000.0, 200.0)
BUNDLES_FOR_AVERAGE: Final = 30
STARTING_CPU_FACTOR: Final = 0.025
CPU_FACTOR_LIMITS: Final = (0.01, 0.1)
STARTING_MEMORY_FACTOR: Final = 25.0
MEMORY_FACTOR_LIMITS: Final = (10.0, 50.0)
RATE_FOR_FACTORS: Final = 1000
GROUPS_FOR_FACTORS: Final = 30
CONNECTIONS_PER_GROUP: Final = 500
_ON_JAVA_21_SINCE: Final = (5, 0, 1)
_KEYS_WITHOUT_SCHEME_SINCE: Final = (3, 0, 0)
"""From then on the keys of the leader's maps are the brokers' ids alone (3.0.7; apache/pulsar#21894)."""


@dataclass(frozen=True, eq=False)
class SimpleLoad:
    """The Simple manager's view at one moment; rows as in the cluster state."""

    broker_ids: tuple[str, ...]
    broker_hashes: Hashes
    """Of the brokers' keys in the leader's maps."""
    reporting: Indices
    """Rows of the registered brokers with a report, in the order of the leader's map."""
    usage: Floats
    """(n, 5), order of RESOURCES."""
    limit: Floats
    """(n, 5), order of RESOURCES."""
    bundles: Bundles
    reports: ReportedBundles
    """Each in the order of the map in which the leader keeps it."""
    recently_unloaded: Booleans
    """Per bundle row, whether it was unloaded within the grace period."""
    quota: Floats
    """(m, 5), order of QUOTAS: per bundle row, zero where no broker reports the bundle."""
    broker_quota: Floats
    """(n, 5), order of QUOTAS: sums over the bundles each broker reports."""
    default_quota: Floats
    """(5,), order of QUOTAS."""
    cpu_factor: float
    """Estimated CPU percent points per message per second."""
    memory_factor: float
    """Estimated MiB per group of connections."""
    allowed: Callable[[int], Booleans]
    """Per broker row, whether policies let a bundle (row) go there."""


@dataclass(frozen=True)
class _Totals:
    """Sums over the reports that the leader holds."""

    bundles: int
    groups: int
    traffic: Floats
    """(4,), order of FIGURES."""
    cpu: float
    memory: float


@np.errstate(all="ignore")
def simple_load(state: ClusterState, settings: LoadBalancerSettings, now_ms: int) -> SimpleLoad:
    """The view of a cluster state. Policies are not applied here: `allowed` requires a registered broker only."""
    brokers, bundles = state.brokers, state.bundles
    scheme = "http://" if settings.behaviour < _KEYS_WITHOUT_SCHEME_SINCE else ""
    hashes = string_hashes([f"{scheme}{broker}" for broker in brokers.ids])
    reporting = _in_leaders_map(state, hashes, _java(settings))
    reports = simple_reports(state, settings)
    totals = _totals(state, reporting, reports)
    cpu_factor, memory_factor = _factors(totals)
    quota = _quotas(bundles, reports.rows, memory_factor)
    # The ranking adds quotas up in sets of bundles.
    in_sets = _in_maps(reports, bundles, copied_set_buckets(np.diff(reports.offsets), _java(settings)))
    return SimpleLoad(
        broker_ids=brokers.ids,
        broker_hashes=hashes,
        reporting=reporting,
        usage=brokers.usage,
        limit=brokers.limit,
        bundles=bundles,
        reports=reports,
        recently_unloaded=recently_unloaded(state, settings, now_ms),
        quota=quota,
        broker_quota=_sums(quota, bundles.owner, in_sets),
        default_quota=_default_quota(totals),
        cpu_factor=cpu_factor,
        memory_factor=memory_factor,
        allowed=lambda _bundle: brokers.available,
    )


def simple_reports(state: ClusterState, settings: LoadBalancerSettings) -> ReportedBundles:
    """The reports in which the Simple manager finds its bundles: copies of the maps in which brokers count."""
    reports = reported_bundles(state)
    return _in_maps(reports, state.bundles, copied_map_buckets(np.diff(reports.offsets), _java(settings)))


def _in_maps(reports: ReportedBundles, bundles: Bundles, buckets: Integers) -> ReportedBundles:
    """The reports with each broker's bundles in the order of a hash map with these buckets."""
    owners = bundles.owner[reports.rows].astype(np.int64)
    return reports.in_order(hash_map_orders(reports.hashes, owners, buckets))


def _java(settings: LoadBalancerSettings) -> int:
    """The version of Java that brokers are assumed to run on: the lowest that their release supports."""
    return 21 if settings.behaviour >= _ON_JAVA_21_SINCE else 17


def _in_leaders_map(state: ClusterState, hashes: Hashes, java: int) -> Indices:
    """Rows of the registered brokers with a report, as the leader visits them: they come out of a set of names."""
    brokers = state.brokers
    rows = np.flatnonzero(brokers.reporting).astype(np.int32)
    of_names = string_hashes([brokers.ids[row] for row in rows.tolist()])
    size = np.array([len(rows)], dtype=np.int64)
    rows = rows[hash_map_orders(of_names, np.zeros(len(rows), dtype=np.int64), copied_set_buckets(size, java))]
    return rows[hash_map_order(hashes[rows])]


def _totals(state: ClusterState, reporting: Indices, reports: ReportedBundles) -> _Totals:
    brokers, bundles = state.brokers, state.bundles
    rows = np.concatenate([*(reports.of(broker) for broker in reporting.tolist()), np.empty(0, dtype=np.int32)])
    of_brokers = _sums(bundles.traffic, bundles.owner, reports)[reporting]
    # Pulsar adds rates up by broker first, and throughputs in one go.
    rates = (_sum(of_brokers[:, column]) for column in (RATE_IN, RATE_OUT))
    throughputs = (_sum(bundles.traffic[rows, column]) for column in (THROUGHPUT_IN, THROUGHPUT_OUT))
    return _Totals(
        bundles=len(rows),
        groups=int(_groups(bundles, rows).sum()),
        traffic=np.array([*rates, *throughputs]),
        cpu=_sum(brokers.usage[reporting, CPU]),
        memory=_sum(brokers.usage[reporting, MEMORY]),
    )


def _sum(values: Floats) -> float:
    """One after the other, as Java adds."""
    return float(np.add.accumulate(np.append(0.0, values))[-1])


def _sums(figures: Floats, owner: Indices, reports: ReportedBundles) -> Floats:
    """Per broker, the sums of the figures of its bundles; `figures` has a row per bundle."""
    brokers = len(reports.offsets) - 1
    of = owner[reports.rows]
    columns = [
        np.bincount(of, weights=figures[reports.rows, column], minlength=brokers) for column in range(figures.shape[1])
    ]
    return np.stack(columns, axis=1)


def _groups(bundles: Bundles, rows: Indices) -> Integers:
    connections = bundles.topics[rows] + bundles.producers[rows] + bundles.consumers[rows]
    return 1 + connections // CONNECTIONS_PER_GROUP


def _factors(totals: _Totals) -> tuple[float, float]:
    """CPU per message and memory per group of connections: measured on a cluster with enough of both."""
    rate = totals.traffic[RATE_IN] + totals.traffic[RATE_OUT]
    if not (rate > RATE_FOR_FACTORS and totals.groups > GROUPS_FOR_FACTORS):
        return STARTING_CPU_FACTOR, STARTING_MEMORY_FACTOR
    cpu, memory = totals.cpu / rate, totals.memory / totals.groups
    return float(np.clip(cpu, *CPU_FACTOR_LIMITS)), float(np.clip(memory, *MEMORY_FACTOR_LIMITS))


def _default_quota(totals: _Totals) -> Floats:
    """The quota of the average bundle, if the leader has seen enough of them and it differs from the initial one."""
    initial = np.array(INITIAL_QUOTA)
    if totals.bundles <= BUNDLES_FOR_AVERAGE:
        return initial
    average = np.clip(np.append(totals.traffic, totals.memory) / totals.bundles, LOWEST_QUOTA, HIGHEST_QUOTA)
    # Pulsar compares the bandwidth in with the initial bandwidth out.
    compared_with = initial[[QUOTA_RATE_IN, QUOTA_RATE_OUT, QUOTA_OUT, QUOTA_OUT, QUOTA_MEMORY]]
    unchanged = (np.abs(average - compared_with) < LOWEST_QUOTA).all()
    return initial if unchanged else average


def _quotas(bundles: Bundles, reported: Indices, memory_factor: float) -> Floats:
    quota = np.zeros((len(bundles), len(QUOTAS)))
    memory = _groups(bundles, reported) * memory_factor
    quota[reported] = np.clip(np.column_stack((bundles.traffic[reported], memory)), LOWEST_QUOTA, HIGHEST_QUOTA)
    return quota
