"""Text from elsewhere, made harmless wherever it is shown: on a terminal, in the ledger, in Markdown."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_ACTIVE: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories that act instead of showing: control and format characters, lone surrogates, separators of lines."""

_MARKDOWN: Final = re.compile(r"([\\`*_{}\[\]()<>#+!|~&$-])")


def inert(text: str, keep: str = "") -> str:
    r"""The text with every character that acts on a terminal, or hides, as `\x1b` or `\u202e`; `keep` stays."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character
        if character in keep or unicodedata.category(character) not in _ACTIVE
        else character.encode("unicode_escape").decode()
        for character in text
    )


def inert_markdown(text: str) -> str:
    """The text as one line of plain words in Markdown, whatever it holds."""
    return _MARKDOWN.sub(r"\\\1", inert(text))
