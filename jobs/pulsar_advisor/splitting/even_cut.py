"""The advisor's own position for a split: where the heavier child is as light as possible.

A topic's weight is its share of the bundle's message rate and of its throughput together. Topics without traffic, or
with figures that no machine can have, stay where their hashes are. A cut is no use if a child has no topic with load,
or if the heavier child is nearly as heavy as the bundle: one topic makes most of it, and would be as hot as before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import Floats, possible, rate_per_s, throughput_bytes_per_s
from pulsar_advisor.splitting.bundle_split_option import BundleTopics

LEAST_RELIEF: Final = 0.1
"""Share of the bundle's load that must leave the heavier child."""


@dataclass(frozen=True)
class NoCut:
    """Why a bundle can't be divided."""

    loaded_topics: int
    """Those with traffic."""
    hottest_share: float
    """The share of the hottest topics that one hash holds together, 0..1."""


def even_cut(topics: BundleTopics) -> int | NoCut:
    """The boundary that divides a bundle's load most evenly, the lowest of equal ones."""
    flows = rate_per_s(topics.traffic) + throughput_bytes_per_s(topics.traffic) > 0
    held = topics.loaded & possible(topics.traffic) & flows
    position, of = np.unique(topics.hash[held], return_inverse=True)
    weight = np.bincount(of, weights=load_shares(topics.traffic[held]), minlength=len(position))
    if len(position) < 2:
        return NoCut(int(held.sum()), float(weight.max(initial=0.0)))
    below = np.cumsum(weight)[:-1]
    heavier = np.maximum(below, 1.0 - below)
    best = int(np.argmin(heavier))
    if heavier[best] > 1.0 - LEAST_RELIEF:
        return NoCut(int(held.sum()), float(weight.max()))
    between = int(position[best]), int(position[best + 1])
    return sum(between) // 2 + sum(between) % 2


def load_shares(traffic: Floats) -> Floats:
    """The weight of each topic, by its traffic: all together are one."""
    figures = np.column_stack((rate_per_s(traffic), throughput_bytes_per_s(traffic)))
    totals = figures.sum(axis=0)
    counted = totals > 0
    return (figures[:, counted] / totals[counted]).mean(axis=1) if counted.any() else np.zeros(len(traffic))
