"""Builds the tasks that two or more DAGs share: a Spark stage, and the chain capture → normalize → validate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from airflow.sdk import chain, task

from pulsar_advisor_airflow import tasks
from pulsar_advisor_airflow.clusters import Cluster
from pulsar_advisor_airflow.configuration import one_spark_task, option, page_link
from pulsar_advisor_airflow.operators.capture import PulsarCaptureOperator
from pulsar_advisor_airflow.operators.spark_stage import PulsarSparkStageOperator, SparkStage
from pulsar_advisor_airflow.run_limits import STAGE_TIMEOUT


@dataclass(frozen=True)
class Place:
    """A cluster, the place of its files, and how it is reached."""

    root: str
    cluster: str
    pulsar_conn_id: str
    zookeeper_conn_id: str | None


def place_of(cluster: Cluster) -> Place:
    """The place of a known cluster."""
    return Place(option("root"), cluster.name, cluster.pulsar_conn_id, cluster.zookeeper_conn_id)


def described(documentation: str | None, cluster: Cluster) -> str:
    """The documentation of a cluster's DAG, with a link to the cluster's page."""
    return f"{documentation}\n[Reports, plans and runs of {cluster.name}]({page_link('clusters', cluster.name)})"


def spark_stage(
    stage: SparkStage, place: Place, snapshot: Any, arguments: Sequence[str] = ()
) -> PulsarSparkStageOperator:
    """One stage on Spark, under its own name; the next task reads the result file and decides."""
    return PulsarSparkStageOperator(
        task_id=stage,
        stage=stage,
        root=place.root,
        cluster=place.cluster,
        snapshot=snapshot,
        arguments=arguments,
        spark_conn_id=option("spark_conn_id"),
        pool=option("spark_pool"),
        execution_timeout=STAGE_TIMEOUT,
    )


def captured(place: Place) -> Any:
    """A task that captures the cluster and returns the snapshot's id."""
    return PulsarCaptureOperator(
        task_id="capture", deferrable=True, execution_timeout=STAGE_TIMEOUT, **asdict(place)
    ).output


def trusted_snapshot(place: Place, outlets: Sequence[Any] = ()) -> Any:
    """The tasks from `capture` to the decision whether the snapshot may be used; returns its id if so."""
    snapshot = captured(place)
    judged = task(task_id="require_trusted_snapshot", outlets=list(outlets))(tasks.require_trusted_snapshot)
    decision = judged(place.cluster, snapshot)
    stages: tuple[SparkStage, ...] = ("snapshot",) if one_spark_task() else ("normalize", "validate")
    chain(*(spark_stage(stage, place, snapshot) for stage in stages), decision)
    return decision
