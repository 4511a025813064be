"""Whether moving bundles can relieve a cluster at all, or only more brokers can."""

from __future__ import annotations

import numpy as np

from pulsar_advisor.model.cluster_state import Floats
from pulsar_advisor.model.settings import LoadBalancerSettings


def only_more_brokers(usage: Floats, settings: LoadBalancerSettings) -> str | None:
    """Why no move can relieve brokers of this usage (ratios), a part of a sentence; None where one might.

    Bundles need a second broker, and one below `loadBalancerBrokerOverloadedThresholdPercentage`: what a broker above
    it takes makes it worse. However the load is divided otherwise, brokers of several sizes included, some move may
    help.
    """
    known = usage[np.isfinite(usage)]
    threshold = settings.load_balancer_broker_overloaded_threshold_percentage / 100
    if not len(known):
        return None
    if len(usage) == 1:
        return f"there is one broker, at {known[0]:.1%}: no bundle can go anywhere"
    if len(known) < len(usage) or (known <= threshold).any():
        return None
    return f"all {len(usage)} brokers are above {threshold:.0%}, the least busy at {known.min():.1%}"
