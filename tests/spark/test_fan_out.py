import json
from pathlib import Path
from typing import Any

import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession

from pulsar_advisor.storage.root import Root
from pulsar_advisor.tables.fan_out import fan_out
from pulsar_advisor.tables.normalize import normalize
from pulsar_advisor.tables.state import cluster_state
from snapshots import skewed_modular_cluster

pytestmark = pytest.mark.spark


def test_each_computation_gets_a_task_of_its_own(spark: SparkSession) -> None:
    def partition(payload: Any) -> str:
        return f"{payload['shedder']} in task {TaskContext.get().partitionId()}"

    tasks = {f"combination-{number}": {"shedder": f"S{number}"} for number in (2, 0, 1)}
    assert fan_out(spark, tasks, partition) == {
        "combination-2": "S2 in task 0",
        "combination-0": "S0 in task 1",
        "combination-1": "S1 in task 2",
    }


def test_nothing_to_compute_is_no_job(spark: SparkSession) -> None:
    assert fan_out(spark, {}, json.dumps) == {}


@pytest.mark.full
def test_executors_read_the_cluster_state_themselves(spark: SparkSession, tmp_path: Path) -> None:
    root = Root(str(tmp_path), "test")
    snapshot = skewed_modular_cluster().write(root)
    normalize(spark, root, snapshot)

    def busiest(payload: Any) -> str:
        state = cluster_state(Root(payload["root"], "test"), payload["snapshot"], payload["view"])
        return state.brokers.ids[int(state.brokers.usage[:, 0].argmax())]

    tasks = {view: {"root": str(tmp_path), "snapshot": snapshot, "view": view} for view in ("fresh", "published")}
    assert fan_out(spark, tasks, busiest) == dict.fromkeys(tasks, "broker-1.pulsar.test:8080")
