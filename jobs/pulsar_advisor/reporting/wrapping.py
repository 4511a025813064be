"""Lines for a terminal: broken between words, never within one. Lines for files and pipes stay whole."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final
from unicodedata import east_asian_width

if TYPE_CHECKING:
    from rich.console import Console

_LABEL: Final = re.compile(r" *(?:\S+ {2,})?")
"""The leading spaces of a line, and a first word set apart like a column."""
_COMMAND: Final = re.compile(r"(?<!\S)(?:pulsar-advisor |export [A-Z_]+=|printf ').*")

_FILLER: Final = "\0"
"""Fills the second column of a wide character. No line contains it, as names are made `plain`."""


def columns_of(console: Console) -> int | None:
    """The columns of a terminal; None for a file or a pipe."""
    return console.width if console.is_terminal else None


def wrapped(line: str, columns: int | None, indent: int | None = None) -> str:
    """The line, broken to fit `columns`; None: not a terminal, so it stays whole.

    Lines after the first are indented, by default like the first one's text. A command at the end of a line, the
    advisor's or one that sets a variable for it, stays whole, so that it can be copied.
    """
    if columns is None:
        return line
    return _broken(_one_per_column(line), columns, indent).replace(_FILLER, "")


def _one_per_column(line: str) -> str:
    """The line with as many characters as it takes columns, whatever its script."""
    return line if line.isascii() else "".join(f"{c}{_FILLER}" if east_asian_width(c) in "WF" else c for c in line)


def _broken(line: str, columns: int, indent: int | None) -> str:
    if len(line) <= columns:
        return line
    indent = _indent(line) if indent is None else indent
    after = " " * min(indent, columns // 2)
    command = _COMMAND.search(line)
    text = line[: command.start()] if command else line
    if len(text.split()) < 2:  # a command with its label
        return line
    words = text.lstrip(" ")
    before = text.removesuffix(words)  # kept also where the first word alone is too long
    shown = textwrap.fill(
        words,
        columns,
        initial_indent=before,
        subsequent_indent=after,
        break_long_words=False,
        break_on_hyphens=False,
    )
    if command is None:
        return shown
    fits = len(shown.rpartition("\n")[2]) + 1 + len(command[0]) <= columns
    return f"{shown} {command[0]}" if fits else f"{shown}\n{after}{command[0]}"


def _indent(line: str) -> int:
    """The indent of a line's text after its label; without a label, the line's own indent plus two."""
    label = _LABEL.match(line)
    width = label.end() if label else 0
    return width if line[:width].strip() else width + 2


def wrapped_lines(lines: Iterable[str], columns: int | None) -> str:
    """The lines, wrapped, as one text."""
    return "\n".join(wrapped(line, columns) for line in lines)
