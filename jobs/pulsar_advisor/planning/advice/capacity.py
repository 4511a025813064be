"""What moves can't mend: a cluster that only more brokers relieve, full direct memory, an unknown network."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import (
    BANDWIDTH_IN,
    BANDWIDTH_OUT,
    DIRECT_MEMORY,
    ClusterState,
    Floats,
    throughput_bytes_per_s,
)
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.resource_usage import deciding_resources
from pulsar_advisor.model.text.some_of import some_of
from pulsar_advisor.planning.requests.what_if import NIC_SPEED


def only_more_brokers(usage: Floats, settings: LoadBalancerSettings) -> str | None:
    """A clause: why no move can relieve brokers with these usages (ratios); None where one might.

    A move needs a second broker, and one at or below `loadBalancerBrokerOverloadedThresholdPercentage`: a broker above
    it would only get worse. In any other case some move may help, also between brokers of different sizes.
    """
    known = usage[np.isfinite(usage)]
    threshold = settings.overloaded_ratio
    if not len(known):
        return None
    if len(usage) == 1:
        return f"there is one broker, at {known[0]:.1%}: no bundle can go anywhere"
    if len(known) < len(usage) or (known <= threshold).any():
        return None
    return f"all {len(usage)} brokers are above {threshold:.0%}, the least busy at {known.min():.1%}"


def full_direct_memory(state: ClusterState, settings: LoadBalancerSettings) -> Iterator[str]:
    """A sentence about the brokers whose direct memory is nearly full, and decides no usage.

    Full is what `loadBalancerBrokerOverloadedThresholdPercentage` calls overloaded.
    """
    brokers = state.brokers
    used, limit = brokers.usage[:, DIRECT_MEMORY], brokers.limit[:, DIRECT_MEMORY]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(brokers.fit & (limit > 0), used / limit, 0.0)
    unseen = deciding_resources(brokers, settings) != DIRECT_MEMORY
    rows = np.flatnonzero((ratios > settings.overloaded_ratio) & unseen).tolist()
    if shown := some_of([f"{ratios[row]:.0%} of that of {brokers.ids[row]}" for row in rows]):
        yield (
            f"Direct memory is nearly full: {shown}. It decides no usage there, and no unload frees it. A broker that "
            "runs out of it fails: watch whether it grows, and raise -XX:MaxDirectMemorySize if it does."
        )


def unknown_network(state: ClusterState) -> Iterator[str]:
    """A sentence about the brokers with traffic that report no network speed."""
    brokers = state.brokers
    is_unknown = ~(brokers.limit[:, [BANDWIDTH_IN, BANDWIDTH_OUT]] > 0).all(axis=1)
    rows = np.flatnonzero(brokers.fit & is_unknown & (throughput_bytes_per_s(brokers.traffic) > 0)).tolist()
    if shown := some_of([brokers.ids[row] for row in rows]):
        yield (
            f"No network speed is known of {shown}: to Pulsar, and in every figure here, bandwidth is idle there, "
            f"however much is sent. Set {NIC_SPEED}."
        )
