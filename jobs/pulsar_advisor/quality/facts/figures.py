"""Which figures are impossible, which are missing, and whether they changed since an earlier snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from pulsar_advisor.tables.columns import TRAFFIC
from pulsar_advisor.tables.frames import few_rows

FIGURES: Final = tuple(TRAFFIC.values())
COUNTS: Final = ("topics", "producers", "consumers")

HIGHEST_COUNT: Final = 1_000_000_000
"""More topics or clients than any broker has."""


def impossible(counts: Mapping[str, float]) -> str:
    """How many of these counts (column -> the highest possible) are missing, negative or too high."""
    return " + ".join(f"int(not coalesce({count} between 0 and {highest}, false))" for count, highest in counts.items())


def missing(figures: Iterable[str]) -> str:
    """How many of these columns a row leaves out."""
    return " + ".join(f"int({figure} is null)" for figure in figures)


def with_moved(rows: DataFrame, earlier: DataFrame | None, key: str, passes_ms: int) -> DataFrame:
    """Fact: whether a row's figures differ from the earlier snapshot's; null if they need not.

    Two passes of statistics never give the same doubles while messages flow. Figures in whole thousandths were
    shortened by the broker and can repeat, so they prove nothing.
    """
    if earlier is None:
        return rows.withColumn("figures_moved", sf.lit(None).cast("boolean"))
    past = earlier.select(
        sf.xxhash64(key).alias("past_row"),  # by hash: names take several times as long, see `bundles`
        sf.col("report_read_at_ms").alias("past_clock"),
        *(sf.col(figure).alias(f"past_{figure}") for figure in FIGURES),
    )
    flows = " + ".join(FIGURES)
    # For large figures, digits beyond the thousandths may be only the rounding of the double itself.
    uncut = " or ".join(
        f"abs(1000 * {figure} - rint(1000 * {figure})) > greatest(1e-6, 1e-15 * abs(1000 * {figure}))"
        for figure in FIGURES
    )
    same = " and ".join(f"{figure} = past_{figure}" for figure in FIGURES)
    return rows.join(few_rows(past), sf.xxhash64(key) == sf.col("past_row"), "left").withColumn(
        "figures_moved",
        sf.expr(
            f"if(double(report_read_at_ms) - past_clock > {passes_ms} and {flows} > 0 and ({uncut}), "
            f"not ({same}), null)"
        ),
    )
