"""The leader's averages of bundles: its stored nodes, and a sample for each load report written since.

The leader writes a bundle's node every `loadBalancerResourceQuotaUpdateIntervalMinutes` only. In its memory, every
notification about a broker's report adds one more sample to the averages of every bundle: the figures of the bundle in
the report that its broker wrote last.

A snapshot shows the last report of each broker. ZooKeeper's version of the node counts those between two snapshots, and
a report comes at the latest `loadBalancerReportUpdateMaxIntervalMinutes` after the one before. So the times of unseen
reports are estimated, and their figures taken to lie half-way between those of the snapshot before and the present;
without a snapshot before, to be the present ones.

Source: `ModularLoadManagerImpl.handleDataNotification`, `updateBundleData`, `writeBundleDataOnZooKeeper`,
`TimeAverageMessageData` (3.0.7 to 4.2.4).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from pulsar_advisor.model.load.averages import LONG_TERM_MAX_SAMPLES, MAX_SAMPLES
from pulsar_advisor.tables.frames import few_rows
from pulsar_advisor.tables.raw import RawTables
from pulsar_advisor.tables.schemas import TRAFFIC

TERMS: Final = {"short_term": "shortTermData", "long_term": "longTermData"}
"""Prefix of an average's columns -> its field in the leader's node."""

_MOST_SAMPLES: Final = 2 * LONG_TERM_MAX_SAMPLES
"""Samples that are folded at most. What came before them weighs an eighth in long-term averages, nothing in others."""


def folded(average: Column, samples: Column, figure: Column, times: Column, max_samples: int) -> Column:
    """An average over `samples` after the same figure was added `times` (0 or more)."""
    kept = _kept(samples, times, max_samples)
    return average * kept + figure * (1.0 - kept)


def _kept(samples: Column, times: Column, max_samples: int) -> Column:
    """The weight that an average over `samples` has after `times` more.

    It is the mean of all samples up to `max_samples`; then each further one has the weight 1 / `max_samples`.
    """
    in_mean = sf.least(times, sf.greatest(max_samples - samples, sf.lit(0)))
    in_full = sf.pow(sf.lit(1.0 - 1.0 / max_samples), times - in_mean)
    return sf.when(times == 0, 1.0).otherwise(samples / (samples + in_mean) * in_full)


def leader_averages(
    raw: RawTables, figures: DataFrame, earlier: DataFrame, earlier_brokers: DataFrame, longest_report_interval_ms: int
) -> DataFrame:
    """(bundle, modifiedAt, averages, folded_samples, unknown_samples) of every bundle with a node of the leader.

    `averages` has the columns of `TERMS` by their names. `figures`: (view, broker, bundle, stats) of all reports;
    `earlier`: (view, bundle, earlier), rows of the snapshot before; `earlier_brokers`: (broker, fields of reports), its
    published view. A node that is still the same goes on from the averages of the snapshot before, another one from its
    own. Samples are of the figures that the bundle's broker had last reported by then: `past`, as in the snapshot
    before, `unknown`, and `present`.
    """
    reports = _reports(raw, earlier_brokers, longest_report_interval_ms)
    all_reports = reports.agg(
        _newest_times("written").alias("written"),
        _newest_times("if(news > 0, written, null)").alias("written_since"),
    )
    reported = (
        figures.where("view = 'published'")
        .join(reports.select("broker", "at_ms", "first_ms"), "broker")
        .groupBy("bundle")
        .agg(sf.max_by(sf.struct("stats", "at_ms", "first_ms"), "at_ms").alias("own"))
    )
    nodes = raw["bundle_data"].select("bundle", "modifiedAt", sf.col("document").alias("node"))
    joined = (
        nodes.join(reported, "bundle", "left")
        .join(earlier.where("view = 'published'").select("bundle", "earlier"), "bundle", "left")
        .crossJoin(few_rows(all_reports))
        .withColumn(
            "goes_on",
            sf.expr(
                "coalesce(earlier.averages_origin = 'bundle_data' "
                "and earlier.bundle_data_modified_at_ms = modifiedAt, false)"
            ),
        )
        .withColumns(
            {
                "times": sf.expr("case when own is null then null when goes_on then written_since else written end"),
                "start_ms": sf.expr("if(goes_on, 0, modifiedAt)"),
                "unknown_ms": sf.expr("if(earlier.reported, own.first_ms, 0)"),
            }
        )
        .withColumns(
            {
                "since": _later("times", "start_ms"),
                "since_past": _later("times", "greatest(start_ms, unknown_ms - 1)"),
                "present": _later("times", "greatest(start_ms, own.at_ms - 1)"),
            }
        )
        .withColumns({"past": sf.expr("since - since_past"), "unknown": sf.expr("since_past - present")})
        .withColumns({f"{term}_weights": _weights(term) for term in TERMS})
    )
    averages = [column for term in TERMS for column in _brought_up(term)]
    return joined.select(
        "bundle",
        "modifiedAt",
        sf.struct(*averages).alias("averages"),
        sf.expr("past + present + if(goes_on, coalesce(earlier.averages_folded_samples, 0), 0) as folded_samples"),
        sf.expr("unknown + if(goes_on, coalesce(earlier.averages_unknown_samples, 0), 0) as unknown_samples"),
    )


def _reports(raw: RawTables, earlier_brokers: DataFrame, longest_report_interval_ms: int) -> DataFrame:
    """(broker, at_ms, news, first_ms, written): each broker's reports in ZooKeeper, `news` since the snapshot before.

    `written`: their estimated times, from `at_ms`, that of the newest, back to `first_ms`: one that nothing prompted
    comes when the longest interval is over, the others lie evenly between it and the newest. Without a snapshot before,
    or without a new report, only the newest.
    """
    return (
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
        .withColumn("due_ms", sf.col("before_ms") + longest_report_interval_ms)
        .withColumn(
            "first_ms",
            sf.expr(
                "case when news < 2 then at_ms when due_ms < at_ms then due_ms "
                "else before_ms + (at_ms - before_ms) div news end"
            ),
        )
        .withColumn(
            "written",
            sf.expr(
                f"transform(sequence(0, cast(greatest(least(news, {_MOST_SAMPLES}), 1) as int) - 1), "
                "n -> at_ms - n * (at_ms - first_ms) div greatest(news - 1, 1))"
            ),
        )
    )


def _newest_times(times: str) -> Column:
    """The newest of all elements of these arrays of epoch milliseconds, ascending; null arrays have none."""
    newest_first = sf.sort_array(sf.flatten(sf.collect_list(sf.expr(times))), asc=False)
    return sf.reverse(sf.slice(newest_first, 1, _MOST_SAMPLES))


def _later(times: str, after_ms: str) -> Column:
    """How many of these ascending epoch milliseconds are later; 0 without any. Found by halving: bundles are many."""
    steps = ", ".join(str(1 << power) for power in reversed(range(_MOST_SAMPLES.bit_length())))
    not_later = (
        f"aggregate(array({steps}), 0, (number, step) -> "
        f"if(get({times}, number + step - 1) <= {after_ms}, number + step, number))"
    )
    return sf.expr(f"coalesce(array_size({times}) - {not_later}, 0)")


def _start(term: str, column: str, field: str) -> Column:
    """A column of an average before any new sample."""
    stored = sf.col(f"node.{TERMS[term]}.{field}")
    return sf.when(sf.col("goes_on"), sf.col(f"earlier.{term}_{column}")).otherwise(stored)


def _weights(term: str) -> Column:
    """(start, past, unknown, present, samples): weights of an average and of its new samples, and their number."""
    max_samples = MAX_SAMPLES[term]
    samples = sf.coalesce(_start(term, "samples", "numSamples"), sf.lit(max_samples))
    weights: dict[str, Column] = {"start": sf.lit(1.0)}
    for part in ("past", "unknown", "present"):
        times = sf.col(part)
        kept = _kept(samples, times, max_samples)
        weights = {name: weight * kept for name, weight in weights.items()} | {part: 1.0 - kept}
        samples = sf.least(samples + times, sf.greatest(samples, sf.lit(max_samples)))
    return sf.struct(*(weight.alias(name) for name, weight in weights.items()), samples.alias("samples"))


def _brought_up(term: str) -> Sequence[Column]:
    """The columns of one average with the new samples."""
    weights = f"{term}_weights"

    def brought_up(field: str, column: str) -> Column:
        past, present = sf.col(f"earlier.{column}"), sf.col(f"own.stats.{field}")
        figures = {
            "start": _start(term, column, field),
            "past": past,
            "unknown": sf.when(sf.col("earlier.reported"), (past + present) / 2).otherwise(present),
            "present": present,
        }
        # What has no weight may have no figure either.
        weighted = (
            sf.when(sf.col(f"{weights}.{part}") > 0, figure * sf.col(f"{weights}.{part}")).otherwise(0.0)
            for part, figure in figures.items()
        )
        return reduce(Column.__add__, weighted)

    return (
        *(brought_up(field, column).alias(f"{term}_{column}") for field, column in TRAFFIC.items()),
        sf.col(f"{weights}.samples").alias(f"{term}_samples"),
    )
