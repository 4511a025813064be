"""The tables of a snapshot as Spark writes and reads them: Parquet files with nothing beside them."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType
from upath import UPath

from pulsar_advisor.tables.raw import spark_url, url_to_read

_WRITTEN: Final = {
    "compression": "zstd",
    # A dictionary of values that are all different would be filled in vain.
    **{f"parquet.enable.dictionary#{name}": "false" for name in ("topic", "hash")},
    # Only our own result says that tables are complete: nothing reads Hadoop's `_SUCCESS`.
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    # Parquet has a checksum in every page, on every store. Hadoop would write another file of them on a local one.
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    # Otherwise the job takes the instance that the session has already.
    "fs.file.impl.disable.cache": "true",
}
_READ: Final = {"parquet.page.verify-checksum.enabled": "true"}


def write_parquet(frame: DataFrame, folder: UPath) -> None:
    """Write a frame into a folder, a file for each partition; what it holds is replaced."""
    frame.write.mode("overwrite").options(**_WRITTEN).parquet(spark_url(folder))


def read_parquet(spark: SparkSession, schema: str | StructType, folder: UPath) -> DataFrame:
    """The rows of a folder; reading a page that isn't as it was written fails."""
    return spark.read.schema(schema).options(**_READ).parquet(url_to_read(folder))
