"""Names and numbers in a sentence: the first few names are listed, the rest counted."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

NAMED: Final = 3


def some_of(names: Collection[str]) -> str:
    """`a, b, c and 27 more`, sorted."""
    shown = ", ".join(sorted(names)[:NAMED])
    return shown if len(names) <= NAMED else f"{shown} and {len(names) - NAMED} more"


def count(number: int, noun: str) -> str:
    """`1 bundle`, `1,234 bundles`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def points(ratio: float) -> str:
    """A difference of two usages (ratios), in percentage points: `3.0 points`."""
    return f"{100 * ratio:.1f} points"
