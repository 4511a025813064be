"""Paths as people write them: `~` is the home of the user."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pulsar_advisor.model.errors import UsageError

Address = TypeVar("Address", str, Path)


def expanded(path: Path) -> Path:
    """The path with the home in place of a leading `~`. Raises `ValueError` if that home is not known."""
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise ValueError(f"there is no home directory for {path}: give the full path") from error


def with_home(address: Address) -> Address:
    """A path or URL, as `expanded`: no shell does it in variables, files and `--root=~/advisor`.

    Raises `UsageError`.
    """
    try:
        return type(address)(expanded(Path(address))) if str(address).startswith("~") else address
    except ValueError as error:
        raise UsageError(str(error)) from error
