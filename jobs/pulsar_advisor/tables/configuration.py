"""The tables `policies` and `settings`: isolation policies, and every configuration value."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from pulsar_advisor.tables.raw import RawTables


def policies(raw: RawTables) -> DataFrame:
    """One row per isolation policy, numbered in the order in which Pulsar returned them."""
    no_patterns = sf.array().cast("array<string>")
    in_the_order_read = Window.orderBy(sf.monotonically_increasing_id())
    parameter = "document.auto_failover_policy.parameters['{}']"
    return raw["isolation_policies"].select(
        (sf.row_number().over(in_the_order_read) - 1).alias("position"),
        "name",
        *(
            sf.coalesce(f"document.{field}", no_patterns).alias(field)
            for field in ("namespaces", "primary", "secondary")
        ),
        sf.col("document.auto_failover_policy.policy_type").alias("policy_type"),
        sf.expr(f"try_cast({parameter.format('min_limit')} as int)").alias("min_limit"),
        sf.expr(f"try_cast({parameter.format('usage_threshold')} as int)").alias("usage_threshold_percent"),
        sf.col("document.unload_scope").alias("unload_scope"),
    )


def settings(raw: RawTables) -> DataFrame:
    """One row per configuration value."""
    return raw["settings"].select("origin", "broker", sf.explode("values").alias("key", "value"))
