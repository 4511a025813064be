"""The result of `validate` as stages read it, whichever release wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pulsar_advisor.storage.files import read_json
from pulsar_advisor.storage.root import RESULT, Root
from pulsar_advisor.storage.shapes import FIRST_VALIDATION_RESULT, VALIDATION_RESULT_SCHEMA

_READ: Final = (VALIDATION_RESULT_SCHEMA, FIRST_VALIDATION_RESULT)


def read_validation(root: Root, snapshot: str) -> dict[str, Any]:
    """The result for a snapshot, with the fields of this release. Raises errors as `read_json` does."""
    document = read_json(root.folder("validation", snapshot) / RESULT, "validate", _READ)
    if document["schema"] == VALIDATION_RESULT_SCHEMA:
        return document
    return {**document, "results": [{**row, **_added(row)} for row in document["results"]]}


def _added(row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that the first version lacks: there, every warning below the scope `cluster` confined its rows."""
    confines = row["severity"] == "warning" and row["scope"] != "cluster"
    return {
        "effect": "stop" if row["severity"] == "critical" else "confine" if confines else "doubt",
        "about": row.get("about"),
        "concerned": row.get("concerned"),
    }
