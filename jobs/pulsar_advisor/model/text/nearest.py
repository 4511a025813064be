"""Suggests the name that was probably meant, if one is close."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """`; the nearest is '…'`, to end a message about an unknown name; empty if no name is similar."""
    return "".join(f"; the nearest is '{close}'" for close in difflib.get_close_matches(name, list(known), n=1))
