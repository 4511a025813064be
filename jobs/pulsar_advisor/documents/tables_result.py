"""The result of `normalize`: which tables a snapshot has, and from which manifest they were made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pulsar_advisor.documents.document import OfSnapshot


class TablesResult(OfSnapshot):
    """The tables that `normalize` wrote."""

    SCHEMA: ClassVar = "pulsar-advisor/tables-result/1"
    MADE_BY: ClassVar = "normalize"

    earlier_snapshot: str | None = None
    problems: int
    tables: Mapping[str, int]
    """Table -> its number of rows."""
