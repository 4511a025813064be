"""A cluster state as the split deciders see it: reported bundles in visiting order, bundle counts, a bundle's topics.

Assumption: brokers and bundles were put into Java's maps in the order of their names; within a broker's report the
order is that of the concurrent map from which its broker wrote it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pulsar_advisor.model.cluster.cluster_state import (
    ClusterState,
    Floats,
    Indices,
    Integers,
    rate_per_s,
    throughput_bytes_per_s,
)
from pulsar_advisor.model.cluster.namespaces import bundle_namespace
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.java.maps import concurrent_map_order, name_hashes
from pulsar_advisor.model.load.load_reports import reported_bundles as reported_by_brokers
from pulsar_advisor.splitting.bundle_split_option import BundleSplitOption, BundleTopics, Quotas
from pulsar_advisor.splitting.limits import BundleFigures, sessions_of
from pulsar_advisor.splitting.registry import algorithm_in_force, split_algorithm


def reported_bundles(state: ClusterState) -> Indices:
    """Rows of the bundles with figures in their owner's report, broker by broker, in Java's iteration order."""
    reports = reported_by_brokers(state)
    visits = [reports.of(broker) for broker in concurrent_map_order(name_hashes(state.brokers.ids))]
    return np.concatenate([*visits, np.empty(0, dtype=np.int32)])


@np.errstate(all="ignore")
def figures_of(state: ClusterState, rows: Indices, traffic: Floats) -> BundleFigures:
    """The figures of these bundle rows; `traffic` is (m, 4) over all rows, order of `FIGURES`."""
    bundles = state.bundles
    return BundleFigures(
        index=rows,
        namespace=bundles.namespace[rows],
        lower=bundles.lower[rows],
        upper=bundles.upper[rows],
        topics=bundles.topics[rows],
        sessions=sessions_of(bundles.producers[rows], bundles.consumers[rows]),
        msg_rate=rate_per_s(traffic[rows]),
        msg_throughput=throughput_bytes_per_s(traffic[rows]),
    )


def bundle_counts(state: ClusterState, settings: LoadBalancerSettings) -> Integers:
    """Bundles of each namespace by its boundaries; -1 if Pulsar can't count them: the namespace name is invalid."""
    counts = state.bundle_counts.astype(np.int64)
    for row, name in enumerate(state.namespaces.names):
        if bundle_namespace(f"{name}/", settings) != name:
            counts[row] = -1
    return counts


def bundle_topics(state: ClusterState, bundle: int, *, listed_only: bool = False) -> BundleTopics | None:
    """All topics of a bundle by name, or only those in Pulsar's own lists, which its split algorithms divide.

    None if the listing of its namespace is incomplete.
    """
    topics, namespace = state.topics, int(state.bundles.namespace[bundle])
    if not state.lists_topics(namespace):
        return None
    # Numbers of another type would have all topics converted for each bundle.
    first, last = topics.namespace.searchsorted(np.array((namespace, namespace + 1), dtype=topics.namespace.dtype))
    rows: npt.NDArray[np.intp] = first + np.flatnonzero(topics.bundle[first:last] == bundle)
    if listed_only:
        rows = rows[topics.is_listed[rows]]
    return BundleTopics(topics.hash[rows], topics.loaded[rows], topics.traffic[rows])


def automatic_boundaries(state: ClusterState, settings: LoadBalancerSettings, bundle: int) -> tuple[int, ...] | None:
    """Where an automatic split would cut a bundle; None if its algorithm finds nothing to do.

    Raises `UsageError` if the algorithm refuses, `DataNotFit` if it needs the bundle's topics, which aren't known.
    """
    algorithm = algorithm_in_force(settings)
    option = BundleSplitOption(
        lower=int(state.bundles.lower[bundle]),
        upper=int(state.bundles.upper[bundle]),
        topics=bundle_topics(state, bundle, listed_only=True) if "topic_names" in algorithm.reads else None,
        quotas=Quotas.from_settings(settings),
    )
    return split_algorithm(algorithm.name).split_boundary(option)
