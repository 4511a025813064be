"""The Extensible manager's record of a broker: smoothed usage and throughput, and when it is published.

Source: `BrokerLoadData` and `BrokerLoadDataReporter` of `loadbalance.extensions` (3.0.7 to 5.0.1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import Floats, Integers, throughput_bytes_per_s
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.resource_usage import weighted_maximum_with_heap


@dataclass(frozen=True, eq=False)
class BrokerLoadData:
    """Records of n brokers, without the unweighted maximum, which brokers only report."""

    weighted_max_ema: Floats
    """Smoothed weighted maximum (ratio): the load that decisions are based on."""
    msg_throughput_ema: Floats
    """Smoothed throughput, in and out together, bytes/s."""
    updated_at_ms: Integers
    """Epoch milliseconds of the last sample; 0 before the first, and after a bundle was gained or lost."""


def fresh_records(brokers: int) -> BrokerLoadData:
    """Records before any sample: loads of 1, as if every broker were fully loaded."""
    return BrokerLoadData(np.ones(brokers), np.zeros(brokers), np.zeros(brokers, dtype=np.int64))


def updated(
    records: BrokerLoadData, usage: Floats, limit: Floats, traffic: Floats, settings: LoadBalancerSettings, now_ms: int
) -> BrokerLoadData:
    """Every record with one more sample; the arguments have one row per broker (orders of RESOURCES and FIGURES)."""
    first = records.updated_at_ms == 0
    load = weighted_maximum_with_heap(usage, limit, settings)
    throughput = throughput_bytes_per_s(traffic)

    def smoothed(past: Floats, sample: Floats) -> Floats:
        keep = settings.load_balancer_history_resource_percentage
        with np.errstate(invalid="ignore", over="ignore"):
            return np.where(first, sample, past * keep + (1 - keep) * sample)

    return BrokerLoadData(
        weighted_max_ema=smoothed(records.weighted_max_ema, load),
        msg_throughput_ema=smoothed(records.msg_throughput_ema, throughput),
        updated_at_ms=np.full(len(first), now_ms, dtype=np.int64),
    )
