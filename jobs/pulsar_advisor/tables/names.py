"""Names, ranges and figures in Spark SQL: bundle names taken apart, namespaces by kind, topics onto the hash ring.

The same rules as `model.cluster.bundle_range` and `model.cluster.namespaces`, as expressions of the columns `bundle`,
`namespace`, `lower` and `upper`.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from pulsar_advisor.model.cluster.namespaces import BROKERS_NAMESPACES, SYSTEM_NAMESPACE, NamespaceKind
from pulsar_advisor.tables.columns import TRAFFIC
from pulsar_advisor.tables.frames import few_rows

# `$` would match before a line end too.
_BUNDLE = r"^(.+)/0x([0-9a-f]{8})_0x([0-9a-f]{8})\z"


def is_bundle_name() -> Column:
    """Whether a bundle has the form `<namespace>/0x........_0x........`, with a range that isn't empty."""
    return sf.col("bundle").rlike(_BUNDLE) & (_bound(2) < _bound(3))


def bundle_parts() -> dict[str, Column]:
    """namespace, lower and upper of a well-formed bundle name."""
    return {"namespace": sf.regexp_extract("bundle", _BUNDLE, 1), "lower": _bound(2), "upper": _bound(3)}


def _bound(group: int) -> Column:
    return sf.conv(sf.nullif(sf.regexp_extract("bundle", _BUNDLE, group), sf.lit("")), 16, 10).cast("bigint")


def bundle_name() -> Column:
    """The name of the bundle of namespace, lower and upper."""
    return sf.format_string("%s/0x%08x_0x%08x", "namespace", "lower", "upper")


def namespace_kind() -> Column:
    """The `NamespaceKind` of a namespace."""
    name = sf.col("namespace")
    kind = sf.when(name == SYSTEM_NAMESPACE, NamespaceKind.SYSTEM.value)
    for brokers_kind, expression in BROKERS_NAMESPACES.items():
        kind = kind.when(name.rlike(rf"^(?:{expression})\z"), brokers_kind.value)
    return kind.otherwise(NamespaceKind.USER.value)


def has_implied_range() -> Column:
    """Whether a namespace is of a kind without a boundaries document, hence has one bundle with the full range."""
    return namespace_kind().isin(*(kind.value for kind in BROKERS_NAMESPACES))


def parsed_boundaries(texts: str) -> Column:
    """Boundary texts as bounds; null where a text is not `0x` and eight hexadecimal digits."""
    return sf.transform(
        texts,
        lambda text: sf.when(text.rlike(r"^0x[0-9a-f]{8}\z"), sf.conv(sf.substring(text, 3, 8), 16, 10).cast("bigint")),
    )


def traffic_of(struct: str) -> dict[str, Column]:
    """The traffic columns from a struct with Pulsar's field names."""
    return {name: sf.col(f"{struct}.{field}") for field, name in TRAFFIC.items()}


def ranges_of(namespaces: DataFrame) -> DataFrame:
    """(namespace, lower, upper) of every range between neighbours of `boundaries` that isn't empty."""
    pairs = "inline(arrays_zip(slice(boundaries, 1, size(boundaries) - 1), slice(boundaries, 2, size(boundaries) - 1)))"
    return (
        namespaces.where("size(boundaries) >= 2")
        .select("namespace", sf.expr(f"{pairs} as (lower, upper)"))
        .where("lower < upper")
    )


def with_range(topics: DataFrame, ranges: DataFrame) -> DataFrame:
    """Topics (with namespace and hash) and the lower and upper bound of the range that contains their hash, else nulls.

    The ring is divided into equal buckets, about as many as the namespace has bundles, so that an equality join finds
    the few ranges that overlap a topic's bucket. Never more than one row per topic, even if ranges overlap.
    """
    bucket_bits = sf.greatest(sf.lit(0), sf.ceil(sf.log2(sf.count("*")))).cast("int")
    shifts = ranges.groupBy("namespace").agg((sf.lit(32) - bucket_bits).alias("shift"))
    last = "if(upper = 4294967295, upper, upper - 1)"
    candidates = (
        ranges.join(shifts, "namespace")
        .select(
            "namespace",
            sf.struct("lower", "upper").alias("range"),
            sf.expr(f"explode(sequence(shiftright(lower, shift), shiftright({last}, shift))) as bucket"),
        )
        .groupBy("namespace", "bucket")
        .agg(sf.collect_list("range").alias("candidates"))
    )
    holds = "r -> r.lower <= hash and (hash < r.upper or r.upper = 4294967295)"
    return (
        topics.join(few_rows(shifts), "namespace", "left")
        .withColumn("bucket", sf.expr("shiftright(hash, shift)"))
        .join(few_rows(candidates), ["namespace", "bucket"], "left")
        .withColumn("range", sf.expr(f"get(filter(candidates, {holds}), 0)"))
        .withColumns({"lower": sf.col("range.lower"), "upper": sf.col("range.upper")})
        .drop("shift", "bucket", "candidates", "range")
    )
