from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from pulsar_advisor.tables.session import spark_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One real session for the whole run."""
    session = spark_session("local[2]", "tests")
    yield session
    session.stop()


@pytest.fixture
def many_partitions(spark: SparkSession) -> Iterator[SparkSession]:
    """The session with the partitions of a large snapshot."""
    spark.conf.set("spark.sql.shuffle.partitions", 8)
    yield spark
    spark.conf.set("spark.sql.shuffle.partitions", 1)
