"""The tables as Spark frames: what each raw surface says, joined into one row per broker, bundle, topic and namespace.

Plain column expressions throughout, no Python on the executors. Where sources differ, the order of trust is the one in
`schemas`' comments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from pulsar_advisor.model.averages import DEFAULT_FIGURES, LONG_TERM_MAX_SAMPLES, SHORT_TERM_MAX_SAMPLES
from pulsar_advisor.model.cluster_state import View
from pulsar_advisor.tables.names import (
    bundle_name,
    bundle_parts,
    has_implied_range,
    is_bundle_name,
    namespace_kind,
    parsed_boundaries,
    ranges_of,
    with_range,
)
from pulsar_advisor.tables.raw import RawTables

_RATES: Final = {
    "msgRateIn": "msg_rate_in_per_s",
    "msgRateOut": "msg_rate_out_per_s",
    "msgThroughputIn": "msg_throughput_in_bytes_per_s",
    "msgThroughputOut": "msg_throughput_out_bytes_per_s",
}

_RESOURCES: Final = {
    "cpu": "cpu",
    "memory": "memory",
    "directMemory": "direct_memory",
    "bandwidthIn": "bandwidth_in",
    "bandwidthOut": "bandwidth_out",
}

_DEFAULT_RATES: Final = dict(zip(_RATES.values(), DEFAULT_FIGURES, strict=True))


def _rates(struct: str, prefix: str = "") -> dict[str, Column]:
    return {prefix + name: sf.col(f"{struct}.{field}") for field, name in _RATES.items()}


_METRICS: Final = {
    "cpu": "brk_lb_cpu_usage",
    "memory": "brk_lb_memory_usage",
    "direct_memory": "brk_lb_directMemory_usage",
    "bandwidth_in": "brk_lb_bandwidth_in_usage",
    "bandwidth_out": "brk_lb_bandwidth_out_usage",
}
"""Percent. Source: Pulsar `BrokerLoadData.toMetrics`, 3.0 to 4.2."""

_STATS: Final = (
    "struct<msgRateIn: double, msgRateOut: double, msgThroughputIn: double, msgThroughputOut: double, "
    "consumerCount: bigint, producerCount: bigint, topics: bigint, cacheSize: bigint>"
)
_THOUSANDTHS: Final = "decimal(28, 3)"


def load_reports(raw: RawTables) -> DataFrame:
    """(view, broker, report): one report each, every load manager's fields under one name."""
    written = _written_reports(raw)
    if not raw.has_extensible_brokers:
        return written
    rebuilt = _rebuilt_reports(raw)
    return written.unionByName(rebuilt).unionByName(_told_reports(raw, rebuilt))


