"""How much usage differs from one snapshot to the next although nothing was moved.

A gain below that says nothing, and no predicted range is narrower.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final, Literal, Self

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, ClusterState
from pulsar_advisor.model.cluster.namespaces import of_users
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.resource_usage import usage_ratios

DEFAULT_RATIO: Final = 0.03
"""The median of 97 differences between repeated captures of live 4.0.8 brokers of the Modular and the Simple manager
(`tests/data/decisions`); those of single recordings are from 0.8 to 5.7 points."""
FEWEST_DIFFERENCES: Final = 12
"""Pairs of reports that a cluster's own noise can be judged from."""
_SAME_RATIO: Final = 0.0005
"""Usages that differ by less read the same."""
_NEAR_MS: Final = 30 * 60_000
"""Snapshots further apart differ by the time of day as well."""


@dataclass(frozen=True)
class NoiseFloor:
    """The difference in a broker's usage (ratio) that says nothing."""

    ratio: float
    origin: Literal["history", "default"]


def noise_floor(moments: Sequence[ClusterState], settings: LoadBalancerSettings) -> NoiseFloor:
    """The noise of a cluster, from its states in the order of time, the last one included."""
    seen = (_Seen.of(moment, settings) for moment in moments if len(moments) > 1)
    differences = [difference for pair in pairwise(seen) for difference in _differences(*pair)]
    if len(differences) < FEWEST_DIFFERENCES:
        return NoiseFloor(DEFAULT_RATIO, "default")
    return NoiseFloor(max(median(differences), _SAME_RATIO), "history")


@dataclass(frozen=True, eq=False)
class _Seen:
    """What one snapshot shows of each broker, by id."""

    at_ms: int
    usage: Mapping[str, float]
    """Ratio; NaN for a broker whose figures don't count."""
    reported_at_ms: Mapping[str, int]
    served: Mapping[str, Set[str]]
    """Names of the bundles that it reports; nothing for a broker without any."""
    loaded: Set[str]
    """Brokers that report a bundle of users: the usage of the others hardly differs, whatever the load does."""

    @classmethod
    def of(cls, state: ClusterState, settings: LoadBalancerSettings) -> Self:
        brokers, bundles = state.brokers, state.bundles
        usage = usage_ratios(brokers, settings)
        counts = np.where(brokers.available & brokers.complete, usage, np.nan)
        reported = bundles.reported & (bundles.owner != NO_ROW)
        users = of_users(state.namespaces.names)
        loaded = np.unique(bundles.owner[reported & users[bundles.namespace]])
        served = defaultdict[str, set[str]](set)
        for bundle in np.flatnonzero(reported).tolist():
            served[brokers.ids[bundles.owner[bundle]]].add(state.bundle_name(bundle))
        return cls(
            at_ms=state.captured_at_ms,
            usage=dict(zip(brokers.ids, counts.tolist(), strict=True)),
            reported_at_ms=dict(zip(brokers.ids, brokers.report_updated_at_ms.tolist(), strict=True)),
            served=served,
            loaded={brokers.ids[broker] for broker in loaded.tolist()},
        )


def _differences(earlier: _Seen, later: _Seen) -> Iterator[float]:
    """Differences in usage (ratio), one for each loaded broker that reported anew and served the same bundles both
    times.

    Empty if the two snapshots are too far apart.
    """
    if not 0 < later.at_ms - earlier.at_ms <= _NEAR_MS:
        return
    for broker in earlier.usage.keys() & later.loaded:
        difference = abs(later.usage[broker] - earlier.usage[broker])
        reported_anew = earlier.reported_at_ms[broker] < later.reported_at_ms[broker]
        if reported_anew and earlier.served.get(broker) == later.served.get(broker) and math.isfinite(difference):
            yield difference
