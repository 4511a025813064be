"""What live brokers decided by themselves is predicted from the snapshots just before it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from decisions.recording import RECORDINGS, Recording, read_recording
from decisions.replay import misses, replay, table
from harness.record_decisions import DECISIONS, LARGEST_BYTES

THRESHOLD = "ThresholdShedder-4.0.8-modular"
"""`make test` replays the beginning of this recording, `make test-full` all of them."""
SAMPLED_CYCLES = 1

LEAST_NAMED = {
    "AvgShedder-4.0.8-modular": 1.0,
    "OverloadShedder-4.0.8-modular": 0.3,
    "SimpleLoadManagerImpl-4.0.8-simple": 1.0,
    THRESHOLD: 0.8,
    "TransferShedder-4.0.8-extensible": 0.8,
    "TransferShedder-4.2.4-extensible": 0.7,
    "UniformLoadShedder-4.0.8-modular": 0.6,
}
"""The share of unloaded bundles that must be predicted from one snapshot."""


def recorded(name: str) -> Recording:
    file = RECORDINGS / f"{name}.json.zst"
    assert file.stat().st_size <= LARGEST_BYTES
    return read_recording(file)


def named_share(recording: Recording, spark: SparkSession, folder: Path) -> float:
    """The share of the unloaded bundles that is predicted from the snapshots just before; prints the table."""
    replayed = replay(recording, spark, folder)
    print("\n".join(("", *misses([replayed]), table([replayed]))))
    unloaded = sum(len(verdict.destinations) for verdict in replayed.alone)
    return sum(verdict.named for verdict in replayed.alone) / unloaded


@pytest.mark.spark
def test_the_first_recorded_decisions_are_predicted(spark: SparkSession, tmp_path: Path) -> None:
    recording = recorded(THRESHOLD).first(SAMPLED_CYCLES)
    assert recording.decisions
    assert named_share(recording, spark, tmp_path) >= LEAST_NAMED[THRESHOLD]


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.parametrize("name", sorted(file.name.removesuffix(".json.zst") for file in RECORDINGS.glob("*.json.zst")))
def test_recorded_decisions_are_predicted(name: str, spark: SparkSession, tmp_path: Path) -> None:
    recording = recorded(name)
    assert len(recording.decisions) >= DECISIONS
    assert named_share(recording, spark, tmp_path) >= LEAST_NAMED[name]