def _written_reports(raw: RawTables) -> DataFrame:
    """The reports of Modular and Simple brokers.

    Simple's own throughput totals repeat its message rates, its start time that of the report (seen in 4.0.8), and it
    names its bundles in their figures only: sums over its bundles stand in, and no start time.
    """
    document = sf.col("document")
    stats = sf.coalesce(document["lastStats"], document["bundleStats"])
    simple = document["bundleStats"].isNotNull()

    def throughput(field: str) -> Column:
        total = sf.aggregate(sf.map_values(stats), sf.lit(0.0), lambda sum_, bundle: sum_ + bundle[field])
        return sf.when(simple, total).otherwise(document[field])

    report = sf.struct(
        sf.col("readAt").alias("report_read_at_ms"),
        sf.coalesce(document["lastUpdate"], document["timestamp"]).alias("report_updated_at_ms"),
        sf.when(~simple, document["startTimestamp"]).alias("start_timestamp_ms"),
        document["webServiceUrl"].alias("web_service_url"),
        document["brokerVersionString"].alias("version"),
        document["loadManagerClassName"].alias("load_manager_class_name"),
        sf.lit("load_report").alias("report_source"),
        sf.lit(None).cast("double").alias("weighted_max_ema_ratio"),
        sf.lit(None).cast("double").alias("msg_throughput_ema_bytes_per_s"),
        *(
            sf.coalesce(document[field][side], document["systemResourceUsage"][field][side]).alias(f"{name}_{side}")
            for field, name in _RESOURCES.items()
            for side in ("usage", "limit")
        ),
        document["msgRateIn"].alias("msg_rate_in_per_s"),
        document["msgRateOut"].alias("msg_rate_out_per_s"),
        throughput("msgThroughputIn").alias("msg_throughput_in_bytes_per_s"),
        throughput("msgThroughputOut").alias("msg_throughput_out_bytes_per_s"),
        document["numTopics"].alias("topics"),
        document["numBundles"].alias("bundles"),
        document["numConsumers"].alias("consumers"),
        document["numProducers"].alias("producers"),
        document["persistentTopicsEnabled"].alias("persistent_topics_enabled"),
        document["nonPersistentTopicsEnabled"].alias("non_persistent_topics_enabled"),
        sf.coalesce(document["bundles"], sf.map_keys(document["bundleStats"]), sf.array().cast("array<string>")).alias(
            "listed"
        ),
        stats.alias("stats"),
        *(
            sf.coalesce(
                document[f"lastBundle{change}"], document[f"bundle{change}"], sf.array().cast("array<string>")
            ).alias(change.lower())
            for change in ("Gains", "Losses")
        ),
    )
    return (
        raw["load_reports"]
        .select(
            sf.when(sf.col("source") == "rest", "fresh").otherwise("published").alias("view"),
            "broker",
            report.alias("report"),
        )
        # The Extensible manager's node in ZooKeeper is a lookup record without load.
        .where("report.cpu_usage is not null")
        .groupBy("view", "broker")
        .agg(sf.max_by("report", "report.report_read_at_ms").alias("report"))
    )


def _rebuilt_reports(raw: RawTables) -> DataFrame:
    """What a load report would say of brokers that have none: of usage by metrics, of traffic by sums over topics.

    Metrics give percentages only, so every limit is 100, and no time, so they count as written when they were read.
    What else such a broker tells about itself stands in its node in ZooKeeper, a look-up record.
    """
    sums = _bundle_sums(raw)
    figures = sums.groupBy("broker").agg(
        *(_sum_if_complete(field).cast("double").alias(name) for field, name in _RATES.items()),
        *(sf.sum(field).alias(name) for field, name in _COUNTED.items()),
        sf.map_from_entries(
            sf.collect_list(
                sf.struct("bundle", sf.struct(*_RATES, *_COUNTED, sf.lit(0).alias("cacheSize")).cast(_STATS))
            )
        ).alias("stats"),
    )
    last = raw["owned_bundles"].where("source = 'rest'").withColumn("last", sf.expr("max(pass) over ()"))
    listed = last.where("pass = last").groupBy("broker").agg(sf.collect_list("bundle").alias("listed"))
    records = (
        raw["load_reports"]
        .where("source = 'zookeeper'")
        .groupBy("broker")
        .agg(sf.max_by("document", "readAt").alias("record"))
    )
    metrics, record = sf.col("document"), sf.col("record")
    nothing = sf.array().cast("array<string>")
    report = sf.struct(
        sf.col("readAt").alias("report_read_at_ms"),
        sf.col("readAt").alias("report_updated_at_ms"),
        record["startTimestamp"].alias("start_timestamp_ms"),
        record["webServiceUrl"].alias("web_service_url"),
        record["brokerVersionString"].alias("version"),
        record["loadManagerClassName"].alias("load_manager_class_name"),
        sf.lit("metrics").alias("report_source"),
        metrics["max_ema"].alias("weighted_max_ema_ratio"),
        sf.lit(None).cast("double").alias("msg_throughput_ema_bytes_per_s"),
        *(
            column
            for name, metric in _METRICS.items()
            for column in (metrics[metric].alias(f"{name}_usage"), sf.lit(100.0).alias(f"{name}_limit"))
        ),
        *(sf.when(sf.col("stats").isNull(), 0.0).otherwise(sf.col(name)).alias(name) for name in _RATES.values()),
        sf.coalesce("topics", sf.lit(0)).alias("topics"),
        sf.coalesce(sf.size("listed"), sf.lit(0)).cast("bigint").alias("bundles"),
        sf.coalesce("consumers", sf.lit(0)).alias("consumers"),
        sf.coalesce("producers", sf.lit(0)).alias("producers"),
        record["persistentTopicsEnabled"].alias("persistent_topics_enabled"),
        record["nonPersistentTopicsEnabled"].alias("non_persistent_topics_enabled"),
        sf.coalesce("listed", nothing).alias("listed"),
        "stats",
        nothing.alias("gains"),
        nothing.alias("losses"),
    )
    return (
        raw["broker_metrics"]
        .groupBy("broker")
        .agg(sf.max_by(sf.struct("readAt", "document"), "readAt").alias("read"))
        .select("broker", "read.readAt", "read.document")
        .where("document.brk_lb_cpu_usage is not null")
        .join(figures, "broker", "left")
        .join(listed, "broker", "left")
        .join(records, "broker", "left")
        .select(sf.lit("fresh").alias("view"), "broker", report.alias("report"))
    )


