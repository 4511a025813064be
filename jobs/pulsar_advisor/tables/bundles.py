"""The table `bundles`: owner, figures, averages and last unload of every bundle range, in each view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from pulsar_advisor.model.averages import DEFAULT_FIGURES, LONG_TERM_MAX_SAMPLES, SHORT_TERM_MAX_SAMPLES
from pulsar_advisor.model.cluster_state import View
from pulsar_advisor.tables.names import bundle_name, bundle_parts, is_bundle_name, namespace_kind, ranges_of, traffic_of
from pulsar_advisor.tables.ownership import channel
from pulsar_advisor.tables.raw import RawTables
from pulsar_advisor.tables.reports import top_bundles
from pulsar_advisor.tables.schemas import TRAFFIC

_DEFAULTS: Final = dict(zip(TRAFFIC.values(), DEFAULT_FIGURES, strict=True))


GOES_ON: Final = (
    "owner",
    *(f"{term}_term_{name}" for term in ("short", "long") for name in (*TRAFFIC.values(), "samples")),
    "last_unloaded_at_ms",
    "last_unloaded_origin",
)
"""Columns of a bundle's row that the next snapshot continues from."""


def bundles(
    raw: RawTables,
    reports: DataFrame,
    owned: DataFrame,
    figures: DataFrame,
    namespaces_: DataFrame,
    earlier: DataFrame,
    views: Sequence[View],
    *,
    moved: Sequence[str],
    captured_at_ms: int,
    bundle_data_interval_minutes: int,
) -> DataFrame:
    """One row per bundle range and view.

    `earlier`: (view, bundle, earlier), with the columns of `GOES_ON` from the previous snapshot, and its time
    `captured_at_ms`; no rows without a previous snapshot. `moved`: bundles whose owner changed during the capture.
    """
    figures = figures.where(is_bundle_name("bundle"))
    ranges = ranges_of(namespaces_.where("not deleted")).select(
        bundle_name().alias("bundle"), sf.lit(True).alias("is_range")
    )
    rows = (
        ranges.union(owned.select("bundle", sf.lit(False)))
        .select(sf.explode(sf.lit(list(views))).alias("view"), "bundle", "is_range")
        .union(figures.select("view", "bundle", sf.lit(False)))
        .groupBy("view", "bundle")
        .agg(sf.max("is_range").alias("in_boundaries"))
        .join(owned, "bundle", "left")
        .withColumns(bundle_parts("bundle"))
    )
    shown = (
        figures.join(owned.select("bundle", "owner"), "bundle", "left")
        .groupBy("view", "bundle")
        .agg(
            sf.max_by(
                sf.struct("broker", "stats"),
                sf.struct(sf.expr("coalesce(broker = owner, false)"), "report_updated_at_ms", "broker"),
            ).alias("shown"),
            sf.sort_array(sf.collect_set("broker")).alias("reported_by"),
        )
    )
    listed = (
        reports.select("view", sf.col("broker").alias("owner"), sf.explode("report.listed").alias("bundle"))
        .distinct()
        .withColumn("listed", sf.lit(True))
    )
    joined = (
        rows.join(shown, ["view", "bundle"], "left")
        .join(listed, ["view", "owner", "bundle"], "left")
        .join(_changes(reports, "gains"), ["view", "bundle"], "left")
        .join(_changes(reports, "losses"), ["view", "bundle"], "left")
        .join(earlier, ["view", "bundle"], "left")
        .join(raw["bundle_data"].select("bundle", "modifiedAt", sf.col("document").alias("stored")), "bundle", "left")
        .join(channel(raw), "bundle", "left")
        .join(
            top_bundles(raw).select(
                sf.lit("published").alias("view"), "bundle", sf.col("broker").alias("owner"), "position"
            ),
            ["view", "owner", "bundle"],
            "left",
        )
    )
    oldest_ms = captured_at_ms - 2 * bundle_data_interval_minutes * 60_000
    origin = sf.expr(
        f"case when in_boundaries and modifiedAt >= {oldest_ms} and stored.longTermData.numSamples is not null "
        "then 'bundle_data' when shown is null then 'default' "
        "when earlier.long_term_samples > 0 then 'folded' else 'one_sample' end"
    )
    has_moved = sf.col("bundle").isin(list(moved)) if moved else sf.lit(False)
    no_brokers = sf.array().cast("array<string>")
    return joined.withColumns(
        {
            "kind": namespace_kind(),
            "claimed_by": sf.coalesce("claimed_by", no_brokers),
            "is_active": sf.coalesce("is_active", sf.lit(True)),
            "moved": has_moved,
            "listed": sf.coalesce("listed", sf.lit(False)),
            "reported": sf.col("shown").isNotNull(),
            "reported_by": sf.coalesce("reported_by", no_brokers),
            "figures_broker": sf.col("shown.broker"),
            **traffic_of("shown.stats"),
            "topics": sf.col("shown.stats.topics"),
            "producers": sf.col("shown.stats.producerCount"),
            "consumers": sf.col("shown.stats.consumerCount"),
            "cache_size_bytes": sf.col("shown.stats.cacheSize"),
            "top_bundle_position": sf.col("position"),
            "averages_origin": origin,
            "bundle_data_modified_at_ms": sf.col("modifiedAt"),
            "last_unloaded": _last_unloaded(has_moved, captured_at_ms),
        }
    ).withColumns(
        {
            "last_unloaded_at_ms": sf.col("last_unloaded.at_ms"),
            "last_unloaded_origin": sf.col("last_unloaded.origin"),
            **_averages("short_term_", "stored.shortTermData", SHORT_TERM_MAX_SAMPLES),
            **_averages("long_term_", "stored.longTermData", LONG_TERM_MAX_SAMPLES),
        }
    )


