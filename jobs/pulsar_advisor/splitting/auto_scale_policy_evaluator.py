"""Which segments of scalable topics their controllers split by themselves.

Once a minute, a topic's controller splits the segment that is furthest above one of four limits, as long as the topic
has fewer active segments than allowed: segment load / limit > 1. Half of its key hashes then go to each of two new
segments, whose names, and so whose bundles, are others.

Not known here: whether the topic has a controller, which begins with its first stream or checkpoint consumer or
administrative call, while producers and queue consumers do without one (seen on 5.0.0-M1); consumers, as it also splits
for a subscription with more of them than active segments; the policies of namespaces and topics that override these
settings; how long ago the last split was. From 5.0.1 on it may divide a segment's entries into more buckets first.
Source: Pulsar `AutoScalePolicyEvaluator.trySplit` (5.0.0-M1).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import Booleans, ClusterState
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings

SETTING_KEYS: Final = (
    "scalableTopicAutoScaleEnabled",
    "scalableTopicMaxSegments",
    "scalableTopicSplitMsgRateInThreshold",
    "scalableTopicSplitMsgRateOutThreshold",
    "scalableTopicSplitBytesRateInThreshold",
    "scalableTopicSplitBytesRateOutThreshold",
)


@np.errstate(divide="ignore", invalid="ignore")
def splits_by_itself(state: ClusterState, settings: LoadBalancerSettings) -> Booleans:
    """Per segment of `state.topics.segments`, whether its topic's controller splits it at its present load.

    That load is the one that the controller knows, else the one in the topic statistics.
    """
    topics, segments = state.topics, state.topics.segments
    if not settings.scalable_topic_auto_scale_enabled:
        return np.zeros(len(segments), dtype=np.bool_)
    limits = np.array(
        (
            settings.scalable_topic_split_msg_rate_in_threshold,
            settings.scalable_topic_split_msg_rate_out_threshold,
            settings.scalable_topic_split_bytes_rate_in_threshold,
            settings.scalable_topic_split_bytes_rate_out_threshold,
        )
    )
    unknown = np.isnan(segments.controller_traffic)
    traffic = np.where(unknown, topics.traffic[segments.row], segments.controller_traffic)
    above = (traffic / limits > 1).any(axis=1)
    active = np.bincount(segments.scalable_topic[segments.is_active], minlength=len(segments.names))
    has_room = active[segments.scalable_topic] < settings.scalable_topic_max_segments
    due: Booleans = segments.is_active & above & has_room
    return due
