"""Which snapshots a DAG run is about, and whether one may be used."""

from __future__ import annotations

from itertools import chain

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowFailException

from pulsar_advisor.model.cluster.snapshot_id import is_snapshot_id
from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor_airflow.assets import announce
from pulsar_advisor_airflow.failures import as_airflow_errors
from pulsar_advisor_airflow.metrics import measured
from pulsar_advisor_airflow.tasks.root import is_newest_advised, require_sealed, root_of


def snapshot_to_recommend_on() -> str:
    """The newest snapshot of the asset events that triggered the DAG run, or the one named in its form."""
    if snapshots := triggering_snapshots():
        return snapshots[-1]
    if named := get_current_context()["params"]["snapshot"]:
        return str(named)
    raise AirflowFailException("name a snapshot: a manual run has no asset event that names one")


def triggering_snapshots() -> list[str]:
    """Those of the asset events that triggered the DAG run, the newest last. One that a user made may name none."""
    events = chain.from_iterable(get_current_context()["triggering_asset_events"].values())
    return sorted(id for event in events if is_snapshot_id(id := str(event.extra.get("snapshot"))))


def require_trusted_snapshot(cluster: str, snapshot: str) -> str:
    """The snapshot's id, if validation passed; each outlet's event has the snapshot's location."""
    from pulsar_advisor.storage.results import read_validation

    stored = root_of(cluster).snapshot(snapshot)
    with as_airflow_errors():
        require_sealed(stored, "validate")
        result = read_validation(stored)
        is_newest = is_newest_advised(stored)
    if is_newest:
        measured("failed_checks", sum(not check.success for check in result.results), cluster)
    if not result.success:
        raise AirflowFailException(plain(f"snapshot {snapshot} must not be used; {result.stopped_by}"))
    announce(get_current_context(), root=stored.root.url, cluster=cluster, snapshot=snapshot)
    return snapshot
