"""What real brokers kept in ZooKeeper, read there and by Oxia's protocol: the same manifest, tables and plan."""

from __future__ import annotations

import re
import time
from datetime import datetime, tzinfo
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from captures import capture
from pulsar_advisor.admin.metadata_store import connected
from pulsar_advisor.admin.options import CaptureOptions, capture_options
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.stages.normalize import run as normalize
from pulsar_advisor.stages.recommend import run as recommend
from pulsar_advisor.stages.validate import run as validate
from pulsar_advisor.storage.root import Root
from unit.admin.fake_oxia import NAMESPACE, served
from unit.capture.recorded_store import RecordedStore
from unit.capture.test_capture_of_oxia import the_same_records

pytestmark = [pytest.mark.spark, pytest.mark.full]

NOW_S = 1_700_000_000
RANDOM_PART = re.compile(r"-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}-")
"""Of the names that Spark gives its files."""


class Then(datetime):
    """One moment, so that both snapshots have the same id."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Then:
        return cls.fromtimestamp(NOW_S, tz)


def test_both_stores_give_the_same_tables_and_the_same_plan(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RecordedStore("modular", monkeypatch)
    drained = Request(goal=Goal("drain", (max(store.brokers),)))

    def written(options: CaptureOptions, root: Root) -> dict[str, bytes]:
        """Every file, from the raw snapshot to the plan."""
        snapshot = capture(options, root)
        normalize(spark, snapshot)
        validate(spark, snapshot)
        recommend(lambda: spark, snapshot, drained)
        files = [path for path in Path(root.url).rglob("*") if path.is_file()]
        return {RANDOM_PART.sub("-", str(path.relative_to(root.url))): path.read_bytes() for path in files}

    monkeypatch.setattr(time, "time_ns", lambda: NOW_S * 10**9)
    monkeypatch.setattr("pulsar_advisor.stages.capture.datetime", Then)
    zookeeper = written(capture_options(zookeeper="zk1:2181"), Root(str(tmp_path / "zookeeper"), "test"))
    monkeypatch.setattr("pulsar_advisor.capture.capture.connected", connected)
    with served(the_same_records(store)) as server:
        options = capture_options(metadata_store=f"oxia://{server.address}/{NAMESPACE}")
        oxia = written(options, Root(str(tmp_path / "oxia"), "test"))
    assert oxia.keys() == zookeeper.keys()
    assert [name for name in oxia if oxia[name] != zookeeper[name]] == []
    (plan,) = (content for name, content in oxia.items() if name.startswith("plans/") and "drain" in name)
    assert plan.count(b'"action":"unload"') > 0
