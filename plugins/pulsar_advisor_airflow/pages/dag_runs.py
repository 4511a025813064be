"""What Airflow's database says about our DAGs: the state of each cluster's newest run."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import and_, func, select

from pulsar_advisor_airflow.airflow_internals import DagRun, TaskInstance, XComModel, create_session
from pulsar_advisor_airflow.clusters import Cluster, labelled
from pulsar_advisor_airflow.failures import PROBLEM

SCHEDULED: Final = ("pulsar_snapshot", "pulsar_recommend")
"""The DAGs of each cluster that run by themselves."""


@dataclass(frozen=True)
class FailedTask:
    """A failed task, and whether it will be retried; or a failed DAG run in which no task failed."""

    name: str
    at: datetime | None
    will_be_tried_again: bool
    problem: str
    """What didn't answer, if the task said so; or why a DAG run failed without a failed task."""


@dataclass(frozen=True)
class NewestRun:
    """The newest run among a cluster's DAGs."""

    base: str
    """Which one of `SCHEDULED` it is of."""
    is_active: bool
    failed: FailedTask | None


def newest_runs(of: Iterable[Cluster]) -> dict[str, NewestRun]:
    """By cluster name, without clusters that no DAG has run for."""
    dags = {labelled(base, each): (base, each.name) for each in of for base in SCHEDULED}
    newest = select(func.max(DagRun.id)).where(DagRun.dag_id.in_(dags)).group_by(DagRun.dag_id)
    in_run = and_(TaskInstance.dag_id == DagRun.dag_id, TaskInstance.run_id == DagRun.run_id)
    of_task = and_(XComModel.dag_run_id == DagRun.id, XComModel.task_id == TaskInstance.task_id)
    query = (
        select(
            DagRun.dag_id,
            DagRun.state,
            DagRun.end_date,
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
        for dag, state, run_ended_at, task, task_state, ended_at, problem in session.execute(query):
            base, cluster = dags[dag]
            failed = FailedTask(task, ended_at, task_state == "up_for_retry", _text(problem)) if task else None
            if failed is None and state == "failed":  # Airflow skips the tasks of a run that takes too long
                failed = FailedTask(dag, run_ended_at, False, "it took too long, or somebody ended it")
            runs[cluster] = NewestRun(base, state in ("queued", "running"), failed)
    return runs


def _text(value: Any) -> str:
    """The text in an XCom; empty for anything else."""
    with suppress(TypeError, ValueError):  # set over the REST API, which doesn't encode it twice as a task does
        value = json.loads(value)
    return value if isinstance(value, str) else ""
