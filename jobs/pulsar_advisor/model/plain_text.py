"""Text from elsewhere, made harmless before it is shown: it can't control a terminal, hide, or reverse direction."""

from __future__ import annotations

from typing import Final

NO_BREAK: Final = "\u00a0"
"""The space between a figure and its unit."""


def plain(text: str, keep: str = "") -> str:
    """The text with every control, format and surrogate character escaped, such as `\\u202e`; `keep` is left unchanged.

    Names and errors come from the cluster and may contain anything: terminal escapes, line breaks, marks that reverse
    the reading direction.
    """
    if text.isprintable():
        return text
    kept = NO_BREAK + keep
    return "".join(
        char if char.isprintable() or char in kept else char.encode("unicode_escape", "surrogatepass").decode()
        for char in text
    )
