from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession

from pulsar_advisor.model.errors import DataNotFit
from pulsar_advisor.stages.normalize import run as normalize
from pulsar_advisor.storage.root import Root
from pulsar_advisor.tables.fan_out import fan_out
from pulsar_advisor.tables.state import cluster_state
from snapshots import skewed_modular_cluster

pytestmark = pytest.mark.spark


TASKS = {f"combination-{number}": {"shedder": f"S{number}"} for number in (2, 0, 1)}


@pytest.fixture
def partition() -> Callable[[Any], str]:
    """Made here, so that it travels as it is: workers can't import this module."""

    def partition(payload: Any) -> str:
        return f"{payload['shedder']} in task {TaskContext.get().partitionId()}"

    return partition


def test_each_computation_gets_a_task_of_its_own_where_there_are_partitions_enough(
    many_partitions: SparkSession, partition: Callable[[Any], str]
) -> None:
    assert fan_out(many_partitions, TASKS, partition) == {
        "combination-2": "S2 in task 0",
        "combination-0": "S0 in task 1",
        "combination-1": "S1 in task 2",
    }


def test_an_error_of_the_advisor_arrives_from_an_executor_as_it_was_raised(many_partitions: SparkSession) -> None:
    def fails(payload: Any) -> str:
        raise DataNotFit(f"nothing fits {payload['shedder']}")

    with pytest.raises(DataNotFit, match=r"^nothing fits S2$"):
        fan_out(many_partitions, TASKS, fails)


@pytest.mark.full
def test_executors_read_the_cluster_state_themselves(many_partitions: SparkSession, tmp_path: Path) -> None:
    snapshot = skewed_modular_cluster().write(Root(str(tmp_path), "test"))
    normalize(many_partitions, snapshot)

    def busiest(payload: Any) -> str:
        state = cluster_state(Root(payload["root"], "test").snapshot(payload["snapshot"]), payload["view"])
        return state.brokers.ids[int(state.brokers.usage[:, 0].argmax())]

    tasks = {view: {"root": str(tmp_path), "snapshot": snapshot.id, "view": view} for view in ("fresh", "published")}
    assert fan_out(many_partitions, tasks, busiest) == dict.fromkeys(tasks, "broker-1.pulsar.test:8080")
