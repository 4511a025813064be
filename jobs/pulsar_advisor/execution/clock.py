"""The clock of waits, and of comparisons with times from other machines; tests replace it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Clock:
    """This machine's clocks."""

    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    """Epoch milliseconds: only for comparison with times from other machines."""
    monotonic_s: Callable[[], float] = time.monotonic
    """Seconds, unaffected by changes of the wall clock: for every wait."""
    sleep: Callable[[float], None] = time.sleep


SYSTEM_CLOCK: Final = Clock()
