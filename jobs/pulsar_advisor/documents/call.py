"""A call to a cluster's admin endpoints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue


@dataclass(frozen=True)
class Call:
    """A call as sent. `query` is in the order of sending; `body` is sent as JSON, None: no body."""

    method: str
    path: str
    query: Mapping[str, str]
    body: JsonValue

    def __str__(self) -> str:
        query = "&".join(f"{key}={value}" for key, value in self.query.items())
        body = "" if self.body is None else f" {json.dumps(self.body)}"
        return f"{self.method} {self.path}{'?' if query else ''}{query}{body}"
