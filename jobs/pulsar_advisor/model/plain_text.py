"""Text from elsewhere, made harmless before it is shown: it can't act on a terminal, hide, or turn around."""

from __future__ import annotations

from typing import Final

NO_BREAK: Final = "\u00a0"
"""The space between a figure and its unit."""


def plain(text: str, keep: str = "") -> str:
    """The text with every control, format and surrogate character written out as `\\u202e`; `keep` stays.

    Names and errors come from the cluster and may hold anything: terminal escapes, line breaks, marks that reverse the
    reading direction.
    """
    if text.isprintable():
        return text
    kept = NO_BREAK + keep
    return "".join(
        char if char.isprintable() or char in kept else char.encode("unicode_escape", "surrogatepass").decode()
        for char in text
    )
