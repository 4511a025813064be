"""The brokers' load reports, for every load manager and view, under one set of names."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from pulsar_advisor.tables.columns import RESOURCES, TRAFFIC
from pulsar_advisor.tables.frames import few_rows
from pulsar_advisor.tables.ownership import last_lists
from pulsar_advisor.tables.raw import BUNDLE_STATS, RawTables
from pulsar_advisor.tables.schemas import BROKERS

_METRICS: Final = {
    "cpu": "brk_lb_cpu_usage",
    "memory": "brk_lb_memory_usage",
    "direct_memory": "brk_lb_directMemory_usage",
    "bandwidth_in": "brk_lb_bandwidth_in_usage",
    "bandwidth_out": "brk_lb_bandwidth_out_usage",
}
"""Percent. Source: Pulsar `BrokerLoadData.toMetrics`, 3.0 to 4.2."""

_THOUSANDTHS: Final = "decimal(28, 3)"
_COUNTED: Final = {"consumerCount": "consumers", "producerCount": "producers", "topicCount": "topics"}

_OF_RECORD: Final = {
    "web_service_url": "webServiceUrl",
    "version": "brokerVersionString",
    "load_manager_class_name": "loadManagerClassName",
    "persistent_topics_enabled": "persistentTopicsEnabled",
    "non_persistent_topics_enabled": "nonPersistentTopicsEnabled",
}
"""What a broker's node says about the broker itself, for every load manager: column to field."""

OF_BROKER: Final = (
    "report_source",
    "report_updated_at_ms",
    "report_read_at_ms",
    "report_written_at_ms",
    "report_writes",
    "start_timestamp_ms",
    *_OF_RECORD,
    *(f"{resource}_{side}" for resource in RESOURCES.values() for side in ("usage", "limit")),
    "weighted_max_ema_ratio",
    "msg_throughput_ema_bytes_per_s",
    "publishes_every_ms",
    *TRAFFIC.values(),
    "topics",
    "bundles",
    "producers",
    "consumers",
)
"""Fields of a report that are columns of the table `brokers`, with the same types."""

_NAMES: Final = ("listed", "gains", "losses")
"""Bundles that the broker serves, has gained and has lost."""
_CHANGED_UNTIL: Final = "changed_until_ms"
"""The latest moment at which those gains and losses can have happened. A Modular broker makes the report in its answer
on the spot: its changes are those since it last wrote one (`lastUpdate`), up to the read."""


def load_reports(raw: RawTables, earlier_brokers: DataFrame, without_topics: Sequence[str]) -> DataFrame:
    """(view, broker, report): one report each.

    `report` has the fields of `OF_BROKER`, listed, gains, losses, changed_until_ms and stats. `earlier_brokers`:
    (broker, fields of `OF_BROKER`), the published view of the snapshot before. `without_topics`: the brokers whose
    statistics of topics could not be read.
    """
    written = _written_reports(raw)
    if not raw.has_extensible_brokers:
        return written
    rebuilt = _rebuilt_reports(raw, without_topics)
    both = written.unionByName(rebuilt)
    return (
        both.unionByName(_published_reports(raw, rebuilt, earlier_brokers))
        if raw.has_lines("broker_load_data")
        else both
    )


def _report(fields: dict[str, Column], stats: Column) -> Column:
    """A report; a missing field is null, a missing list of bundles empty."""
    types = {column.name: column.type for column in BROKERS.columns}
    nothing = sf.array().cast("array<string>")
    return sf.struct(
        *(fields.get(name, sf.lit(None)).cast(types[name]).alias(name) for name in OF_BROKER),
        *(sf.coalesce(fields.get(name, nothing), nothing).alias(name) for name in _NAMES),
        fields.get(_CHANGED_UNTIL, sf.lit(None)).cast("bigint").alias(_CHANGED_UNTIL),
        stats.alias("stats"),
    )


def _usage(document: Column) -> dict[str, Column]:
    return {f"{name}_{side}": document[field][side] for field, name in RESOURCES.items() for side in ("usage", "limit")}