def _told_reports(raw: RawTables, rebuilt: DataFrame) -> DataFrame:
    """The leader's view of Extensible brokers: what each told of its load and its top bundles, once any was heard.

    A broker that wasn't heard keeps what was rebuilt: it would have told a change of more than a tenth.
    """
    entries = sf.collect_list(sf.struct("bundle", "stats"))
    told = top_bundles(raw).groupBy("broker").agg(sf.map_from_entries(entries).alias("told"))
    stats = raw["top_bundles"].select("broker", sf.lit(True).alias("told_top")).distinct().join(told, "broker", "left")
    load, other = sf.col("load.document"), sf.col("report")

    def of_report(name: str) -> Column:
        return other[name].alias(name)

    report = sf.struct(
        sf.col("load.readAt").alias("report_read_at_ms"),
        load["updatedAt"].alias("report_updated_at_ms"),
        *(of_report(name) for name in ("start_timestamp_ms", "web_service_url", "version", "load_manager_class_name")),
        sf.lit("broker_load_data").alias("report_source"),
        load["weightedMaxEMA"].alias("weighted_max_ema_ratio"),
        load["msgThroughputEMA"].alias("msg_throughput_ema_bytes_per_s"),
        *(
            load[field][side].alias(f"{name}_{side}")
            for field, name in _RESOURCES.items()
            for side in ("usage", "limit")
        ),
        *(load[field].alias(name) for field, name in _RATES.items()),
        load["topics"].alias("topics"),
        load["bundleCount"].alias("bundles"),
        *(
            of_report(name)
            for name in ("consumers", "producers", "persistent_topics_enabled", "non_persistent_topics_enabled")
        ),
        sf.coalesce(other["listed"], sf.array().cast("array<string>")).alias("listed"),
        sf.when(sf.col("told_top"), sf.col("told")).otherwise(other["stats"]).alias("stats"),
        sf.array().cast("array<string>").alias("gains"),
        sf.array().cast("array<string>").alias("losses"),
    )
    heard = (
        raw["broker_load_data"]
        .groupBy("broker")
        .agg(sf.max_by(sf.struct("readAt", "document"), "readAt").alias("load"))
    )
    return (
        rebuilt.select("broker", "report")
        .join(heard, "broker", "full")
        .join(stats, "broker", "left")
        .where(sf.lit(not heard.isEmpty()))
        .select(
            sf.lit("published").alias("view"),
            "broker",
            sf.when(sf.col("load").isNotNull(), report).otherwise(sf.col("report")).alias("report"),
        )
    )


