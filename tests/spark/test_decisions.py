"""What live brokers decided by themselves is predicted from the snapshots just before it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from decisions.answers import answers, named_ratio
from decisions.answers import table as table_of_answers
from decisions.recording import RECORDINGS, Recording, read_recording
from decisions.replay import misses, replay, table
from harness.record_decisions import CROWDED, DECISIONS, LARGEST_BYTES, SCENARIOS

SAMPLED = "OverloadShedder-4.0.8-modular"
"""`make test` replays the beginning of this recording, `make test-full` all of them."""
SAMPLED_CYCLES = 1
LEAST_NAMED = 0.9
"""Of what a leader unloads in the minutes after all load was on one broker."""


class Share(NamedTuple):
    """What must be right: a share of the whole."""

    named: float
    """Of the unloaded bundles, predicted from one snapshot."""
    inside: float
    """Of the destinations, among the brokers that were possible."""


LEAST = {
    "AvgShedder-4.0.8-modular": Share(1.0, 1.0),
    "AvgShedder-4.0.8-modular-quiet": Share(1.0, 1.0),
    "AvgShedder-4.0.8-modular-unsteady": Share(0.7, 1.0),
    "AvgShedder-5.0.1-modular": Share(0.85, 1.0),
    SAMPLED: Share(1.0, 1.0),
    "SimpleLoadManagerImpl-4.0.8-simple": Share(1.0, 1.0),
    "ThresholdShedder-4.0.8-modular": Share(1.0, 0.9),
    "ThresholdShedder-4.0.8-modular-preallocated": Share(0.85, 0.5),
    "ThresholdShedder-5.0.1-modular": Share(0.8, 1.0),
    "TransferShedder-4.0.8-extensible": Share(1.0, 1.0),
    "TransferShedder-4.0.8-extensible-restless": Share(0.85, 1.0),
    "TransferShedder-4.0.8-extensible-restless-quiet": Share(0.9, 1.0),
    "TransferShedder-4.2.4-extensible": Share(0.9, 1.0),
    "TransferShedder-4.2.4-extensible-early": Share(1.0, 1.0),
    "TransferShedder-5.0.1-extensible": Share(0.8, 1.0),
    "UniformLoadShedder-4.0.8-modular": Share(1.0, 0.9),
    **{scenario.name: Share(1.0, 0.85) for scenario in CROWDED},
}


def recorded(name: str) -> Recording:
    file = RECORDINGS / f"{name}.json.zst"
    assert file.stat().st_size <= LARGEST_BYTES
    return read_recording(file)


def shares(recording: Recording, spark: SparkSession, folder: Path) -> Share:
    """What is right of the predictions; prints the table."""
    replayed = replay(recording, spark, folder)
    print("\n".join(("", *misses([replayed]), table([replayed]))))
    unloaded = sum(len(verdict.destinations) for verdict in replayed.alone)
    both = (*replayed.alone, *replayed.informed)
    return Share(
        sum(verdict.named for verdict in replayed.alone) / unloaded,
        sum(verdict.inside for verdict in both) / sum(verdict.located for verdict in both),
    )


@pytest.mark.slow
@pytest.mark.spark
def test_the_first_recorded_decisions_are_predicted(spark: SparkSession, tmp_path: Path) -> None:
    recording = recorded(SAMPLED).first(SAMPLED_CYCLES)
    assert recording.decisions
    share = shares(recording, spark, tmp_path)
    assert share.named >= LEAST[SAMPLED].named
    assert share.inside >= LEAST[SAMPLED].inside


@pytest.mark.slow
@pytest.mark.spark
def test_the_first_answer_about_a_broker_above_its_limit_names_what_leaves_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    (first,) = answers(recorded("AvgShedder-4.0.8-modular-crowded").first(1), spark, tmp_path)
    assert first.above_limit and first.judged_msg_rate_ratio == 1
    assert first.unloads == first.unloaded
    assert not first.does_nothing


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.parametrize("name", [scenario.name for scenario in CROWDED])
def test_what_leaves_a_broker_above_its_limit_is_named(name: str, spark: SparkSession, tmp_path: Path) -> None:
    found = answers(recorded(name), spark, tmp_path)
    print(f"\n{table_of_answers(found)}")
    assert found[0].above_limit
    assert not [answer.sentence for answer in found if answer.does_nothing and (answer.above_limit or answer.unloaded)]
    assert named_ratio(found) >= LEAST_NAMED


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.parametrize("name", sorted(file.name.removesuffix(".json.zst") for file in RECORDINGS.glob("*.json.zst")))
def test_recorded_decisions_are_predicted(name: str, spark: SparkSession, tmp_path: Path) -> None:
    recording = recorded(name)
    assert len(recording.decisions) >= (SCENARIOS[name].decisions if name in SCENARIOS else DECISIONS)
    share = shares(recording, spark, tmp_path)
    assert share.named >= LEAST[name].named
    assert share.inside >= LEAST[name].inside