def _written_reports(raw: RawTables) -> DataFrame:
    """The reports of Modular and Simple brokers.

    Simple's own throughput totals repeat its message rates, its start time is that of the report (seen in 4.0.8), and
    it names its bundles only in their figures: sums over its bundles replace the totals, and the start time is omitted.
    """
    document = sf.col("document")
    stats = sf.coalesce(document["lastStats"], document["bundleStats"])
    simple = document["lastStats"].isNull()  # up to 2.11 Modular reports have `bundleStats`, too
    updated_at = sf.coalesce(document["lastUpdate"], document["timestamp"])

    def total(field: str) -> Column:
        if "Throughput" not in field:
            return document[field]
        total = sf.aggregate(sf.map_values(stats), sf.lit(0.0), lambda sum_, bundle: sum_ + bundle[field])
        return sf.coalesce(sf.when(simple, total), document[field])

    usage, usage_of_simple = _usage(document), _usage(document["systemResourceUsage"])
    fields = {
        "report_read_at_ms": sf.col("readAt"),
        "report_updated_at_ms": updated_at,
        "report_written_at_ms": sf.col("modifiedAt"),
        "report_writes": sf.col("version"),
        "start_timestamp_ms": sf.when(~simple, document["startTimestamp"]),
        **_of_record(document),
        "report_source": sf.lit("load_report"),
        **{name: sf.coalesce(usage[name], usage_of_simple[name]) for name in usage},
        **{name: total(field) for field, name in TRAFFIC.items()},
        "topics": document["numTopics"],
        "bundles": document["numBundles"],
        "consumers": document["numConsumers"],
        "producers": document["numProducers"],
        "listed": sf.coalesce(document["bundles"], sf.map_keys(document["bundleStats"])),
        "gains": sf.coalesce(document["lastBundleGains"], document["bundleGains"]),
        "losses": sf.coalesce(document["lastBundleLosses"], document["bundleLosses"]),
        _CHANGED_UNTIL: sf.when((sf.col("source") == "rest") & ~simple, sf.col("readAt")).otherwise(updated_at),
    }
    return (
        raw["load_reports"]
        .select(
            sf.when(sf.col("source") == "rest", "fresh").otherwise("published").alias("view"),
            "broker",
            _report(fields, stats).alias("report"),
        )
        # The Extensible manager's node in ZooKeeper is a lookup record without load.
        .where("report.cpu_usage is not null")
        .groupBy("view", "broker")
        .agg(sf.max_by("report", "report.report_read_at_ms").alias("report"))
    )


def _of_record(document: Column) -> dict[str, Column]:
    return {name: document[field] for name, field in _OF_RECORD.items()}


def _rebuilt_reports(raw: RawTables, without_topics: Sequence[str]) -> DataFrame:
    """Load reports for brokers that have none: usage from metrics, traffic as sums over topics (without topics, none).

    Metrics are percentages, so every limit is 100; they have no time, so they count as written when read. The rest
    comes from the broker's node in ZooKeeper, a look-up record.
    """
    figures = (
        _bundle_sums(raw)
        .groupBy("broker")
        .agg(
            *(_sum_if_complete(field).cast("double").alias(name) for field, name in TRAFFIC.items()),
            *(sf.try_sum(field).alias(name) for field, name in _COUNTED.items()),
            sf.map_from_entries(
                sf.collect_list(
                    sf.struct("bundle", sf.struct(*TRAFFIC, *_COUNTED, sf.lit(0).alias("cacheSize")).cast(BUNDLE_STATS))
                )
            ).alias("stats"),
        )
    )
    claims = last_lists(raw).where("source = 'rest'")
    listed = claims.groupBy("broker").agg(sf.collect_list("bundle").alias("listed"))
    records = (
        raw["load_reports"]
        .where("source = 'zookeeper'")
        .groupBy("broker")
        .agg(sf.max_by("document", "readAt").alias("record"))
    )
    metrics, record = sf.col("document"), sf.col("record")
    fields = {
        "report_read_at_ms": sf.col("readAt"),
        "report_updated_at_ms": sf.col("readAt"),
        "start_timestamp_ms": record["startTimestamp"],
        **_of_record(record),
        "report_source": sf.lit("metrics"),
        "weighted_max_ema_ratio": metrics["max_ema"],
        **{f"{name}_usage": metrics[metric] for name, metric in _METRICS.items()},
        **{f"{name}_limit": sf.lit(100.0) for name in _METRICS},
        **{name: sf.when(sf.col("stats").isNull(), 0.0).otherwise(sf.col(name)) for name in TRAFFIC.values()},
        **{name: sf.coalesce(name, sf.lit(0)) for name in _COUNTED.values()},
        "bundles": sf.coalesce(sf.size("listed"), sf.lit(0)),
        "listed": sf.col("listed"),
    }
    return (
        raw["broker_metrics"]
        .groupBy("broker")
        .agg(sf.max_by(sf.struct("readAt", "document"), "readAt").alias("read"))
        .select("broker", "read.readAt", "read.document")
        .where(sf.col("document.brk_lb_cpu_usage").isNotNull() & ~sf.col("broker").isin(list(without_topics)))
        .join(figures, "broker", "left")
        .join(listed, "broker", "left")
        .join(records, "broker", "left")
        .select(sf.lit("fresh").alias("view"), "broker", _report(fields, sf.col("stats")).alias("report"))
    )


