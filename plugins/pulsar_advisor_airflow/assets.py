"""The assets of each cluster, one per stage from snapshot to verification, which DAGs of your own may follow.

Each event's extra names the data or the plan, and never contains the data itself. The assets have no URIs of their own,
as a cluster that comes into a registry gets assets of other names: while one of another name has its URI, even of a DAG
that is gone, Airflow leaves an asset inactive, and its tasks fail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import Asset

from pulsar_advisor_airflow.clusters import Cluster, labelled

if TYPE_CHECKING:
    from airflow.sdk import Context


def snapshot_validated(cluster: Cluster) -> Asset:
    """A snapshot was captured, converted into tables, and passed validation: `{"root", "cluster", "snapshot"}`."""
    return Asset(labelled("pulsar-snapshot-validated", cluster))


def recommended(cluster: Cluster) -> Asset:
    """A report was written: `{"root", "cluster", "snapshot", "digest"}`, the digest empty if nothing is advised."""
    return Asset(labelled("pulsar-plan-recommended", cluster))


def applied(cluster: Cluster) -> Asset:
    """A plan was carried out: `{"cluster", "digest", "run"}`."""
    return Asset(labelled("pulsar-plan-applied", cluster))


def verified(cluster: Cluster) -> Asset:
    """A plan had the predicted effect: `{"cluster", "digest", "run", "snapshot"}`."""
    return Asset(labelled("pulsar-plan-verified", cluster))


def audited_ledger() -> Asset:
    """The ledger that all clusters share. It has no events; its state store keeps the head of the last audit."""
    return Asset("pulsar-ledger", "pulsar-advisor://ledger")


def announce(context: Context, **extra: str | int | None) -> None:
    """Set the extra of the events of a task's assets."""
    for outlet in context["task"].outlets:
        context["outlet_events"][outlet].extra = extra
