"""The facts that the suite of brokers uses."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from pulsar_advisor.model.cluster.cluster_state import HIGHEST_FIGURE, LEAST_CPU
from pulsar_advisor.quality.facts.figures import COUNTS, FIGURES, HIGHEST_COUNT, impossible, missing, with_moved
from pulsar_advisor.tables.columns import RESOURCES
from pulsar_advisor.tables.frames import few_rows, in_session

_RESOURCES: Final = tuple(RESOURCES.values())
_HIGHEST_OF_BROKERS: Final = dict.fromkeys((*COUNTS, "bundles"), HIGHEST_COUNT)


def facts_of_brokers(
    brokers: DataFrame, bundles: DataFrame, earlier: tuple[DataFrame, DataFrame] | None, passes_ms: int
) -> DataFrame:
    """Facts: is_leader as 0 or 1, age of the report by the broker's clock, that clock compared with most brokers',
    the host of its web address compared with its id, usage in percent, limits as far as they are known and compared
    with the other brokers', figures left out, totals and counts compared with the sums over bundles, counts that can't
    be, what is known of all brokers together, whether the totals changed since the earlier snapshot.
    """
    usages = [f"{resource}_usage" for resource in _RESOURCES if resource != "cpu"]
    flows = " + ".join(f"coalesce(abs({figure}), 0)" for figure in FIGURES)
    of_resources = (
        fact.format(of=resource)
        for fact in (
            "if({of}_limit > 0, 100 * {of}_usage / {of}_limit, null) as {of}_percent",
            "if(reported, coalesce({of}_limit, -1), null) as {of}_known_limit",
            "if(available, {of}_limit = common_{of}_limit, null) as {of}_limit_is_common",
        )
        for resource in _RESOURCES
    )
    # Kbit/s, like the limit; metrics give percentages only.
    carried = (
        f"if(report_source = 'load_report' and bandwidth_{way}_limit > 0, "
        f"0.8 * msg_throughput_{way}_bytes_per_s / bandwidth_{way}_limit, null) as carried_{way}_percent"
        for way in ("in", "out")
    )
    every_bundle = "reported and coalesce(summed_bundles, 0) = bundles_with_figures"
    sums = {figure: f"if(bundles_with_figures = 0, 0, sum_{figure})" for figure in (*COUNTS, *FIGURES)}
    unaccounted = (
        f"if({every_bundle}, {apart(figure, sums[figure])}, null) as unaccounted_{figure}_ratio" for figure in FIGURES
    )
    return (
        brokers.crossJoin(few_rows(_in_common(brokers)))
        .join(in_session(_sums(bundles), brokers.sparkSession), "broker", "left")
        .selectExpr(
            "*",
            "int(is_leader) as leaders",
            # Doubles, since the difference of two numbers from documents can exceed 64 bits. A report has the broker's
            # own time; metrics have no time, so they get the time of the read.
            "(double(report_read_at_ms) - report_updated_at_ms "
            "+ if(report_source = 'metrics', 0, coalesce(clock_ahead_ms, 0))) / 60000D as report_age_minutes",
            "if(report_source is null, null, report_updated_at_ms is not null) as report_is_dated",
            "(double(clock_ahead_ms) - common_clock_ahead_ms) / 1000D as clock_off_seconds",
            "common_clock_ahead_ms / 1000D as clocks_ahead_of_ours_seconds",
            "regexp_extract(reported_web_service_url, '^[a-z]+://(.*?)(:[0-9]+)?/?$', 1) "
            "= regexp_extract(broker, '^(.*?)(:[0-9]+)?$', 1) as reported_host_is_its_own",
            "count(report_source) over () as reports_of_all",
            f"if(count(report_source) over () > 0, sum({flows}) over () > 0, null) as traffic_of_all_flows",
            # Bundles that a Modular broker still owns hours after their topics were deleted are idle indeed.
            "if(reported and bundles_of_users > 0 and (report_source = 'metrics' "
            f"or coalesce(double(report_updated_at_ms) - start_timestamp_ms < {passes_ms}, true)), "
            "topics <> 0, null) as serves_its_bundles",
            f"if(report_source = 'load_report', {impossible(_HIGHEST_OF_BROKERS)}, null) as impossible_counts",
            f"if(reported, {missing((*FIGURES, *usages))}, null) as missing_figures",
            f"if({every_bundle} and report_source = 'load_report', bundles = listed_bundles "
            f"and {' and '.join(f'{count} = {sums[count]}' for count in COUNTS)}, null) as counts_add_up",
            f"if(msg_rate_in_per_s + msg_rate_out_per_s > 1000, cpu_usage > {LEAST_CPU}, null) as cpu_is_measured",
            "nullif(load_manager_class_name, common_load_manager_class_name) as other_load_manager",
            "nullif(version, common_version) as other_version",
            *of_resources,
            *carried,
            *unaccounted,
        )
        .transform(lambda rows: with_moved(rows, earlier and earlier[0], "broker", passes_ms))
    )


def apart(figure: str, total: str) -> str:
    """How far a figure is from a sum, relative to the greater: in SQL, a ratio.

    Rounded, since the last digits of a sum depend on the order of its rows, and failing values enter digests.
    """
    return f"round(abs({figure} - {total}) / greatest({figure}, {total}, 1), 9)"


def _in_common(brokers: DataFrame) -> DataFrame:
    """One row: the limits, load manager and version of most brokers, and the middle of their clocks."""
    common = "mode() within group (order by"
    return brokers.agg(
        *(
            sf.expr(f"{common} {limit}) filter (where available) as common_{limit}")
            for limit in (f"{resource}_limit" for resource in _RESOURCES)
        ),
        *(sf.expr(f"{common} {column}) as common_{column}") for column in ("load_manager_class_name", "version")),
        common_clock().alias("common_clock_ahead_ms"),
    )


def _sums(bundles: DataFrame) -> DataFrame:
    """Counts and figures by broker; no sum of a figure that can't be a rate somewhere, which a separate check names."""
    return bundles.groupBy(sf.expr("if(reported, figures_broker, owner) as broker")).agg(
        sf.expr("count_if(reported) as summed_bundles"),
        sf.expr("count_if(kind = 'user' and owner is not null) as bundles_of_users"),
        *(sf.expr(f"sum(double({count})) as sum_{count}") for count in COUNTS),
        *(
            sf.expr(f"if(bool_and({figure} between 0 and {HIGHEST_FIGURE}), sum({figure}), null) as sum_{figure}")
            for figure in FIGURES
        ),
    )


