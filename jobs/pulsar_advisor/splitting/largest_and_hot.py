"""Which bundle a split request means that names LARGEST or HOT in place of a range.

LARGEST is the bundle with the most persistent topics in metadata, loaded or not; of several the one that reaches that
number first in listing order (here: by name). HOT is, for the Modular manager, the bundle with the greatest long-term
throughput in and out among those with loaded topics, the first of equals by range; for the others it means LARGEST.
Since 2.10. Source: Pulsar `NamespaceBundleFactory.getBundleWithHighestTopicsAsync`, `...HighestThroughputAsync`.
"""

from __future__ import annotations

import numpy as np

from pulsar_advisor.model.cluster_state import NOBODY, ClusterState
from pulsar_advisor.model.errors import DataNotFit
from pulsar_advisor.splitting.limits import rank_within


def largest_bundle(state: ClusterState, namespace: int) -> int:
    """Row of the bundle LARGEST means in a namespace; NOBODY where it has no persistent topic (Pulsar: 404).

    Raises `DataNotFit` where topic names are missing.
    """
    if not state.lists_topics(namespace):
        raise DataNotFit(
            f"LARGEST can't be told for {state.namespaces.names[namespace]}: its topic names are not completely known; "
            "capture the topic lists of the namespace"
        )
    topics = state.topics
    rows = np.flatnonzero((topics.namespace == namespace) & (topics.bundle != NOBODY))
    persistent = [row for row in rows.tolist() if str(topics.names[row]).startswith("persistent://")]
    if not persistent:
        return NOBODY
    bundle = topics.bundle[persistent]
    return int(bundle[np.argmax(rank_within(bundle))])


def hot_bundle(state: ClusterState, namespace: int) -> int:
    """Row of the bundle HOT means in a namespace; NOBODY where no bundle qualifies (Pulsar: 404).

    Raises `DataNotFit` where HOT means LARGEST and topic names are missing.
    """
    if state.load_manager != "modular":
        return largest_bundle(state, namespace)
    bundles = state.bundles
    rows = np.flatnonzero((bundles.namespace == namespace) & bundles.in_boundaries & (bundles.topics > 0))
    throughput = bundles.long_term[rows, 2] + bundles.long_term[rows, 3]
    rows, throughput = rows[throughput > -1.0], throughput[throughput > -1.0]
    return int(rows[np.argmax(throughput)]) if len(rows) else NOBODY
