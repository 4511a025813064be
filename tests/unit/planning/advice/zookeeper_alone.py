"""What is known of an Extensible cluster from ZooKeeper alone."""

from dataclasses import replace

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, ClusterState
from pulsar_advisor.model.cluster.inputs import Input


def of_extensible_zookeeper_alone(state: ClusterState) -> ClusterState:
    """Its brokers publish neither load nor, by default, ownership in ZooKeeper."""
    ownerless = replace(
        state.bundles,
        owner=np.full_like(state.bundles.owner, NO_ROW),
        reported=np.zeros_like(state.bundles.reported),
        traffic=np.zeros_like(state.bundles.traffic),
    )
    silent = replace(
        state.brokers,
        complete=np.zeros_like(state.brokers.complete),
        report_updated_at_ms=np.zeros_like(state.brokers.report_updated_at_ms),
    )
    missing: dict[Input, str] = {"topic_traffic": "topic_stats: no admin URL"}
    return replace(
        state, view="published", load_manager="extensible", brokers=silent, bundles=ownerless, missing=missing
    )
