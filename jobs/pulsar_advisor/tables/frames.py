"""Makes and places frames: from Python values, computed once if used often, in few partitions if small."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

Value = str | int | float | bool | None
Row = Mapping[str, Value | Sequence[Value]]
"""By column name; a missing column is null."""


def frame_of(spark: SparkSession, schema: str, rows: Iterable[Row]) -> DataFrame:
    """Rows by column name as a frame of this schema (DDL); a missing column is null.

    They reach Java as Arrow, so Spark's planner sees them, and no Python worker has to start.
    """
    types = StructType.fromDDL(schema)
    return spark.createDataFrame(pa.Table.from_pylist(list(rows), to_arrow_schema(types)), types)


def no_rows(spark: SparkSession, schema: str) -> DataFrame:
    """A frame of this schema that the planner knows to be empty, so that it removes joins and unions with it."""
    return frame_of(spark, schema, ())


def materialized(frame: DataFrame) -> DataFrame:
    """The same rows, computed once, now. Plans of derived frames start here, not at the source."""
    return frame.localCheckpoint(eager=True, storageLevel=StorageLevel.MEMORY_AND_DISK)


def in_session(frame: DataFrame, spark: SparkSession) -> DataFrame:
    """The same few rows in another session of the same Spark."""
    return frame if frame.sparkSession == spark else spark.createDataFrame(frame.toArrow(), frame.schema)


def in_few_partitions(frame: DataFrame) -> DataFrame:
    """All rows in one partition if the session shuffles into one (a small snapshot), else unchanged."""
    return frame.coalesce(1) if has_one_partition(frame.sparkSession) else frame


def few_rows(frame: DataFrame) -> DataFrame:
    """The same rows, to be broadcast to the other side of a join, unless both are in one partition anyway."""
    return frame if has_one_partition(frame.sparkSession) else sf.broadcast(frame)


def has_one_partition(spark: SparkSession) -> bool:
    """Whether the session shuffles into one partition, as for small snapshots."""
    return bool(spark.conf.get("spark.sql.shuffle.partitions") == "1")


def in_one_partition(frame: DataFrame) -> DataFrame:
    """All rows in one partition, no matter how many partitions compute them."""
    return frame.coalesce(1) if has_one_partition(frame.sparkSession) else frame.repartition(1)
