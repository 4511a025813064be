"""The split algorithms by Pulsar's name: what they need, since when they exist, and how to load one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Final

from pulsar_advisor.model.errors import UsageError

if TYPE_CHECKING:
    from pulsar_advisor.model.settings import LoadBalancerSettings
    from pulsar_advisor.splitting.bundle_split_option import BundleSplitOption

SplitBoundary = Callable[["BundleSplitOption"], tuple[int, ...] | None]
"""A split algorithm: boundaries, ascending, or None where there is nothing to do."""

FALLBACK: Final = "range_equally_divide"
"""What Pulsar takes when neither the request nor the broker's default names a known algorithm."""


@dataclass(frozen=True)
class SplitAlgorithm:
    """One entry; its module in this package carries the same name and holds `split_boundary`."""

    name: str
    since: tuple[int, int]
    """First release line that has it."""
    needs_topics: bool
    """Whether it looks at the topics of the bundle, so that a complete listing is required."""
    summary: str

    def load(self) -> SplitBoundary:
        """The algorithm itself."""
        split_boundary: SplitBoundary = import_module(f"pulsar_advisor.splitting.{self.name}").split_boundary
        return split_boundary


SPLIT_ALGORITHMS: Final = (
    SplitAlgorithm("range_equally_divide", (2, 6), False, "in the middle of the range"),
    SplitAlgorithm("topic_count_equally_divide", (2, 6), True, "half of the topics on either side"),
    SplitAlgorithm("specified_positions_divide", (2, 11), True, "at given positions"),
    SplitAlgorithm("flow_or_qps_equally_divide", (3, 0), True, "a child per filled rate or throughput quota"),
)


def split_algorithm(name: str) -> SplitAlgorithm:
    """The algorithm of that name; raises `UsageError` naming the nearest one otherwise."""
    by_name = {algorithm.name: algorithm for algorithm in SPLIT_ALGORITHMS}
    if name not in by_name:
        near = get_close_matches(name, by_name, n=1, cutoff=0.0)
        raise UsageError(
            f"'{name}' is not a split algorithm; did you mean '{near[0]}'? Known: {', '.join(sorted(by_name))}"
        )
    return by_name[name]


def algorithm_in_force(name: str | None, settings: LoadBalancerSettings) -> SplitAlgorithm:
    """The algorithm a broker uses for a request that names `name` (None: an automatic split, which names none).

    A name its release doesn't know falls back to its default, an unknown default to `FALLBACK` (Pulsar
    `NamespaceService.getNamespaceBundleSplitAlgorithmByName`).
    """
    known = {algorithm.name: algorithm for algorithm in SPLIT_ALGORITHMS if algorithm.since <= settings.behaviour[:2]}
    return known.get(name or "") or known.get(settings.default_namespace_bundle_split_algorithm) or known[FALLBACK]
