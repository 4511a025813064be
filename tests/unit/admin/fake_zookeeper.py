"""A small double of a kazoo client: the two reads that a capture uses, and nothing that writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from kazoo.exceptions import NoNodeError

from pulsar_advisor.admin.metadata_store import MetadataReader
from pulsar_advisor.admin.request_budget import RequestBudget
from pulsar_advisor.admin.zookeeper import ZooKeeperConnection, ZooKeeperStore


@dataclass(frozen=True)
class Stat:
    ctime: int = 1_600_000_000_000
    mtime: int = 1_700_000_000_000
    version: int = 3


@dataclass(frozen=True)
class Call:
    """An asynchronous read that has an answer already."""

    client: FakeKazoo
    answer: Any

    def get(self, timeout: float) -> Any:
        self.client.in_flight -= 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@dataclass
class FakeKazoo:
    """The two reads of a kazoo client over a dictionary from path to content; it has no others."""

    nodes: dict[str, bytes]
    vanished: set[str] = field(default_factory=set)
    failure: Exception | None = None
    """What every read ends with instead of an answer."""
    in_flight: int = 0
    most_in_flight: int = 0
    asked: set[str] = field(default_factory=set)
    """`getChildren /path` and `getData /path`."""
    stat: Stat = field(default_factory=Stat)
    """Of every node."""

    def get_children_async(self, path: str) -> Call:
        self.asked.add(f"getChildren {path}")
        prefix = f"{path}/"
        names = {node.removeprefix(prefix).partition("/")[0] for node in self.nodes if node.startswith(prefix)}
        exists = bool(names) or path in self.nodes
        return self._call(list(names) if exists else NoNodeError())

    def get_async(self, path: str) -> Call:
        self.asked.add(f"getData {path}")
        gone = path not in self.nodes or path in self.vanished
        return self._call(NoNodeError() if gone else (self.nodes[path], self.stat))

    def _call(self, answer: Any) -> Call:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        return Call(self, answer if self.failure is None else self.failure)


def read_by_captures(kazoo: FakeKazoo, monkeypatch: pytest.MonkeyPatch, configuration: FakeKazoo | None = None) -> None:
    """Let captures that are to read ZooKeeper read this one, and a second one for the configuration."""

    @contextmanager
    def connected(
        connection: ZooKeeperConnection, budget: RequestBudget, second: ZooKeeperConnection | None
    ) -> Iterator[MetadataReader]:
        apart = ZooKeeperStore(configuration, second) if configuration and second else None
        yield MetadataReader(ZooKeeperStore(kazoo, connection), budget, apart)

    monkeypatch.setattr("pulsar_advisor.capture.capture.connected", connected)
