"""Who owns each bundle: by ZooKeeper and the brokers, and by the Extensible manager's channel."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from pulsar_advisor.tables.names import is_bundle_name
from pulsar_advisor.tables.raw import RawTables


def ownership(raw: RawTables) -> DataFrame:
    """(bundle, owner, owner_source, owner_in_zookeeper, claimed_by, is_active) by the last pass of each source."""
    # "end" sorts after "begin"
    last = raw["owned_bundles"].withColumn("last", sf.expr("max(pass) over (partition by source)")).where("pass = last")
    in_zookeeper, claimed = sf.col("source") == "zookeeper", sf.col("source") == "rest"
    return (
        last.where(is_bundle_name("bundle"))
        .groupBy("bundle")
        .agg(
            sf.max(sf.when(in_zookeeper, sf.col("broker"))).alias("owner_in_zookeeper"),
            sf.sort_array(sf.collect_set(sf.when(claimed, sf.col("broker")))).alias("claimed_by"),
            sf.max_by(sf.when(claimed, sf.col("broker")), sf.when(claimed, sf.struct("readAt", "broker"))).alias(
                "latest_claim"
            ),
            sf.min(sf.when(in_zookeeper, sf.coalesce("isActive", sf.lit(True)))).alias("active_in_zookeeper"),
            sf.min(sf.when(claimed, sf.coalesce("isActive", sf.lit(True)))).alias("claim_active"),
        )
        .select(
            "bundle",
            sf.coalesce("owner_in_zookeeper", "latest_claim").alias("owner"),
            sf.when(sf.col("owner_in_zookeeper").isNotNull(), "zookeeper").otherwise("rest").alias("owner_source"),
            "owner_in_zookeeper",
            "claimed_by",
            sf.coalesce("active_in_zookeeper", "claim_active").alias("is_active"),
        )
    )


def channel(raw: RawTables) -> DataFrame:
    """(bundle, channel_state, channel_owner) by the Extensible manager's ownership channel.

    Source: Pulsar `ServiceUnitStateData`, `ServiceUnitStateChannelImpl.getOwner` (3.0.7 to 4.2.4).
    """
    return (
        raw["service_unit_states"]
        .groupBy("bundle")
        .agg(sf.max_by("document", "source").alias("record"))
        .select(
            "bundle",
            sf.col("record.state").alias("channel_state"),
            sf.when(sf.col("record.state") == "Splitting", sf.col("record.sourceBroker"))
            .when(sf.col("record.state").isin("Owned", "Assigning", "Releasing"), sf.col("record.dstBroker"))
            .alias("channel_owner"),
        )
    )
