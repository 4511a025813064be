"""`normalize`: converts a raw snapshot into tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pulsar_advisor.tables.normalize import normalize

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pulsar_advisor.storage.root import Root


def run(spark: SparkSession, root: Root, snapshot: str) -> dict[str, Any]:
    """Write the tables of a snapshot; returns the content of their result file."""
    return normalize(spark, root, snapshot)
