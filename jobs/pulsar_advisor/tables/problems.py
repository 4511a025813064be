"""The table `problems`: unreadable lines, names and boundaries, and what could not be captured."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from pulsar_advisor.tables.names import is_bundle_name, parsed_boundaries
from pulsar_advisor.tables.raw import RawTables

_DETAIL_CHARACTERS: Final = 500


def problems(raw: RawTables, figures: DataFrame, brokers_of_files: DataFrame, gaps: DataFrame) -> DataFrame:
    """One row per problem. `brokers_of_files`: (path, broker). `gaps`: the manifest's, in the table's columns."""
    unreadable = (
        raw.unreadable()
        .join(brokers_of_files, "path", "left")
        .select(sf.lit("unreadable_line").alias("problem"), "surface", "path", "broker", sf.col("text").alias("detail"))
    )
    return (
        unreadable.unionByName(_bad_names(raw, figures), allowMissingColumns=True)
        .unionByName(_bad_boundaries(raw), allowMissingColumns=True)
        .unionByName(gaps)
        .withColumn("detail", sf.substring("detail", 1, _DETAIL_CHARACTERS))
    )


def _bad_names(raw: RawTables, figures: DataFrame) -> DataFrame:
    """(surface, broker, detail): unreadable bundle names."""
    return (
        figures.select(sf.lit("load_reports").alias("surface"), "broker", "bundle")
        .union(raw["owned_bundles"].select(sf.lit("owned_bundles"), "broker", "bundle"))
        .union(raw["bundle_data"].select(sf.lit("bundle_data"), sf.lit(None), "bundle"))
        .where(~sf.coalesce(is_bundle_name(), sf.lit(False)))
        .distinct()
        .select(sf.lit("bad_name").alias("problem"), "surface", "broker", sf.col("bundle").alias("detail"))
    )


def _bad_boundaries(raw: RawTables) -> DataFrame:
    """(surface, detail): boundary lists with an invalid text, or with fewer than two bounds."""
    return (
        raw["namespaces"]
        .where("coalesce(document.deleted, false) = false")
        .select(
            sf.lit("namespaces").alias("surface"), "namespace", sf.col("document.bundles.boundaries").alias("texts")
        )
        .union(raw["local_policies"].select(sf.lit("local_policies"), "namespace", "document.bundles.boundaries"))
        .where(sf.exists(parsed_boundaries("texts"), sf.isnull) | (sf.size("texts") < 2))
        .select(
            sf.lit("bad_boundaries").alias("problem"),
            "surface",
            sf.concat_ws(": ", "namespace", sf.concat_ws(",", "texts")).alias("detail"),
        )
    )