def top_bundles(raw: RawTables) -> DataFrame:
    """(broker, bundle, position, stats): what brokers told of their busiest bundles; position 0 is the lightest."""
    return (
        raw["top_bundles"]
        .select("broker", sf.posexplode("document.topBundlesLoadData").alias("position", "top"))
        .where("top.bundleName is not null and top.stats is not null")
        .groupBy("broker", sf.col("top.bundleName").alias("bundle"))
        .agg(
            sf.max("position").alias("position"),
            sf.max_by(sf.col("top.stats").cast(_STATS), "position").alias("stats"),
        )
    )


_COUNTED: Final = {"consumerCount": "consumers", "producerCount": "producers", "topicCount": "topics"}


def _bundle_sums(raw: RawTables) -> DataFrame:
    """(broker, bundle, figures): sums over each broker's loaded topics, of thousandths as the broker prints them."""
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
            *(sf.expr(f"try_cast(stats.{field} as {_THOUSANDTHS})").alias(field) for field in _RATES),
            sf.coalesce(consumers, sf.lit(0)).alias("consumerCount"),
            sf.coalesce("stats.producerCount", sf.lit(0)).alias("producerCount"),
        )
        .groupBy("broker", "bundle")
        .agg(
            *(_sum_if_complete(field).alias(field) for field in _RATES),
            sf.sum("consumerCount").alias("consumerCount"),
            sf.sum("producerCount").alias("producerCount"),
            sf.count("*").alias("topicCount"),
        )
    )


def _sum_if_complete(column: str) -> Column:
    """A sum that is null as soon as one figure is no number: a part of a sum would pass for the whole."""
    return sf.when(sf.count(column) == sf.count("*"), sf.sum(column))


def views(reports: DataFrame, judged: View) -> DataFrame:
    """The views this snapshot has: always the one that is judged, and `published` where ZooKeeper held load reports."""
    return reports.select("view").union(reports.sparkSession.sql(f"select '{judged}'")).distinct()


def ownership(raw: RawTables) -> DataFrame:
    """(bundle, owner, owner_source, owner_in_zookeeper, claimed_by, is_active) by the last pass of each source."""
    # "end" sorts after "begin"
    last = raw["owned_bundles"].withColumn("last", sf.expr("max(pass) over (partition by source)")).where("pass = last")
    in_zookeeper, claimed = sf.col("source") == "zookeeper", sf.col("source") == "rest"
    return (
        last.where(is_bundle_name("bundle"))
        .groupBy("bundle")
        .agg(
            sf.max(sf.when(in_zookeeper, sf.col("broker"))).alias("owner_in_zookeeper"),
            sf.sort_array(sf.collect_set(sf.when(claimed, sf.col("broker")))).alias("claimed_by"),
            sf.max_by(sf.when(claimed, sf.col("broker")), sf.when(claimed, sf.struct("readAt", "broker"))).alias(
                "latest_claim"
            ),
            sf.min(sf.when(in_zookeeper, sf.coalesce("isActive", sf.lit(True)))).alias("active_in_zookeeper"),
            sf.min(sf.when(claimed, sf.coalesce("isActive", sf.lit(True)))).alias("claim_active"),
        )
        .select(
            "bundle",
            sf.coalesce("owner_in_zookeeper", "latest_claim").alias("owner"),
            sf.when(sf.col("owner_in_zookeeper").isNotNull(), "zookeeper").otherwise("rest").alias("owner_source"),
            "owner_in_zookeeper",
            "claimed_by",
            sf.coalesce("active_in_zookeeper", "claim_active").alias("is_active"),
        )
    )


