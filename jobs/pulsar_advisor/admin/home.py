"""Paths as people write them: `~` is the home of the user."""

from __future__ import annotations

from pathlib import Path

from pulsar_advisor.model.errors import UsageError


def expanded(path: Path) -> Path:
    """The path with the home in place of a leading `~`. Raises `ValueError` if that home is not known."""
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise ValueError(f"there is no home directory for {path}: give the full path") from error


def with_home(address: str) -> str:
    """The path or URL of a folder, as `expanded`: no shell does it in variables, files and `--root=~/advisor`.

    Raises `UsageError`.
    """
    try:
        return str(expanded(Path(address))) if address.startswith("~") else address
    except ValueError as error:
        raise UsageError(str(error)) from error
