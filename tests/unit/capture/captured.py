"""What a capture wrote, and the options of one that reads ZooKeeper."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from pulsar_advisor.admin.metadata_store import MetadataReader
from pulsar_advisor.admin.options import CaptureOptions
from pulsar_advisor.admin.request_budget import RequestBudget
from pulsar_advisor.admin.zookeeper import ZooKeeperConnection, ZooKeeperStore
from pulsar_advisor.capture.raw_files import read_lines
from pulsar_advisor.storage.root import MANIFEST, Root
from unit.admin.fake_zookeeper import FakeKazoo
from unit.capture.fake_cluster import FakeCluster


def manifest_of(root: Root, snapshot: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((root.folder("raw", snapshot) / MANIFEST).read_bytes())
    return document


def lines_of(root: Root, snapshot: str, name: str) -> list[dict[str, Any]]:
    content = (root.folder("raw", snapshot) / f"{name}.jsonl.zst").read_bytes()
    return [msgspec.json.decode(line) for line in read_lines(content)]


def with_zookeeper(cluster: FakeCluster, nodes: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> CaptureOptions:
    """Options of a capture that finds these nodes in ZooKeeper."""
    connection = ZooKeeperConnection(hosts="zk1:2181")

    @contextmanager
    def connected(_connection: ZooKeeperConnection, budget: RequestBudget, _: object) -> Iterator[MetadataReader]:
        yield MetadataReader(ZooKeeperStore(FakeKazoo(nodes), connection), budget)

    monkeypatch.setattr("pulsar_advisor.capture.capture.connected", connected)
    return cluster.options().model_copy(update={"zookeeper": connection})
