"""`range_equally_divide`: cut the bundle in the middle of its range, whatever its topics.

Boundary = lower + floor((upper - lower) / 2). Same in every release that has algorithms (2.6 to 5.0); the default.
Source: Pulsar `RangeEquallyDivideBundleSplitAlgorithm`.
"""

from __future__ import annotations

from typing import Final

from pulsar_advisor.model.inputs import Input
from pulsar_advisor.splitting.bundle_split_option import BundleSplitOption

READS: Final[frozenset[Input]] = frozenset()
SETTING_KEYS: Final[tuple[str, ...]] = ()


def split_boundary(option: BundleSplitOption) -> tuple[int, ...] | None:
    """The one boundary; never None."""
    return (option.lower + (option.upper - option.lower) // 2,)
