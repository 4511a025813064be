"""Names, numbers and times in a sentence: the first few names are listed, the rest counted."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import Final

NAMED: Final = 3

_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86_400


def some_of(names: Collection[str]) -> str:
    """`a, b, c and 27 more`, sorted."""
    shown = ", ".join(sorted(names)[:NAMED])
    return shown if len(names) <= NAMED else f"{shown} and {len(names) - NAMED} more"


def first_of(names: Sequence[str]) -> str:
    """`a and 2 more`: the first of at least one, and how many follow it."""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def nearest(name: str, known: Iterable[str]) -> str:
    """`; the nearest is '…'`, to end a message about an unknown name; empty if no name is similar."""
    return "".join(f"; the nearest is '{close}'" for close in get_close_matches(name, list(known), n=1))


def beginning(text: str, most: int) -> str:
    """The text, of more than `most` characters its beginning with an ellipsis: a cut sentence mustn't read like one."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def count(number: int, noun: str) -> str:
    """`1 bundle`, `1,234 bundles`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def points(ratio: float) -> str:
    """A difference of two usages (ratios), in percentage points: `3.0 points`."""
    return f"{100 * ratio:.1f} points"


def lasting(seconds: float) -> str:
    """`75 s`, `12 min`, `6.1 h` or `9.5 days`; rounded up, as what is longer than a limit must not read like it."""
    if seconds <= 2 * _MINUTE_S:
        return f"{math.ceil(seconds)} s"
    if seconds <= 2 * _HOUR_S:
        return f"{math.ceil(seconds / _MINUTE_S)} min"
    unit, unit_s = ("h", _HOUR_S) if seconds <= 2 * _DAY_S else ("days", _DAY_S)
    return f"{math.ceil(10 * seconds / unit_s) / 10:,.1f} {unit}"
