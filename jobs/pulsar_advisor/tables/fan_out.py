"""Many independent computations side by side on Spark's executors, one task each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession


def fan_out(spark: SparkSession, tasks: Mapping[str, Any], function: Callable[[Any], str]) -> dict[str, str]:
    """Call `function` with every task's payload, each in a Spark task of its own; task id -> what it returned.

    Payloads are JSON values; `function` is a module's function (executors import it, so its module must be installed
    or shipped there) and returns text. It reads what it needs, such as `cluster_state(...)`, on the executor itself. An
    exception in one of them ends them all. The order of the results is that of the tasks.
    """
    if not tasks:
        return {}
    rows = [(number, task, json.dumps(payload)) for number, (task, payload) in enumerate(tasks.items())]

    def compute(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                answer = function(json.loads(row["payload"]))
                yield pa.RecordBatch.from_pydict(
                    {"task": [row["task"]], "answer": [answer], "partition": [TaskContext.get().partitionId()]}
                )

    # Placed by number, not by hash or in turn: either of those could put two long computations behind one another.
    placed = spark.createDataFrame(rows, "number int, task string, payload string").repartitionById(len(rows), "number")
    computed = placed.mapInArrow(compute, "task string, answer string, partition bigint").collect()
    partitions = len({row["partition"] for row in computed})
    if partitions != len(rows):
        raise RuntimeError(f"Spark ran {len(rows)} computations in {partitions} tasks: they waited for each other")
    answers = {row["task"]: row["answer"] for row in computed}
    return {task: answers[task] for task in tasks}
