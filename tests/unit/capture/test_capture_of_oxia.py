"""What real brokers kept in ZooKeeper, captured from there and from Oxia's protocol: the same bytes."""

from __future__ import annotations

import time
from typing import Any

import pytest

from captures import capture
from pulsar_advisor.admin.metadata_store import connected
from pulsar_advisor.admin.options import CaptureOptions
from pulsar_advisor.admin.oxia import OxiaConnection
from pulsar_advisor.admin.zookeeper import ZooKeeperConnection
from pulsar_advisor.documents.manifest import Manifest
from pulsar_advisor.storage.results import read_manifest
from pulsar_advisor.storage.root import MANIFEST, Root
from unit.admin.fake_oxia import NAMESPACE, FakeOxia, Record, served, with_parents
from unit.capture.recorded_store import RecordedStore

ELSEWHERE = {"/loadbalance/leader", "/admin/configuration", "/admin/policies/shy/data"}
"""Records that are given a partition key, so that they lie in another shard than their key's."""


def the_same_records(store: RecordedStore) -> FakeOxia:
    stat = store.kazoo.stat
    records = {
        path: Record(data, stat.ctime, stat.mtime, stat.version, "elsewhere" if path in ELSEWHERE else None)
        for path, data in store.kazoo.nodes.items()
    }
    return FakeOxia(with_parents(records))


def captured(options: CaptureOptions, root: Root) -> tuple[Manifest, dict[str, bytes]]:
    """The manifest without what names the moment, and the bytes of each file."""
    snapshot = capture(options, root)
    folder = snapshot.folder("raw")
    manifest = read_manifest(snapshot)
    assert (folder / MANIFEST).exists()
    files: dict[str, bytes] = {entry.path: (folder / entry.path).read_bytes() for entry in manifest.files}
    return manifest.model_copy(update={"snapshot": "", "started_at_ms": 0}), files


@pytest.mark.parametrize("load_manager", ["modular", "simple", "extensible"])
def test_both_stores_give_the_same_snapshot(load_manager: str, monkeypatch: pytest.MonkeyPatch, root: Root) -> None:
    store = RecordedStore(load_manager, monkeypatch)
    monkeypatch.setattr(time, "time_ns", lambda: 1_700_000_000_000_000_000)
    zookeeper: Any = captured(CaptureOptions(zookeeper=ZooKeeperConnection(hosts="zk1:2181")), root)
    monkeypatch.setattr("pulsar_advisor.capture.capture.connected", connected)
    with served(the_same_records(store)) as served_by:
        options = CaptureOptions(oxia=OxiaConnection(url=f"oxia://{served_by.address}/{NAMESPACE}"))
        oxia: Any = captured(options, root)
    assert oxia[1] == zookeeper[1]
    assert oxia[0] == zookeeper[0]
    assert zookeeper[1]