def common_clock() -> Column:
    """The middle clock of all brokers; of two middle ones the nearer to ours, which is no broker's."""
    lower, upper = (f"percentile_disc(0.5) within group (order by clock_ahead_ms {order})" for order in ("asc", "desc"))
    return sf.expr(f"if(abs(double({lower})) <= abs(double({upper})), {lower}, {upper})")


def with_served(rows: DataFrame, topics: DataFrame) -> DataFrame:
    """Facts: whether a broker serves the kinds of topics loaded there, apart from Pulsar's own (null if it serves both
    kinds); and whether a broker that reports no topics serves what it owns, if topics there have traffic. Topics are
    read only if some broker needs these facts.
    """
    serves_both = "coalesce(persistent_topics_enabled, true) and coalesce(non_persistent_topics_enabled, true)"
    reports_none = "coalesce(report_source = 'load_report' and bundles_of_users > 0 and topics = 0, false)"
    rows = rows.withColumn("serves_what_is_loaded", sf.lit(None).cast("boolean"))
    if rows.where(f"not ({serves_both}) or {reports_none}").isEmpty():
        return rows
    loaded = (
        topics.where("loaded and namespace not like 'pulsar/%'")
        .groupBy("broker")
        .agg(
            sf.expr("bool_or(topic like 'persistent://%') as has_persistent"),
            sf.expr("bool_or(topic like 'non-persistent://%') as has_non_persistent"),
            sf.expr(f"bool_or({' or '.join(f'{figure} > 0' for figure in FIGURES)}) as has_traffic"),
        )
    )
    return rows.join(in_session(few_rows(loaded), rows.sparkSession), "broker", "left").withColumns(
        {
            "serves_what_is_loaded": sf.expr(
                f"if({serves_both}, null, not ("
                "(has_persistent and not coalesce(persistent_topics_enabled, true)) "
                "or (has_non_persistent and not coalesce(non_persistent_topics_enabled, true))))"
            ),
            "serves_its_bundles": sf.expr(f"if({reports_none} and has_traffic, false, serves_its_bundles)"),
        }
    )
