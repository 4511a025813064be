"""`range_equally_divide`, Pulsar's default: cut the bundle in the middle of its range, whatever its topics.

What Pulsar does: boundary = lower + floor((upper - lower) / 2).

Releases: the same in every one that has algorithms.
Source: Pulsar `RangeEquallyDivideBundleSplitAlgorithm`, 2.6 to 5.0.
"""

from __future__ import annotations

from typing import Final

from pulsar_advisor.model.cluster.inputs import Input
from pulsar_advisor.splitting.bundle_split_option import BundleSplitOption

READS: Final[frozenset[Input]] = frozenset()
SETTING_KEYS: Final[tuple[str, ...]] = ()


def split_boundary(option: BundleSplitOption) -> tuple[int, ...] | None:
    """The one boundary; never None."""
    return (option.lower + (option.upper - option.lower) // 2,)