def _changes(reports: DataFrame, change: str) -> DataFrame:
    """(view, bundle, <change>_at_ms): when a broker last reported the gain or loss of a bundle."""
    return (
        reports.select("view", sf.explode(f"report.{change}").alias("bundle"), "report.report_updated_at_ms")
        .groupBy("view", "bundle")
        .agg(sf.max("report_updated_at_ms").alias(f"{change}_at_ms"))
    )


def _last_unloaded(has_moved: Column, captured_at_ms: int) -> Column:
    """(at_ms, origin) of the latest unload in any source, else null; see the comment of the column."""
    since = "earlier.captured_at_ms"
    came_back = sf.expr(f"earlier.owner is not null and coalesce(gains_at_ms, 0) > {since}")
    owner_changed = sf.expr(f"owner <> earlier.owner and coalesce(losses_at_ms, 0) <= {since}") & ~came_back
    known = sf.array(
        *(
            sf.struct(at_ms.cast("bigint").alias("at_ms"), origin.alias("origin"))
            for at_ms, origin in (
                (sf.col("earlier.last_unloaded_at_ms"), sf.col("earlier.last_unloaded_origin")),
                (sf.col("losses_at_ms"), sf.lit("report_losses")),
                (sf.when(came_back, sf.col("gains_at_ms")), sf.lit("report_gains")),
                (sf.when(owner_changed, sf.lit(captured_at_ms)), sf.lit("owner_changed")),
                (sf.when(has_moved, sf.lit(captured_at_ms)), sf.lit("moved_in_capture")),
            )
        )
    )
    return sf.array_max(sf.filter(known, lambda unload: unload["at_ms"].isNotNull()))


def _averages(prefix: str, stored: str, max_samples: int) -> dict[str, Column]:
    """One average by its origin: the stored node, that of earlier snapshots plus one sample, or Pulsar's defaults.

    Without an earlier average, the sample is the only one. The formula is that of Pulsar's `TimeAverageMessageData`: a
    plain mean up to `max_samples`, then the sample has weight 1 / max_samples.
    """
    origin = sf.col("averages_origin")
    before = sf.coalesce(f"earlier.{prefix}samples", sf.lit(0))
    samples = sf.least(before + 1, sf.lit(max_samples))

    def by_origin(of_node: Column, of_samples: Column, default: Column) -> Column:
        return sf.when(origin == "bundle_data", of_node).when(origin == "default", default).otherwise(of_samples)

    def folded(name: str) -> Column:
        return ((samples - 1) * sf.coalesce(f"earlier.{prefix}{name}", sf.lit(0.0)) + sf.col(name)) / samples

    return {
        prefix + name: by_origin(sf.col(f"{stored}.{field}"), folded(name), sf.lit(_DEFAULTS[name]))
        for field, name in TRAFFIC.items()
    } | {f"{prefix}samples": by_origin(sf.col(f"{stored}.numSamples"), samples, sf.lit(0))}
