"""How much usage differs from one snapshot to the next although nothing was moved; a gain below that says nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

import numpy as np

from pulsar_advisor.model.cluster_state import ClusterState, Floats
from pulsar_advisor.model.resource_usage import weighted_maximum
from pulsar_advisor.model.settings import LoadBalancerSettings

DEFAULT_RATIO: Final = 0.03
"""The median of 97 differences between repeated captures of live 4.0.8 brokers of the Modular and the Simple manager
(`tests/data/decisions`); those of single recordings are from 0.8 to 5.7 points."""
FEWEST_DIFFERENCES: Final = 12
"""Pairs of reports that a cluster's own noise can be judged from."""
_NEAR_MS: Final = 30 * 60_000
"""Snapshots further apart differ by the time of day as well."""


@dataclass(frozen=True)
class NoiseFloor:
    """The difference in a broker's usage (ratio) that says nothing."""

    ratio: float
    origin: Literal["history", "default"]


def noise_floor(moments: Sequence[ClusterState], settings: LoadBalancerSettings) -> NoiseFloor:
    """The noise of a cluster, from its states in the order of time, the last one included."""
    found = [usage_differences(*pair, settings) for pair in pairwise(moments)]
    differences = np.concatenate(found) if found else np.empty(0)
    if len(differences) < FEWEST_DIFFERENCES:
        return NoiseFloor(DEFAULT_RATIO, "default")
    return NoiseFloor(float(np.median(differences)), "history")


def usage_differences(earlier: ClusterState, later: ClusterState, settings: LoadBalancerSettings) -> Floats:
    """By how much (ratio) the usage of each broker differs that reported anew and served the same bundles both times.

    None if the two are too far apart.
    """
    if not 0 < later.captured_at_ms - earlier.captured_at_ms <= _NEAR_MS:
        return np.empty(0)
    rows = {broker: row for row, broker in enumerate(earlier.brokers.ids)}
    pairs = [(rows[broker], row) for row, broker in enumerate(later.brokers.ids) if broker in rows]
    before, now = (_usage(one, settings) for one in (earlier, later))
    served_before, served_now = _served(earlier), _served(later)
    differences = np.array(
        [
            abs(now[row] - before[past])
            for past, row in pairs
            if served_before.get(past) == served_now.get(row)
            and earlier.brokers.report_updated_at_ms[past] < later.brokers.report_updated_at_ms[row]
        ]
    )
    known: Floats = differences[np.isfinite(differences)]
    return known


def _usage(state: ClusterState, settings: LoadBalancerSettings) -> Floats:
    """NaN for a broker whose figures don't count."""
    brokers = state.brokers
    usage = weighted_maximum(brokers.usage, brokers.limit, settings)
    return np.where(brokers.available & brokers.complete, usage, np.nan)


def _served(state: ClusterState) -> dict[int, frozenset[str]]:
    """The reported bundles of each broker (row), by name."""
    served: dict[int, set[str]] = {}
    for bundle in np.flatnonzero(state.bundles.reported).tolist():
        served.setdefault(int(state.bundles.owner[bundle]), set()).add(state.bundle_name(bundle))
    return {broker: frozenset(names) for broker, names in served.items()}
