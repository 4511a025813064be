"""The table `bundles`: owner, figures, averages and last unload of every bundle range, in each view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from pulsar_advisor.model.cluster.cluster_state import View
from pulsar_advisor.model.load.averages import DEFAULT_FIGURES, MAX_SAMPLES
from pulsar_advisor.tables.averages import TERMS, average, figures_of, leader_averages, sample, with_samples
from pulsar_advisor.tables.columns import TRAFFIC
from pulsar_advisor.tables.names import bundle_name, bundle_parts, is_bundle_name, namespace_kind, ranges_of, traffic_of
from pulsar_advisor.tables.ownership import channel
from pulsar_advisor.tables.raw import RawTables
from pulsar_advisor.tables.reports import top_bundles

_DEFAULTS: Final = dict(zip(TRAFFIC.values(), DEFAULT_FIGURES, strict=True))


GOES_ON: Final = (
    "owner",
    "listed",
    "reported",
    *TRAFFIC.values(),
    *(f"{term}_{name}" for term in TERMS for name in (*TRAFFIC.values(), "samples")),
    "averages_origin",
    "averages_folded_samples",
    "averages_unknown_samples",
    "bundle_data_modified_at_ms",
    "last_unloaded_at_ms",
    "last_unloaded_origin",
)
"""Columns of a bundle's row that the next snapshot continues from."""

_IS_LEADERS: Final = "leader is not null and averages_origin in ('bundle_data', 'folded')"
"""Whether each report that the leader folded is a sample; otherwise, one each snapshot is as good as is known."""

_TIMES: Final = "report.changed_until_ms as until_ms, report.report_updated_at_ms as since_ms"
"""For the gains and losses in a report: the latest moment at which they can have happened, and, if the broker has
written no report since, the moment after which they happened."""


def bundles(
    raw: RawTables,
    reports: DataFrame,
    owned: DataFrame,
    figures: DataFrame,
    namespaces_: DataFrame,
    earlier: DataFrame,
    earlier_brokers: DataFrame,
    views: Sequence[View],
    *,
    moved: Sequence[str],
    captured_at_ms: int,
    bundle_data_interval_ms: int,
    report_interval_ms: int,
) -> DataFrame:
    """One row per bundle range and view.

    `earlier`: (view, bundle, earlier), with the columns of `GOES_ON` from the previous snapshot, and its time
    `captured_at_ms`; no rows without a previous snapshot. `earlier_brokers`: (broker, fields of reports), its
    published view. `moved`: bundles whose owner changed during the capture.
    """
    figures = figures.where(is_bundle_name())
    in_boundaries = ranges_of(namespaces_.where("not deleted")).select(bundle_name().alias("bundle"), sf.lit(True))
    report = sf.struct("broker", "report_updated_at_ms", "stats")
    rows = (
        in_boundaries.union(owned.select("bundle", sf.lit(False)))
        .toDF("bundle", "is_range")
        .select(sf.explode(sf.lit(list(views))).alias("view"), "bundle", "is_range", sf.lit(None).alias("report"))
        .union(figures.select("view", "bundle", sf.lit(False), report))
        .groupBy("view", "bundle")
        .agg(sf.max("is_range").alias("in_boundaries"), sf.collect_list("report").alias("reports"))
    )
    top = top_bundles(raw).select(
        sf.lit("published").alias("view"), "bundle", sf.col("broker").alias("owner"), "position"
    )
    oldest_ms = captured_at_ms - 2 * bundle_data_interval_ms
    joined = (
        rows.join(owned, "bundle", "left")
        .join(_of_owner(reports), ["view", "bundle", "owner"], "left")
        .join(_losses(reports), "bundle", "left")
        .join(earlier, ["view", "bundle"], "left")
        .join(leader_averages(raw, figures, earlier, earlier_brokers, report_interval_ms, oldest_ms), "bundle", "left")
        .join(channel(raw), "bundle", "left")
        .join(top, ["view", "owner", "bundle"], "left")
    )
    deleted = "modifiedAt is null" if raw.has_lines("bundle_data") else "false"
    origin = sf.expr(
        "case when in_boundaries and stored then 'bundle_data' when shown is null then 'default' "
        # If no broker reports a bundle for a moment, the leader deletes its node and starts its averages anew.
        f"when {deleted} and earlier.averages_origin = 'bundle_data' then 'one_sample' "
        "when earlier.long_term_samples > 0 then 'folded' else 'one_sample' end"
    )
    has_moved = sf.col("bundle").isin(list(moved)) if moved else sf.lit(False)
    no_brokers = sf.array().cast("array<string>")
    return joined.withColumns(
        {
            **bundle_parts(),
            "kind": namespace_kind(),
            "claimed_by": sf.coalesce("claimed_by", no_brokers),
            "is_active": sf.coalesce("is_active", sf.lit(True)),
            "moved": has_moved,
            "listed": sf.coalesce("listed", sf.lit(False)),
            "shown": _shown(),
            "reported": sf.col("shown").isNotNull(),
            "reported_by": sf.array_sort("reports.broker"),
            "figures_broker": sf.col("shown.broker"),
            **traffic_of("shown.stats"),
            "topics": sf.col("shown.stats.topics"),
            "producers": sf.col("shown.stats.producerCount"),
            "consumers": sf.col("shown.stats.consumerCount"),
            "cache_size_bytes": sf.col("shown.stats.cacheSize"),
            "top_bundle_position": sf.col("position"),
            "averages_origin": origin,
            "averages_folded_samples": sf.expr(
                f"case when {_IS_LEADERS} then folded_samples when averages_origin = 'folded' then 1 else 0 end"
            ),
            "averages_unknown_samples": sf.expr(f"if({_IS_LEADERS}, unknown_samples, 0)"),
            "bundle_data_modified_at_ms": sf.col("modifiedAt"),
            "last_unloaded": _last_unloaded(has_moved, captured_at_ms),
            "last_unloaded_at_ms": sf.col("last_unloaded.at_ms"),
            "last_unloaded_origin": sf.col("last_unloaded.origin"),
            **{name: column for term in TERMS for name, column in _averages(term).items()},
        }
    )


