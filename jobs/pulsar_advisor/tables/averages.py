"""The leader's averages of bundles: its stored nodes, plus a sample for each load report written since.

The leader writes a bundle's node every `loadBalancerResourceQuotaUpdateIntervalMinutes` only, from 4.0 on only those of
some bundles. In its memory, every notification about a broker's report adds one more sample to the averages of every
bundle: the figures of the bundle in the report that its broker wrote last.

A snapshot shows the last report of each broker. ZooKeeper's version of its node counts the reports between two
snapshots, and a report comes at the latest `loadBalancerReportUpdateMaxIntervalMinutes` after the one before. So the
times of unseen reports are estimated. Their figures are assumed to be half-way between those of the snapshot before and
the present; without a snapshot before, to be the present ones.

Source: `ModularLoadManagerImpl.handleDataNotification`, `updateBundleData`, `writeBundleDataOnZooKeeper`,
`TimeAverageMessageData` (3.0.7 to 5.0.1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from pulsar_advisor.model.cluster.cluster_state import HIGHEST_FIGURE
from pulsar_advisor.model.load.averages import LONG_TERM_MAX_SAMPLES, MAX_SAMPLES
from pulsar_advisor.tables.columns import TRAFFIC
from pulsar_advisor.tables.frames import few_rows
from pulsar_advisor.tables.raw import RawTables

TERMS: Final = {"short_term": "shortTermData", "long_term": "longTermData"}
"""Prefix of an average's columns -> its field in the leader's node."""

_MOST_SAMPLES: Final = 2 * LONG_TERM_MAX_SAMPLES
"""Maximum number of samples folded. Earlier ones weigh an eighth in long-term averages, and nothing in others."""


def figures_of(column: Callable[[str, str], Column]) -> Column:
    """The traffic figures as an array; `column` is called with Pulsar's name and our column of each."""
    return sf.array(*(column(field, name) for field, name in TRAFFIC.items()))


def average(figures: Column, samples: Column) -> Column:
    """An average: its figures, and its number of samples."""
    return sf.struct(figures.alias("figures"), samples.cast("bigint").alias("samples"))


def sample(figures: Column, times: Column) -> Column:
    """Figures to add to an average, and the number of times they were sampled (0 or more)."""
    return sf.struct(figures.alias("figures"), times.cast("bigint").alias("times"))


def with_samples(before: Column, samples: Column, max_samples: int) -> Column:
    """An average after an array of samples, each added as `model.load.averages.folded` adds one.

    It is the mean of all samples up to `max_samples`; then each further one has the weight 1 / `max_samples`.
    """

    def add(to: Column, more: Column) -> Column:
        number, times = to["samples"], more["times"]
        in_mean = sf.least(times, sf.greatest(max_samples - number, sf.lit(0)))
        kept = number / (number + in_mean) * sf.pow(sf.lit(1.0 - 1.0 / max_samples), times - in_mean)
        figures = sf.zip_with(
            to["figures"],
            more["figures"],
            # A figure without weight may be missing.
            lambda old, new: sf.when(times == 0, old).when(number == 0, new).otherwise(old * kept + new * (1.0 - kept)),
        )
        return average(figures, sf.least(number + times, sf.greatest(number, sf.lit(max_samples))))

    return sf.aggregate(samples, before, add)


