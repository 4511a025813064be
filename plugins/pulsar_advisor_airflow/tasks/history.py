"""Folding snapshots into days, removing what is outdated, and the page over all clusters."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk.exceptions import AirflowSkipException

from pulsar_advisor.model.bounds import DEFAULT_DAYS
from pulsar_advisor.model.cluster.snapshot_id import day_of
from pulsar_advisor_airflow.configuration import option
from pulsar_advisor_airflow.failures import as_airflow_errors
from pulsar_advisor_airflow.ledger import ledger_url_if_any, opened_ledger
from pulsar_advisor_airflow.tasks.root import root_of
from pulsar_advisor_airflow.tasks.snapshots import triggering_snapshots


def append_to_history(cluster: str) -> list[str]:
    """Fold the snapshots that triggered the DAG run, if any did, into the tables of their days; returns these."""
    from pulsar_advisor.stages.fold import run as fold

    days = sorted({day_of(snapshot) for snapshot in triggering_snapshots()})
    with as_airflow_errors():
        return [fold(root_of(cluster).day(day), option("ledger") or None).line for day in days]


def seal_history(cluster: str) -> list[str]:
    """Fold late snapshots into the days before today; returns these. Skipped in a run that a snapshot triggered."""
    from pulsar_advisor.stages.fold import fold_until

    if triggering_snapshots():
        raise AirflowSkipException("days are sealed at night")
    today = f"{datetime.now(UTC):%Y%m%d}"
    with as_airflow_errors():
        return [day.line for day in fold_until(root_of(cluster), today, option("ledger") or None)]


def thin_history(cluster: str, retention: str) -> list[str]:
    """Remove a cluster's outdated raw files, snapshots and folded days; returns what was removed, by day."""
    from pulsar_advisor.snapshots.retention import lifetimes_of
    from pulsar_advisor.stages.thin import run as thin

    root = root_of(cluster)
    with as_airflow_errors():
        with opened_ledger(root):
            pass  # before the first proposal there is no ledger, and nothing is removed without one
        address = option("ledger") or root.ledger_url
        return list(thin(root, lifetimes_of(retention), address, datetime.now(UTC), dry_run=False).lines())


def write_index() -> str:
    """Write the page over all clusters of the root; returns its location."""
    from pulsar_advisor.stages.index import run

    root = root_of("any")
    with as_airflow_errors():
        return run(root, DEFAULT_DAYS, ledger_url_if_any(root))
