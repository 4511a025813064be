"""A leader that transfers bundles every minute: what it does next is named from the snapshot just before."""

from __future__ import annotations

from pathlib import Path

import pytest

from decisions.recording import read_recording
from decisions.replay import misses, replay, table
from harness.record_decisions import RESTLESS, record_decisions
from harness.sensor import mount_isolation
from live.conftest import unavailable_skips
from pulsar_advisor.tables.session import spark_session

pytestmark = [pytest.mark.live, pytest.mark.full]

LEAST_NAMED = 0.9
LEAST_INSIDE = 0.95


def test_the_bundles_that_it_transfers_are_named_and_where_they_go(tmp_path: Path) -> None:
    if mount_isolation() is None:
        pytest.skip("this machine doesn't permit mount namespaces, so all brokers report the host's CPU")
    with unavailable_skips():
        recording = read_recording(record_decisions(RESTLESS, tmp_path))
    spark = spark_session("local[2]", "restless")
    try:
        found = replay(recording, spark, tmp_path)
    finally:
        spark.stop()
    print("\n".join(("", *misses([found]), table([found]))))
    unloaded = sum(len(verdict.destinations) for verdict in found.alone)
    assert sum(verdict.named for verdict in found.alone) >= LEAST_NAMED * unloaded
    located = sum(verdict.located for verdict in found.alone)
    assert sum(verdict.inside for verdict in found.alone) >= LEAST_INSIDE * located
