"""Java's conversions and 32-bit arithmetic where Pulsar's strategies depend on them."""

from __future__ import annotations

import math
from typing import Final

_MIN: Final = -(2**31)
_MAX: Final = 2**31 - 1


def to_int(value: float) -> int:
    """`(int) value`: truncated toward zero, saturating at 32 bits, 0 for NaN."""
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return _MAX if value > 0 else _MIN
    return max(_MIN, min(_MAX, int(value)))


def wrap_int(value: int) -> int:
    """The result of an `int` addition: modulo 2**32, signed."""
    return (value - _MIN) % 2**32 + _MIN
