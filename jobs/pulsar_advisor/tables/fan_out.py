"""Many independent computations: on Spark's executors, or in this process if the snapshot is small."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from pulsar_advisor.model.errors import AdvisorError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

T = TypeVar("T")

_PARTITIONS: Final = "spark.sql.shuffle.partitions"


def fan_out(
    spark: SparkSession | None, tasks: Mapping[str, T], function: Callable[[T], str], most: int | None = None
) -> dict[str, str]:
    """Call `function` with every task's payload; returns task id -> result, in the order of the tasks.

    Each call is a separate Spark task, if the session has enough shuffle partitions or `most` allows more. Without a
    session, or with only one partition (`session`: for a small snapshot), this process makes all calls in sequence: a
    Python worker would first import and read everything again. Payloads are JSON values; `function` is a module-level
    function, or a `partial` of one (executors import it, so its module must be installed or shipped there), and returns
    text. It reads its own input, such as `cluster_state(...)`, where it runs. An `AdvisorError` of a call is raised as
    it is, on executors once all calls have ended; any other exception ends them all.
    """
    side_by_side = 1 if spark is None else min(len(tasks), most or int(spark.conf.get(_PARTITIONS) or len(tasks)))
    if spark is None or side_by_side <= 1:
        return {task: function(json.loads(json.dumps(payload))) for task, payload in tasks.items()}
    return _on_executors(spark, side_by_side, tasks, function)


def _on_executors(
    spark: SparkSession, side_by_side: int, tasks: Mapping[str, T], function: Callable[[T], str]
) -> dict[str, str]:
    """As `fan_out`; the tasks start in the given order."""
    # imported here: a stage without executors doesn't need them
    import pyarrow as pa
    from pyspark import TaskContext

    rows = pa.table(
        {
            "partition": pa.array([number % side_by_side for number in range(len(tasks))], pa.int32()),
            "task": list(tasks),
            "payload": [json.dumps(payload) for payload in tasks.values()],
        }
    )

    def compute(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                answer, failure = None, None
                try:
                    answer = function(json.loads(row["payload"]))
                except AdvisorError as error:  # Spark would call again, and report a stack trace without an exit code
                    failure = pickle.dumps(error)
                yield pa.RecordBatch.from_pydict(
                    {
                        "task": pa.array([row["task"]], pa.string()),
                        "answer": pa.array([answer], pa.string()),
                        "failure": pa.array([failure], pa.binary()),
                        "partition": pa.array([TaskContext.get().partitionId()], pa.int64()),
                    }
                )

    # Placed by number, not by hash or round-robin: either could queue two long computations in one partition.
    placed = spark.createDataFrame(rows).repartitionById(side_by_side, "partition")
    computed = placed.mapInArrow(compute, "task string, answer string, failure binary, partition bigint").collect()
    for row in computed:
        if row["failure"] is not None:
            raise pickle.loads(row["failure"])
    partitions = len({row["partition"] for row in computed})
    if partitions != side_by_side:
        raise RuntimeError(f"Spark ran {len(tasks)} computations in {partitions} tasks: they waited for each other")
    answers = {row["task"]: row["answer"] for row in computed}
    return {task: answers[task] for task in tasks}
