"""A live cluster of 5.0.0-M1 before its controllers split a hot segment and merged a cold pair, and after."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from harness.record_scalable import CLUSTER_OF_RECORDING, COLD, HOT, RECORDED
from pulsar_advisor.model.cluster.cluster_state import NO_ROW, ClusterState
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.planning.usage.scalable_topics import awaited_split
from pulsar_advisor.stages.normalize import run as normalize
from pulsar_advisor.storage.archive import import_snapshot
from pulsar_advisor.storage.root import Root
from pulsar_advisor.tables.settings_inputs import settings_inputs
from pulsar_advisor.tables.state import cluster_state

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.full]

BEFORE, AFTER = "scalable-5.0.0-M1-before.tar", "scalable-5.0.0-M1-after.tar"
Seen = tuple[ClusterState, LoadBalancerSettings]


@pytest.fixture(scope="module")
def seen(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Seen]:
    root = Root(str(tmp_path_factory.mktemp("segments")), CLUSTER_OF_RECORDING)
    found = {}
    for archive in (BEFORE, AFTER):
        snapshot = import_snapshot(Path(RECORDED, archive), root)
        normalize(spark, snapshot)
        settings = resolve_settings(*settings_inputs(snapshot)).values
        found[archive] = cluster_state(snapshot, "fresh"), settings
    return found


def active(state: ClusterState) -> dict[str, set[int]]:
    """Ids of the active segments by topic."""
    segments = state.topics.segments
    return {
        name: {
            int(id_)
            for id_, of, is_active in zip(segments.id, segments.scalable_topic, segments.is_active, strict=True)
            if is_active and segments.names[int(of)] == name
        }
        for name in segments.names
    }


def test_segments_are_topics_of_the_bundles_that_serve_them(seen: dict[str, Seen]) -> None:
    for state, _ in seen.values():
        rows = state.topics.segments.row
        assert (state.topics.bundle[rows] != NO_ROW).all()
        assert state.topics.loaded[rows].any()
        served = np.unique(state.topics.bundle[rows[state.topics.loaded[rows]]])
        assert (state.bundles.owner[served] != NO_ROW).all()


def test_the_hot_segment_was_split_and_a_cold_pair_merged(seen: dict[str, Seen]) -> None:
    before, after = (active(seen[archive][0]) for archive in (BEFORE, AFTER))
    assert before == {HOT: {0, 1, 2, 3}, COLD: {0, 1, 2, 3}}
    assert after == {HOT: {1, 2, 3, 4, 5}, COLD: {0, 1, 4}}


def test_a_bundle_waits_for_the_split_that_its_controller_is_about_to_make_and_no_longer(seen: dict[str, Seen]) -> None:
    def waiting(archive: str) -> list[str]:
        state, settings = seen[archive]
        return [why for row in range(len(state.bundles)) if (why := awaited_split(state, settings, row)) is not None]

    (why,) = waiting(BEFORE)
    assert f"{HOT}, whose controller is about to split it" in why
    assert waiting(AFTER) == []
