"""The published JSON Schemas, applied strictly: a field that a schema doesn't name is a fault here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

SCHEMAS = Path(__file__).parent.parent / "docs" / "schemas"


def published() -> dict[str, dict[str, Any]]:
    """Schema name, such as `pulsar-advisor/plan/3` -> its JSON Schema."""
    documents = [json.loads(path.read_bytes()) for path in SCHEMAS.glob("*.json")]
    return {document["$id"]: document for document in documents}


def faults(document: Mapping[str, Any]) -> list[str]:
    """Where a document differs from the schema that it names: `place: what is wrong`."""
    validator = Draft202012Validator(_strict(published()[document["schema"]]))
    return [f"{error.json_path}: {error.message[:200]}" for error in validator.iter_errors(document)]


def _strict(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _strict(part) for name, part in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type", "object") == "object":
        closed.setdefault("additionalProperties", False)
    return closed
