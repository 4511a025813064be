"""`specified_positions_divide`: cut the bundle at the given positions.

What Pulsar does: positions that are not strictly inside the bundle are silently dropped; duplicates are kept, and the
split then never returns.

Releases: the same in every one that has it.
Source: Pulsar `SpecifiedPositionsBundleSplitAlgorithm`, 2.11 to 5.0.1.
"""

from __future__ import annotations

from typing import Final

from pulsar_advisor.model.cluster.bundle_range import format_range
from pulsar_advisor.model.cluster.inputs import Input
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.splitting.bundle_split_option import BundleSplitOption

READS: Final[frozenset[Input]] = frozenset({"topic_names"})
SETTING_KEYS: Final[tuple[str, ...]] = ()


def split_boundary(option: BundleSplitOption) -> tuple[int, ...] | None:
    """The positions inside the bundle, ascending; None without any, or if the bundle has fewer than two topics.

    Raises `UsageError` without positions (an automatic split never passes any), `DataNotFit` if the topics are not
    completely known.
    """
    _require_positions(option)
    if len(option.known_topics()) < 2:
        return None
    return forced_split_boundary(option)


def forced_split_boundary(option: BundleSplitOption) -> tuple[int, ...] | None:
    """The same regardless of topics: what the Extensible manager does with a boundary it has already chosen."""
    _require_positions(option)
    inside = tuple(position for position in sorted(option.positions) if option.lower < position < option.upper)
    return inside or None


def _require_positions(option: BundleSplitOption) -> None:
    if not option.positions:
        raise UsageError(
            f"specified_positions_divide needs positions for bundle {format_range(option.lower, option.upper)}; "
            "give at least one, or name another algorithm"
        )