def channel(raw: RawTables) -> DataFrame:
    """(bundle, channel_state, channel_owner) by the Extensible manager's ownership channel.

    Source: Pulsar `ServiceUnitStateData`, `ServiceUnitStateChannelImpl.getOwner` (3.0.7 to 4.2.4).
    """
    return (
        raw["service_unit_states"]
        .groupBy("bundle")
        .agg(sf.max_by("document", "source").alias("record"))
        .select(
            "bundle",
            sf.col("record.state").alias("channel_state"),
            sf.when(sf.col("record.state") == "Splitting", sf.col("record.sourceBroker"))
            .when(sf.col("record.state").isin("Owned", "Assigning", "Releasing"), sf.col("record.dstBroker"))
            .alias("channel_owner"),
        )
    )


def reported_figures(reports: DataFrame) -> DataFrame:
    """(view, broker, report_updated_at_ms, bundle, stats): every bundle's figures in every report."""
    return reports.select(
        "view", "broker", "report.report_updated_at_ms", sf.explode("report.stats").alias("bundle", "stats")
    )


def namespaces(raw: RawTables, owned: DataFrame, figures: DataFrame) -> DataFrame:
    """One row a namespace: boundaries from ZooKeeper's local policies, which are the authority, else from REST."""
    listed = raw["namespaces"].select(
        "namespace",
        "antiAffinityGroup",
        parsed_boundaries("document.bundles.boundaries").alias("policies_boundaries"),
        sf.col("document.bundles.numBundles").alias("policies_bundles"),
        sf.coalesce("document.deleted", sf.lit(False)).alias("deleted"),
        sf.col("document.replication_clusters").alias("replication_clusters"),
        sf.lit(True).alias("listed"),
    )
    local = raw["local_policies"].select(
        "namespace",
        sf.col("version").alias("local_policies_version"),
        sf.col("document.namespaceAntiAffinityGroup").alias("local_group"),
        parsed_boundaries("document.bundles.boundaries").alias("local_boundaries"),
        sf.col("document.bundles.numBundles").alias("local_bundles"),
    )
    documented = listed.join(local, "namespace", "full").select(
        "namespace",
        sf.coalesce("listed", sf.lit(False)).alias("listed"),
        sf.coalesce("deleted", sf.lit(False)).alias("deleted"),
        sf.coalesce("local_group", "antiAffinityGroup").alias("anti_affinity_group"),
        sf.coalesce("local_boundaries", "policies_boundaries").alias("boundaries"),
        sf.expr(
            "case when local_boundaries is not null then 'local_policies' "
            "when policies_boundaries is not null then 'policies' end"
        ).alias("boundaries_origin"),
        sf.coalesce(sf.expr("local_boundaries = policies_boundaries"), sf.lit(True)).alias("boundaries_agree"),
        sf.coalesce("local_bundles", "policies_bundles").alias("declared_bundles"),
        "local_policies_version",
        "replication_clusters",
    )
    seen = owned.select("bundle").union(figures.where(is_bundle_name("bundle")).select("bundle"))
    implied = (
        seen.select(bundle_parts("bundle")["namespace"].alias("namespace"))
        .where(has_implied_range())
        .distinct()
        .join(documented, "namespace", "left_anti")
        .selectExpr(
            "namespace",
            "false as listed",
            "false as deleted",
            "array(0L, 4294967295L) as boundaries",
            "'implied' as boundaries_origin",
            "true as boundaries_agree",
        )
    )
    return documented.unionByName(implied, allowMissingColumns=True).withColumn("kind", namespace_kind())


