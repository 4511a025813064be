"""Who owns a bundle, by the brokers' lists at the two ends of a capture and by ZooKeeper."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pulsar_advisor.tables.ownership import ownership
from spark.test_raw import raw_tables

pytestmark = pytest.mark.spark

STAYED, MOVED, ELSEWHERE = (f"t/n/0x{n}0000000_0x{n + 1}0000000" for n in range(3))
TALKING, SILENT = "broker-1:8080", "broker-2:8080"
"""The second answers at the beginning only."""


def claim(broker: str, bundle: str, moment: str, source: str = "rest") -> dict[str, Any]:
    read_at_ms = {"begin": 1_000, "end": 2_000}[moment]
    return {"source": source, "broker": broker, "bundle": bundle, "pass": moment, "readAt": read_at_ms}


CLAIMS = [
    claim(TALKING, ELSEWHERE, "begin"),
    claim(SILENT, STAYED, "begin"),
    claim(SILENT, MOVED, "begin"),
    claim(TALKING, ELSEWHERE, "end"),
    claim(TALKING, MOVED, "end"),
]


def owners(spark: SparkSession, folder: Path, claims: list[dict[str, Any]]) -> dict[str, str]:
    lines = "".join(json.dumps(line) + "\n" for line in claims).encode()
    rows = ownership(raw_tables(spark, folder, owned_bundles=lines)).collect()
    return {row["bundle"]: row["owner"] for row in rows}


def test_a_broker_that_fell_silent_is_taken_at_its_earlier_word(spark: SparkSession, tmp_path: Path) -> None:
    assert owners(spark, tmp_path, CLAIMS) == {STAYED: SILENT, MOVED: TALKING, ELSEWHERE: TALKING}


def test_where_zookeeper_names_owners_only_its_last_word_counts(spark: SparkSession, tmp_path: Path) -> None:
    nodes = [claim(SILENT, STAYED, "begin", "zookeeper"), claim(TALKING, ELSEWHERE, "end", "zookeeper")]
    assert owners(spark, tmp_path, [*CLAIMS, *nodes]) == {MOVED: TALKING, ELSEWHERE: TALKING}
