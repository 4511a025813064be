"""What `AvgShedder` remembers for its other half: the destination it had in mind for each bundle it chose.

Shedder and placement are one class in Pulsar and share this memory. Up to 5.0.0 a destination is kept under the value
of the bundle's averages, so bundles with identical figures share one and the next sample loses it; from 5.0.1 on under
its name, with the source, for one cycle.
Source: `org.apache.pulsar.broker.loadbalance.impl.AvgShedder`, 3.0.7 to 5.0.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from pulsar_advisor.model.load_data import LoadData
from pulsar_advisor.model.settings import LoadBalancerSettings

KEPT_BY_NAME: Final = (5, 0, 1)


@dataclass(frozen=True)
class AvgDestinations:
    """Destination of each remembered key; under 5.0.1's rules with the source too."""

    by_key: Mapping[bytes, tuple[str, str]] = field(default_factory=dict)
    """Key (see `key_of`) -> (source id, destination id)."""


def key_of(load: LoadData, bundle: int, settings: LoadBalancerSettings) -> bytes:
    """What a bundle's destination is kept under: its name, or all fields of its averages."""
    bundles = load.bundles
    if settings.behaviour >= KEPT_BY_NAME:
        return bundles.name(bundle).encode()
    averages = np.concatenate((bundles.short_term[bundle], bundles.long_term[bundle]))
    counts = (bundles.topics[bundle], bundles.short_term_samples[bundle], bundles.long_term_samples[bundle])
    return np.where(np.isnan(averages), np.nan, averages).tobytes() + np.array(counts, dtype=np.int64).tobytes()