def bundles(
    raw: RawTables,
    reports: DataFrame,
    owned: DataFrame,
    figures: DataFrame,
    namespaces_: DataFrame,
    earlier: DataFrame,
    views_: DataFrame,
    *,
    moved: Sequence[str],
    captured_at_ms: int,
    bundle_data_interval_minutes: int,
) -> DataFrame:
    """One row a bundle range and view.

    `earlier`: (view, bundle, earlier), with the columns of `GOES_ON` as the snapshot before had them, and its time
    `captured_at_ms`; no rows where none goes before. `moved`: bundles whose owner changed during the capture.
    """
    figures = figures.where(is_bundle_name("bundle"))
    ranges = ranges_of(namespaces_.where("not deleted")).select(
        bundle_name().alias("bundle"), sf.lit(True).alias("is_range")
    )
    rows = (
        ranges.union(owned.select("bundle", sf.lit(False)))
        .crossJoin(sf.broadcast(views_))
        .select("view", "bundle", "is_range")
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
            **_rates("shown.stats"),
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
    """(at_ms, origin) of the latest unload that anything tells of, else null; see the comment of the column."""
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
    """One average by its origin: the stored node, the earlier snapshots' and one more sample, or Pulsar's defaults.

    Where there is no earlier average the sample is the only one. The formula is that of `model.averages.add_sample`.
    """
    origin = sf.col("averages_origin")
    before = sf.coalesce(f"earlier.{prefix}samples", sf.lit(0))
    samples = sf.least(before + 1, sf.lit(max_samples))

    def by_origin(of_node: Column, of_samples: Column, default: Column) -> Column:
        return sf.when(origin == "bundle_data", of_node).when(origin == "default", default).otherwise(of_samples)

    def folded(name: str) -> Column:
        return ((samples - 1) * sf.coalesce(f"earlier.{prefix}{name}", sf.lit(0.0)) + sf.col(name)) / samples

    return {
        prefix + name: by_origin(sf.col(f"{stored}.{field}"), folded(name), sf.lit(_DEFAULT_RATES[name]))
        for field, name in _RATES.items()
    } | {f"{prefix}samples": by_origin(sf.col(f"{stored}.numSamples"), samples, sf.lit(0))}


GOES_ON: Final = (
    "owner",
    *(f"{term}_term_{name}" for term in ("short", "long") for name in (*_RATES.values(), "samples")),
    "last_unloaded_at_ms",
    "last_unloaded_origin",
)
"""What of a bundle's row is needed where the next snapshot goes on."""


def brokers(
    raw: RawTables,
    reports: DataFrame,
    owned: DataFrame,
    views_: DataFrame,
    *,
    incomplete: Sequence[str],
    leader: str | None,
) -> DataFrame:
    """One row a broker and view: every registered broker and every other one that reported. `leader`: its id."""
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
    rows = registered.select("broker").union(reports.select("broker")).distinct().crossJoin(sf.broadcast(views_))
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
        for field, name in _RATES.items()
    }
    reported = sf.col("report").isNotNull()
    named = [
        *_RESOURCE_COLUMNS,
        *_RATES.values(),
        *_COUNTS,
        *_TIMES,
        "report_source",
        "weighted_max_ema_ratio",
        "msg_throughput_ema_bytes_per_s",
        "persistent_topics_enabled",
        "non_persistent_topics_enabled",
    ]
    return (
        rows.join(registered, "broker", "left")
        .join(reports, ["view", "broker"], "left")
        .join(
            owned.groupBy(sf.col("owner").alias("broker")).agg(sf.count("*").alias("owned_bundles")), "broker", "left"
        )
        .join(domains, "broker", "left")
        .join(class_names, "broker", "left")
        .join(averages, "broker", "left")
        .withColumns(
            {
                "web_service_url": sf.coalesce("registered_url", "report.web_service_url"),
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
                **{name: sf.col(f"report.{name}") for name in named},
                **stored,
            }
        )
    )


_RESOURCE_COLUMNS: Final = tuple(f"{name}_{side}" for name in _RESOURCES.values() for side in ("usage", "limit"))
_COUNTS: Final = ("topics", "bundles", "producers", "consumers")
_TIMES: Final = ("report_updated_at_ms", "report_read_at_ms", "start_timestamp_ms")


