"""The few figures of a folded day that a list of clusters needs, from its index and its events."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa

from pulsar_advisor.documents.history_day import DaySummary
from pulsar_advisor.history.trend import causes_of, levels_of


def summary_of(index: pa.Table, events: pa.Table) -> DaySummary:
    """The summary of a day, from its tables `index` and `events`."""
    fit, busiest, mean = levels_of(index)
    kinds = Counter(events["kind"].to_pylist())
    known = len(fit) > 0
    return DaySummary(
        busiest=float(np.median(busiest)) if known else None,
        busiest_last=float(busiest[-1]) if known else None,
        excess=float(np.median(busiest - mean)) if known else None,
        brokers=index["brokers"][-1].as_py(),
        bundles=index["bundles"][-1].as_py(),
        moves=causes_of(events),
        splits=kinds["split"],
        restarts=kinds["broker_restarted"],
        settings=kinds["setting"],
    )
