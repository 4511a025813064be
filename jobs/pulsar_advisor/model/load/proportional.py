"""The `proportional` model: how much of a broker's usage moves with a bundle.

CPU moves by the bundle's share of its broker's message rate (in and out together), bandwidth by its share of the
broker's throughput in that direction; heap and direct memory stay. This is an assumption, and its name accompanies
every figure derived from it.
"""

from __future__ import annotations

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import (
    BANDWIDTH_IN,
    BANDWIDTH_OUT,
    CPU,
    RESOURCES,
    THROUGHPUT_IN,
    THROUGHPUT_OUT,
    Floats,
    rate_per_s,
)


def usage_of(bundles: Floats, brokers: Floats, usage: Floats) -> Floats:
    """(…, m, 5): the usage that moves with m bundles, shape, columns and units as in `usage`.

    `bundles` is their traffic and `brokers` that of the broker each is on, (m, 4), order of FIGURES; `usage` is that
    broker's, order of RESOURCES, with any leading dimensions. A share is at most one. Nothing moves where a broker
    reports no such figure, or a negative one.
    """
    return np.where(np.isfinite(usage), np.maximum(usage, 0.0), 0.0) * shares_of(bundles, brokers)


def shares_of(bundles: Floats, brokers: Floats) -> Floats:
    """(m, 5): which share of a broker's usage beyond its base moves with each of m bundles; arguments as `usage_of`."""
    shares = np.zeros((len(bundles), len(RESOURCES)))
    with np.errstate(invalid="ignore", over="ignore"):
        shares[:, CPU] = _share(rate_per_s(bundles), rate_per_s(brokers))
    shares[:, BANDWIDTH_IN] = _share(bundles[:, THROUGHPUT_IN], brokers[:, THROUGHPUT_IN])
    shares[:, BANDWIDTH_OUT] = _share(bundles[:, THROUGHPUT_OUT], brokers[:, THROUGHPUT_OUT])
    return shares


def _share(part: Floats, whole: Floats) -> Floats:
    usable = np.isfinite(part) & (part > 0) & (whole > 0)
    with np.errstate(over="ignore"):
        return np.minimum(np.divide(part, whole, out=np.zeros(len(part)), where=usable), 1.0)
