"""What `AvgShedder` remembers. Shedder and placement strategy share one memory, since they are one object in Pulsar.

At first a destination is keyed by the value of the bundle's averages: bundles with identical figures share one, and the
next sample loses it. From 4.0.14, 4.2.5 and 5.0.1 on it is keyed by the bundle's name, with the source, and kept for
one cycle.
Source: `org.apache.pulsar.broker.loadbalance.impl.AvgShedder`, 3.0.7 to 5.0.1; release notes of 4.0.14 and 4.2.5
(apache/pulsar#26246).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.java.maps import INITIAL_BUCKETS
from pulsar_advisor.model.load.load_data import LoadData
from pulsar_advisor.model.strategy.memory import ShedderMemory

_KEPT_BY_NAME_SINCE: Final = ((4, 0, 14), (4, 2, 5), (5, 0, 1))
"""The first release of each line."""


def keeps_by_name(settings: LoadBalancerSettings) -> bool:
    """Whether a destination is kept under the bundle's name."""
    first = max((one for one in _KEPT_BY_NAME_SINCE if one[:2] <= settings.behaviour[:2]), default=None)
    return first is not None and settings.behaviour >= first


@dataclass(frozen=True)
class AvgMemory(ShedderMemory):
    """Hits by broker id, and the destinations that the shedder chose. Brokers that leave are never forgotten."""

    hits_high: Mapping[str, int] = field(default_factory=dict)
    hits_low: Mapping[str, int] = field(default_factory=dict)
    destinations: Mapping[bytes, tuple[str, str]] = field(default_factory=dict)
    """Key (see `key_of`) -> (source id, destination id)."""
    score_buckets: int = INITIAL_BUCKETS
    """Size of the map of scores, which is cleared but never shrinks; it decides the order of equal scores."""


def key_of(load: LoadData, bundle: int, settings: LoadBalancerSettings) -> bytes:
    """The key of a bundle's destination: the bundle's name, or all fields of its averages."""
    bundles = load.bundles
    if keeps_by_name(settings):
        return bundles.name(bundle).encode()
    averages = np.concatenate((bundles.short_term[bundle], bundles.long_term[bundle]))
    counts = (bundles.topics[bundle], bundles.short_term_samples[bundle], bundles.long_term_samples[bundle])
    return np.where(np.isnan(averages), np.nan, averages).tobytes() + np.array(counts, dtype=np.int64).tobytes()
