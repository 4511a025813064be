"""Days of many clusters are folded by tasks on Spark into the same bytes as by one process, and fail alone."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.stages.fold import run as fold
from pulsar_advisor.stages.fold_all import run as fold_all
from pulsar_advisor.storage.root import Root
from written_tables import files_in, snapshot_of_one_bundle

pytestmark = pytest.mark.spark

DAYS = ("20261120", "20261121", "20261122")
NAMES = ("eu", "us")


def roots(folder: Path) -> list[Root]:
    """Two clusters with two days of two snapshots each, and with one more of today."""
    for name in NAMES:
        for hour, (day, owner) in enumerate((day, owner) for day in DAYS for owner in ("a:8080", "b:8080")):
            snapshot_of_one_bundle(
                folder,
                f"{day}T{hour:02}0000Z",
                owner,
                brokers=["a:8080"],
                cpu_usage=10.0 * hour,
                msg_rate_in_per_s=float(hour),
                cluster=name,
            )
    open_ledger(Root(str(folder), "any").ledger_url).close()
    return [Root(str(folder), name) for name in NAMES]


def history(folder: Path) -> dict[str, bytes]:
    return files_in(folder / "history")


def test_tasks_write_what_one_process_writes(spark: SparkSession, tmp_path: Path) -> None:
    for root in roots(tmp_path / "one"):
        for day in reversed(DAYS[:2]):
            fold(root.day(day))
    folded = fold_all(spark, roots(tmp_path / "tasks"), DAYS[2])
    assert [(day.cluster, day.line[:8], day.exit_code) for day in folded] == [
        (name, day, 0) for name in NAMES for day in DAYS[:2]
    ]
    assert history(tmp_path / "tasks") == history(tmp_path / "one")
    assert spark.conf.get("spark.sql.shuffle.partitions") == "1"  # as whoever lent the session has it


def test_a_day_that_can_not_be_folded_keeps_no_other_from_it(spark: SparkSession, tmp_path: Path) -> None:
    eu, us = roots(tmp_path)
    (damaged,) = eu.snapshot(f"{DAYS[0]}T000000Z").folder("tables/bundles").iterdir()
    damaged.write_bytes(b"rotten")
    folded = fold_all(spark, [eu, us], DAYS[2])
    assert [day.exit_code for day in folded] == [1, 0, 0, 0]
    assert "table bundles of snapshot 20261120T000000Z is missing, damaged or of another release" in folded[0].line
