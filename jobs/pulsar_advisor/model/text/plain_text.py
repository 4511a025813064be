"""Text from elsewhere, made harmless before it is shown: it can't control a terminal, hide, or reverse direction.

Whatever shows names and errors passes them through here: the command line, logs, reports, pages, messages.
"""

from __future__ import annotations

import re
from typing import Any, Final

NO_BREAK: Final = "\u00a0"
"""The space between a figure and its unit."""

INVISIBLE: Final = (
    frozenset((0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x2800, 0x3164, 0xFFA0))
    | frozenset(range(0xFE00, 0xFE10))
    | frozenset(range(0xE0100, 0xE01F0))
)
"""Code points that are letters or marks by their class, and show nothing: Unicode's default-ignorable ones, and the
empty Braille cell."""
_INVISIBLE: Final = re.compile(f"[{''.join(map(chr, sorted(INVISIBLE)))}]")


def plain(text: str, keep: str = "") -> str:
    """The text with every control, format, invisible and surrogate character escaped, such as `\\u202e`, except `keep`.

    Names and errors come from the cluster and may contain anything: terminal escapes, line breaks, marks that reverse
    the reading direction.
    """
    if text.isprintable() and not _INVISIBLE.search(text):
        return text
    kept = NO_BREAK + keep
    return "".join(
        char if (char.isprintable() and not _INVISIBLE.match(char)) or char in kept else _escaped(char) for char in text
    )


def printed(value: Any) -> Any:
    """What a template prints for a value: text as `plain` makes it; markup is left alone."""
    return plain(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _escaped(char: str) -> str:
    return char.encode("unicode_escape", "surrogatepass").decode()
