"""The facts that the suite of bundles uses."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from pulsar_advisor.model.cluster.cluster_state import HIGHEST_FIGURE
from pulsar_advisor.quality.facts.figures import COUNTS, FIGURES, HIGHEST_COUNT, impossible, missing, with_moved
from pulsar_advisor.tables.frames import few_rows, in_session

_SMALLEST_NORMAL: Final = 2.2250738585072014e-308
"""Numbers nearer to zero have lost digits (IEEE 754 binary64)."""

_HIGHEST_OF_BUNDLES: Final = {**dict.fromkeys(COUNTS, HIGHEST_COUNT), "cache_size_bytes": HIGHEST_FIGURE}

_JUMP_WITHIN_MS: Final = 3_600_000
_JUMP_RATIO: Final = 100
_JUMP_FROM: Final = 1000
"""Messages or bytes per second below which a bundle may start or stop without being suspicious."""

_OWNERS_AGREE: Final = """case
    when owner_in_zookeeper is null and size(claimed_by) = 0 then null
    when owner_in_zookeeper is not null and size(claimed_by) > 0 then array_contains(claimed_by, owner_in_zookeeper)
    when kind not in ('user', 'system') then null
    when owner_in_zookeeper is not null then if(owner_lists, false, null)
    when zookeeper_names_owners then false
end as owners_agree"""
"""Null if only one side was read. Heartbeat and SLA bundles may or may not have nodes, depending on the release."""


def facts_of_bundles(
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
    averages = [f"{term}{figure}" for term in ("", "short_term_", "long_term_") for figure in FIGURES]
    return (
        with_topics.join(few_rows(same_pass), "figures_broker", "left")
        .join(few_rows(of_brokers), "owner", "left")
        .crossJoin(few_rows(nodes))
        .transform(lambda rows: with_moved(rows, earlier and _read_at(earlier), "bundle", passes_ms))
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
            f"if(reported, {impossible(_HIGHEST_OF_BUNDLES)}, null) as impossible_counts",
            "if(agreeing >= 2 and disagreeing <= greatest(1, 0.1 * agreeing), agrees_with_topics, null) "
            "as topics_add_up",
            f"if(reported, {missing(FIGURES)}, null) as missing_figures",
            f"if(averages_origin = 'bundle_data', {missing([one for one in averages if '_term_' in one])}, null) "
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
            f"if(reported and averages_origin = 'bundle_data', {_greatest_ratio('short_term_', 'long_term_')}, null) "
            "as averages_times_off",
        )
        .withColumn("steady", _steady(known=earlier is not None))
    )


def _greatest_ratio(*terms: str) -> str:
    """The ratio of an average to the present message rate, or its inverse, whichever is greater.

    Both sides get ten messages more, so that Pulsar's initial quota of 100 counts as near an idle bundle's rate.
    """

    def rate(term: str) -> str:
        total = f"{term}msg_rate_in_per_s + {term}msg_rate_out_per_s"
        return f"if({total} between 0 and {HIGHEST_FIGURE}, 10 + {total}, null)"

    now = rate("")
    return f"greatest({', '.join(f'{rate(term)} / {now}, {now} / {rate(term)}' for term in terms)})"


def _with_topics(bundles: DataFrame, topics: DataFrame) -> DataFrame:
    """Facts: how many of a bundle's topics have statistics at the broker that reported its figures (without figures: at
    its owner), and whether their sums match the bundle's figures, within 0.001 per topic, if there is any traffic.
    """
    # By hash: grouping and matching by names takes several times as long. Two of 100,000 bundles share a hash in one of
    # three billion snapshots.
    loaded = (
        topics.where("loaded")
        .groupBy(sf.xxhash64("namespace", "reported_range", "broker").alias("loaded_at"))
        .agg(
            sf.count("*").alias("loaded_topics"),
            *(sf.sum(figure).alias(f"loaded_{figure}") for figure in FIGURES),
        )
    )
    close = " and ".join(
        f"abs({figure} - coalesce(loaded_{figure}, 0)) <= 0.001 * coalesce(loaded_topics, 0) + 1e-9 * abs({figure})"
        for figure in FIGURES
    )
    flows = " + ".join(f"abs({figure}) + coalesce(abs(loaded_{figure}), 0)" for figure in FIGURES)
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
        for figure in FIGURES
    )
    return sf.expr(f"if(double(report_read_at_ms) - past_clock <= {_JUMP_WITHIN_MS}, not ({jumps}), null)")
