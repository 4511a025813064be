"""Bundles that clients may use though no report shows it: they may have arrived since the last statistics pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, Booleans, ClusterState

STATISTICS_S: Final = 75
"""How long a new owner may report no topics of a bundle: until its next statistics pass (60 s by default)."""


def may_have_arrived(state: ClusterState, earlier: Sequence[ClusterState]) -> Booleans:
    """Per bundle, whether it has topics, its owner reports none of them, and no earlier state shows that it is idle.

    A bundle is idle if the same owner had it a whole statistics pass earlier, with no topic loaded then either.
    """
    may = _quiet(state) & state.may_have_topics
    owners = {state.bundle_name(row): _owner(state, row) for row in np.flatnonzero(may).tolist()}
    idle = set[str]()
    for past in earlier:
        if owners and state.captured_at_ms - past.captured_at_ms >= STATISTICS_S * 1000:
            was = ((past.bundle_name(row), row) for row in np.flatnonzero(_quiet(past)).tolist())
            idle |= {name for name, row in was if name in owners and owners[name] == _owner(past, row)}
    for row in np.flatnonzero(may).tolist():
        may[row] = state.bundle_name(row) not in idle
    return may


def _quiet(state: ClusterState) -> Booleans:
    quiet: Booleans = (state.bundles.owner != NO_ROW) & (state.bundles.topics <= 0)
    return quiet


def _owner(state: ClusterState, row: int) -> str:
    return state.brokers.ids[int(state.bundles.owner[row])]
