"""The table `brokers`: registration, load report and stored averages of each broker, in each view."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from pulsar_advisor.model.cluster.cluster_state import View
from pulsar_advisor.tables.columns import TRAFFIC
from pulsar_advisor.tables.raw import RawTables


def brokers(
    raw: RawTables,
    reports: DataFrame,
    owned: DataFrame,
    views: Sequence[View],
    *,
    incomplete: Sequence[str],
    leader: str | None,
) -> DataFrame:
    """One row per broker and view: every registered broker and any other that reported. `leader`: the leader's id."""
    registered = (
        raw["brokers"]
        .groupBy("broker")
        .agg(
            sf.max("webServiceUrl").alias("registered_url"),
            sf.max("version").alias("registered_version"),
            sf.max("available").alias("available"),
            sf.max("clockAheadMs").alias("clock_ahead_ms"),
        )
    )
    rows = (
        registered.select("broker")
        .union(reports.select("broker"))
        .distinct()
        .select(sf.explode(sf.lit(list(views))).alias("view"), "broker")
    )
    domains = (
        raw["failure_domains"]
        .select(sf.explode("brokers").alias("broker"), "domain")
        .groupBy("broker")
        .agg(sf.min("domain").alias("failure_domain"))
    )
    class_names = (
        raw["settings"]
        .where("origin = 'runtime'")
        .groupBy("broker")
        .agg(sf.max(sf.expr("values['loadManagerClassName']")).alias("configured_class_name"))
    )
    averages = (
        raw["broker_time_averages"]
        .groupBy("broker")
        .agg(sf.max_by(sf.struct("modifiedAt", "document"), "modifiedAt").alias("averages"))
    )
    stored = {
        f"{prefix}{name}": sf.col(f"averages.document.{term}{field[0].upper()}{field[1:]}")
        for term, prefix in (("shortTerm", "stored_short_term_"), ("longTerm", "stored_long_term_"))
        for field, name in TRAFFIC.items()
    }
    reported = sf.col("report").isNotNull()
    return (
        rows.join(registered, "broker", "left")
        .join(reports, ["view", "broker"], "left")
        .join(
            owned.groupBy(sf.col("owner").alias("broker")).agg(sf.count("*").alias("owned_bundles")), "broker", "left"
        )
        .join(domains, "broker", "left")
        .join(class_names, "broker", "left")
        .join(averages, "broker", "left")
        .select("*", "report.*")
        .withColumns(
            {
                "web_service_url": sf.coalesce("registered_url", "report.web_service_url"),
                "reported_web_service_url": sf.col("report.web_service_url"),
                "version": sf.coalesce("registered_version", "report.version"),
                "load_manager_class_name": sf.coalesce("report.load_manager_class_name", "configured_class_name"),
                "is_leader": sf.col("broker") == sf.lit(leader) if leader else sf.lit(False),
                "available": sf.coalesce("available", sf.lit(False)),
                "complete": reported & ~sf.col("broker").isin(list(incomplete)) if incomplete else reported,
                "reported": reported,
                "listed_bundles": sf.when(reported, sf.size("report.listed")).otherwise(0),
                "bundles_with_figures": sf.when(sf.col("report.stats").isNotNull(), sf.size("report.stats")).otherwise(
                    0
                ),
                "owned_bundles": sf.coalesce("owned_bundles", sf.lit(0)),
                "stored_averages_modified_at_ms": sf.col("averages.modifiedAt"),
                **stored,
            }
        )
    )