def topics(raw: RawTables, owned: DataFrame, namespaces_: DataFrame) -> DataFrame:
    """One row a topic: everything the listings name, every partition, and everything that is loaded."""
    partitions = (
        raw["partitioned_topics"]
        .where("partitions > 0")
        .select(
            "namespace",
            "domain",
            sf.expr("explode(transform(sequence(0, partitions - 1), i -> concat(topic, '-partition-', i))) as topic"),
        )
    )
    named = (
        raw["topic_names"]
        .select("namespace", "domain", "topic")
        .union(partitions)
        .select("*", sf.lit(True).alias("named"), sf.lit(None).alias("shown"))
    )
    owners = owned.select("bundle", "owner")
    loaded = (
        raw["topic_stats"]
        .withColumn("bundle", sf.concat_ws("/", "namespace", "range"))
        .join(owners, "bundle", "left")
        .select(
            "namespace",
            "domain",
            "topic",
            sf.lit(False).alias("named"),
            sf.struct(
                sf.expr("coalesce(broker = owner, false)").alias("is_owner"),
                "broker",
                "range",
                sf.struct(*(f"stats.{field}" for field in (*_RATES, "producerCount", "storageSize"))).alias("stats"),
            ).alias("shown"),
        )
    )
    rows = (
        loaded.union(named)
        .repartition("topic")  # before the aggregation, which would sort once more on either side of its own exchange
        .groupBy("topic")
        .agg(
            sf.max("namespace").alias("namespace"),
            sf.max("domain").alias("domain"),
            sf.max("named").alias("named"),
            sf.max("shown").alias("shown"),
            sf.count("shown").alias("reports"),
        )
        .withColumns(
            {
                "hash": sf.crc32(sf.encode("topic", "UTF-8")),
                "loaded": sf.col("shown").isNotNull(),
                "broker": sf.col("shown.broker"),
                "reported_range": sf.col("shown.range"),
                **_rates("shown.stats"),
                "producers": sf.col("shown.stats.producerCount"),
                "storage_size_bytes": sf.col("shown.stats.storageSize"),
            }
        )
        .drop("shown")
    )
    return with_range(rows, ranges_of(namespaces_.where("not deleted")))


def policies(raw: RawTables) -> DataFrame:
    """One row an isolation policy, numbered in the order Pulsar gave them."""
    no_patterns = sf.array().cast("array<string>")
    parameter = "document.auto_failover_policy.parameters['{}']"
    return raw["isolation_policies"].select(
        sf.monotonically_increasing_id().alias("position"),
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
    """One row a configuration value."""
    return raw["settings"].select("origin", "broker", sf.explode("values").alias("key", "value"))


def bad_names(raw: RawTables, figures: DataFrame) -> DataFrame:
    """(surface, broker, detail): bundle names that can't be read."""
    return (
        figures.select(sf.lit("load_reports").alias("surface"), "broker", "bundle")
        .union(raw["owned_bundles"].select(sf.lit("owned_bundles"), "broker", "bundle"))
        .union(raw["bundle_data"].select(sf.lit("bundle_data"), sf.lit(None), "bundle"))
        .where(~sf.coalesce(is_bundle_name("bundle"), sf.lit(False)))
        .distinct()
        .select("surface", "broker", sf.col("bundle").alias("detail"))
    )


def bad_boundaries(raw: RawTables) -> DataFrame:
    """(surface, detail): boundary lists with a text that is no bound, or with none at all."""
    return (
        raw["namespaces"]
        .where("coalesce(document.deleted, false) = false")
        .select(
            sf.lit("namespaces").alias("surface"), "namespace", sf.col("document.bundles.boundaries").alias("texts")
        )
        .union(raw["local_policies"].select(sf.lit("local_policies"), "namespace", "document.bundles.boundaries"))
        .where(sf.exists(parsed_boundaries("texts"), sf.isnull) | (sf.size("texts") < 2))
        .select("surface", sf.concat_ws(": ", "namespace", sf.concat_ws(",", "texts")).alias("detail"))
    )