def _of_owner(reports: DataFrame) -> DataFrame:
    """(view, owner, bundle, listed, gains): whether a broker lists a bundle, and the times of its gain."""
    named = (
        "concat(transform(report.listed, bundle -> struct(bundle, true)), "
        "transform(report.gains, bundle -> struct(bundle, false)))"
    )
    return (
        reports.selectExpr(
            "view", "broker as owner", f"struct({_TIMES}) as times", f"inline({named}) as (bundle, listed)"
        )
        .groupBy("view", "owner", "bundle")
        .agg(sf.bool_or("listed").alias("listed"), sf.expr("max(times) filter (where not listed) as gains"))
    )


def _losses(reports: DataFrame) -> DataFrame:
    """(bundle, losses): the times of the last report of its loss in any view, and the broker that lost it."""
    lost = reports.selectExpr("explode(report.losses) as bundle", f"struct({_TIMES}, broker) as loss")
    return lost.groupBy("bundle").agg(sf.max("loss").alias("losses"))


def _shown() -> Column:
    """The report whose figures count: the owner's, or else the newest."""
    return sf.expr(
        "array_max(transform(reports, report -> struct(coalesce(report.broker = owner, false) as is_owner, "
        "report.report_updated_at_ms, report.broker, report.stats)))"
    )


def _last_unloaded(has_moved: Column, captured_at_ms: int) -> Column:
    """(at_ms, origin) of the last unload in any source, else null: the latest moment at which it can have been.

    A bundle with an earlier owner was unloaded just before its owner acquired it; only that moment is exact. Every
    other source gives a moment by which it had happened. All are about one unload after the snapshot before (Pulsar
    itself unloads a bundle once per grace period), so the earliest of these moments is the latest possible time.
    """
    since = sf.col("earlier.captured_at_ms")
    nothing_before = since.isNull()
    lost = sf.col("losses.until_ms")
    lost_since = sf.expr("losses.broker = earlier.owner")
    # A broker may report a gain one statistics pass late, so only a bundle that its report listed before can have come
    # back.
    came_back = sf.expr("earlier.owner is not null and earlier.listed and gains.since_ms > earlier.captured_at_ms")
    known_before = sf.struct(
        sf.col("earlier.last_unloaded_at_ms").alias("at_ms"), sf.col("earlier.last_unloaded_origin").alias("origin")
    )
    acquired = sf.coalesce("transferred_at_ms", "acquired_at_ms")
    taken_over = nothing_before | sf.expr("earlier.owner is not null") & (acquired > since)
    at_acquisition = sf.struct(acquired.cast("bigint").alias("at_ms"), sf.lit("owner_acquired").alias("origin"))
    sources = sf.array(
        *(
            sf.struct(at_ms.cast("bigint").alias("at_ms"), sf.lit(origin).alias("origin"))
            for at_ms, origin in (
                (sf.when(nothing_before | lost_since, lost), "report_losses"),
                (sf.when(came_back | (nothing_before & lost.isNotNull()), sf.col("gains.until_ms")), "report_gains"),
                (sf.when(sf.expr("owner <> earlier.owner"), sf.lit(captured_at_ms)), "owner_changed"),
                (sf.when(has_moved, sf.lit(captured_at_ms)), "moved_in_capture"),
            )
        )
    )
    at_last = sf.array_min(sf.filter(sources, lambda unload: unload["at_ms"].isNotNull()))
    lost_before = sf.struct(
        sf.least(lost, since).cast("bigint").alias("at_ms"), sf.lit("report_losses").alias("origin")
    )
    return sf.coalesce(
        sf.when(acquired.isNotNull() & taken_over, at_acquisition),
        at_last,
        sf.when(sf.col("earlier.last_unloaded_at_ms").isNotNull(), known_before),
        sf.when(lost.isNotNull(), lost_before),
    )


def _averages(term: str) -> dict[str, Column]:
    """One average by its origin: the leader's, that of earlier snapshots plus one sample, or Pulsar's defaults.

    Without an earlier average, the sample is the only one.
    """
    origin = sf.col("averages_origin")
    leaders, default = sf.expr(_IS_LEADERS), origin == "default"
    of_before = average(
        figures_of(lambda _, name: sf.coalesce(f"earlier.{term}_{name}", sf.lit(0.0))),
        sf.when(origin == "folded", sf.col(f"earlier.{term}_samples")).otherwise(0),
    )
    of_pulsar = average(figures_of(lambda _, name: sf.lit(_DEFAULTS[name])), sf.lit(0))
    before = sf.when(leaders, sf.col(f"leader.{term}")).when(default, of_pulsar).otherwise(of_before)
    present = sample(figures_of(lambda _, name: sf.col(name)), sf.when(default, 0).otherwise(1))
    samples = sf.when(leaders, sf.col("leader.samples")).otherwise(sf.array(present))
    return {
        term: with_samples(before, samples, MAX_SAMPLES[term]),
        **{f"{term}_{name}": sf.col(f"{term}.figures")[place] for place, name in enumerate(TRAFFIC.values())},
        f"{term}_samples": sf.col(f"{term}.samples"),
    }
