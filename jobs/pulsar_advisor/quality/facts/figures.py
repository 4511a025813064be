"""Which figures are impossible, and which are missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pulsar_advisor.tables.columns import TRAFFIC

FIGURES: Final = tuple(TRAFFIC.values())
COUNTS: Final = ("topics", "producers", "consumers")

HIGHEST_COUNT: Final = 1_000_000_000
"""More topics or clients than any broker has."""


def impossible(counts: Mapping[str, float]) -> str:
    """How many of these counts (column -> the highest possible) are missing, negative or too high."""
    return " + ".join(f"int(not coalesce({count} between 0 and {highest}, false))" for count, highest in counts.items())


def missing(figures: Iterable[str]) -> str:
    """How many of these columns a row leaves out."""
    return " + ".join(f"int({figure} is null)" for figure in figures)
