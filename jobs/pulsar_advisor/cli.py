"""The command line: one verb per stage."""

from __future__ import annotations


def main() -> None:
    """Entry point of `pulsar-advisor`."""
    raise SystemExit(2)
