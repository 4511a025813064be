"""What `AvgShedder` remembers: one memory, since shedder and placement strategy are one object in Pulsar.

Up to 5.0.0 a destination is kept under the value of the bundle's averages, so bundles with identical figures share one
and the next sample loses it; from 5.0.1 on under its name, with the source, for one cycle.
Source: `org.apache.pulsar.broker.loadbalance.impl.AvgShedder`, 3.0.7 to 5.0.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from pulsar_advisor.model.java_maps import INITIAL_BUCKETS
from pulsar_advisor.model.load_data import LoadData
from pulsar_advisor.model.memory import ShedderMemory
from pulsar_advisor.model.settings import LoadBalancerSettings

KEPT_BY_NAME: Final = (5, 0, 1)


@dataclass(frozen=True)
class AvgMemory(ShedderMemory):
    """Hits by broker id, and the destinations that the shedder had in mind. Brokers that leave are never forgotten."""

    hits_high: Mapping[str, int] = field(default_factory=dict)
    hits_low: Mapping[str, int] = field(default_factory=dict)
    destinations: Mapping[bytes, tuple[str, str]] = field(default_factory=dict)
    """Key (see `key_of`) -> (source id, destination id)."""
    score_buckets: int = INITIAL_BUCKETS
    """Size of the map of scores, which is emptied but never shrinks; it decides the order of equal scores."""


def key_of(load: LoadData, bundle: int, settings: LoadBalancerSettings) -> bytes:
    """What a bundle's destination is kept under: its name, or all fields of its averages."""
    bundles = load.bundles
    if settings.behaviour >= KEPT_BY_NAME:
        return bundles.name(bundle).encode()
    averages = np.concatenate((bundles.short_term[bundle], bundles.long_term[bundle]))
    counts = (bundles.topics[bundle], bundles.short_term_samples[bundle], bundles.long_term_samples[bundle])
    return np.where(np.isnan(averages), np.nan, averages).tobytes() + np.array(counts, dtype=np.int64).tobytes()
