"""The size of a snapshot, which decides how Spark is set up, and whether the strategies need Spark at all."""

from __future__ import annotations

from typing import Final

from pulsar_advisor.storage.results import read_manifest
from pulsar_advisor.storage.root import Snapshot

_SMALL_BYTES: Final = 4 << 20
"""Size of a snapshot's raw files with about a hundred thousand topics. Up to this, compiling a query takes longer than
running it, and starting a Python worker longer than asking the strategies."""


def raw_bytes(snapshot: Snapshot) -> int:
    """Total size of a snapshot's raw files, compressed, by its manifest. Raises `UsageError` without a manifest."""
    return sum(file.bytes for file in read_manifest(snapshot).files)


def is_small(raw_bytes: int) -> bool:
    """Whether a snapshot with raw files of this size is better served by one process than by many."""
    return raw_bytes < _SMALL_BYTES
