"""`validate`: decides whether a snapshot can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_advisor.quality.validate import validate
from pulsar_advisor.storage.index import update_index

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pulsar_advisor.documents.validation import Validation
    from pulsar_advisor.storage.root import Root


def run(spark: SparkSession, root: Root, snapshot: str) -> Validation:
    """Judge the tables of a snapshot and write the result, passed or not; returns what it says."""
    result = validate(spark, root, snapshot)
    update_index(root, snapshot)
    return result
