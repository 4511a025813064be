"""Paths as people write them: `~` is the home of the user."""

from __future__ import annotations

from pathlib import Path


def expanded(path: Path) -> Path:
    """The path with the home in place of a leading `~`. Raises `ValueError` if that home is not known."""
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise ValueError(f"there is no home directory for {path}: give the full path") from error
