"""The report as one JSON document: the page itself, cut lists and all, for programs."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from typing import Any

from pydantic import BaseModel

from pulsar_advisor.reporting.page import REPORT_SCHEMA, ReportPage


def report_json(page: ReportPage) -> dict[str, Any]:
    """The page as JSON types, under the schema name `pulsar-advisor/report/1`; a figure that isn't finite is null."""
    return {"schema": REPORT_SCHEMA, **_value(page)}


def _value(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return _value(value.model_dump(mode="json"))
    if is_dataclass(value):
        return {item.name: _value(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, dict):
        return {key: _value(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_value(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
