"""The clock of what grows old while this machine sleeps, too."""

from __future__ import annotations

import time
from typing import Final

_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""The monotonic clock of Linux stops while the machine sleeps."""


def elapsed_s() -> float:
    """Seconds since some moment, unaffected by changes of the wall clock."""
    return time.clock_gettime(_CLOCK)
