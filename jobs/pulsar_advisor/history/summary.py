"""What a list of clusters needs of a folded day, in a few figures: from its index and its events."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pulsar_advisor.documents.history_day import DaySummary


def summary_of(index: pa.Table, events: pa.Table) -> DaySummary:
    """The summary of a day, of its tables `index` and `events`."""
    fit = index.filter(pc.and_(index["fit"], pc.is_finite(index["busiest"])))
    busiest, mean = (fit[name].to_numpy().astype(np.float64) for name in ("busiest", "mean"))
    kinds = Counter(events["kind"].to_pylist())
    moves = events.filter(pc.field("kind") == "move")
    known = len(fit) > 0
    return DaySummary(
        busiest=float(np.median(busiest)) if known else None,
        busiest_last=float(busiest[-1]) if known else None,
        excess=float(np.median(busiest - mean)) if known else None,
        brokers=index["brokers"][-1].as_py(),
        bundles=index["bundles"][-1].as_py(),
        moves=dict(sorted(Counter(moves["cause"].to_pylist()).items())),
        splits=kinds["split"],
        restarts=kinds["broker_restarted"],
        settings=kinds["setting"],
    )
