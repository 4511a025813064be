"""Builds the Spark stages, and the chain capture → normalize → validate that two DAGs share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import chain, task

from pulsar_advisor_airflow import tasks
from pulsar_advisor_airflow.configuration import job, one_spark_task, option
from pulsar_advisor_airflow.operators.capture import PulsarCaptureOperator


def spark_stage(stage: str, snapshot: Any, arguments: Sequence[str] = ()) -> SparkSubmitOperator:
    """One stage on Spark. It succeeds once its result file is written; the next task reads that file and decides."""
    place = ["--root", option("root"), "--cluster", option("cluster"), "--snapshot", snapshot]
    return SparkSubmitOperator(
        task_id=stage,
        application=job(stage),
        application_args=[*place, *arguments],
        conf={"spark.log.level": "WARN"},  # at INFO a stage writes tens of thousands of lines to the task log
        conn_id=option("spark_conn_id"),
        name=f"pulsar-advisor {stage}",
    )


def captured() -> Any:
    """A task that captures the cluster and returns the snapshot's id."""
    return PulsarCaptureOperator(
        task_id="capture",
        root=option("root"),
        cluster=option("cluster"),
        pulsar_conn_id=option("pulsar_conn_id"),
    ).output


def trusted_snapshot(outlets: Sequence[Any] = ()) -> Any:
    """The tasks from `capture` to the decision whether the snapshot may be used; returns its id if so."""
    snapshot = captured()
    decision = task(task_id="require_trusted_snapshot", outlets=list(outlets))(tasks.require_trusted_snapshot)(snapshot)
    stages = ("snapshot",) if one_spark_task() else ("normalize", "validate")
    chain(*(spark_stage(stage, snapshot) for stage in stages), decision)
    return decision
