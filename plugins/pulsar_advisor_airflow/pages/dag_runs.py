"""What one of our DAGs, or one of its runs, is about: a cluster and a snapshot, as Airflow's database has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from airflow.models.dagrun import DagRun
from airflow.models.xcom import XComModel
from airflow.utils.session import create_session
from sqlalchemy import select

from pulsar_advisor_airflow.clusters import Cluster, clusters, labelled

PER_CLUSTER: Final[Mapping[str, str]] = {"pulsar_snapshot": "capture", "pulsar_recommend": "snapshot"}
"""DAGs that each cluster has, and the task of each that returns the snapshot's id."""
REBALANCE: Final = "pulsar_rebalance"
"""The DAG for all clusters; its task `propose` returns a plan's reference, which names the snapshot."""


@dataclass(frozen=True)
class Subject:
    """What a DAG run is about."""

    cluster: Cluster
    snapshot: str | None
    """None: not captured or chosen yet."""


def cluster_of(dag: str) -> Cluster | None:
    """The cluster of a DAG; None if the DAG isn't ours, or is for all clusters."""
    return next((each for each in clusters().values() for base in PER_CLUSTER if labelled(base, each) == dag), None)


def subject_of(dag: str, run: str) -> Subject | None:
    """What a DAG run is about; None if there is no such run, or it isn't about one cluster."""
    with create_session() as session:
        found = session.execute(select(DagRun.conf).where(DagRun.dag_id == dag, DagRun.run_id == run)).one_or_none()
    if found is None:
        return None
    if (cluster := cluster_of(dag)) is not None:
        task = next(task for base, task in PER_CLUSTER.items() if labelled(base, cluster) == dag)
        return Subject(cluster, _text(_returned(dag, run, task)))
    if dag != REBALANCE:
        return None
    known = clusters()
    chosen = known.get((found.conf or {}).get("cluster") or (next(iter(known)) if len(known) == 1 else ""))
    if chosen is None:
        return None
    plan = _returned(dag, run, "propose")
    return Subject(chosen, _text(plan.get("snapshot")) if isinstance(plan, dict) else None)


def _returned(dag: str, run: str, task: str) -> Any:
    """What a task returned, as plain JSON data: who may edit the DAG can change it, so no class is made of it."""
    with create_session() as session:
        query = XComModel.get_many(key="return_value", run_id=run, dag_ids=dag, task_ids=task)
        row = session.execute(query.with_only_columns(XComModel.value)).first()
    if row is None:
        return None
    try:
        return json.loads(row.value)
    except (TypeError, ValueError):  # set over the REST API, which doesn't encode it twice as a task does
        return row.value


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
