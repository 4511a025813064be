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
RECOMMENDATION_SCHEMA: Final = "pulsar-advisor/recommendation/1"
SNAPSHOT_INDEX_SCHEMA: Final = "pulsar-advisor/snapshot-index/1"
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


class _Advice(msgspec.Struct):
    plan: str | None
    """Name of its file."""
    digest: str | None
    sentence: str


class Combination(msgspec.Struct):
    """A shedder with a placement strategy, and the plan they make, if any."""

    plan: str | None = None
    digest: str | None = None
    steps: int = 0
    standard_deviation_before: float | None = None


class _Coverage(msgspec.Struct):
    decides: bool = False
    """Whether too little could be judged for an answer."""


class Recommendation(msgspec.Struct):
    """The result of `recommend`."""

    advice: _Advice
    combinations: list[Combination]
    coverage: _Coverage | None = None


Verdict = Literal["act", "nothing", "unfit", "unfinished", "unreadable"]
"""act: a plan is advised. unfit: validation failed, or too little could be judged. unfinished: a stage has yet to run,
or failed."""


class SnapshotRow(msgspec.Struct, frozen=True):
    """A snapshot and what became of it."""

    id: str
    verdict: Verdict
    sentence: str
    failed_checks: int | None
    """None: not validated yet."""
    imbalance_ratio: float | None
    """Standard deviation of the brokers' usage; None: not known yet."""
    has_report: bool

    @property
    def is_settled(self) -> bool:
        """Whether no stage has yet to run on it."""
        return self.verdict not in ("unfinished", "unreadable")


class SnapshotIndex(msgspec.Struct):
    """The newest snapshots of a cluster, newest first."""

    rows: list[SnapshotRow]


SHAPES: Final[Mapping[str, type[msgspec.Struct]]] = {
    RAW_SNAPSHOT_SCHEMA: Manifest,
    FIRST_VALIDATION_RESULT: _FirstValidation,
    VALIDATION_RESULT_SCHEMA: _Validation,
    RECOMMENDATION_SCHEMA: Recommendation,
    SNAPSHOT_INDEX_SCHEMA: SnapshotIndex,
}
"""Schema -> the minimum content of its documents."""
