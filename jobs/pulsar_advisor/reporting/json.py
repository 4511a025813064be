"""The report as one JSON document: the page itself with uncut lists, for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from functools import partial

from pydantic_core import to_jsonable_python

from pulsar_advisor.reporting.page import ReportPage


def json_chunks(page: ReportPage) -> Iterator[str]:
    """The page as JSON under its schema name, in chunks, as it may be large; non-finite figures become null."""
    with_null = partial(to_jsonable_python, inf_nan_mode="null")
    encoder = json.JSONEncoder(indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False, default=with_null)
    parts = {part.name: getattr(page, part.name) for part in fields(page)}
    yield from encoder.iterencode({"schema": page.SCHEMA, **parts})
    yield "\n"
