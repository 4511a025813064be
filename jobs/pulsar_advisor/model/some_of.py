"""Names in a sentence: the first few are listed, the rest counted."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

NAMED: Final = 3


def some_of(names: Collection[str]) -> str:
    """`a, b, c and 27 more`, sorted."""
    shown = ", ".join(sorted(names)[:NAMED])
    return shown if len(names) <= NAMED else f"{shown} and {len(names) - NAMED} more"
