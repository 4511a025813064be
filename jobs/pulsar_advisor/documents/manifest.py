"""The manifest of a raw snapshot: what was read of the cluster, when, and what could not be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from pulsar_advisor.documents.document import Count, Document, Part
from pulsar_advisor.model.configuration.kinds import LoadManagerKind
from pulsar_advisor.model.plans.plan import Identity


class File(Part):
    """One raw file."""

    path: str
    surface: str
    broker: str | None
    rows: Count
    bytes: Count
    sha256: str


class Sources(Part):
    """Where the snapshot was read."""

    admin_urls: tuple[str, ...]
    zookeeper: bool
    """Whether the metadata store was read, also if it is Oxia."""
    service_url: bool = False


class Read(Part):
    """The reads of one surface from one target."""

    surface: str
    target: str
    started_at_ms: Count
    finished_at_ms: Count
    requests: int = 0
    bytes: Count = 0
    status: int | None = None
    """The worst HTTP status, 0 without a response; null for ZooKeeper."""


OF_THE_STORE_ONLY: Final = ("local_policies", "bundle_data", "broker_time_averages", "resource_quotas")
"""Surfaces that a capture without a metadata store can't have."""

NOT_AVAILABLE: Final = "not available"
"""How the reason begins if the cluster's release or load manager lacks the surface, or it wasn't asked for."""


class Missing(Part):
    """What could not be read, and why."""

    surface: str
    broker: str | None
    reason: str
    namespace: str | None = None


class Failure(Part):
    """A document that was received and could not be decoded."""

    surface: str
    broker: str | None
    error: str
    size: int | None = None
    sha256: str | None = None


class Manifest(Document):
    """A raw snapshot's manifest, written last."""

    SCHEMA: ClassVar = "pulsar-advisor/raw-snapshot/1"
    MADE_BY: ClassVar = "capture"

    cluster: str = ""
    """The name that the capture was given; paths have the one that it was imported under."""
    snapshot: str
    tool_version: str = ""
    started_at_ms: Count
    finished_at_ms: Count
    skew_ms: int
    """Between the first and the last read; listening to what brokers publish doesn't count."""
    identity: Identity
    sources: Sources
    pulsar_version: str | None
    """The oldest release among the brokers."""
    pulsar_versions: Mapping[str, str] = {}
    load_manager: LoadManagerKind
    load_managers: Mapping[str, LoadManagerKind]
    leader: str | None
    leader_unloads: int | None = None
    """Bundles that a Modular leader has unloaded since it started."""
    files: tuple[File, ...]
    reads: tuple[Read, ...]
    missing: tuple[Missing, ...]
    failures: tuple[Failure, ...]
    incomplete_brokers: tuple[str, ...]
    moved_bundles: tuple[str, ...]
    read_again: tuple[str, ...] = ()
    """Brokers that were read a second time, since bundles had moved."""

    @property
    def unread_surfaces(self) -> frozenset[str]:
        """The surfaces of which something could not be read or decoded."""
        return frozenset(one.surface for one in self.missing).union(one.surface for one in self.failures)

    @property
    def accounted_surfaces(self) -> frozenset[str]:
        """The surfaces that were read, or whose absence is explained."""
        return self.unread_surfaces.union(one.surface for one in self.files)
