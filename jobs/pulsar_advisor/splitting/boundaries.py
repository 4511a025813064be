"""The set arithmetic of bundles: which can be split, and the effect of a split on a boundary list.

A namespace of n bundles is a list of n + 1 ascending positions of the 32-bit ring; bundle i is [b[i], b[i + 1]), the
last one including its upper bound. Source: Pulsar `NamespaceBundleFactory.canSplitBundle` and `splitBundles`,
2.11 to 5.0.
"""

from __future__ import annotations

from collections.abc import Sequence

from pulsar_advisor.model.cluster.bundle_range import format_range
from pulsar_advisor.model.errors import DataNotFit, UsageError

Ranges = tuple[tuple[int, int], ...]
"""Bundle ranges as (lower, upper), ascending."""


def can_split(lower: int, upper: int) -> bool:
    """Whether the bundle is wider than one position: Pulsar refuses to split narrower ones."""
    return upper - lower > 1


def split_bundles(
    boundaries: Sequence[int], lower: int, upper: int, count: int = 2, positions: Sequence[int] = ()
) -> tuple[tuple[int, ...], Ranges]:
    """Boundaries of the namespace after the split of [lower, upper), and the children in order.

    With `positions` the bundle is cut exactly there and `count` is ignored; without, into `count` equal children, the
    last one taking the remainder. Raises `UsageError` where Pulsar refuses (range too narrow, position not strictly
    inside) or hangs (a duplicate position, or more children than the range has room for), and `DataNotFit` if the
    bundle is not among the boundaries.
    """
    name = format_range(lower, upper)
    if not can_split(lower, upper):
        raise UsageError(f"bundle {name} can't be split: its range is not wider than 1")
    if positions:
        cuts = tuple(sorted(positions))
        if cuts[0] <= lower or cuts[-1] >= upper:
            raise UsageError(f"positions {list(cuts)} are not all strictly inside bundle {name}; leave out the others")
    else:
        if count < 1:
            raise UsageError(f"bundle {name} can't be split into {count} children; give two or more")
        segment = (upper - lower) // count
        cuts = tuple(lower + index * segment for index in range(1, count))
    children = tuple(zip((lower, *cuts), (*cuts, upper), strict=True))
    for child_lower, child_upper in children:
        if child_lower == child_upper:
            raise UsageError(f"the split of bundle {name} at {list(cuts)} has an empty child at {child_lower}")
    for index in range(len(boundaries) - 1):
        if boundaries[index] == lower and boundaries[index + 1] == upper:
            return (*boundaries[: index + 1], *cuts, *boundaries[index + 1 :]), children
    raise DataNotFit(f"bundle {name} is not among the namespace's {len(boundaries) - 1} bundles; take a new snapshot")
