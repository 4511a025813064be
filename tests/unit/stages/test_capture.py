"""A capture says in the log what it read and what it wrote."""

from __future__ import annotations

import logging

import pytest

from pulsar_advisor.stages import capture
from pulsar_advisor.storage.root import Root
from unit.capture.fake_cluster import FakeCluster


def test_a_capture_in_a_scheduler_logs_what_it_captured_and_writes_nothing_to_stderr(
    cluster: FakeCluster, root: Root, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.INFO, "pulsar_advisor")
    snapshot = capture.run(cluster.options(), root)
    assert {record.levelname for record in caplog.records if record.name.startswith("pulsar_advisor")} == {"INFO"}
    assert f"captured {root.cluster} as snapshot {snapshot}: 2 brokers, " in caplog.messages[-1]
    assert capsys.readouterr().err == ""
