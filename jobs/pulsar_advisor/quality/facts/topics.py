"""The facts that the suite of topics uses."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from pulsar_advisor.model.cluster.cluster_state import HIGHEST_FIGURE
from pulsar_advisor.quality.facts.figures import HIGHEST_COUNT, impossible
from pulsar_advisor.tables.frames import few_rows, materialized


def facts_of_topics(topics: DataFrame) -> DataFrame:
    """Facts: how often the topic appears, whether it was reported under the range that contains its hash, whether a
    loaded segment is in its topic's layout, impossible counts.
    """

    def bound(column: str) -> str:  # format_string takes ten times as long
        return f"concat('0x', lpad(lower(hex({column})), 8, '0'))"

    # Names hardly ever repeat, and comparing hashes shows that in a fraction of the time that a million names would
    # take.
    alike = topics.groupBy(sf.xxhash64("topic").alias("name_hash")).agg(sf.count("*").alias("rows")).where("rows > 1")
    suspects = materialized(alike)
    if suspects.isEmpty():
        counted = topics.withColumn("occurrences", sf.lit(1))
    else:
        suspected = topics.join(few_rows(suspects), sf.xxhash64("topic") == sf.col("name_hash"), "left_semi")
        repeated = suspected.groupBy("topic").agg(sf.count("*").alias("occurrences"))
        counted = topics.join(few_rows(repeated), "topic", "left").fillna(1, "occurrences")
    return counted.selectExpr(
        "*",
        f"if(loaded, reported_range = concat({bound('lower')}, '_', {bound('upper')}), null) "
        "as hash_is_in_reported_range",
        "if(loaded, coalesce(lower is not null, false), null) as loaded_in_a_range",
        "if(loaded and domain = 'segment', named, null) as segment_is_in_a_layout",
        f"if(loaded, {impossible({'producers': HIGHEST_COUNT, 'coalesce(storage_size_bytes, 0)': HIGHEST_FIGURE})}, "
        "null) as impossible_counts",
    )