def _last_published(lines: DataFrame) -> DataFrame:
    """(broker, last): the last message of each broker on one topic; its document is null if it withdrew its load."""
    order = sf.struct(sf.coalesce("publishedAt", "readAt"), "readAt")
    return lines.groupBy("broker").agg(sf.max_by(sf.struct("readAt", "document"), order).alias("last"))


def _publishing(messages: DataFrame) -> DataFrame:
    """(broker, publishes_every_ms): the mean time between a broker's messages.

    For a broker heard once, the time from the first message of any broker to the last one, because the capture listened
    that long. Null if no time passed.
    """
    at = sf.coalesce("publishedAt", "readAt")
    span_ms = sf.try_subtract(sf.max(at), sf.min(at))  # a message's send time may be any number
    listened_ms = few_rows(messages.agg(span_ms.alias("listened_ms")))
    number = sf.col("messages")
    every_ms = sf.when(number > 1, sf.col("span_ms") / (number - 1)).otherwise(sf.col("listened_ms"))
    return (
        messages.groupBy("broker")
        .agg(sf.count("*").alias("messages"), span_ms.alias("span_ms"))
        .crossJoin(listened_ms)
        .select("broker", sf.when(every_ms > 0, every_ms).alias("publishes_every_ms"))
    )


_UNCHANGED_RATIO: Final = 0.1
"""A broker publishes changes of more than a tenth (`loadBalancerReportUpdateThresholdPercentage`)."""


def _published_reports(raw: RawTables, rebuilt: DataFrame, earlier_brokers: DataFrame) -> DataFrame:
    """The leader's view of Extensible brokers: the load and top bundles that each published in the system topics.

    A broker that published nothing during the capture would have published a change of more than a tenth. The leader
    still has its previous publication, which is used if an earlier snapshot shows it and the present traffic is within
    a tenth of it; otherwise the rebuilt figures come nearest. They also replace those of a broker that withdrew its
    load, since it publishes again within seconds.
    """
    messages = raw["broker_load_data"]
    entries = sf.collect_list(sf.struct("bundle", "stats"))
    top = top_bundles(raw).groupBy("broker").agg(sf.map_from_entries(entries).alias("top"))
    listed = _last_published(raw["top_bundles"]).where("last.document is not null")
    stats = listed.select("broker", sf.lit(True).alias("has_top")).join(top, "broker", "left")
    load, other = sf.col("load.document"), sf.col("report")
    kept = ("start_timestamp_ms", *_OF_RECORD, "consumers", "producers", "listed")
    fields = {
        "report_read_at_ms": sf.col("load.readAt"),
        "report_updated_at_ms": load["updatedAt"],
        "report_source": sf.lit("broker_load_data"),
        "weighted_max_ema_ratio": load["weightedMaxEMA"],
        "msg_throughput_ema_bytes_per_s": load["msgThroughputEMA"],
        "publishes_every_ms": sf.col("publishes_every_ms"),
        **_usage(load),
        **{name: load[field] for field, name in TRAFFIC.items()},
        "topics": load["topics"],
        "bundles": load["bundleCount"],
        **{name: other[name] for name in kept},
    }
    top_or_loaded = sf.when(sf.col("has_top"), sf.col("top")).otherwise(other["stats"])
    published = _report(fields, top_or_loaded)
    before = sf.col("before")
    still = _report(
        {
            **{name: before[name] for name in OF_BROKER if name != "publishes_every_ms"},
            **{name: other[name] for name in kept},
        },
        top_or_loaded,
    )
    published_before = earlier_brokers.where("report_source = 'broker_load_data'")
    loads = _last_published(messages).withColumnRenamed("last", "load")
    return (
        rebuilt.select("broker", "report")
        .join(loads, "broker", "full")
        .join(_publishing(messages), "broker", "left")
        .join(stats, "broker", "left")
        .join(published_before.select("broker", sf.struct(*OF_BROKER).alias("before")), "broker", "left")
        .select(
            sf.lit("published").alias("view"),
            "broker",
            sf.when(load.isNotNull(), published)
            .when(sf.col("load").isNull() & _about_the_same(before, other), still)
            .otherwise(other)
            .alias("report"),
        )
    )


