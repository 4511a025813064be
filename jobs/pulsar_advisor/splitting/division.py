"""A cluster state whose bundles have been split: which child has which topics, and which part of the figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pulsar_advisor.model.cluster.cluster_state import (
    NO_ROW,
    Booleans,
    Bundles,
    ClusterState,
    Floats,
    Indices,
    Integers,
    Topics,
)
from pulsar_advisor.model.strategy.decision import Split

_Rows = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Division:
    """A state before and after splits."""

    before: ClusterState
    splits: tuple[Split, ...]
    """Rows of `before`, each at most once."""
    state: ClusterState
    """The state after them: children in their parent's place, so the rows below move down."""
    parent: Indices
    """Per bundle of `state`, its row in `before`: its own, or that of the bundle it was split from."""
    is_child: Booleans
    shares: Floats
    """(m, 4), order of FIGURES: its part of that row's figures; one for a bundle that wasn't split."""

    def children(self, split: Split) -> range:
        """Rows of the children of one of the splits."""
        first = int(np.searchsorted(self.parent, split.bundle))
        return range(first, first + len(split.boundaries) + 1)


class _Part(NamedTuple):
    """How a bundle is divided among its children, in their order."""

    shares: Floats
    """(children, 4), order of FIGURES."""
    otherwise: Floats
    """Shares of what isn't counted by topic."""
    topics: Integers
    """Loaded ones."""


@np.errstate(over="ignore", invalid="ignore")
def divided(state: ClusterState, splits: Sequence[Split]) -> Division:
    """The state once these bundles have been split.

    Topics go to the child that their hash falls into. A bundle's figures are divided in proportion to those of its
    loaded topics, so their totals remain. What no loaded topic accounts for is divided by the number of loaded topics,
    otherwise of all topics, otherwise by width: half a bundle has half of the load, as the default algorithm assumes.
    """
    bundles, topics, published = state.bundles, state.topics, state.published_load
    repeats = np.ones(len(bundles), dtype=np.intp)
    repeats[[split.bundle for split in splits]] = [len(split.boundaries) + 1 for split in splits]
    starts = np.cumsum(repeats) - repeats
    parent = np.repeat(np.arange(len(bundles), dtype=np.int32), repeats)
    is_child = repeats[parent] > 1
    columns = {field.name: getattr(bundles, field.name)[parent] for field in fields(bundles)}
    shares = np.ones((len(parent), bundles.traffic.shape[1]))
    child_of = np.zeros(len(topics), dtype=np.intp)
    inside = np.flatnonzero(np.isin(topics.bundle, np.flatnonzero(repeats > 1)))
    inside = inside[np.argsort(topics.bundle[inside], kind="stable")]
    bundle_inside = topics.bundle[inside]
    for split in splits:
        of_bundle = inside[slice(*np.searchsorted(bundle_inside, (split.bundle, split.bundle + 1)))]
        child_of[of_bundle] = np.searchsorted(np.array(split.boundaries), topics.hash[of_bundle], side="right")
        cuts = [int(bundles.lower[split.bundle]), *split.boundaries, int(bundles.upper[split.bundle])]
        part = _part(topics, of_bundle, child_of[of_bundle], cuts, int(bundles.topics[split.bundle]))
        rows = slice(starts[split.bundle], starts[split.bundle] + repeats[split.bundle])
        shares[rows] = part.shares
        columns["lower"][rows], columns["upper"][rows] = cuts[:-1], cuts[1:]
        columns["topics"][rows] = part.topics
        columns["reported"][rows] &= part.topics > 0
        for name in ("producers", "consumers", "cache_size_bytes"):
            columns[name][rows] = _whole(getattr(bundles, name)[split.bundle], part.otherwise)
    for name in ("traffic", "short_term", "long_term"):
        columns[name] = columns[name] * shares
    columns["last_unloaded_at_ms"] = np.where(is_child, 0, columns["last_unloaded_at_ms"])
    bundle_of = np.where(topics.bundle == NO_ROW, NO_ROW, starts[topics.bundle] + child_of).astype(topics.bundle.dtype)
    if published is not None:
        published = replace(published, top_position=np.where(is_child, NO_ROW, published.top_position[parent]))
    after = replace(
        state, bundles=Bundles(**columns), topics=replace(topics, bundle=bundle_of), published_load=published
    )
    return Division(state, tuple(splits), after, parent, is_child, shares)


def _part(topics: Topics, of_bundle: _Rows, child_of: _Rows, cuts: Sequence[int], loaded_topics: int) -> _Part:
    """The division of one bundle: its topics (rows), the child of each, its bounds, and how many are loaded."""
    children = len(cuts) - 1
    loaded = topics.loaded[of_bundle]
    each = [of_bundle[loaded & (child_of == child)] for child in range(children)]
    number = np.array([len(rows) for rows in each], dtype=np.int64)
    counted = (number, np.bincount(child_of, minlength=children), np.diff(cuts))
    otherwise = next(counts / counts.sum() for counts in counted if counts.any())
    figures = np.array([topics.traffic[rows].sum(axis=0) for rows in each])
    totals = figures.sum(axis=0)
    shares = np.where(totals > 0, figures / np.where(totals > 0, totals, 1), otherwise[:, None])
    return _Part(shares, otherwise, number if number.any() else _whole(loaded_topics, otherwise))


def _whole(number: int, shares: Floats) -> Integers:
    """A whole number divided in whole numbers; their sum is the number."""
    whole: Integers = np.diff(np.rint(number * np.append(0.0, np.cumsum(shares)))).astype(np.int64)
    return whole
