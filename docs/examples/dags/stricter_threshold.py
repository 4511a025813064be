"""What a stricter threshold would do: the advice on a snapshot under another setting, and the cluster's next hours."""

from airflow.sdk import Param, chain, dag, task

from pulsar_advisor_airflow import tasks
from pulsar_advisor_airflow.configuration import option
from pulsar_advisor_airflow.operators.spark_stage import PulsarSparkStageOperator

ROOT, CLUSTER = option("root"), "prod-eu"


def stage(name, *arguments):
    """A stage on the snapshot that the form names."""
    place = {"root": ROOT, "cluster": CLUSTER, "snapshot": "{{ params.snapshot }}"}
    return PulsarSparkStageOperator(task_id=name, stage=name, arguments=arguments, **place)


@dag(schedule=None, params={"snapshot": Param(type="string", title="Snapshot")})
def stricter_threshold():
    """normalize → validate → recommend and simulate → report and lint."""
    snapshot = "{{ params.snapshot }}"
    stricter = "--set=loadBalancerBrokerThresholdShedderPercentage=5"
    chain(
        stage("normalize"),
        stage("validate"),
        task(tasks.require_trusted_snapshot)(CLUSTER, snapshot),
        [stage("recommend", stricter), stage("simulate", stricter, "--shedder=configured", "--placement=configured")],
        [task(tasks.report)(CLUSTER, snapshot), task(tasks.lint)(CLUSTER, snapshot)],
    )


stricter_threshold()
