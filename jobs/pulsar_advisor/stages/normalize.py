"""`normalize`: converts a raw snapshot into tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_advisor.tables.normalize import normalize

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pulsar_advisor.documents.tables_result import TablesResult
    from pulsar_advisor.storage.root import Root


def run(spark: SparkSession, root: Root, snapshot: str) -> TablesResult:
    """Write the tables of a snapshot; returns their result."""
    return normalize(spark, root, snapshot)
