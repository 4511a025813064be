"""Java's conversions and 32-bit arithmetic where Pulsar's strategies depend on them."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import Floats, Integers

_MIN: Final = -(2**31)
_MAX: Final = 2**31 - 1


def to_int(value: float) -> int:
    """`(int) value`: truncated toward zero, saturating at 32 bits, 0 for NaN."""
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return _MAX if value > 0 else _MIN
    return max(_MIN, min(_MAX, int(value)))


def to_long(values: Floats) -> Floats:
    """`(long) value` of each: truncated toward zero, saturating at 64 bits (as near as a float gets), 0 for NaN."""
    return np.clip(np.trunc(np.where(np.isnan(values), 0.0, values)), -(2.0**63), 2.0**63)


def wrap_int(value: int) -> int:
    """The result of an `int` addition: modulo 2**32, signed."""
    return (value - _MIN) % 2**32 + _MIN


def total_order(values: Floats) -> Integers:
    """Integers that compare as `Double.compare` does: NaN above everything, -0.0 below 0.0."""
    bits = np.where(np.isnan(values), np.nan, values).view(np.int64)
    return bits ^ ((bits >> 63) & np.int64(0x7FFFFFFFFFFFFFFF))
