"""Figures and names formatted for readers: percent, rates, bytes, counts."""

from __future__ import annotations

from datetime import UTC, datetime
from math import isfinite
from typing import Final, TypeGuard

from pulsar_advisor.model.text import some_of
from pulsar_advisor.model.text.plain_text import NO_BREAK

UNKNOWN: Final = "unknown"
"""Shown if a figure is missing or not finite."""


def _is_known(figure: float | None) -> TypeGuard[float]:
    return figure is not None and isfinite(figure)


def percent(ratio: float | None, digits: int = 1) -> str:
    """A ratio (0..1) as `71.3%`."""
    return f"{round(ratio * 100, digits) + 0.0:.{digits}f}%" if _is_known(ratio) else UNKNOWN  # zero has no sign


def message_rate(rate_per_s: float | None) -> str:
    """Messages per second as `12,345 msg/s`; with one decimal below ten."""
    if not _is_known(rate_per_s):
        return UNKNOWN
    digits = 1 if 0 < abs(rate_per_s) < 10 else 0
    return f"{rate_per_s:,.{digits}f}{NO_BREAK}msg/s"


def throughput(bytes_per_s: float | None) -> str:
    """Bytes per second in decimal units, three digits, as `12.4 MB/s`."""
    if not _is_known(bytes_per_s):
        return UNKNOWN
    value = bytes_per_s
    for unit in ("B/s", "kB/s", "MB/s"):
        if abs(value) < 999.5:
            return f"{_three_digits(value)}{NO_BREAK}{unit}"
        value /= 1000
    return f"{_three_digits(value)}{NO_BREAK}GB/s"


def _three_digits(value: float) -> str:
    magnitude = abs(value)
    if magnitude >= 99.95 or magnitude == 0:
        return f"{value:,.0f}"
    return f"{value:,.1f}" if magnitude >= 9.995 else f"{value:,.2f}"


def count(number: int, noun: str) -> str:
    """`1 bundle`, `1,234 bundles`, on one line."""
    return some_of.count(number, noun).replace(" ", NO_BREAK, 1)


def change(before: float, after: float) -> str:
    """The change of a usage: `falls from 71.2% to 55.0%`."""
    first, last = percent(before), percent(after)
    if first == last:
        return f"stays at {first}"
    return f"{'falls' if after < before else 'rises'} from {first} to {last}"


def sentence(text: str) -> str:
    """The text, with a full stop added unless it has one."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


def moment(epoch_ms: int) -> str:
    """Epoch milliseconds as `2026-11-21 08:30:00 UTC`; beyond all years, as in a forged row, the number itself."""
    try:
        return datetime.fromtimestamp(epoch_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return f"{epoch_ms} ms"