def leader_averages(
    raw: RawTables,
    figures: DataFrame,
    earlier: DataFrame,
    earlier_brokers: DataFrame,
    longest_report_interval_ms: int,
    oldest_ms: int,
) -> DataFrame:
    """(bundle, modifiedAt, stored, leader, folded_samples, unknown_samples) of every bundle with a node or reported.

    `stored`: whether its node was written since `oldest_ms`. `leader` has an average for each of `TERMS`, and the
    `samples` that came since; it is null where the bundle is neither stored nor, if reported, has an average in the
    snapshot before. `figures`: (view, broker, bundle, stats) of all reports; `earlier`: (view, bundle, earlier), rows
    of the snapshot before; `earlier_brokers`: (broker, fields of reports), its published view. A node that changed has
    its own averages; without one, or with the same, those of the snapshot before go on. Samples are the figures that
    the bundle's broker had last reported by then: `past` (as in the snapshot before), `unknown`, or `present`.
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
        .agg(sf.max_by(sf.struct("stats", "at_ms", "first_ms"), sf.struct("at_ms", "broker")).alias("own"))
    )
    nodes = raw["bundle_data"].select("bundle", "modifiedAt", sf.col("document").alias("node"))
    # Tables of the first releases have the node's own figures, and no number of samples.
    unchanged = (
        "earlier.averages_origin = 'bundle_data' and earlier.bundle_data_modified_at_ms = modifiedAt "
        "and earlier.averages_folded_samples is not null"
    )
    moments = "array(start_ms, greatest(start_ms, unknown_ms - 1), greatest(start_ms, own.at_ms - 1))"
    return (
        nodes.join(reported, "bundle", "full")
        .join(earlier.where("view = 'published'").select("bundle", "earlier"), "bundle", "left")
        .crossJoin(few_rows(all_reports))
        .select(
            "*",
            sf.expr(f"coalesce(modifiedAt >= {oldest_ms}, false) as stored"),
            sf.expr(f"coalesce({unchanged}, false) as unchanged"),
            sf.expr("unchanged or not stored as goes_on"),
            sf.expr("case when own is null then null when goes_on then written_since else written end as times"),
            sf.expr("if(goes_on, 0, modifiedAt) as start_ms"),
            sf.expr("if(earlier.reported, own.first_ms, 0) as unknown_ms"),
            sf.expr(f"transform({moments}, moment -> {_later('times', 'moment')}) as later"),
            sf.expr("later[0] - later[1] as past"),
            sf.expr("later[1] - later[2] as unknown"),
            sf.expr("later[2] as present"),
        )
        .select(
            "bundle",
            "modifiedAt",
            "stored",
            sf.when(
                sf.expr("stored or own is not null and earlier.long_term_samples > 0"),
                sf.struct(*(_start(term).alias(term) for term in TERMS), _samples().alias("samples")),
            ).alias("leader"),
            sf.expr("past + present + if(unchanged, earlier.averages_folded_samples, 0) as folded_samples"),
            sf.expr("unknown + if(unchanged, earlier.averages_unknown_samples, 0) as unknown_samples"),
        )
    )


def _reports(raw: RawTables, earlier_brokers: DataFrame, longest_report_interval_ms: int) -> DataFrame:
    """(broker, at_ms, news, first_ms, written): each broker's reports in ZooKeeper, `news` since the snapshot before.

    `written`: their estimated times, from that of the newest, `at_ms`, back to `first_ms`. An unprompted report comes
    when the longest interval is over; the others are spread evenly between it and the newest. Without a snapshot
    before, or without a new report, only the newest.
    """
    before = earlier_brokers.select(
        "broker",
        _time(sf.coalesce("report_written_at_ms", "report_updated_at_ms")).alias("before_ms"),
        sf.col("report_writes").alias("writes_before"),
    )
    return (
        raw["load_reports"]
        .where("source = 'zookeeper'")
        .join(before, "broker", "left")
        .select(
            "broker",
            _time(sf.coalesce("modifiedAt", "document.lastUpdate", "document.timestamp")).alias("at_ms"),
            # A lower version is that of a new node: the broker registered again.
            sf.expr(
                "case when before_ms is null or at_ms <= before_ms then 0 "
                "else coalesce(if(version >= writes_before, try_subtract(version, writes_before), 1), 1) end as news"
            ),
            (sf.col("before_ms") + longest_report_interval_ms).alias("due_ms"),
            sf.expr(
                "case when news < 2 then at_ms when due_ms < at_ms then due_ms "
                "else before_ms + (at_ms - before_ms) div news end as first_ms"
            ),
            sf.expr(
                f"transform(sequence(0, cast(greatest(least(news, {_MOST_SAMPLES}), 1) as int) - 1), "
                "n -> at_ms - n * (at_ms - first_ms) div greatest(news - 1, 1)) as written"
            ),
        )
        .where("at_ms is not null")
    )


def _time(at_ms: Column) -> Column:
    """Epoch milliseconds in a usable range, else null: documents may hold any 64-bit number."""
    return sf.when(at_ms.between(0, HIGHEST_FIGURE), at_ms)


def _newest_times(times: str) -> Column:
    """The newest of all elements of these arrays of epoch milliseconds, ascending; null arrays have none."""
    newest_first = sf.sort_array(sf.flatten(sf.collect_list(sf.expr(times))), asc=False)
    return sf.reverse(sf.slice(newest_first, 1, _MOST_SAMPLES))


def _later(times: str, after_ms: str) -> str:
    """How many of these ascending epoch milliseconds are later; 0 without any. Binary search: bundles are many."""
    steps = ", ".join(str(1 << power) for power in reversed(range(_MOST_SAMPLES.bit_length())))
    not_later = (
        f"aggregate(array({steps}), 0, (number, step) -> "
        f"if(get({times}, number + step - 1) <= {after_ms}, number + step, number))"
    )
    return f"coalesce(array_size({times}) - {not_later}, 0)"


def _start(term: str) -> Column:
    """An average before any new sample. A missing number of samples counts as the maximum, and an impossible one as the
    nearest possible one."""

    def either(field: str, name: str) -> Column:
        going_on = sf.col(f"earlier.{term}_{name}")
        missing = sf.when(~sf.col("unchanged"), 0.0)  # a figure that a report lacked
        return sf.when(sf.col("goes_on"), sf.coalesce(going_on, missing)).otherwise(
            sf.col(f"node.{TERMS[term]}.{field}")
        )

    most = sf.lit(MAX_SAMPLES[term])
    samples = sf.greatest(sf.least(sf.coalesce(either("numSamples", "samples"), most), most), sf.lit(0))
    return average(figures_of(either), samples)


def _samples() -> Column:
    """The samples since then, in order."""

    def half_way(field: str, name: str) -> Column:
        past, present = sf.col(f"earlier.{name}"), sf.col(f"own.stats.{field}")
        return sf.when(sf.col("earlier.reported"), (past + present) / 2).otherwise(present)

    return sf.array(
        sample(figures_of(lambda _, name: sf.col(f"earlier.{name}")), sf.col("past")),
        sample(figures_of(half_way), sf.col("unknown")),
        sample(figures_of(lambda field, _: sf.col(f"own.stats.{field}")), sf.col("present")),
    )
