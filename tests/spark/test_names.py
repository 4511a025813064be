"""Names in Spark SQL are read by the rules of the model: the whole text, or nothing of it."""

import pytest
from pyspark.sql import SparkSession

from pulsar_advisor.tables.names import is_bundle_name, namespace_kind, parsed_boundaries

pytestmark = pytest.mark.spark


def test_a_line_end_is_no_part_of_a_name_or_bound(spark: SparkSession) -> None:
    names = ["a/b/0x00000000_0x80000000", "a/b/0x00000000_0x80000000\n", "a/b/0x80000000_0x80000000"]
    rows = spark.createDataFrame([(name,) for name in names], "bundle string").select(is_bundle_name())
    assert [row[0] for row in rows.collect()] == [True, False, False]
    namespaces = spark.createDataFrame([("pulsar/b:8080",), ("pulsar/b:8080\n",)], "namespace string")
    assert [row[0] for row in namespaces.select(namespace_kind()).collect()] == ["heartbeat", "user"]
    texts = spark.createDataFrame([(["0x80000000", "0x80000000\n"],)], "texts array<string>")
    (found,) = texts.select(parsed_boundaries("texts")).collect()
    assert found[0] == [0x80000000, None]
