"""What takes seconds and can start meanwhile: Spark, and libraries."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Final

from pulsar_advisor.storage.root import Snapshot
from pulsar_advisor.tables.background import in_background

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NO_CLUSTER: Final = ("local", "sc://")
"""Masters whose sessions compute in one task what belongs to a small snapshot."""


def spark_soon(master: str, stage: str, snapshot: Snapshot) -> Callable[[], SparkSession | None]:
    """As `spark_for`, for a stage that asks strategies: none for a small snapshot, unless the master is a cluster.

    Spark starts now, while Python loads what the stage needs, unless a refusal is certain.
    """
    if not snapshot.is_written("validate"):
        return lambda: spark_for(master, stage, snapshot)
    from pulsar_advisor.tables.snapshot_size import is_small, raw_bytes

    if master.startswith(_NO_CLUSTER) and is_small(raw_bytes(snapshot)):
        return lambda: None
    starting = in_background(lambda: spark_for(master, stage, snapshot))

    def started() -> SparkSession:
        starting.result()
        return spark_for(master, stage, snapshot)  # the same one; only the main thread can handle Ctrl-C

    return started


def load_soon(*modules: str) -> None:
    """Import modules in the background, one after the other."""
    in_background(lambda: [import_module(module) for module in modules])


def spark_for(master: str, stage: str, snapshot: Snapshot) -> SparkSession:
    """A Spark session sized for this snapshot."""
    from pulsar_advisor.tables.session import spark_session
    from pulsar_advisor.tables.snapshot_size import raw_bytes

    return spark_session(master, stage, raw_bytes=raw_bytes(snapshot))
