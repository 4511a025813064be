"""What a split would bring: the load of the children, and the position that parts the load best.

The children of a bundle take its topics by their hashes. The bundle's own figures are shared out in proportion to the
loaded topics' figures, so that they stay conserved although topics are measured at another moment. Ours; Pulsar makes
no forecast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pulsar_advisor.model.cluster_state import Booleans, Floats, Integers
from pulsar_advisor.splitting.bundle_split_option import BundleTopics


@dataclass(frozen=True, eq=False)
class Children:
    """The children of one bundle, ascending."""

    lower: Integers
    upper: Integers
    topics: Integers
    """Topics by name, loaded or not."""
    loaded_topics: Integers
    traffic: Floats
    """(children, 4), order of `FIGURES`: adds up to the bundle's figures."""


def forecast_children(
    lower: int, upper: int, boundaries: Sequence[int], topics: BundleTopics, traffic: Floats
) -> Children:
    """The children of [lower, upper) cut at `boundaries` (ascending, inside); `traffic` holds the bundle's 4 figures.

    A figure that no loaded topic accounts for is shared out by the number of loaded topics, else of all topics, else by
    the width of the children's ranges.
    """
    edges = np.array([lower, *boundaries, upper], dtype=np.int64)
    count = len(edges) - 1
    child = np.clip(np.searchsorted(edges, topics.hash, side="right") - 1, 0, count - 1)
    loaded = topics.loaded
    topic_count = np.bincount(child, minlength=count).astype(np.int64)
    loaded_count = np.bincount(child[loaded], minlength=count).astype(np.int64)
    shares = next(weight for weight in (loaded_count, topic_count, np.diff(edges)) if weight.sum() > 0)
    children_traffic = np.empty((count, len(traffic)))
    for figure, total in enumerate(traffic.tolist()):
        measured = np.bincount(child, weights=_positive(topics.traffic[:, figure], loaded), minlength=count)
        weight = measured if 0 < measured.sum() < np.inf else shares.astype(np.float64)
        children_traffic[:, figure] = total * (weight / weight.sum())
    return Children(
        lower=edges[:-1],
        upper=edges[1:],
        topics=topic_count,
        loaded_topics=loaded_count,
        traffic=children_traffic,
    )


def balancing_position(lower: int, upper: int, topics: BundleTopics) -> int | None:
    """Where to cut [lower, upper) so that the heavier child is as light as can be; None if topics can't be parted.

    A topic weighs its share of the bundle's message rate plus its share of the throughput; where nothing flows, all
    topics weigh the same. Equal cuts are told apart by the more even number of topics, then by the lower position. The
    position lies midway between two neighbouring hashes and strictly inside the bundle.
    """
    hashes, position = np.unique(topics.hash, return_inverse=True)
    weight = np.bincount(position, weights=_weights(topics), minlength=len(hashes))
    number = np.bincount(position, minlength=len(hashes))
    cuts = hashes[:-1] + (hashes[1:] - hashes[:-1]) // 2 + 1
    inside = (cuts > lower) & (cuts < upper)
    if not inside.any():
        return None
    below, total = np.cumsum(weight)[:-1], weight.sum()
    heavier = np.maximum(below, total - below)
    counted = np.cumsum(number)[:-1]
    more = np.maximum(counted, number.sum() - counted)
    # Rounded: weights are sums of shares, and a difference in the last digits is no reason to prefer a cut.
    order = np.lexsort((cuts, more, np.round(heavier, 9)))
    return int(cuts[order[inside[order]][0]])


def _weights(topics: BundleTopics) -> Floats:
    weights = np.zeros(len(topics))
    for columns in (slice(0, 2), slice(2, 4)):
        figure = _positive(topics.traffic[:, columns].sum(axis=1), topics.loaded)
        if figure.sum() > 0:
            weights += figure / figure.sum()
    return weights if weights.any() else np.ones(len(topics))


def _positive(figure: Floats, loaded: Booleans) -> Floats:
    """The figures that can weigh something: of loaded topics, finite, above zero; zero elsewhere."""
    return np.where(loaded & np.isfinite(figure) & (figure > 0), figure, 0.0)
