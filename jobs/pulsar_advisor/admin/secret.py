"""Reads secrets where the options say they lie, a file or an environment variable, and never shows what it read."""

from __future__ import annotations

import os
from pathlib import Path

from pulsar_advisor.model.errors import UsageError


def secret_text(file: Path | None, variable: str | None) -> str:
    """The whole secret, without white space around it. Raises `UsageError` if it can't be read or is empty."""
    if file is not None:
        try:
            text = file.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not text"
            raise UsageError(f"can't read the secret in {file}: {reason}") from error
    else:
        text = os.environ.get(variable or "", "").strip()
    if not text:
        raise UsageError(f"{secret_source(file, variable)} holds no secret: it is empty, or not set")
    return text


def secret_line(file: Path | None, variable: str | None) -> str:
    """A token or password: one line of ASCII, without Pulsar's prefix `token:`. Raises `UsageError`."""
    text = secret_text(file, variable)
    if not text.isascii() or not text.isprintable():
        raise UsageError(
            f"{secret_source(file, variable)} does not hold a token or password: expected one line of ASCII text"
        )
    return text.removeprefix("token:")


def secret_source(file: Path | None, variable: str | None) -> str:
    """Where the secret lies, in words."""
    return str(file) if file is not None else f"environment variable {variable}"
