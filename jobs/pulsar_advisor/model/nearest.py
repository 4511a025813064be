"""Suggests the name that may have been meant, where one is close."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """`; the nearest is '…'` to end what is said of an unknown name; nothing where none is like it."""
    return "".join(f"; the nearest is '{close}'" for close in difflib.get_close_matches(name, list(known), n=1))
