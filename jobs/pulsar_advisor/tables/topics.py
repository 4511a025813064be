"""The table `topics`: every topic by name, with its position on the hash ring and its traffic if it is loaded."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from pulsar_advisor.tables.names import ranges_of, traffic_of, with_range
from pulsar_advisor.tables.raw import RawTables
from pulsar_advisor.tables.schemas import TRAFFIC


def topics(raw: RawTables, owned: DataFrame, namespaces_: DataFrame) -> DataFrame:
    """One row per topic: every listed topic, every partition, and every loaded topic."""
    partitions = (
        raw["partitioned_topics"]
        .where("partitions > 0")
        .select(
            "namespace",
            "domain",
            sf.expr("explode(transform(sequence(0, partitions - 1), i -> concat(topic, '-partition-', i))) as topic"),
        )
    )
    named = (
        raw["topic_names"]
        .select("namespace", "domain", "topic")
        .union(partitions)
        .select("*", sf.lit(True).alias("named"), sf.lit(None).alias("shown"))
    )
    owners = owned.select("bundle", "owner")
    loaded = (
        raw["topic_stats"]
        .withColumn("bundle", sf.concat_ws("/", "namespace", "range"))
        .join(owners, "bundle", "left")
        .select(
            "namespace",
            "domain",
            "topic",
            sf.lit(False).alias("named"),
            sf.struct(
                sf.expr("coalesce(broker = owner, false)").alias("is_owner"),
                "broker",
                "range",
                sf.struct(*(f"stats.{field}" for field in (*TRAFFIC, "producerCount", "storageSize"))).alias("stats"),
            ).alias("shown"),
        )
    )
    rows = (
        loaded.union(named)
        .withColumn("key", sf.xxhash64("topic"))  # names begin alike, so comparing them is what sorting would cost
        .repartition("key")  # before the aggregation, which would sort once more on either side of its exchange
        .groupBy("key", "topic")
        .agg(
            sf.max("namespace").alias("namespace"),
            sf.max("domain").alias("domain"),
            sf.max("named").alias("named"),
            sf.max("shown").alias("shown"),
            sf.count("shown").alias("reports"),
        )
        .withColumns(
            {
                "hash": sf.crc32(sf.encode("topic", "UTF-8")),
                "loaded": sf.col("shown").isNotNull(),
                "broker": sf.col("shown.broker"),
                "reported_range": sf.col("shown.range"),
                **traffic_of("shown.stats"),
                "producers": sf.col("shown.stats.producerCount"),
                "storage_size_bytes": sf.col("shown.stats.storageSize"),
            }
        )
        .drop("shown", "key")
    )
    return with_range(rows, ranges_of(namespaces_.where("not deleted")))
