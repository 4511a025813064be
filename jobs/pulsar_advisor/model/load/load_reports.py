"""The bundles of each broker's load report, in the order in which the broker wrote them.

Assumption: they were put into the broker's concurrent map in the order of their names.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, ClusterState, Indices, Integers
from pulsar_advisor.model.java.maps import Hashes, bundle_name_hashes, concurrent_map_order, name_hashes


@dataclass(frozen=True, eq=False)
class ReportedBundles:
    """The bundles with figures in their owners' reports, broker by broker."""

    rows: Indices
    """Bundle rows."""
    hashes: Hashes
    """Of their names."""
    offsets: Integers
    """The bundles of broker row b are `rows[offsets[b]:offsets[b + 1]]`."""

    def of(self, broker: int) -> Indices:
        """Rows of the bundles in the report of a broker (row)."""
        return self.rows[self.offsets[broker] : self.offsets[broker + 1]]

    def in_order(self, order: np.ndarray[tuple[int], np.dtype[np.intp]]) -> ReportedBundles:
        """The same, each broker's bundles in another order; `order` keeps brokers together."""
        return ReportedBundles(self.rows[order], self.hashes[order], self.offsets)


def reported_bundles(state: ClusterState) -> ReportedBundles:
    """The reports of a cluster state; each lists its bundles in the order of the broker's concurrent map."""
    bundles = state.bundles
    rows = np.flatnonzero(bundles.reported & (bundles.owner != NO_ROW)).astype(np.int32)
    rows = rows[np.argsort(bundles.owner[rows], kind="stable")]
    hashes = bundle_name_hashes(
        name_hashes(state.namespaces.names)[bundles.namespace[rows]], bundles.lower[rows], bundles.upper[rows]
    )
    offsets = np.searchsorted(bundles.owner[rows], np.arange(len(state.brokers) + 1)).astype(np.int64)
    order = [
        offsets[broker] + concurrent_map_order(hashes[offsets[broker] : offsets[broker + 1]])
        for broker in range(len(state.brokers))
    ]
    return ReportedBundles(rows, hashes, offsets).in_order(np.concatenate([*order, np.empty(0, dtype=np.intp)]))
