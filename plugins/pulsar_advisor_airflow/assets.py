"""The assets: for each cluster, snapshots that were captured, converted into tables, and passed validation."""

from __future__ import annotations

from airflow.sdk import Asset

from pulsar_advisor_airflow.clusters import Cluster, labelled


def snapshot_validated(cluster: Cluster) -> Asset:
    """Each event's extra is `{"root", "cluster", "snapshot"}`: the location, never the data."""
    return Asset(labelled("pulsar-snapshot-validated", cluster))
