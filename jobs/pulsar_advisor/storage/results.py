"""The result of each stage for a snapshot, as a typed document, and one hash of all that the stage wrote about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from upath import UPath

from pulsar_advisor.documents.document import Document
from pulsar_advisor.documents.manifest import Manifest
from pulsar_advisor.documents.tables_result import TablesResult
from pulsar_advisor.documents.validation import Validation
from pulsar_advisor.model.errors import attempting
from pulsar_advisor.model.plans.canonical_json import canonical_json
from pulsar_advisor.storage.files import read_file, sha256_hex, sha256_of_file
from pulsar_advisor.storage.root import Snapshot

D = TypeVar("D", bound=Document)


def read_document(path: UPath, kind: type[D]) -> D:
    """The document in a file. Raises `UsageError` if it is absent, `StorageError` as `Document.parsed` does."""
    return kind.parsed(read_file(path, kind.MADE_BY), str(path))


def read_manifest(snapshot: Snapshot) -> Manifest:
    """The manifest of a snapshot. Raises as `read_document`."""
    return read_document(snapshot.result_file("capture"), Manifest)


def read_tables_result(snapshot: Snapshot) -> TablesResult:
    """The result of `normalize` for a snapshot. Raises as `read_document`."""
    return read_document(snapshot.result_file("normalize"), TablesResult)


def read_validation(snapshot: Snapshot) -> Validation:
    """The result of `validate` for a snapshot. Raises as `read_document`."""
    return read_document(snapshot.result_file("validate"), Validation)


def validation_if_any(snapshot: Snapshot) -> Validation | None:
    """The same; None if the snapshot was never validated."""
    return read_validation(snapshot) if snapshot.is_written("validate") else None


def result_sha256(snapshot: Snapshot, stage: str) -> str | None:
    """SHA-256 (hex) of what a stage wrote about a snapshot; None if that doesn't exist, or not any more."""
    path = snapshot.result_file(stage)
    if not path.exists():
        return None
    if stage != "normalize":
        return sha256_hex(read_file(path, stage))
    tables = sorted(read_tables_result(snapshot).tables)
    files = {file: sha256 for table in tables for file, sha256 in _hashes(snapshot.folder(f"tables/{table}"))}
    return sha256_hex(canonical_json({"result": sha256_hex(read_file(path, stage)), **files}))


def _hashes(folder: UPath) -> Iterator[tuple[str, str]]:
    """Each file below a table's folder, as `<table>//<path>`, and its SHA-256 (hex); every seal has the two slashes."""
    with attempting(f"read {folder}"):
        for file in sorted(folder.rglob("*"), key=str):
            if file.is_file():
                yield f"{folder.parent.parent.name}/{file.path.removeprefix(folder.path)}", sha256_of_file(file)
