"""Whether figures changed since an earlier snapshot."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from pulsar_advisor.quality.facts.figures import FIGURES
from pulsar_advisor.tables.frames import few_rows


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
