"""What live brokers decided by themselves is predicted from the snapshots just before it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from decisions.recording import RECORDINGS, read_recording
from decisions.replay import misses, replay, table
from harness.record_decisions import DECISIONS, LARGEST_BYTES

SAMPLE = "ThresholdShedder-4.0.8-modular"
"""The recording that `make test` replays."""

LEAST_NAMED = {SAMPLE: 0.8}
"""The share of unloaded bundles that must be predicted from one snapshot, where one has been agreed on."""


@pytest.mark.spark
@pytest.mark.parametrize(
    "file",
    [
        pytest.param(file, id=name, marks=[] if name == SAMPLE else [pytest.mark.full])
        for file in sorted(RECORDINGS.glob("*.json.zst"))
        if (name := file.name.removesuffix(".json.zst"))
    ],
)
def test_recorded_decisions_are_predicted(file: Path, spark: SparkSession, tmp_path: Path) -> None:
    recording = read_recording(file)
    assert len(recording.decisions) >= DECISIONS
    assert file.stat().st_size <= LARGEST_BYTES

    replayed = replay(recording, spark, tmp_path)

    print("\n".join(("", *misses([replayed]), table([replayed]))))
    unloaded = sum(len(verdict.destinations) for verdict in replayed.alone)
    named = sum(verdict.named for verdict in replayed.alone)
    assert named >= LEAST_NAMED.get(file.name.removesuffix(".json.zst"), 0.0) * unloaded
