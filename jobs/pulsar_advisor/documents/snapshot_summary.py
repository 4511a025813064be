"""The result of `snapshots show`: the content of a snapshot, its gaps, and the stages that have processed it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pulsar_advisor.documents.document import Document
from pulsar_advisor.model.configuration.kinds import LoadManagerKind


class SnapshotSummary(Document):
    """One snapshot. Counts are lines; `surfaces` holds every surface that was read, including empty ones."""

    SCHEMA: ClassVar = "pulsar-advisor/snapshot-summary/1"
    MADE_BY: ClassVar = "snapshots show"

    snapshot: str
    cluster_name: str
    started_at_ms: int
    duration_ms: int
    skew_ms: int
    brokers: tuple[str, ...]
    pulsar_version: str | None
    load_manager: LoadManagerKind
    admin_rest: bool
    zookeeper: bool
    """Whether the metadata store was read, also if it is Oxia."""
    bytes: int
    surfaces: Mapping[str, int]
    missing: tuple[str, ...]
    """What is missing: surface, where, and why."""
    failures: tuple[str, ...]
    """Documents that could not be decoded."""
    incomplete_brokers: tuple[str, ...]
    moved_bundles: int
    stages: Mapping[str, str]
    """Completed stages -> their outcome, in words."""
