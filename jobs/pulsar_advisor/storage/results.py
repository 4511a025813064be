"""The result of each stage for a snapshot, as a typed document."""

from __future__ import annotations

from typing import TypeVar

from upath import UPath

from pulsar_advisor.documents.document import Document
from pulsar_advisor.documents.manifest import Manifest
from pulsar_advisor.documents.tables_result import TablesResult
from pulsar_advisor.documents.validation import Validation
from pulsar_advisor.storage.files import read_file
from pulsar_advisor.storage.root import Root

D = TypeVar("D", bound=Document)


def read_document(path: UPath, kind: type[D]) -> D:
    """The document in a file. Raises `UsageError` if it is absent, `StorageError` as `Document.parsed` does."""
    return kind.parsed(read_file(path, kind.MADE_BY), str(path))


def read_manifest(root: Root, snapshot: str) -> Manifest:
    """The manifest of a snapshot. Raises as `read_document`."""
    return read_document(root.result_file(snapshot, "capture"), Manifest)


def read_tables_result(root: Root, snapshot: str) -> TablesResult:
    """The result of `normalize` for a snapshot. Raises as `read_document`."""
    return read_document(root.result_file(snapshot, "normalize"), TablesResult)


def read_validation(root: Root, snapshot: str) -> Validation:
    """The result of `validate` for a snapshot. Raises as `read_document`."""
    return read_document(root.result_file(snapshot, "validate"), Validation)


def validation_if_any(root: Root, snapshot: str) -> Validation | None:
    """The same; None if the snapshot was never validated."""
    return read_validation(root, snapshot) if root.is_written(snapshot, "validate") else None
