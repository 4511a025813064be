"""Calling people about clusters whose snapshots are overdue."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowException

from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor_airflow.assets import snapshot_validated
from pulsar_advisor_airflow.clusters import Cluster, clusters
from pulsar_advisor_airflow.configuration import page_link, with_host
from pulsar_advisor_airflow.failures import as_airflow_errors
from pulsar_advisor_airflow.ledger import ledger_url_if_any
from pulsar_advisor_airflow.metrics import age_measured
from pulsar_advisor_airflow.notifiers import Event, Reached, call_people
from pulsar_advisor_airflow.tasks.root import root_of

if TYPE_CHECKING:
    from pulsar_advisor.execution.ledger.tables import Run

log = logging.getLogger(__name__)

_CALLED_ABOUT: Final = "called_about"
_CALLED_ABOUT_RUN: Final = "called_about_run"
_FIRST_LOOK: Final = "first_look"
_UNREADABLE: Final = "unreadable"
"""Keys in the state store of a cluster's asset; the last is also what people are called about if its snapshots can't
be read, in place of the newest one."""
_RESUMED: Final = "resumed"
"""What people are called about once snapshots come again, until everybody has heard of it."""
_ABANDONED_MS: Final = 900_000
"""After how long without a sign of life people are called about a run: the next try of a task takes it over sooner."""


def overdue_clusters() -> list[str]:
    """The clusters whose snapshots are overdue or can't be read.

    Each receiver is called once about each newest one with advice, once when they come again, and once about a run
    that its process abandoned. Sets the metric of that snapshot. The state store of its asset, an inlet, keeps what
    people were called about. After all clusters, raises `AirflowException` naming those that couldn't be checked for
    another reason, or about which no call got through.
    """
    with as_airflow_errors():
        registered = clusters().values()
    now, found, failures, abandoned = datetime.now(UTC), [], [], _abandoned_runs()
    for cluster in registered:
        try:
            if _is_overdue(cluster, now):
                found.append(cluster.name)
            if cluster.name in abandoned:
                run, why = abandoned[cluster.name]
                said = f"run {run.id} is {why}"
                log.warning("%s: %s", cluster.name, said)
                about = f"{run.id}/{run.lease}"
                _call_once(cluster, "run.abandoned", _CALLED_ABOUT_RUN, about, said, "runs", str(run.id))
        except Exception as error:  # one cluster's failure must not affect the others
            log.exception("cluster %s can't be looked at", cluster.name)
            failures.append(f"{cluster.name}: {error}")
    if failures:
        raise AirflowException("; ".join(failures))
    return found


def _is_overdue(cluster: Cluster, now: datetime) -> bool:
    from pulsar_advisor.storage.index import newest_advised
    from pulsar_advisor_airflow.overdue import why_overdue

    try:
        with as_airflow_errors():
            newest = newest_advised(root_of(cluster.name), now)
    except AirflowException as error:
        about, sentence = _UNREADABLE, f"its snapshots can't be read, so nobody knows whether they come: {error}"
    else:
        if newest is not None:
            age_measured(newest, cluster.name)
        about = newest or "none at all"
        sentence = why_overdue(cluster.schedule, newest, now, _awaited_since(cluster, newest, now))
    if sentence:
        log.warning("%s: %s", cluster.name, sentence)
    _call_about_snapshots(cluster, about, sentence)
    return bool(sentence)


def _abandoned_runs() -> Mapping[str, tuple[Run, str]]:
    """The active run of each cluster that no process carries out any more, and what is to be said about it.

    None while the ledger can't be read, about which `pulsar_maintenance` calls.
    """
    from pulsar_advisor.execution.ledger.lists import newest_runs
    from pulsar_advisor.execution.ledger.opening import ledger_if_any
    from pulsar_advisor.execution.ledger.unfinished import why_abandoned

    try:
        with as_airflow_errors(), ledger_if_any(ledger_url_if_any(root_of("any"))) as ledger:
            if ledger is None:
                return {}
            silent_since = ledger.now_ms() - _ABANDONED_MS
            active = newest_runs(ledger, ["active"]).items()
            silent = {name: run for name, run in active if run.heartbeat_at_ms < silent_since}
            return {name: (run, why) for name, run in silent.items() if (why := why_abandoned(ledger, run))}
    except AirflowException as error:
        log.warning("whether runs were abandoned can't be seen: %s", error)
        return {}


def _awaited_since(cluster: Cluster, newest: str | None, now: datetime) -> datetime | None:
    """Since when the first advice of a cluster with a schedule is awaited; None once it has come."""
    looked = _state_of(cluster)
    first = looked.get(_FIRST_LOOK)
    if newest is not None or cluster.schedule is None:
        if first is not None:
            looked.delete(_FIRST_LOOK)
        return None
    if first is None or datetime.fromisoformat(first) > now:
        looked.set(_FIRST_LOOK, first := now.isoformat())
    return datetime.fromisoformat(first)


def _call_about_snapshots(cluster: Cluster, about: str, sentence: str) -> None:
    """Call somebody once that snapshots are overdue, and once, without a sentence, that they no longer are.

    That they can't be read, only at the second look: storage may be back by then.
    """
    called = _state_of(cluster)
    known, *informed = called.get(_CALLED_ABOUT) or [""]
    is_unreadable, was_unreadable = about == _UNREADABLE, called.get(_UNREADABLE, False)
    if was_unreadable and not is_unreadable:
        called.delete(_UNREADABLE)
    if is_unreadable and not was_unreadable:
        called.set(_UNREADABLE, True)
    elif sentence:
        _call_once(cluster, "snapshot.overdue", _CALLED_ABOUT, about, sentence)
    elif known:
        said = f"its snapshots are no longer overdue; the last that led to advice: {about}"
        if not informed or not _call_once(cluster, "snapshot.resumed", _CALLED_ABOUT, _RESUMED, said).failures:
            called.delete(_CALLED_ABOUT)


def _call_once(cluster: Cluster, event: Event, key: str, about: str, sentence: str, *page: str) -> Reached:
    """Call the receivers that have yet to hear of what this is about; next time, repeat failed calls.

    Raises `AirflowException`, so that the task fails, if no call has got through.
    """
    called = _state_of(cluster)
    known, *informed = called.get(key) or [""]
    if known != about:
        informed = []
    link = with_host(page_link("clusters", cluster.name, *page))
    call = {"cluster": cluster.name, "sentence": plain(sentence), "link": link}
    reached = call_people(event, call, get_current_context(), informed)
    for failure in reached.failures:
        log.error("the call about %s failed: %s", cluster.name, failure)
    if reached.failures and not (reached.receivers or informed):
        raise AirflowException(f"{sentence}; nobody could be called: {'; '.join(reached.failures)}")
    called.set(key, [about, *informed, *reached.receivers])
    return reached


def _state_of(cluster: Cluster) -> Any:
    return get_current_context()["asset_state_store"][snapshot_validated(cluster)]
