"""Figures of bundles, written down as the columns that matter to a test."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pulsar_advisor.splitting.limits import BundleFigures


def figures(topics: Sequence[int], **columns: Sequence[float]) -> BundleFigures:
    """Of bundles with these topics: of one namespace, a hundred hashes wide, without load, unless said otherwise."""
    none = np.zeros(len(topics), dtype=np.int64)
    usual = {
        "index": np.arange(len(topics), dtype=np.int32),
        "namespace": none,
        "lower": none,
        "upper": none + 100,
        "sessions": none,
        "msg_rate": none.astype(np.float64),
        "msg_throughput": none.astype(np.float64),
    }
    given = {name: np.array(column, dtype=usual[name].dtype) for name, column in columns.items()}
    return BundleFigures(topics=np.array(topics, dtype=np.int64), **{**usual, **given})
