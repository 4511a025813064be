"""How frames are made and placed: of Python values, computed once where several need them, in few partitions if few."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType


def frame_of(spark: SparkSession, schema: str, rows: Iterable[Mapping[str, Any]]) -> DataFrame:
    """Rows by column name as a frame of this schema (DDL); a column that a row lacks is null.

    They go to Java as Arrow: Spark's planner sees them, and no Python worker has to start for them.
    """
    types = StructType.fromDDL(schema)
    return spark.createDataFrame(pa.Table.from_pylist(list(rows), to_arrow_schema(types)), types)


def no_rows(spark: SparkSession, schema: str) -> DataFrame:
    """A frame of this schema that the planner knows to be empty: it leaves out joins and unions with it."""
    return frame_of(spark, schema, ())


def materialized(frame: DataFrame) -> DataFrame:
    """The same rows, computed now and once. What is derived from them is planned without what they were made of."""
    return frame.localCheckpoint(eager=True, storageLevel=StorageLevel.MEMORY_AND_DISK)


def in_few_partitions(frame: DataFrame) -> DataFrame:
    """All rows in one partition where the session has one for what it shuffles (a small snapshot), else as they are."""
    return frame.coalesce(1) if _has_one_partition(frame) else frame


def few_rows(frame: DataFrame) -> DataFrame:
    """The same rows, to be sent to where the other side of a join is, unless that is the same partition anyway."""
    return frame if _has_one_partition(frame) else sf.broadcast(frame)


def _has_one_partition(frame: DataFrame) -> bool:
    return bool(frame.sparkSession.conf.get("spark.sql.shuffle.partitions") == "1")


def in_one_partition(frame: DataFrame) -> DataFrame:
    """All rows in one partition, however many others they are computed in."""
    return frame.coalesce(1) if _has_one_partition(frame) else frame.repartition(1)
