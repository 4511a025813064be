"""Text from elsewhere, made harmless before it is shown: it can't control a terminal, hide, or reverse direction.

Whatever shows names and errors passes them through here: the command line, logs, reports, pages, messages.
"""

from __future__ import annotations

import re
from typing import Any, Final

NO_BREAK: Final = "\u00a0"
"""The space between a figure and its unit."""

_INVISIBLE: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Characters that are letters or marks by their class, and show nothing: Unicode's default-ignorable ones."""


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
    """What a template outputs of a value: text as `plain` makes it; markup is left alone."""
    return plain(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _escaped(char: str) -> str:
    return char.encode("unicode_escape", "surrogatepass").decode()
