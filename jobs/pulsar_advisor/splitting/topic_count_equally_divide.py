"""`topic_count_equally_divide`: cut the bundle so that half of its topics, loaded or not, are on either side.

What Pulsar does: with the hashes sorted, h[0..m-1], a = h[max(floor(m / 2) - 1, 0)] and b = h[floor(m / 2)], boundary =
a + floor((b - a) / 2). Three topics are cut between the first two; adjacent hashes (b = a + 1) or a collision (b = a)
give boundary = a, so both fall in the upper child.

Releases: a single boundary in every one that was read.
Source: Pulsar `TopicCountEquallyDivideBundleSplitAlgorithm`, 2.6 to 5.0.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.inputs import Input
from pulsar_advisor.splitting.bundle_split_option import BundleSplitOption

READS: Final[frozenset[Input]] = frozenset({"topic_names"})
SETTING_KEYS: Final[tuple[str, ...]] = ()


def split_boundary(option: BundleSplitOption) -> tuple[int, ...] | None:
    """The one boundary, which may equal the bundle's lower bound (the split then fails); None below two topics.

    Raises `DataNotFit` if the topics are not completely known.
    """
    hashes = np.sort(option.known_topics().hash)
    middle = len(hashes) // 2
    if len(hashes) < 2:
        return None
    below, above = int(hashes[middle - 1]), int(hashes[middle])
    return (below + (above - below) // 2,)
