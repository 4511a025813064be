"""The owner of each bundle, according to ZooKeeper and the brokers, and to the Extensible manager's channel."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from pulsar_advisor.tables.frames import few_rows
from pulsar_advisor.tables.names import is_bundle_name
from pulsar_advisor.tables.raw import RawTables

_STARTING_MINUTES: Final = 5
"""How long a broker takes to start again: what others acquired in this time came from it without an unload."""


def ownership(raw: RawTables) -> DataFrame:
    """(bundle, owner, owner_source, owner_in_zookeeper, claimed_by, is_active, acquired_at_ms) by the last passes.

    `acquired_at_ms`: when the owner acquired it, according to ZooKeeper; null if a broker (re)started in the minutes
    after, which explains the move.
    """
    last = last_lists(raw)
    in_zookeeper, claimed = sf.col("source") == "zookeeper", sf.col("source") == "rest"
    return (
        last.where(is_bundle_name())
        .groupBy("bundle")
        .agg(
            sf.max(sf.when(in_zookeeper, sf.col("broker"))).alias("owner_in_zookeeper"),
            sf.sort_array(sf.collect_set(sf.when(claimed, sf.col("broker")))).alias("claimed_by"),
            sf.max_by(sf.when(claimed, sf.col("broker")), sf.when(claimed, sf.struct("readAt", "broker"))).alias(
                "latest_claim"
            ),
            sf.max(sf.when(in_zookeeper, sf.col("acquiredAt"))).alias("acquired_at_ms"),
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
            "acquired_at_ms",
            _minute("acquired_at_ms").alias("minute"),
        )
        .join(_minutes_of_starts(last), "minute", "left")
        .withColumn("acquired_at_ms", sf.when(sf.col("starting").isNull(), sf.col("acquired_at_ms")))
        .drop("minute", "starting")
    )


def last_lists(raw: RawTables) -> DataFrame:
    """The lines of the last pass of each source. Where ZooKeeper names no owners, the earlier list of a broker that no
    longer answers counts: otherwise all its bundles would count as unowned.
    """
    lines = raw["owned_bundles"]
    # "end" sorts after "begin"
    of_brokers = lines.groupBy("source", "broker").agg(sf.max("pass").alias("of_broker"))
    of_source = "max(of_broker) over (partition by source)"
    last = f"if(bool_or(source = 'zookeeper') over (), {of_source}, of_broker) as last"
    lasts = few_rows(of_brokers.selectExpr("source", "broker", last))
    return lines.join(lasts, ["source", "broker"]).where("pass = last").drop("last")


def _minutes_of_starts(nodes: DataFrame) -> DataFrame:
    """(minute, starting): the minutes in which some broker was starting, or renewing its ZooKeeper session.

    A broker's heartbeat bundle never moves: it is acquired when the broker starts. A renewed session acquires
    every bundle of the broker anew.
    """
    beat = sf.col("bundle") == sf.concat(sf.lit("pulsar/"), "broker", sf.lit("/0x00000000_0xffffffff"))
    at = _minute("acquiredAt")
    return (
        nodes.where(beat & sf.col("acquiredAt").isNotNull())
        .select(sf.explode(sf.sequence(at - _STARTING_MINUTES, at)).alias("minute"), sf.lit(True).alias("starting"))
        .distinct()
    )


def _minute(at_ms: str) -> Column:
    return sf.floor(sf.col(at_ms) / 60_000)


def channel(raw: RawTables) -> DataFrame:
    """(bundle, channel_state, channel_owner, transferred_at_ms) from the Extensible manager's ownership channel.

    `transferred_at_ms`: when the owner took it over from another broker that was alive.

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
            sf.when(
                (sf.col("record.state") == "Owned")
                & sf.col("record.sourceBroker").isNotNull()
                & ~sf.coalesce("record.force", sf.lit(False)),
                sf.col("record.timestamp"),
            ).alias("transferred_at_ms"),
        )
    )
