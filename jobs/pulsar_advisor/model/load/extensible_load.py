"""What the Extensible manager's leader decides on: its load store and its store of top bundles, as columns.

The maps iterated here are concurrent in every release: the statistics of bundles (`PulsarStats.bundleStats`) and the
stores (`TableViewImpl.data`). At 12, 24, 48, ... entries they have doubled and a `HashMap` has not.

Source: `ExtensibleLoadManagerImpl`, `TopBundlesLoadData`, `LoadDataStore`, `PulsarStats` (3.0.7 to 5.0.1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import (
    NO_ROW,
    Booleans,
    ClusterState,
    Floats,
    Indices,
    Integers,
    throughput_bytes_per_s,
)
from pulsar_advisor.model.cluster.isolation_policies import isolation_of, under_policies
from pulsar_advisor.model.cluster.namespaces import is_system_service_namespace, require_namespace
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.java.maps import bundle_name_hashes, concurrent_map_order, name_hashes
from pulsar_advisor.model.load.broker_load_data import fresh_records, updated
from pulsar_advisor.model.load.next_publication import at_next_cycle
from pulsar_advisor.model.load.recent_unloads import recently_unloaded
from pulsar_advisor.model.load.top_bundles import stats_of, top_bundles


@dataclass(frozen=True)
class TopBundle:
    """One entry of a broker's top bundles."""

    bundle: int
    """Row of the cluster state."""
    throughput_bytes_per_s: float
    owned: bool
    """Whether the ownership channel says the reporting broker owns it."""
    excluded_namespace: bool
    """Whether its namespace is in `loadBalancerSheddingExcludedNamespaces`."""
    recently_unloaded: bool


@dataclass(frozen=True, eq=False)
class ExtensibleLoad:
    """The Extensible manager's view at one moment; rows as in the cluster state."""

    now_ms: int
    broker_ids: tuple[str, ...]
    stored: Indices
    """Rows of the brokers that have load data, in the store's iteration order."""
    available: Booleans
    """Per broker row, whether it is registered."""
    load: Floats
    """Smoothed weighted maximum (ratio), as published when the next cycle starts."""
    throughput_bytes_per_s: Floats
    throughput_ema_bytes_per_s: Floats
    updated_at_ms: Integers
    top: Callable[[int], tuple[TopBundle, ...]]
    """Top bundles of a broker (row) as reported, lightest first; empty without a report."""
    transferable: Callable[[int, int, int], bool]
    """(bundle, source, destination): whether policies and filters let the bundle move there."""
    load_now: Floats | None = None
    """The load as published now, if some broker will probably publish again before the next cycle."""
    load_approached: Floats | None = None
    """What each published load approaches with every sample; None where nothing was published.

    Until a broker's next CPU sample, what it publishes lies between the two (`BrokerLoadData.updateWeightedMaxEMA`).
    """


@np.errstate(all="ignore")
def extensible_load(state: ClusterState, settings: LoadBalancerSettings, now_ms: int) -> ExtensibleLoad:
    """The view of a cluster state: what is published by the next cycle, else each broker's figures as a first sample.

    Top bundles that weren't published are derived by Pulsar's rule, bundles in the order of the map of their names.
    Namespaces under an isolation policy or in an anti-affinity group are left out unless
    `loadBalancerSheddingBundlesWithPoliciesEnabled`; filters on the destination are not applied here (`transferable`
    asks for a registered broker only). Raises `DataNotFit` for an invalid namespace name: Pulsar fails to look up its
    policies.
    """
    brokers = state.brokers
    records = updated(
        fresh_records(len(brokers)), brokers.usage, brokers.limit, brokers.traffic, settings, max(now_ms, 1)
    )
    load, throughput_ema = records.weighted_max_ema, records.msg_throughput_ema
    load_now = load_approached = None
    if (published := state.published_load) is not None:
        then = at_next_cycle(published, state, settings)
        load_approached = load
        load_now = np.where(np.isnan(published.weighted_max_ema), load, published.weighted_max_ema)
        load = np.where(np.isnan(then.weighted_max_ema), load, then.weighted_max_ema)
        throughput_ema = np.where(np.isnan(then.msg_throughput_ema), throughput_ema, then.msg_throughput_ema)
    stored = np.flatnonzero(brokers.report_updated_at_ms > 0)
    return ExtensibleLoad(
        now_ms=now_ms,
        broker_ids=brokers.ids,
        stored=stored[concurrent_map_order(name_hashes(brokers.ids)[stored])].astype(np.int32),
        available=brokers.available,
        load=load,
        throughput_bytes_per_s=throughput_bytes_per_s(brokers.traffic),
        throughput_ema_bytes_per_s=throughput_ema,
        updated_at_ms=brokers.report_updated_at_ms,
        top=_top_of_brokers(state, settings, now_ms),
        transferable=lambda _bundle, _source, destination: bool(brokers.available[destination]),
        load_now=load_now if load_now is not None and (load_now != load).any() else None,
        load_approached=load_approached,
    )


def _top_of_brokers(
    state: ClusterState, settings: LoadBalancerSettings, now_ms: int
) -> Callable[[int], tuple[TopBundle, ...]]:
    """Computed on demand: a cycle looks at a few brokers only."""
    bundles, names = state.bundles, state.namespaces.names
    excluded = state.namespaces.among(settings.load_balancer_shedding_excluded_namespaces)
    of_service = np.array([is_system_service_namespace(name, settings) for name in names], dtype=bool)
    shown = ~excluded & ~of_service
    if not settings.load_balancer_shedding_bundles_with_policies_enabled:
        for row in np.flatnonzero(~of_service).tolist():  # brokers leave out the others before they look up policies
            require_namespace(names[row], settings)
        shown &= ~under_policies(state, isolation_of(state, settings))
    recently = recently_unloaded(state, settings, now_ms)
    throughput = throughput_bytes_per_s(bundles.traffic)

    position = state.published_load.top_position if state.published_load is not None else np.full(len(bundles), NO_ROW)
    reported = np.flatnonzero(bundles.reported & (bundles.owner != NO_ROW))
    namespace_hashes = name_hashes(names)
    by_owner = reported[np.argsort(bundles.owner[reported], kind="stable")]
    starts = np.searchsorted(bundles.owner[by_owner], np.arange(len(state.brokers) + 1))

    @cache
    def top(broker: int) -> tuple[TopBundle, ...]:
        rows = by_owner[starts[broker] : starts[broker + 1]].astype(np.int32)
        published = rows[position[rows] >= 0]
        top_rows = published[np.argsort(position[published])] if len(published) else derived_top(rows)
        return tuple(
            TopBundle(
                bundle=row,
                throughput_bytes_per_s=float(throughput[row]),
                owned=True,
                excluded_namespace=bool(excluded[bundles.namespace[row]]),
                recently_unloaded=bool(recently[row]),
            )
            for row in top_rows.tolist()
        )

    def derived_top(rows: Indices) -> Indices:
        hashes = bundle_name_hashes(namespace_hashes[bundles.namespace[rows]], bundles.lower[rows], bundles.upper[rows])
        rows = rows[concurrent_map_order(hashes)]
        positions = top_bundles(
            [stats_of(bundles, row) for row in rows.tolist()],
            shown[bundles.namespace[rows]].tolist(),
            settings.load_balancer_max_number_of_bundles_in_bundle_load_report,
            settings,
        )
        return rows[positions]

    return top
