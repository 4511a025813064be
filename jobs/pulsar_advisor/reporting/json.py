"""The report as one JSON document: the page itself with uncut lists, for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from pydantic import BaseModel

from pulsar_advisor.reporting.page import REPORT_SCHEMA, ReportPage


def json_chunks(page: ReportPage) -> Iterator[str]:
    """The page as JSON under the schema name `pulsar-advisor/report/1`, in chunks; non-finite figures
    become null."""
    encoder = json.JSONEncoder(indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False, default=_members)
    yield from encoder.iterencode({"schema": REPORT_SCHEMA, **_members(page)})
    yield "\n"


def _members(value: Any) -> dict[str, Any]:
    """An object's members, one level deep: the encoder calls back for nested objects."""
    if isinstance(value, BaseModel):
        members: dict[str, Any] = value.model_dump(mode="json")
    elif is_dataclass(value):
        members = {item.name: getattr(value, item.name) for item in fields(value)}
    else:
        raise TypeError(f"{value!r} can't be part of a report")
    return {name: _finite(member) for name, member in members.items()}


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return value
