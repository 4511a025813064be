"""What makes a small snapshot cheap: plans that know their rows, and everything in one partition."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

from pulsar_advisor.tables.frames import (
    few_rows,
    frame_of,
    in_few_partitions,
    in_one_partition,
    in_session,
    materialized,
    no_rows,
)

pytestmark = pytest.mark.spark

SCHEMA = "name string, bounds array<bigint>, load double"


def plan(frame: DataFrame) -> str:
    """How Spark would compute a frame."""
    execution = frame._jdf.queryExecution()  # type: ignore[operator]
    return str(execution.executedPlan().toString())


def test_rows_of_python_values_need_no_python_worker(spark: SparkSession) -> None:
    frame = frame_of(spark, SCHEMA, [{"name": "b", "bounds": [0, 4_294_967_295]}])
    assert [row.asDict() for row in frame.collect()] == [{"name": "b", "bounds": [0, 4_294_967_295], "load": None}]
    assert plan(frame).startswith("LocalTableScan")


def test_a_join_with_no_rows_is_left_out(spark: SparkSession) -> None:
    brokers = frame_of(spark, SCHEMA, [{"name": "b"}])
    assert "Join" not in plan(brokers.join(no_rows(spark, "name string, domain string"), "name", "left"))


def test_materialized_rows_are_planned_without_what_they_were_made_of(spark: SparkSession) -> None:
    sums = materialized(spark.range(10).groupBy().sum("id"))
    assert "Aggregate" not in plan(sums)
    assert sums.collect()[0][0] == 45


def test_a_small_snapshot_stays_in_one_partition(spark: SparkSession) -> None:
    assert in_few_partitions(spark.range(0, 8, 1, 4)).rdd.getNumPartitions() == 1
    assert "Broadcast" not in plan(spark.range(8).join(few_rows(spark.range(3)), "id"))


def test_a_large_one_keeps_its_partitions_until_it_is_written(many_partitions: SparkSession) -> None:
    frame = many_partitions.range(0, 8, 1, 4)
    assert in_few_partitions(frame).rdd.getNumPartitions() == 4
    assert in_one_partition(frame).rdd.getNumPartitions() == 1
    assert "Broadcast" in plan(frame.join(few_rows(many_partitions.range(3)), "id"))


def test_few_rows_move_to_another_session(spark: SparkSession) -> None:
    other = spark.newSession()
    frame = frame_of(spark, SCHEMA, [{"name": "b", "bounds": [0, 4_294_967_295]}])
    there = in_session(frame, other)
    assert there.sparkSession is other
    assert (there.schema, there.collect()) == (frame.schema, frame.collect())
    assert in_session(frame, spark) is frame
