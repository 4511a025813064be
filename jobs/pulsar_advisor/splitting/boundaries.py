"""The set arithmetic of bundles: which can be split, and the effect of a split on a boundary list.

A namespace of n bundles is a list of n + 1 ascending positions of the 32-bit ring; bundle i is [b[i], b[i + 1]), the
last one including its upper bound. Source: Pulsar `NamespaceBundleFactory.canSplitBundle` and `splitBundles`,
2.11 to 5.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from pulsar_advisor.model.cluster.bundle_range import format_range
from pulsar_advisor.model.errors import DataNotFit, UsageError


def can_split(lower: int, upper: int) -> bool:
    """Whether the bundle is wider than one position: Pulsar refuses to split narrower ones."""
    return upper - lower > 1


def split_bundles(boundaries: Sequence[int], lower: int, upper: int, positions: Sequence[int]) -> tuple[int, ...]:
    """Boundaries of the namespace after the split of [lower, upper) exactly at these positions, at least one.

    Raises `UsageError` where Pulsar refuses (range too narrow, position not strictly inside) or hangs (a duplicate
    position), and `DataNotFit` if the bundle is not among the boundaries.
    """
    name = format_range(lower, upper)
    if not can_split(lower, upper):
        raise UsageError(f"bundle {name} can't be split: its range is not wider than 1")
    cuts = sorted(positions)
    if cuts[0] <= lower or cuts[-1] >= upper:
        raise UsageError(f"positions {cuts} are not all strictly inside bundle {name}; leave out the others")
    for before, after in pairwise(cuts):
        if before == after:
            raise UsageError(f"the split of bundle {name} at {cuts} has an empty child at {before}")
    for index in range(len(boundaries) - 1):
        if boundaries[index] == lower and boundaries[index + 1] == upper:
            return (*boundaries[: index + 1], *cuts, *boundaries[index + 1 :])
    raise DataNotFit(f"bundle {name} is not among the namespace's {len(boundaries) - 1} bundles; take a new snapshot")
