"""The progress that a capture reports, by default in the log."""

from __future__ import annotations

import logging
from typing import Protocol

_log = logging.getLogger(__name__)


class CaptureProgress(Protocol):
    """The progress that a capture reports; thread-safe."""

    def begin(self, step: str, total: int) -> None:
        """A step of `total` units begins; the previous one is done."""

    def advance(self) -> None:
        """One unit of the current step is done."""


class LoggedProgress:
    """One log line per step."""

    def begin(self, step: str, total: int) -> None:
        """Log the step and its number of units."""
        _log.info("reading %s (%d)", step, total)

    def advance(self) -> None:
        """Do nothing: the log has only steps."""
