from importlib.metadata import version

import pyspark
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

pytestmark = pytest.mark.spark


def test_python_side_client_and_jars_are_of_one_version(spark: SparkSession) -> None:
    # Both distributions install the package `pyspark`; with different versions the one installed last breaks the other.
    assert {pyspark.__version__, version("pyspark"), version("pyspark-client")} == {spark.version}


def test_a_local_session_listens_on_loopback_only_and_has_no_web_page(spark: SparkSession) -> None:
    assert spark.conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert spark.sparkContext.uiWebUrl is None


def test_times_are_utc(spark: SparkSession) -> None:
    text = spark.range(1).select(sf.timestamp_millis(sf.lit(1_795_249_800_000)).cast("string")).first()
    assert text is not None
    assert text[0] == "2026-11-21 08:30:00"
