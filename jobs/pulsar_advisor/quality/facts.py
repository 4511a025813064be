"""The tables as the suites look at them: facts across rows and tables joined once, as columns.

Only the fresh view is judged: advice is made from it. The published view is what the leader acts on, right or wrong.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from pulsar_advisor.storage import Root
from pulsar_advisor.tables.raw import spark_url

_REQUIRED_SURFACES: Final = ("brokers", "load_reports", "namespaces", "owned_bundles", "topic_stats")
"""Without these there is no fresh view of the whole cluster."""

_FIGURES: Final = (
    "msg_rate_in_per_s",
    "msg_rate_out_per_s",
    "msg_throughput_in_bytes_per_s",
    "msg_throughput_out_bytes_per_s",
)


def facts(spark: SparkSession, root: Root, snapshot: str) -> dict[str, DataFrame]:
    """Table name -> rows with the columns of the table and the facts its suite speaks of."""

    def table(name: str) -> DataFrame:
        return spark.read.parquet(spark_url(root.folder(f"tables/{name}", snapshot)))

    brokers = table("brokers").where("view = 'fresh'")
    return {
        "brokers": _brokers(brokers),
        "bundles": _bundles(table("bundles").where("view = 'fresh'"), brokers),
        "namespaces": _namespaces(table("namespaces")),
        "problems": _problems(table("problems")),
        "settings": table("settings"),
        "topics": _topics(table("topics")),
    }


def _brokers(brokers: DataFrame) -> DataFrame:
    """Facts: is_leader as 0 or 1, minutes between the report's writing and its reading, usage in percent."""
    percents = {
        f"{resource}_percent": sf.expr(f"if({resource}_limit > 0, 100 * {resource}_usage / {resource}_limit, null)")
        for resource in ("cpu", "memory", "direct_memory", "bandwidth_in", "bandwidth_out")
    }
    return brokers.withColumns(
        {
            "leaders": sf.col("is_leader").cast("int"),
            "report_age_minutes": sf.expr("(report_read_at_ms - report_updated_at_ms) / 60000D"),
            **percents,
        }
    )


def _bundles(bundles: DataFrame, brokers: DataFrame) -> DataFrame:
    """Facts: distance to the neighbours on the ring, whether owner and figures stand up to a second source."""
    active = brokers.where("available").select(sf.col("broker").alias("owner"), sf.lit(True).alias("active"))
    ring = "partition by namespace, in_boundaries order by lower, upper"
    return bundles.join(active, "owner", "left").selectExpr(
        "*",
        f"if(in_boundaries, coalesce(lead(lower) over ({ring}), 4294967295) - upper, null) as gap_to_next",
        f"if(in_boundaries, lower - coalesce(lag(upper) over ({ring}), 0), null) as gap_to_previous",
        "if(owner is null, null, coalesce(active, false)) as owner_is_active",
        "size(claimed_by) as claims",
        "if(owner_in_zookeeper is null or size(claimed_by) = 0, null, array_contains(claimed_by, owner_in_zookeeper)) "
        "as owners_agree",
        "if(reported, coalesce(figures_broker = owner, false), null) as figures_are_the_owners",
        "size(reported_by) as reports",
        f"if(reported, {' + '.join(f'int({figure} is null)' for figure in _FIGURES)}, null) as missing_figures",
    )


def _namespaces(namespaces: DataFrame) -> DataFrame:
    """Facts: unreadable bounds, ranges that the document doesn't declare."""
    return namespaces.where("not deleted").selectExpr(
        "*",
        "size(filter(boundaries, b -> b is null)) as unreadable_boundaries",
        "size(boundaries) - 1 - declared_bundles as undeclared_ranges",
    )


def _problems(problems: DataFrame) -> DataFrame:
    """Facts: what a problem costs; a broker's own documents cost that broker, others the cluster."""
    required = ", ".join(f"'{surface}'" for surface in _REQUIRED_SURFACES)
    return problems.selectExpr(
        "*",
        f"problem in ('missing', 'failure') and broker is null and surface in ({required}) as required_is_missing",
        f"problem in ('missing', 'failure') and broker is null and surface not in ({required}) as optional_is_missing",
        "problem in ('missing', 'failure') and broker is not null as brokers_document_is_missing",
        "problem = 'unreadable_line' and broker is not null as brokers_line_is_unreadable",
        "problem = 'unreadable_line' and broker is null as clusters_line_is_unreadable",
        "problem = 'bad_name' as name_is_unreadable",
    )


def _topics(topics: DataFrame) -> DataFrame:
    """Facts: whether a loaded topic was reported under the range that its hash falls in."""
    return topics.selectExpr(
        "*",
        "if(loaded, reported_range = format_string('0x%08x_0x%08x', lower, upper), null) as hash_is_in_reported_range",
        "if(loaded, coalesce(lower is not null, false), null) as loaded_in_a_range",
    )
