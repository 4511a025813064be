"""`flow_or_qps_equally_divide`: walk the loaded topics by hash and cut whenever the next one would overfill a child.

What Pulsar does, with R = max_msg_rate, B = max_bandwidth_mbytes * 2**20 (64-bit), d = difference_threshold_percent /
100: nothing with fewer than two distinct hashes, or while total rate < R * (1 + d) and total throughput < B * (1 + d).
Then, in ascending order of hashes, a topic that would raise the running rate above R or the running throughput above B
starts a new child, cut at h[i - 1] + floor((h[i] - h[i - 1]) / 2) + 1. Topics without traffic don't count. Of two
topics with the same hash, the walk uses only the later one's figures, but the totals include both. Works by name only
if it is also the broker's default.

Releases: the same in every one that has it.
Source: Pulsar `FlowOrQpsEquallyDivideBundleSplitAlgorithm`, 3.0 to 5.0.1.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from pulsar_advisor.model.cluster.cluster_state import rate_per_s, throughput_bytes_per_s
from pulsar_advisor.model.cluster.inputs import Input
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.splitting.bundle_split_option import BundleSplitOption

_MEBIBYTE = 1 << 20

READS: Final[frozenset[Input]] = frozenset({"topic_names", "topic_traffic"})
SETTING_KEYS: Final[tuple[str, ...]] = (
    "loadBalancerNamespaceBundleMaxMsgRate",
    "loadBalancerNamespaceBundleMaxBandwidthMbytes",
    "flowOrQpsDifferenceThresholdPercentage",
)


def split_boundary(option: BundleSplitOption) -> tuple[int, ...] | None:
    """The boundaries, ascending (equal ones if three topics share a hash); None if there is nothing to do.

    Raises `DataNotFit` if the topics are not completely known, `UsageError` without quotas.
    """
    topics = option.known_topics()
    if option.quotas is None:
        raise UsageError(
            "flow_or_qps_equally_divide can't be used by name: a broker passes its quotas only to its default "
            "algorithm; set defaultNamespaceBundleSplitAlgorithm, or name another algorithm"
        )
    if len(topics) < 2:
        return None
    max_rate = float(option.quotas.max_msg_rate)
    max_throughput = float(option.quotas.max_bandwidth_mbytes * _MEBIBYTE)
    slack = 1 + option.quotas.difference_threshold_percent / 100.0

    # Sums are added one by one in listing order, as in Pulsar: another order can differ in the last digit.
    total_rate = total_throughput = 0.0
    hashes: list[int] = []
    figures: dict[int, tuple[float, float]] = {}
    rates = rate_per_s(topics.traffic).tolist()
    throughputs = throughput_bytes_per_s(topics.traffic).tolist()
    for position, loaded, rate, throughput in zip(
        topics.hash.tolist(), topics.loaded.tolist(), rates, throughputs, strict=True
    ):
        if not loaded or (rate <= 0 and throughput <= 0):
            continue
        hashes.append(position)
        figures[position] = (rate, throughput)
        total_rate += rate
        total_throughput += throughput
    if len(figures) < 2 or (total_rate < max_rate * slack and total_throughput < max_throughput * slack):
        return None

    hashes.sort()
    boundaries: list[int] = []
    running_rate, running_throughput = figures[hashes[0]]
    for below, above in pairwise(hashes):
        rate, throughput = figures[above]
        if running_rate + rate > max_rate or running_throughput + throughput > max_throughput:
            boundaries.append(below + (above - below) // 2 + 1)
            running_rate, running_throughput = rate, throughput
        else:
            running_rate += rate
            running_throughput += throughput
    return tuple(boundaries)
