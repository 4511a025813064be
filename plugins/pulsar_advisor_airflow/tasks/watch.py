"""Calling people about clusters whose snapshots are overdue."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowException

from pulsar_advisor_airflow.assets import snapshot_validated
from pulsar_advisor_airflow.failures import as_airflow_errors
from pulsar_advisor_airflow.metrics import age_measured
from pulsar_advisor_airflow.tasks.root import root_of

if TYPE_CHECKING:
    from pulsar_advisor_airflow.clusters import Cluster

log = logging.getLogger(__name__)

_CALLED_ABOUT: Final = "called_about"
_FIRST_LOOK: Final = "first_look"
"""Keys in the state store of a cluster's asset."""


def overdue_clusters() -> list[str]:
    """The clusters whose snapshots are overdue; each receiver is called once about each newest one with advice.

    Sets the metric of that snapshot. The state store of its asset, an inlet, keeps which one people were called about.
    After all clusters, raises `AirflowException` naming those that couldn't be checked.
    """
    from pulsar_advisor_airflow.clusters import clusters

    with as_airflow_errors():
        registered = clusters().values()
    now, found, failures = datetime.now(UTC), [], []
    for cluster in registered:
        try:
            if _is_overdue(cluster, now):
                found.append(cluster.name)
        except Exception as error:  # one cluster's failure must not affect the others
            log.exception("cluster %s can't be looked at", cluster.name)
            failures.append(f"{cluster.name}: {error}")
    if failures:
        raise AirflowException("; ".join(failures))
    return found


def _is_overdue(cluster: Cluster, now: datetime) -> bool:
    from pulsar_advisor_airflow.overdue import newest_advised, why_overdue

    with as_airflow_errors():
        if (newest := newest_advised(root_of(cluster.name), now)) is not None:
            age_measured(newest, cluster.name)
        sentence = why_overdue(cluster.schedule, newest, now, _awaited_since(cluster, newest, now))
    if sentence:
        log.warning("%s: %s", cluster.name, sentence)
        _call_once_about(cluster, newest or "none at all", sentence)
    return bool(sentence)


def _awaited_since(cluster: Cluster, newest: str | None, now: datetime) -> datetime | None:
    """Since when the first advice of a cluster with a schedule is awaited; None once it has come."""
    looked = get_current_context()["asset_state_store"][snapshot_validated(cluster)]
    first = looked.get(_FIRST_LOOK)
    if newest is not None or cluster.schedule is None:
        if first is not None:
            looked.delete(_FIRST_LOOK)
        return None
    if first is None or datetime.fromisoformat(first) > now:
        looked.set(_FIRST_LOOK, first := now.isoformat())
    return datetime.fromisoformat(first)


def _call_once_about(cluster: Cluster, newest: str, sentence: str) -> None:
    """Call the receivers that have yet to hear that this snapshot is the newest; next time, repeat failed calls."""
    from pulsar_advisor_airflow.configuration import page_link, with_host
    from pulsar_advisor_airflow.notifiers import call_people

    context = get_current_context()
    called = context["asset_state_store"][snapshot_validated(cluster)]
    about, *informed = called.get(_CALLED_ABOUT) or [""]
    if about != newest:
        informed = []
    call = {"cluster": cluster.name, "sentence": sentence, "link": with_host(page_link("clusters", cluster.name))}
    reached = call_people("snapshot.overdue", call, context, informed)
    for failure in reached.failures:
        log.error("the call about %s failed: %s", cluster.name, failure)
    if reached.receivers:
        called.set(_CALLED_ABOUT, [newest, *informed, *reached.receivers])
