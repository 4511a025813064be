"""The leader's averages of bundles: its stored nodes, and a sample for each load report written since.

The leader writes a bundle's node every `loadBalancerResourceQuotaUpdateIntervalMinutes` only. In its memory, every
notification about a broker's report adds one more sample to the averages of every bundle: the figures of the bundle in
the report that its broker wrote last.

Source: `ModularLoadManagerImpl.handleDataNotification`, `updateBundleData`, `writeBundleDataOnZooKeeper`,
`TimeAverageMessageData` (3.0.7 to 4.2.4).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from pulsar_advisor.model.averages import LONG_TERM_MAX_SAMPLES, SHORT_TERM_MAX_SAMPLES
from pulsar_advisor.tables.frames import few_rows
from pulsar_advisor.tables.raw import RawTables
from pulsar_advisor.tables.schemas import TRAFFIC

TERMS: Final = {
    "short_term": ("shortTermData", SHORT_TERM_MAX_SAMPLES),
    "long_term": ("longTermData", LONG_TERM_MAX_SAMPLES),
}
"""Prefix of an average's columns -> its field in the leader's node, and the number of samples it is limited to."""


def folded(average: Column, samples: Column, figure: Column, times: Column, max_samples: int) -> Column:
    """An average over `samples` after the same figure was added `times` (0 or more).

    The mean of all samples up to `max_samples`; then each further one has the weight 1 / `max_samples`.
    """
    filling = sf.least(times, sf.greatest(max_samples - samples, sf.lit(0)))
    filled = sf.when(filling == 0, average).otherwise((samples * average + filling * figure) / (samples + filling))
    remaining = times - filling
    kept = sf.pow(sf.lit(1.0 - 1.0 / max_samples), remaining)
    return sf.when(remaining == 0, filled).otherwise(filled * kept + figure * (1.0 - kept))


def leader_averages(raw: RawTables, figures: DataFrame, earlier: DataFrame, earlier_brokers: DataFrame) -> DataFrame:
    """(bundle, modifiedAt, averages, folded_samples, unknown_samples) of every bundle with a node of the leader.

    `averages` has the columns of `TERMS` by their names. `figures`: (view, broker, bundle, stats) of all reports;
    `earlier`: (view, bundle, earlier), rows of the snapshot before; `earlier_brokers`: (broker, fields of reports), its
    published view. A node that is still the same goes on from the averages of the snapshot before, another
    one from its own. A report written before the broker of the bundle wrote its present one adds the figures that the
    snapshot before has of the bundle; without them its sample is unknown, and not added.
    """
    reports = (
        raw["load_reports"]
        .where("source = 'zookeeper'")
        .select(
            "broker",
            sf.coalesce("modifiedAt", "document.lastUpdate", "document.timestamp").alias("at_ms"),
            sf.col("version").alias("writes"),
        )
        .where("at_ms is not null")
        .join(
            earlier_brokers.select(
                "broker",
                sf.coalesce("report_written_at_ms", "report_updated_at_ms").alias("before_ms"),
                sf.col("report_writes").alias("writes_before"),
            ),
            "broker",
            "left",
        )
        # A version that fell is that of a new node: the broker registered again.
        .withColumn(
            "news",
            sf.expr(
                "case when before_ms is null or at_ms <= before_ms then 0 "
                "when writes >= writes_before then writes - writes_before else 1 end"
            ),
        )
    )
    all_reports = reports.agg(
        sf.collect_list("at_ms").alias("written"),
        sf.collect_list(sf.when(sf.col("news") > 0, sf.col("at_ms"))).alias("written_since"),
        sf.coalesce(sf.sum("news"), sf.lit(0)).alias("news_of_all"),
    )
    reported = (
        figures.where("view = 'published'")
        .join(reports.select("broker", "at_ms", "news"), "broker")
        .groupBy("bundle")
        .agg(sf.max_by(sf.struct("stats", "at_ms", "news"), "at_ms").alias("own"))
    )
    nodes = raw["bundle_data"].select("bundle", "modifiedAt", sf.col("document").alias("node"))
    joined = (
        nodes.join(reported, "bundle", "left")
        .join(earlier.where("view = 'published'").select("bundle", "earlier"), "bundle", "left")
        .crossJoin(few_rows(all_reports))
        .withColumns(
            {
                "goes_on": sf.expr(
                    "coalesce(earlier.averages_origin = 'bundle_data' "
                    "and earlier.bundle_data_modified_at_ms = modifiedAt, false)"
                ),
                "known_before": sf.expr("earlier.reported"),
            }
        )
        .withColumn("since", sf.expr("if(goes_on, written_since, filter(written, at_ms -> at_ms > modifiedAt))"))
        .withColumns(
            {
                "all_new": sf.expr("if(own is null, 0, if(goes_on, news_of_all, size(since)))"),
                "with_present": sf.expr("if(own is null, 0, size(filter(since, at_ms -> at_ms >= own.at_ms)))"),
            }
        )
        .withColumn("with_past", sf.expr("all_new - with_present"))
        .withColumns(
            {
                "past": sf.expr("if(coalesce(known_before, false), with_past, 0)"),
                "unknown": sf.expr(
                    "if(coalesce(known_before, false), greatest(coalesce(own.news, 0) - 1, 0), with_past)"
                ),
            }
        )
    )
    averages = [column for term in TERMS for column in _brought_up(term)]
    return joined.select(
        "bundle",
        "modifiedAt",
        sf.struct(*averages).alias("averages"),
        sf.expr("past + with_present + if(goes_on, coalesce(earlier.averages_folded_samples, 0), 0) as folded_samples"),
        sf.expr("unknown + if(goes_on, coalesce(earlier.averages_unknown_samples, 0), 0) as unknown_samples"),
    )


def _brought_up(term: str) -> Sequence[Column]:
    """The columns of one average: first the samples of past figures are added, then those of the present ones."""
    node, max_samples = TERMS[term]
    past, present = sf.col("past"), sf.col("with_present")

    def start(name: str, field: str) -> Column:
        return sf.when(sf.col("goes_on"), sf.col(f"earlier.{term}_{name}")).otherwise(sf.col(f"node.{node}.{field}"))

    samples = start("samples", "numSamples")
    samples_then = sf.least(samples + past, sf.lit(max_samples))

    def brought_up(field: str, name: str) -> Column:
        then = folded(start(name, field), samples, sf.col(f"earlier.{name}"), past, max_samples)
        # Without past samples, the past figures may be null: they must not take part.
        begun = sf.when(past > 0, then).otherwise(start(name, field))
        now = folded(begun, samples_then, sf.col(f"own.stats.{field}"), present, max_samples)
        return sf.when(present > 0, now).otherwise(begun)

    return (
        *(brought_up(field, name).alias(f"{term}_{name}") for field, name in TRAFFIC.items()),
        sf.least(samples + past + present, sf.greatest(samples, sf.lit(max_samples))).alias(f"{term}_samples"),
    )
