"""Which segments of scalable topics their controllers split by themselves.

Once a minute, a topic's controller splits the segment that is furthest above one of four limits, as long as the topic
has fewer active segments than allowed: segment load / limit > 1. Half of its key hashes then go to each of two new
segments, whose names, and so whose bundles, are others. While that segment serves a single key hash, none is split,
nor where one of these limits isn't above that of merges.

Not known here: whether the topic has a controller, which begins with its first stream or checkpoint consumer or
administrative call, while producers and queue consumers do without one; the policies of namespaces and topics that
override these settings; how long ago the last split was; consumers, of which a subscription may have more than the
topic has active segments. Then it also splits the segment with the most messages in, from 5.0.1 on only if they reach
scalableTopicSplitVsRebucketMinMsgRateInThreshold; else it gives segments more entry buckets, and other names, for the
same key hashes, and splits a minute later.
Source: Pulsar `AutoScalePolicyEvaluator.decide` (5.0.0-M1, 5.0.1), `ScalableTopicController`, `ScalableTopicService`
(5.0.1).
"""

from __future__ import annotations

from itertools import chain
from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import Booleans, ClusterState
from pulsar_advisor.model.cluster.segment_changes import key_hashes
from pulsar_advisor.model.configuration.resolved_settings import SPLIT_AND_MERGE_LIMITS, why_controllers_idle
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings

SETTING_KEYS: Final = (
    "scalableTopicAutoScaleEnabled",
    "scalableTopicMaxSegments",
    *chain.from_iterable(SPLIT_AND_MERGE_LIMITS),
)


@np.errstate(divide="ignore", invalid="ignore")
def splits_by_itself(state: ClusterState, settings: LoadBalancerSettings) -> Booleans:
    """Per segment of `state.topics.segments`, whether its topic's controller splits it at its present load, in turn.

    That load is the one that the controller knows, else the one in the topic statistics.
    """
    topics, segments = state.topics, state.topics.segments
    due: Booleans = np.zeros(len(segments), dtype=np.bool_)
    if not settings.scalable_topic_auto_scale_enabled or why_controllers_idle(settings):
        return due
    limits = np.array([settings.value(split) for split, _ in SPLIT_AND_MERGE_LIMITS])
    unknown = np.isnan(segments.controller_traffic)
    traffic = np.where(unknown, topics.traffic[segments.row], segments.controller_traffic)
    score = np.fmax.reduce(traffic / limits, axis=1)
    active = np.bincount(segments.scalable_topic[segments.is_active], minlength=len(segments.names))
    room = settings.scalable_topic_max_segments - active
    hot = np.flatnonzero(segments.is_active & (score > 1))
    for at in hot[np.argsort(-score[hot], kind="stable")].tolist():
        topic = segments.scalable_topic[at]
        if len(key_hashes(str(topics.names[segments.row[at]]))) == 1:
            room[topic] = 0
        due[at] = room[topic] > 0
        room[topic] -= 1
    return due
