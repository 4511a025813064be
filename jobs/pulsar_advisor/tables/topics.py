"""The table `topics`: every topic by name, with its position on the hash ring and its traffic if it is loaded."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from pulsar_advisor.tables.columns import SEGMENT_LOAD, TRAFFIC
from pulsar_advisor.tables.names import ranges_of, traffic_of, with_range
from pulsar_advisor.tables.raw import RawTables


def topics(raw: RawTables, owned: DataFrame, namespaces_: DataFrame) -> DataFrame:
    """One row per topic: every listed topic, every partition, every segment, and every loaded topic."""
    partitions = (
        raw["partitioned_topics"]
        .where("partitions > 0")
        .select(
            "namespace",
            sf.expr("explode(transform(sequence(0, partitions - 1), i -> concat(topic, '-partition-', i))) as topic"),
        )
    )
    no_segment = sf.lit(None).alias("segment")
    named = (
        raw["topic_names"]
        .select("namespace", "topic")
        .union(partitions)
        .select("*", no_segment)
        .union(raw["segments"].select("namespace", "topic", _segment().alias("segment")))
        .select("namespace", "topic", sf.lit(True).alias("named"), sf.lit(None).alias("shown"), "segment")
    )
    owners = owned.select("bundle", "owner")
    loaded = (
        raw["topic_stats"]
        .withColumn("bundle", sf.concat_ws("/", "namespace", "range"))
        .join(owners, "bundle", "left")
        .select(
            "namespace",
            "topic",
            sf.lit(False).alias("named"),
            sf.struct(
                sf.expr("coalesce(broker = owner, false)").alias("is_owner"),
                "broker",
                "range",
                sf.struct(*(f"stats.{field}" for field in (*TRAFFIC, "producerCount", "storageSize"))).alias("stats"),
            ).alias("shown"),
            no_segment,
        )
    )
    rows = (
        loaded.union(named)
        .withColumn("key", sf.xxhash64("topic"))  # names share prefixes, which makes sorting by them slow
        .repartition("key")  # before the aggregation, which would otherwise sort on both sides of its exchange
        .groupBy("key", "topic")
        .agg(
            sf.max("namespace").alias("namespace"),
            sf.max("named").alias("named"),
            sf.max("shown").alias("shown"),
            sf.count("shown").alias("reports"),
            sf.max("segment").alias("segment"),
        )
        .withColumns(
            {
                "domain": sf.substring_index("topic", "://", 1),  # Pulsar reports segments as persistent
                "hash": sf.crc32(sf.encode("topic", "UTF-8")),
                "loaded": sf.col("shown").isNotNull(),
                "broker": sf.col("shown.broker"),
                "reported_range": sf.col("shown.range"),
                **traffic_of("shown.stats"),
                "producers": sf.col("shown.stats.producerCount"),
                "storage_size_bytes": sf.col("shown.stats.storageSize"),
                "scalable_topic": sf.coalesce("segment.scalableTopic", _of_name("topic://", 1)),
                "segment_id": sf.coalesce("segment.document.segmentId", _of_name("", 2).cast("bigint")),
                "segment_state": sf.col("segment.document.state"),
                "segment_parents": sf.col("segment.document.parentIds"),
                "segment_children": sf.col("segment.document.childIds"),
                **{
                    f"controller_{name}": sf.when(
                        sf.col("segment.loadModifiedAt").isNotNull(), sf.col(f"segment.load.{field}")
                    )
                    for field, name in SEGMENT_LOAD.items()
                },
                "controller_load_modified_at_ms": sf.col("segment.loadModifiedAt"),
            }
        )
        .drop("shown", "segment", "key")
    )
    return with_range(rows, ranges_of(namespaces_.where("not deleted")))


def _of_name(prefix: str, group: int) -> Column:
    """A part (topic or id) of the name of a segment that is loaded but in no layout."""
    part = sf.regexp_extract("topic", "^segment://(.+)/[0-9a-f]{4}-[0-9a-f]{4}-([0-9]{1,18})$", group)
    return sf.when(sf.col("topic").startswith("segment://") & (part != ""), sf.concat(sf.lit(prefix), part))


def _segment() -> Column:
    """A segment's row in a layout; the greatest is the one with the latest load that its controller knows."""
    return sf.struct("loadModifiedAt", "load", "scalableTopic", "document")
