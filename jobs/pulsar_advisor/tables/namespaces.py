"""The table `namespaces`: boundaries, anti-affinity group and replication of each."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from pulsar_advisor.tables.names import (
    bundle_parts,
    has_implied_range,
    is_bundle_name,
    namespace_kind,
    parsed_boundaries,
)
from pulsar_advisor.tables.raw import RawTables


def namespaces(raw: RawTables, owned: DataFrame, figures: DataFrame) -> DataFrame:
    """One row per namespace: boundaries from ZooKeeper's local policies, which are authoritative, else from REST."""
    listed = raw["namespaces"].select(
        "namespace",
        "antiAffinityGroup",
        parsed_boundaries("document.bundles.boundaries").alias("policies_boundaries"),
        sf.col("document.bundles.numBundles").alias("policies_bundles"),
        sf.coalesce("document.deleted", sf.lit(False)).alias("deleted"),
        sf.col("document.migrated").alias("migrated"),
        sf.col("document.replication_clusters").alias("replication_clusters"),
        sf.lit(True).alias("listed"),
    )
    local = raw["local_policies"].select(
        "namespace",
        sf.col("version").alias("local_policies_version"),
        sf.col("document.namespaceAntiAffinityGroup").alias("local_group"),
        parsed_boundaries("document.bundles.boundaries").alias("local_boundaries"),
        sf.col("document.bundles.numBundles").alias("local_bundles"),
        sf.col("document.migrated").alias("local_migrated"),
    )
    documented = listed.join(local, "namespace", "full").select(
        "namespace",
        sf.coalesce("listed", sf.lit(False)).alias("listed"),
        sf.coalesce("deleted", sf.lit(False)).alias("deleted"),
        sf.expr("coalesce(migrated, false) or coalesce(local_migrated, false)").alias("migrated"),
        sf.coalesce("local_group", "antiAffinityGroup").alias("anti_affinity_group"),
        sf.coalesce("local_boundaries", "policies_boundaries").alias("boundaries"),
        sf.expr(
            "case when local_boundaries is not null then 'local_policies' "
            "when policies_boundaries is not null then 'policies' end"
        ).alias("boundaries_origin"),
        sf.coalesce(sf.expr("local_boundaries = policies_boundaries"), sf.lit(True)).alias("boundaries_agree"),
        sf.coalesce("local_bundles", "policies_bundles").alias("declared_bundles"),
        "local_policies_version",
        "replication_clusters",
    )
    seen = owned.select("bundle").union(figures.where(is_bundle_name()).select("bundle"))
    implied = (
        seen.select(bundle_parts()["namespace"].alias("namespace"))
        .where(has_implied_range())
        .distinct()
        .join(documented, "namespace", "left_anti")
        .selectExpr(
            "namespace",
            "false as listed",
            "false as deleted",
            "false as migrated",
            "array(0L, 4294967295L) as boundaries",
            "'implied' as boundaries_origin",
            "true as boundaries_agree",
        )
    )
    return documented.unionByName(implied, allowMissingColumns=True).withColumn("kind", namespace_kind())
