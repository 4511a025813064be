"""What Airflow's database says of our DAGs: which cluster and snapshot a run is about, and how the newest one goes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from airflow.utils.session import create_session
from sqlalchemy import and_, func, select

from pulsar_advisor_airflow.clusters import Cluster, clusters, labelled
from pulsar_advisor_airflow.failures import PROBLEM

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


@dataclass(frozen=True)
class FailedTask:
    """A task that failed, and whether it will be tried again."""

    name: str
    at: datetime | None
    will_be_tried_again: bool
    problem: str
    """What didn't answer, if the task said so."""


@dataclass(frozen=True)
class NewestRun:
    """The newest run of the DAGs that each cluster has."""

    base: str
    """The DAG's name in `PER_CLUSTER`."""
    is_active: bool
    failed: FailedTask | None


def newest_runs(of: Iterable[Cluster]) -> dict[str, NewestRun]:
    """By the name of the cluster; without those that no DAG has run for."""
    dags = {labelled(base, each): (base, each.name) for each in of for base in PER_CLUSTER}
    newest = select(func.max(DagRun.id)).where(DagRun.dag_id.in_(dags)).group_by(DagRun.dag_id)
    in_run = and_(TaskInstance.dag_id == DagRun.dag_id, TaskInstance.run_id == DagRun.run_id)
    of_task = and_(XComModel.dag_run_id == DagRun.id, XComModel.task_id == TaskInstance.task_id)
    query = (
        select(
            DagRun.dag_id,
            DagRun.state,
            TaskInstance.task_id,
            TaskInstance.state,
            TaskInstance.end_date,
            XComModel.value,
        )
        .outerjoin(TaskInstance, and_(in_run, TaskInstance.state.in_(("failed", "up_for_retry"))))
        .outerjoin(XComModel, and_(of_task, XComModel.key == PROBLEM))
        .where(DagRun.id.in_(newest))
        .order_by(DagRun.id)
    )
    runs = {}
    with create_session() as session:
        for dag, state, task, task_state, ended_at, problem in session.execute(query):
            base, cluster = dags[dag]
            said = _text(_decoded(problem)) or ""
            failed = FailedTask(task, ended_at, task_state == "up_for_retry", said) if task else None
            runs[cluster] = NewestRun(base, state in ("queued", "running"), failed)
    return runs


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
    return _decoded(row.value) if row is not None else None


def _decoded(value: Any) -> Any:
    try:
        return json.loads(value)
    except (TypeError, ValueError):  # set over the REST API, which doesn't encode it twice as a task does
        return value


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
