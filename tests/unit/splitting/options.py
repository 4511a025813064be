"""What a split algorithm is given, in a few words."""

from __future__ import annotations

import numpy as np

from pulsar_advisor.model.cluster.bundle_range import FULL_UPPER_BOUND
from pulsar_advisor.splitting.bundle_split_option import BundleSplitOption, BundleTopics


def topics(*hashes: int, rates: list[float] | None = None, throughputs: list[float] | None = None) -> BundleTopics:
    traffic = np.zeros((len(hashes), 4))
    traffic[:, 0] = rates or 0.0
    traffic[:, 3] = throughputs or 0.0
    loaded = np.full(len(hashes), rates is not None or throughputs is not None)
    return BundleTopics(np.array(hashes, dtype=np.int64), loaded, traffic)


def option(known: BundleTopics | None = None, **rest: object) -> BundleSplitOption:
    return BundleSplitOption(**{"lower": 0, "upper": FULL_UPPER_BOUND, "topics": known, **rest})
