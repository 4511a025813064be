"""The required content of documents that many stages read; one edited by hand or truncated is refused when read.

Only fields that readers use are listed; documents hold more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec

from pulsar_advisor.model.kinds import LoadManagerKind

RAW_SNAPSHOT_SCHEMA: Final = "pulsar-advisor/raw-snapshot/1"
VALIDATION_RESULT_SCHEMA: Final = "pulsar-advisor/validation-result/2"
FIRST_VALIDATION_RESULT: Final = "pulsar-advisor/validation-result/1"


_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""Also of milliseconds: a number that other programs can hold exactly."""


class File(msgspec.Struct):
    """One raw file, as the manifest lists it."""

    path: str
    surface: str
    broker: str | None
    rows: _Count
    bytes: _Count
    sha256: str


class _Identity(msgspec.Struct):
    cluster_name: str
    broker_ids: list[str]


class _Sources(msgspec.Struct):
    admin_urls: list[str]
    zookeeper: bool


class _Read(msgspec.Struct):
    surface: str
    target: str
    started_at_ms: _Count
    finished_at_ms: _Count


class _Missing(msgspec.Struct):
    surface: str
    broker: str | None
    reason: str
    namespace: str | None = None


class _Failure(msgspec.Struct):
    surface: str
    broker: str | None
    error: str


class Manifest(msgspec.Struct):
    """A raw snapshot's manifest."""

    snapshot: str
    started_at_ms: _Count
    finished_at_ms: _Count
    skew_ms: int
    identity: _Identity
    sources: _Sources
    pulsar_version: str | None
    load_manager: LoadManagerKind
    load_managers: dict[str, LoadManagerKind]
    leader: str | None
    files: list[File]
    reads: list[_Read]
    missing: list[_Missing]
    failures: list[_Failure]
    incomplete_brokers: list[str]
    moved_bundles: list[str]


class _FirstCheck(msgspec.Struct):
    check: str
    severity: str
    scope: str
    title: str
    reason: str
    action: str
    success: bool
    failed_rows: int
    examples: list[dict[str, Any]]
    excluded: list[str]
    error: str | None


class _Check(_FirstCheck):
    effect: Literal["stop", "confine", "doubt"]
    about: list[str] | None
    concerned: list[str] | None


class _Validated(msgspec.Struct):
    cluster: str
    snapshot: str
    manifest_sha256: str
    suites_sha256: str
    success: bool


class _FirstValidation(_Validated):
    results: list[_FirstCheck]


class _Validation(_Validated):
    results: list[_Check]


SHAPES: Final[Mapping[str, type[msgspec.Struct]]] = {
    RAW_SNAPSHOT_SCHEMA: Manifest,
    FIRST_VALIDATION_RESULT: _FirstValidation,
    VALIDATION_RESULT_SCHEMA: _Validation,
}
"""Schema -> the minimum content of its documents."""
