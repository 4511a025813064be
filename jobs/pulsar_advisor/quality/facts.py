"""The tables as the suites see them: facts across rows, tables and snapshots joined once, as columns.

Only the fresh view is judged, since advice is based on it. The published view is what the leader acts on, right or
wrong; it is judged only if no broker was asked, because then there is no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from pulsar_advisor.documents.manifest import Manifest
from pulsar_advisor.model.cluster.cluster_state import View
from pulsar_advisor.model.cluster.isolation_policies import broker_host
from pulsar_advisor.model.configuration.class_names import LOAD_MANAGERS
from pulsar_advisor.model.configuration.settings import setting_value
from pulsar_advisor.model.errors import StorageError
from pulsar_advisor.model.java.expressions import matched
from pulsar_advisor.placement.registry import PLACEMENTS
from pulsar_advisor.shedding.registry import SHEDDERS
from pulsar_advisor.splitting.registry import SPLIT_ALGORITHMS
from pulsar_advisor.tables.frames import few_rows, frame_of, in_session, materialized
from pulsar_advisor.tables.schemas import RESOURCES, TABLES, TRAFFIC, Table
from pulsar_advisor.tables.snapshot_frames import SnapshotFrames
from pulsar_advisor.tables.state import SettingsInputs, judged_view

_REQUIRED_SURFACES: Final = ("brokers", "load_reports", "namespaces", "owned_bundles", "topic_stats")
"""Without these there is no fresh view of the whole cluster."""

_FROM_BROKERS_ONLY: Final = ("load_reports", "topic_stats")
"""Surfaces among these that a capture from ZooKeeper alone need not have; any reports there are rows of brokers."""

_RESOURCES: Final = tuple(RESOURCES.values())

_FIGURES: Final = tuple(TRAFFIC.values())

_HIGHEST_FIGURE: Final = 1e15
"""No machine reaches such a rate of messages or bytes."""

_HIGHEST_COUNT: Final = 1_000_000_000
"""No broker has so many topics or clients."""

_SMALLEST_NORMAL: Final = 2.2250738585072014e-308
"""Numbers nearer to zero have lost digits (IEEE 754 binary64)."""

_STATISTICS_INTERVAL: Final = "statsUpdateFrequencyInSecs"

_COUNTS: Final = ("topics", "producers", "consumers")
_HIGHEST_OF_BROKERS: Final = dict.fromkeys((*_COUNTS, "bundles"), _HIGHEST_COUNT)
_HIGHEST_OF_BUNDLES: Final = {**dict.fromkeys(_COUNTS, _HIGHEST_COUNT), "cache_size_bytes": _HIGHEST_FIGURE}

_JUMP_WITHIN_MS: Final = 3_600_000
_JUMP_RATIO: Final = 100
_JUMP_FROM: Final = 1000
"""Messages or bytes a second below which it is not unusual for a bundle to start or stop."""

_DOMAINS_ENABLED: Final = "failureDomainsEnabled"


def facts(
    tables: SnapshotFrames, before: SnapshotFrames | None, manifest: Manifest, settings: SettingsInputs
) -> dict[str, Callable[[], DataFrame]]:
    """Table name -> a function that makes its rows, with the columns of the table and the facts that its suite uses.

    `before` is the snapshot that this one is compared with. Each table's rows are made separately, on demand, in a
    session that suits their number. That raises `AnalysisException` if a column that a fact needs is missing, so that
    only the checks of that table are lost, and `StorageError` if a table they are made from can't be read. An earlier
    snapshot whose tables can't be read is ignored.
    """
    view, table = judged_view(manifest), tables.frame

    def judged(name: str, of: SnapshotFrames = tables) -> DataFrame:
        return of.frame(name).where(sf.col("view") == view)

    @cache
    def earlier() -> tuple[DataFrame, DataFrame] | None:
        try:
            return None if before is None else (judged("brokers", before), judged("bundles", before))
        except StorageError:
            return None

    return {
        "brokers": lambda: _with_served(
            _brokers(judged("brokers"), judged("bundles"), earlier(), two_passes_ms(settings)), table("topics")
        ),
        "bundles": lambda: _bundles(
            judged("bundles"), judged("brokers"), table("topics"), earlier(), two_passes_ms(settings)
        ),
        "capture": lambda: _capture(tables.few, manifest, table),
        "namespaces": lambda: _namespaces(table("namespaces"), judged("brokers"), settings),
        "policies": lambda: _policies(tables, view),
        "problems": lambda: _problems(table("problems"), view),
        "settings": lambda: _settings(table("settings"), judged("brokers")),
        "topics": lambda: _topics(table("topics")),
    }


def two_passes_ms(settings: SettingsInputs) -> int:
    """Time after a statistics pass within which a broker has certainly made another one."""
    return 2000 * int(setting_value(_STATISTICS_INTERVAL, *settings))


def _impossible(counts: Mapping[str, float]) -> str:
    """How many of these counts (column -> the highest possible) are missing, negative or too high."""
    return " + ".join(f"int(not coalesce({count} between 0 and {highest}, false))" for count, highest in counts.items())


def _missing(figures: Iterable[str]) -> str:
    """How many of these columns a row leaves out."""
    return " + ".join(f"int({figure} is null)" for figure in figures)


def _brokers(
    brokers: DataFrame, bundles: DataFrame, earlier: tuple[DataFrame, DataFrame] | None, passes_ms: int
) -> DataFrame:
    """Facts: is_leader as 0 or 1, age of the report by the broker's clock, that clock compared with most brokers',
    the host of its web address compared with its id, usage in percent, limits as far as they are known and compared
    with the other brokers', figures left out, totals and counts compared with the sums over bundles, counts that can't
    be, what is known of all brokers together, whether the totals changed since the earlier snapshot.
    """
    percents = {
        f"{resource}_percent": sf.expr(f"if({resource}_limit > 0, 100 * {resource}_usage / {resource}_limit, null)")
        for resource in _RESOURCES
    }
    # Kbit/s, like the limit; metrics give percentages only.
    carried = {
        f"carried_{way}_percent": sf.expr(
            f"if(report_source = 'load_report' and bandwidth_{way}_limit > 0, "
            f"0.8 * msg_throughput_{way}_bytes_per_s / bandwidth_{way}_limit, null)"
        )
        for way in ("in", "out")
    }
    common = brokers.agg(
        *(
            sf.expr(f"mode() within group (order by {resource}_limit) filter (where available)").alias(
                f"common_{resource}_limit"
            )
            for resource in _RESOURCES
        ),
        *(
            sf.expr(f"mode() within group (order by {column})").alias(f"common_{column}")
            for column in ("load_manager_class_name", "version")
        ),
        sf.expr("percentile_disc(0.5) within group (order by clock_ahead_ms)").alias("common_clock_ahead_ms"),
    )
    known = {
        f"{resource}_known_limit": sf.expr(f"if(reported, coalesce({resource}_limit, -1), null)")
        for resource in _RESOURCES
    }
    alike = {
        f"{resource}_limit_is_common": sf.expr(f"if(available, {resource}_limit = common_{resource}_limit, null)")
        for resource in _RESOURCES
    }
    # A separate check names a bundle whose figure can't be a rate; it must not spoil sums.
    sums = (
        bundles.where("reported")
        .groupBy(sf.col("figures_broker").alias("broker"))
        .agg(
            sf.count("*").alias("summed_bundles"),
            *(sf.sum(count).alias(f"sum_{count}") for count in _COUNTS),
            *(
                sf.expr(f"if(bool_and({figure} between 0 and {_HIGHEST_FIGURE}), sum({figure}), null)").alias(
                    f"sum_{figure}"
                )
                for figure in _FIGURES
            ),
        )
    )
    usages = [f"{resource}_usage" for resource in _RESOURCES if resource != "cpu"]
    flows = " + ".join(f"coalesce(abs({figure}), 0)" for figure in _FIGURES)
    unaccounted = {
        f"unaccounted_{figure}_ratio": sf.expr(
            f"if(summed_bundles = bundles_with_figures, abs({figure} - sum_{figure}) "
            f"/ greatest({figure}, sum_{figure}, 1), null)"
        )
        for figure in _FIGURES
    }
    return (
        brokers.crossJoin(few_rows(common))
        .join(in_session(sums, brokers.sparkSession), "broker", "left")
        .withColumns(
            {
                "leaders": sf.col("is_leader").cast("int"),
                # A report has the broker's own time; metrics have none, and get the time at which they were read.
                "report_age_minutes": sf.expr(
                    "(report_read_at_ms - report_updated_at_ms "
                    "+ if(report_source = 'metrics', 0, coalesce(clock_ahead_ms, 0))) / 60000D"
                ),
                "report_is_dated": sf.expr("if(report_source is null, null, report_updated_at_ms is not null)"),
                "clock_off_seconds": sf.expr("(clock_ahead_ms - common_clock_ahead_ms) / 1000D"),
                "clocks_ahead_of_ours_seconds": sf.expr("common_clock_ahead_ms / 1000D"),
                "reported_host_is_its_own": sf.expr(
                    "regexp_extract(reported_web_service_url, '^[a-z]+://(.*?)(:[0-9]+)?/?$', 1) "
                    "= regexp_extract(broker, '^(.*?)(:[0-9]+)?$', 1)"
                ),
                "reports_of_all": sf.expr("count(report_source) over ()"),
                "traffic_of_all_flows": sf.expr(
                    f"if(count(report_source) over () > 0, sum({flows}) over () > 0, null)"
                ),
                "impossible_counts": sf.expr(
                    f"if(report_source = 'load_report', {_impossible(_HIGHEST_OF_BROKERS)}, null)"
                ),
                "missing_figures": sf.expr(f"if(reported, {_missing((*_FIGURES, *usages))}, null)"),
                "counts_add_up": sf.expr(
                    "if(summed_bundles = bundles_with_figures and report_source = 'load_report', "
                    f"bundles = listed_bundles and {' and '.join(f'{count} = sum_{count}' for count in _COUNTS)}, null)"
                ),
                "cpu_is_measured": sf.expr("if(msg_rate_in_per_s + msg_rate_out_per_s > 1000, cpu_usage > 0, null)"),
                **percents,
                "other_load_manager": sf.expr("nullif(load_manager_class_name, common_load_manager_class_name)"),
                "other_version": sf.expr("nullif(version, common_version)"),
                **carried,
                **known,
                **alike,
                **unaccounted,
            }
        )
        .transform(lambda rows: _with_moved(rows, earlier and earlier[0], "broker", passes_ms))
    )


def _with_served(rows: DataFrame, topics: DataFrame) -> DataFrame:
    """Fact: whether a broker serves the kinds of topics that are loaded there, apart from Pulsar's own; null for those
    that serve both. Topics are read only if there is a broker that doesn't.
    """
    serves_both = "coalesce(persistent_topics_enabled, true) and coalesce(non_persistent_topics_enabled, true)"
    if rows.where(f"not ({serves_both})").isEmpty():
        return rows.withColumn("serves_what_is_loaded", sf.lit(None).cast("boolean"))
    loaded = (
        topics.where("loaded and namespace not like 'pulsar/%'")
        .groupBy("broker")
        .agg(
            sf.expr("bool_or(topic like 'persistent://%') as has_persistent"),
            sf.expr("bool_or(topic like 'non-persistent://%') as has_non_persistent"),
        )
    )
    return rows.join(in_session(few_rows(loaded), rows.sparkSession), "broker", "left").withColumn(
        "serves_what_is_loaded",
        sf.expr(
            f"if({serves_both}, null, not ("
            "(has_persistent and not coalesce(persistent_topics_enabled, true)) "
            "or (has_non_persistent and not coalesce(non_persistent_topics_enabled, true))))"
        ),
    )


def _with_moved(rows: DataFrame, earlier: DataFrame | None, key: str, passes_ms: int) -> DataFrame:
    """Fact: whether a row's figures differ from the earlier snapshot's; null where they need not.

    Two passes of statistics never give the same doubles while messages flow. Figures in whole thousandths were
    shortened by the broker and can repeat, so they prove nothing.
    """
    if earlier is None:
        return rows.withColumn("figures_moved", sf.lit(None).cast("boolean"))
    past = earlier.select(
        sf.xxhash64(key).alias("past_row"),  # see `_with_topics`
        sf.col("report_read_at_ms").alias("past_clock"),
        *(sf.col(figure).alias(f"past_{figure}") for figure in _FIGURES),
    )
    flows = " + ".join(_FIGURES)
    # For large figures, digits beyond the thousandths may be only the rounding of the double itself.
    uncut = " or ".join(
        f"abs(1000 * {figure} - rint(1000 * {figure})) > greatest(1e-6, 1e-15 * abs(1000 * {figure}))"
        for figure in _FIGURES
    )
    same = " and ".join(f"{figure} = past_{figure}" for figure in _FIGURES)
    return rows.join(few_rows(past), sf.xxhash64(key) == sf.col("past_row"), "left").withColumn(
        "figures_moved",
        sf.expr(f"if(report_read_at_ms - past_clock > {passes_ms} and {flows} > 0 and ({uncut}), not ({same}), null)"),
    )


def _bundles(
    bundles: DataFrame,
    brokers: DataFrame,
    topics: DataFrame,
    earlier: tuple[DataFrame, DataFrame] | None,
    passes_ms: int,
) -> DataFrame:
    """Facts: distance to the neighbours on the ring, whether a second source confirms owner and figures."""
    # Every broker lists its own heartbeat bundles, so a list that was read is never empty.
    lists = bundles.select(sf.explode("claimed_by").alias("owner")).distinct()
    asked = brokers.select(sf.col("broker").alias("owner"), "available", "report_read_at_ms")
    of_brokers = in_session(asked, bundles.sparkSession).join(
        few_rows(lists.withColumn("owner_lists", sf.lit(True))), "owner", "left"
    )
    # Only the Modular manager's leader stores averages, and only some managers name owners in ZooKeeper.
    nodes = bundles.agg(
        sf.expr("bool_or(owner_in_zookeeper is not null)").alias("zookeeper_names_owners"),
        sf.expr("bool_or(averages_origin = 'bundle_data')").alias("leader_stores_averages"),
    )
    with_topics = _with_topics(bundles, topics)
    # Most of a broker's bundles agree only if both documents come from the same statistics pass.
    same_pass = with_topics.groupBy("figures_broker").agg(
        sf.expr("count_if(agrees_with_topics) as agreeing"), sf.expr("count_if(not agrees_with_topics) as disagreeing")
    )
    ring = "partition by namespace, in_boundaries order by lower, upper"
    averages = [f"{term}{figure}" for term in ("", "short_term_", "long_term_") for figure in _FIGURES]
    return (
        with_topics.join(few_rows(same_pass), "figures_broker", "left")
        .join(few_rows(of_brokers), "owner", "left")
        .crossJoin(few_rows(nodes))
        .transform(lambda rows: _with_moved(rows, earlier and _read_at(earlier), "bundle", passes_ms))
        .selectExpr(
            "*",
            # Rows of the same range have the same place in the order.
            f"count(*) over ({ring} range between current row and current row) as occurrences",
            f"if(in_boundaries, coalesce(lead(lower) over ({ring}), 4294967295) - upper, null) as gap_to_next",
            f"if(in_boundaries, lower - coalesce(lag(upper) over ({ring}), 0), null) as gap_to_previous",
            "if(owner is null, null, coalesce(available, false)) as owner_is_active",
            "size(claimed_by) as claims",
            _OWNERS_AGREE,
            # Under Extensible the leader serves the load manager's own topics, whichever broker owns their bundles.
            "if(reported and (kind <> 'system' or owner is not null), coalesce(figures_broker = owner, false), null) "
            "as figures_are_the_owners",
            "size(reported_by) as reports",
            "if(loaded_topics is not null, reported, null) as loaded_is_reported",
            "if(reported and topics > 0, loaded_topics is not null, null) as reported_is_loaded",
            f"if(reported, {_impossible(_HIGHEST_OF_BUNDLES)}, null) as impossible_counts",
            "if(agreeing >= 2 and disagreeing <= greatest(1, 0.1 * agreeing), agrees_with_topics, null) "
            "as topics_add_up",
            f"if(reported, {_missing(_FIGURES)}, null) as missing_figures",
            f"if(averages_origin = 'bundle_data', {_missing([one for one in averages if '_term_' in one])}, null) "
            "as missing_averages",
            " + ".join(
                f"int(coalesce({column} <> 0 and abs({column}) < {_SMALLEST_NORMAL}D, false))" for column in averages
            )
            + " as denormal_figures",
            " or ".join(
                f"(msg_rate_{way}_per_s = 0 and msg_throughput_{way}_bytes_per_s > 10000) "
                f"or (msg_rate_{way}_per_s > 1 and msg_throughput_{way}_bytes_per_s = 0)"
                for way in ("in", "out")
            )
            + " as bytes_contradict_messages",
            "if(leader_stores_averages and kind = 'user' and msg_rate_in_per_s + msg_rate_out_per_s > 0, "
            "averages_origin = 'bundle_data', null) as averages_are_stored",
        )
        .withColumn("steady", _steady(known=earlier is not None))
    )


_OWNERS_AGREE: Final = """case
    when owner_in_zookeeper is null and size(claimed_by) = 0 then null
    when owner_in_zookeeper is not null and size(claimed_by) > 0 then array_contains(claimed_by, owner_in_zookeeper)
    when kind not in ('user', 'system') then null
    when owner_in_zookeeper is not null then if(owner_lists, false, null)
    when zookeeper_names_owners then false