def _about_the_same(before: Column, now: Column) -> Column:
    """Whether message rate, throughput and bundles changed by at most a tenth."""

    def figures(report: Column) -> tuple[Column, ...]:
        rate = report["msg_rate_in_per_s"] + report["msg_rate_out_per_s"]
        throughput = report["msg_throughput_in_bytes_per_s"] + report["msg_throughput_out_bytes_per_s"]
        return rate, throughput, report["bundles"]

    pairs = zip(figures(before), figures(now), strict=True)
    return reduce(and_, (sf.abs(new - old) <= _UNCHANGED_RATIO * old for old, new in pairs))


def top_bundles(raw: RawTables) -> DataFrame:
    """(broker, bundle, position, stats): the busiest bundles as brokers published them; position 0 is the lightest."""
    return (
        _last_published(raw["top_bundles"])
        .select("broker", sf.posexplode("last.document.topBundlesLoadData").alias("position", "top"))
        .where("top.bundleName is not null and top.stats is not null")
        .groupBy("broker", sf.col("top.bundleName").alias("bundle"))
        .agg(sf.max("position").alias("position"), sf.max_by("top.stats", "position").alias("stats"))
    )


def _bundle_sums(raw: RawTables) -> DataFrame:
    """(broker, bundle, figures): sums over each broker's loaded topics, each figure rounded to thousandths."""
    consumers = sf.aggregate(
        sf.map_values("stats.subscriptions"),
        sf.lit(0).cast("bigint"),
        lambda sum_, subscription: sum_ + sf.greatest(sf.size(subscription["consumers"]), sf.lit(0)),
    )
    return (
        raw["topic_stats"]
        .select(
            "broker",
            sf.concat_ws("/", "namespace", "range").alias("bundle"),
            *(sf.expr(f"try_cast(stats.{field} as {_THOUSANDTHS})").alias(field) for field in TRAFFIC),
            sf.coalesce(consumers, sf.lit(0)).alias("consumerCount"),
            sf.coalesce("stats.producerCount", sf.lit(0)).alias("producerCount"),
        )
        .groupBy("broker", "bundle")
        .agg(
            *(_sum_if_complete(field).alias(field) for field in TRAFFIC),
            sf.sum("consumerCount").alias("consumerCount"),
            sf.try_sum("producerCount").alias("producerCount"),
            sf.count("*").alias("topicCount"),
        )
    )


def _sum_if_complete(column: str) -> Column:
    """A sum, null if any figure isn't a number: a partial sum would pass for the whole."""
    return sf.when(sf.count(column) == sf.count("*"), sf.sum(column))


def reported_figures(reports: DataFrame) -> DataFrame:
    """(view, broker, report_updated_at_ms, bundle, stats): every bundle's figures in every report."""
    return reports.select(
        "view", "broker", "report.report_updated_at_ms", sf.explode("report.stats").alias("bundle", "stats")
    )
