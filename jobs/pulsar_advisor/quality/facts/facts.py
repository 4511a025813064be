"""Every table's rows with their facts, made on demand.

Only the fresh view is judged, since advice is based on it. The published view is what the leader acts on, right or
wrong; it is judged only if no broker was asked, because then there is no other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from pulsar_advisor.documents.manifest import Manifest
from pulsar_advisor.model.configuration.resolved_settings import setting_value
from pulsar_advisor.model.errors import StorageError
from pulsar_advisor.quality.facts.brokers import facts_of_brokers, with_served
from pulsar_advisor.quality.facts.bundles import facts_of_bundles
from pulsar_advisor.quality.facts.capture import facts_of_capture
from pulsar_advisor.quality.facts.namespaces import facts_of_namespaces
from pulsar_advisor.quality.facts.policies import facts_of_policies
from pulsar_advisor.quality.facts.problems import facts_of_problems
from pulsar_advisor.quality.facts.settings import facts_of_settings
from pulsar_advisor.quality.facts.topics import facts_of_topics
from pulsar_advisor.tables.settings_inputs import SettingsInputs
from pulsar_advisor.tables.snapshot_frames import SnapshotFrames
from pulsar_advisor.tables.state import judged_view

_STATISTICS_INTERVAL: Final = "statsUpdateFrequencyInSecs"


def facts(
    tables: SnapshotFrames, before: SnapshotFrames | None, manifest: Manifest, settings: SettingsInputs
) -> dict[str, Callable[[], DataFrame]]:
    """Table name -> a function that makes its rows, with the columns of the table and the facts that its suite uses.

    `before` is the snapshot to compare with; it is ignored if its tables can't be read. Each table's rows are made
    separately, in a session that suits their number. That raises `AnalysisException` if a column that a fact needs is
    missing, so that only that table's checks are lost, and `StorageError` if a table can't be read.
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
        "brokers": lambda: with_served(
            facts_of_brokers(judged("brokers"), judged("bundles"), earlier(), two_passes_ms(settings)), table("topics")
        ),
        "bundles": lambda: facts_of_bundles(
            judged("bundles"), judged("brokers"), table("topics"), earlier(), two_passes_ms(settings)
        ),
        "capture": lambda: facts_of_capture(tables.few, manifest, table),
        "namespaces": lambda: facts_of_namespaces(table("namespaces"), judged("brokers"), settings),
        "policies": lambda: facts_of_policies(tables, view, settings[0]),
        "problems": lambda: facts_of_problems(table("problems"), view, store_was_read=manifest.sources.zookeeper),
        "settings": lambda: facts_of_settings(table("settings"), judged("brokers"), manifest.load_managers),
        "topics": lambda: facts_of_topics(table("topics")),
    }


def two_passes_ms(settings: SettingsInputs) -> int:
    """Time within which a broker certainly makes another statistics pass."""
    return 2000 * int(setting_value(_STATISTICS_INTERVAL, *settings))