end as owners_agree"""
"""Null if only one side was read. Heartbeat and SLA bundles may or may not have nodes, depending on the release."""


def _with_topics(bundles: DataFrame, topics: DataFrame) -> DataFrame:
    """Facts: how many of a bundle's topics have statistics at the broker with its figures (without figures: at its
    owner), and whether their sums are the bundle's figures, within 0.001 per topic, if there is any traffic.
    """
    # Grouping and matching by names takes several times as long. Two of 100,000 bundles have the same hash in one of
    # three billion snapshots.
    loaded = (
        topics.where("loaded")
        .groupBy(sf.xxhash64("namespace", "reported_range", "broker").alias("loaded_at"))
        .agg(
            sf.count("*").alias("loaded_topics"),
            *(sf.sum(figure).alias(f"loaded_{figure}") for figure in _FIGURES),
        )
    )
    close = " and ".join(
        f"abs({figure} - coalesce(loaded_{figure}, 0)) <= 0.001 * coalesce(loaded_topics, 0) + 1e-9 * abs({figure})"
        for figure in _FIGURES
    )
    flows = " + ".join(f"abs({figure}) + coalesce(abs(loaded_{figure}), 0)" for figure in _FIGURES)
    return (
        bundles.withColumn(
            "loaded_at",
            sf.expr("xxhash64(namespace, substring_index(bundle, '/', -1), coalesce(figures_broker, owner))"),
        )
        .join(few_rows(loaded), "loaded_at", "left")
        .withColumn("agrees_with_topics", sf.expr(f"if(reported and {flows} > 0, {close}, null)"))
    )


def _read_at(earlier: tuple[DataFrame, DataFrame]) -> DataFrame:
    """The earlier bundles with the time at which their figures were read."""
    brokers, bundles = earlier
    read = brokers.select(sf.col("broker").alias("figures_broker"), "report_read_at_ms")
    return bundles.join(in_session(read, bundles.sparkSession), "figures_broker")


def _steady(*, known: bool) -> Column:
    """Whether no figure changed by more than a factor of a hundred within the last hour."""
    if not known:
        return sf.lit(None).cast("boolean")
    jumps = " or ".join(
        f"(greatest({figure}, past_{figure}) > {_JUMP_FROM} "
        f"and greatest({figure}, past_{figure}) > {_JUMP_RATIO} * least({figure}, past_{figure}))"
        for figure in _FIGURES
    )
    return sf.expr(f"if(report_read_at_ms - past_clock <= {_JUMP_WITHIN_MS}, not ({jumps}), null)")


def _capture(spark: SparkSession, manifest: Manifest, table: Callable[[str], DataFrame]) -> DataFrame:
    """One row about the capture as a whole.

    Facts: required surfaces that the manifest does not account for, columns that differ from the tables' declarations.
    """
    accounted = manifest.accounted_surfaces
    row = {
        "snapshot": manifest.snapshot,
        "skew_seconds": manifest.skew_ms / 1000,
        "duration_seconds": (manifest.finished_at_ms - manifest.started_at_ms) / 1000,
        "absent": sorted(set(_REQUIRED_SURFACES) - accounted),
        "undeclared": [
            wrong for declared in TABLES for wrong in _undeclared(declared, dict(table(declared.name).dtypes))
        ],
    }
    return frame_of(
        spark,
        "snapshot string, skew_seconds double, duration_seconds double, absent array<string>, undeclared array<string>",
        [row],
    ).withColumns({"absent_surfaces": sf.size("absent"), "undeclared_columns": sf.size("undeclared")})


def _undeclared(table: Table, found: Mapping[str, str]) -> Iterator[str]:
    declared = {column.name: column.type for column in table.columns}
    for column in sorted(declared.keys() | found.keys()):
        if declared.get(column) != found.get(column):
            yield f"{table.name}.{column}: {found.get(column, 'absent')}"


def _namespaces(namespaces: DataFrame, brokers: DataFrame, settings: SettingsInputs) -> DataFrame:
    """Facts: unreadable bounds, ranges that the document doesn't declare, the order of the bounds; for those in an
    anti-affinity group, its size, whether failure domains count for it, and then brokers without a domain.
    """
    enabled = bool(setting_value(_DOMAINS_ENABLED, *settings))
    domains = brokers.selectExpr(
        "count(failure_domain) as brokers_in_domains",
        "count_if(available and failure_domain is null) as brokers_in_none",
    )
    return (
        namespaces.where("not deleted")
        .crossJoin(few_rows(domains))
        .withColumn("group", sf.expr("nullif(lower(trim(anti_affinity_group)), '')"))
        .selectExpr(
            "*",
            "size(filter(boundaries, b -> b is null)) as unreadable_boundaries",
            "size(boundaries) - 1 - declared_bundles as undeclared_ranges",
            "boundaries = array_sort(array_distinct(boundaries)) as boundaries_ascend",
            "if(group is not null, count(*) over (partition by group), null) as group_namespaces",
            f"if(group is not null and brokers_in_domains > 0, {enabled}, null) as domains_are_counted",
            f"if(group is not null and {enabled}, brokers_in_none, null) as brokers_without_domain",
        )
    )


def _policies(tables: SnapshotFrames, view: View) -> DataFrame:
    """Facts: whether a policy's limits are usable, expressions that aren't, what the others match."""
    policies = tables.rows("policies").to_pylist()
    namespaces = tables.rows("namespaces", columns=["namespace"])[0].to_pylist() if policies else []
    brokers = tables.rows("brokers", view, ["broker"])[0].to_pylist() if policies else []
    hosts = [host for broker in brokers if (host := broker_host(broker)) is not None]

    def row(policy: dict[str, Any]) -> dict[str, Any]:
        of_namespaces = matched(policy["namespaces"], namespaces)
        of_primaries, of_secondaries = (matched(policy[part], hosts) for part in ("primary", "secondary"))
        limit, threshold = policy["min_limit"], policy["usage_threshold_percent"]
        usable = limit is not None and limit >= 0 and threshold is not None and 0 <= threshold <= 100
        return {
            "name": policy["name"],
            "limits_are_usable": usable and policy["policy_type"] == "min_available",
            "unusable": [*of_namespaces.unusable, *of_primaries.unusable, *of_secondaries.unusable],
            "matched_namespaces": int(of_namespaces.matches.sum()),
            "matched_primaries": int(of_primaries.matches.sum()),
        }

    return frame_of(
        tables.few,
        "name string, limits_are_usable boolean, unusable array<string>, matched_namespaces bigint, "
        "matched_primaries bigint",
        [row(policy) for policy in policies],
    ).withColumn("unusable_expressions", sf.size("unusable"))


def _settings(settings: DataFrame, brokers: DataFrame) -> DataFrame:
    """Facts: how often a value appears, whether a configured class is Pulsar's own, what assigns topics to bundles,
    whether a configured load manager is the one that the broker's report names.
    """

    known = {
        "loadManagerClassName": tuple(LOAD_MANAGERS.values()),
        "loadBalancerLoadSheddingStrategy": tuple(strategy.class_name for strategy in SHEDDERS),
        "loadBalancerLoadPlacementStrategy": tuple(strategy.class_name for strategy in PLACEMENTS),
        "defaultNamespaceBundleSplitAlgorithm": tuple(strategy.name for strategy in SPLIT_ALGORITHMS),
    }
    one_of = " ".join(
        f"when key = '{key}' then substring_index(value, '.', -1) in {names}" for key, names in known.items()
    )
    running = brokers.select("broker", sf.col("load_manager_class_name").alias("running_manager"))
    return settings.join(running, "broker", "left").withColumns(
        {
            "occurrences": sf.expr("count(*) over (partition by origin, broker, key)"),
            "class_is_known": sf.expr(f"case {one_of} end"),
            "is_the_running_manager": sf.expr(
                "if(key = 'loadManagerClassName' and running_manager is not null, value = running_manager, null)"
            ),
            "topic_assigner": sf.expr("if(key = 'topicBundleAssignmentStrategy', nullif(value, ''), null)"),
        }
    )


def _problems(problems: DataFrame, view: View) -> DataFrame:
    """Facts: what a problem affects; a broker's own documents affect that broker, others the cluster."""
    unasked = _FROM_BROKERS_ONLY if view == "published" else ()
    required = ", ".join(f"'{surface}'" for surface in _REQUIRED_SURFACES if surface not in unasked)
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
    """Facts: how often the topic appears, whether it was reported under the range that contains its hash, counts that
    can't be.
    """

    def bound(column: str) -> str:  # format_string takes ten times as long
        return f"concat('0x', lpad(lower(hex({column})), 8, '0'))"

    # Names hardly ever repeat. Their hashes show that in a fraction of the time that a million names would take.
    alike = topics.groupBy(sf.xxhash64("topic").alias("name_hash")).agg(sf.count("*").alias("rows")).where("rows > 1")
    suspects = materialized(alike)
    if suspects.isEmpty():
        counted = topics.withColumn("occurrences", sf.lit(1))
    else:
        suspected = topics.join(few_rows(suspects), sf.xxhash64("topic") == sf.col("name_hash"), "left_semi")
        repeated = suspected.groupBy("topic").agg(sf.count("*").alias("occurrences"))
        counted = topics.join(few_rows(repeated), "topic", "left").fillna(1, "occurrences")
    return counted.selectExpr(
        "*",
        f"if(loaded, reported_range = concat({bound('lower')}, '_', {bound('upper')}), null) "
        "as hash_is_in_reported_range",
        "if(loaded, coalesce(lower is not null, false), null) as loaded_in_a_range",
        f"if(loaded, {_impossible({'producers': _HIGHEST_COUNT, 'coalesce(storage_size_bytes, 0)': _HIGHEST_FIGURE})}, "
        "null) as impossible_counts",
    )
