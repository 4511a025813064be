"""Tables as Spark writes and reads them: nothing beside the files, and no page that isn't as it was written."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from upath import UPath

from pulsar_advisor.tables.spark_parquet import read_parquet, write_parquet

pytestmark = pytest.mark.spark


def test_a_table_is_its_files_and_nothing_else(spark: SparkSession, tmp_path: Path) -> None:
    folder = UPath(tmp_path / "rows")
    for rows in (2, 3):
        write_parquet(spark.range(rows).repartition(2), folder)
    assert read_parquet(spark, "id bigint", folder).count() == 3
    assert len(list(folder.iterdir())) == 2
    assert {path.suffix for path in folder.iterdir()} == {".parquet"}


def test_a_bit_that_flipped_since_is_found(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "part-0.parquet"
    pq.write_table(
        pa.table({"owner": ["a:8080"]}), file, compression="none", write_page_checksum=True, write_statistics=False
    )
    assert read_parquet(spark, "owner string", UPath(tmp_path)).collect()[0]["owner"] == "a:8080"
    file.write_bytes(file.read_bytes().replace(b"a:8080", b"b:8080"))
    with pytest.raises(Py4JJavaError, match="CRC checksum verification failed"):
        read_parquet(spark, "owner string", UPath(tmp_path)).collect()
