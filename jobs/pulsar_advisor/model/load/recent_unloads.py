"""Which bundles the leader still leaves alone because it unloaded them within the grace period.

Pulsar unloads in its shedding cycles, so an unload and a later cycle are whole intervals apart. The last unload of any
bundle therefore dates the next cycle: it is the first after the snapshot at a whole number of intervals. Modular and
Simple leaders wait an interval after the end of each cycle, so their cycles drift, starting a little more than an
interval apart: the time between an unload and the last one is rounded down, and a bundle may go again after exactly
the grace period. The Extensible manager's cycles don't drift.

Source: `LoadSheddingTask`, `ModularLoadManagerImpl.doLoadShedding`, `SimpleLoadManagerImpl`, `UnloadScheduler` (4.0.8);
recorded decisions of live brokers.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import Booleans, ClusterState
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings

MINUTE_MS = 60_000
_ACQUISITION_MS = 2_000
"""How long another broker takes at most to acquire a bundle, which dates its unload: recordings show 0.1 to 1.7 s."""


def as_the_leader_remembers(state: ClusterState, settings: LoadBalancerSettings) -> ClusterState:
    """The state with the unloads that a leader with these settings may have made: none if it doesn't shed or never did.

    A snapshot shows that a bundle changed its owner, not who wanted it; the leader remembers only its own unloads.
    """
    sheds = settings.load_balancer_enabled and settings.load_balancer_shedding_enabled
    if sheds and state.leader_unloads != 0:
        return state
    return replace(
        state, bundles=replace(state.bundles, last_unloaded_at_ms=np.zeros_like(state.bundles.last_unloaded_at_ms))
    )


def shedding_interval_ms(settings: LoadBalancerSettings) -> int:
    """Milliseconds between two cycles of the leader; none is shorter than a minute."""
    return max(settings.load_balancer_shedding_interval_minutes, 1) * MINUTE_MS


def recently_unloaded(state: ClusterState, settings: LoadBalancerSettings, now_ms: int) -> Booleans:
    """Per bundle row, whether the next cycle after `now_ms` leaves it alone."""
    unloaded_at_ms = state.bundles.last_unloaded_at_ms
    interval_ms = shedding_interval_ms(settings)
    last_ms = unloaded_at_ms.max(initial=0)
    before = (last_ms - unloaded_at_ms + _ACQUISITION_MS) // interval_ms
    after = max(-(-(now_ms - last_ms) // interval_ms), 1)
    at_next_cycle_ms = (before + after) * interval_ms
    grace_ms = settings.load_balancer_shedding_grace_period_minutes * MINUTE_MS
    ended = at_next_cycle_ms > grace_ms if state.load_manager == "extensible" else at_next_cycle_ms >= grace_ms
    recent: Booleans = (unloaded_at_ms > 0) & ~np.asarray(ended)
    return recent
