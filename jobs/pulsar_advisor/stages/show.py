"""`snapshots show`: what a snapshot contains and lacks, from its manifest, and the result of each stage."""

from __future__ import annotations

from collections.abc import Iterator

from pulsar_advisor.documents.snapshot_summary import SnapshotSummary
from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.snapshots.summary import of_recommendation, of_tables, of_validation, summary
from pulsar_advisor.storage.plans import read_recommendation
from pulsar_advisor.storage.results import read_manifest, read_tables_result, read_validation
from pulsar_advisor.storage.root import Snapshot


def run(snapshot: Snapshot) -> SnapshotSummary:
    """The summary. Raises `UsageError` if there is no such snapshot."""
    return summary(read_manifest(snapshot), dict(_stages(snapshot)))


def _stages(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """The result of each stage in words; one that can't be read says so."""
    outcomes = {"normalized": _tables, "validated": _validation, "recommended": _recommendation, "reported": _reports}
    for stage, outcome in outcomes.items():
        try:
            said = outcome(snapshot)
        except (AdvisorError, OSError) as error:
            said = f"but its result can't be used: {error}"
        if said is not None:
            yield stage, said


def _tables(snapshot: Snapshot) -> str | None:
    return of_tables(read_tables_result(snapshot)) if snapshot.is_written("normalize") else None


def _validation(snapshot: Snapshot) -> str | None:
    return of_validation(read_validation(snapshot)) if snapshot.is_written("validate") else None


def _recommendation(snapshot: Snapshot) -> str | None:
    return of_recommendation(read_recommendation(snapshot)) if snapshot.is_written("recommend") else None


def _reports(snapshot: Snapshot) -> str | None:
    # A file system leaves files of its own there, as a killed process its hidden ones.
    return ", ".join(sorted(file.name for file in snapshot.folder("reports").glob("report.*"))) or None
