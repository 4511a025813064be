"""Checks, before any connection is made, that certificates and keys are where the options say."""

from __future__ import annotations

from pathlib import Path

from pulsar_advisor.model.errors import UsageError


def require_tls_files(*files: Path | None) -> None:
    """Raises `UsageError` naming the first of these files that doesn't exist; None is a file that isn't configured."""
    for file in files:
        if file is not None and not file.exists():
            raise UsageError(f"TLS file {file} does not exist")
