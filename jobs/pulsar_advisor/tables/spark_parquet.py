"""Writes and reads a snapshot's tables with Spark: Parquet files with nothing beside them."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType
from upath import UPath

from pulsar_advisor.tables.raw import spark_url, url_to_read

_WRITTEN: Final = {
    "compression": "zstd",
    # Dictionary encoding is useless for values that are all different.
    **{f"parquet.enable.dictionary#{name}": "false" for name in ("topic", "hash")},
    # Only our own result file says that tables are complete: nothing reads Hadoop's `_SUCCESS`.
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    # Parquet has a checksum in every page. On a local disk, Hadoop would write a file of its own checksums, too.
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    # Otherwise the job would use the session's existing file system instance.
    "fs.file.impl.disable.cache": "true",
}
_READ: Final = {"parquet.page.verify-checksum.enabled": "true"}


def write_parquet(frame: DataFrame, folder: UPath) -> None:
    """Write a frame into a folder, one file per partition, replacing its content."""
    frame.write.mode("overwrite").options(**_WRITTEN).parquet(spark_url(folder))


def read_parquet(spark: SparkSession, schema: str | StructType, folder: UPath) -> DataFrame:
    """The rows of a folder; reading a page that isn't as it was written fails."""
    return spark.read.schema(schema).options(**_READ).parquet(url_to_read(folder))
