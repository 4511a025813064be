"""Scalable topics in advice: meanwhile their controllers split and merge segments by themselves."""

from __future__ import annotations

import shlex
from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, ClusterState, possible, rate_per_s
from pulsar_advisor.model.cluster.segment_changes import key_hashes
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.text.some_of import count, some_of
from pulsar_advisor.splitting.auto_scale_policy_evaluator import splits_by_itself
from pulsar_advisor.splitting.even_cut import load_shares

SCALABLE_SINCE: Final = (5, 0)
_FITS: Final = "would be within it"
_DOMINANT_SHARE: Final = 0.5
"""The share of a bundle's load from which on it is hot because of one topic."""


def awaited_split(state: ClusterState, settings: LoadBalancerSettings, bundle: int) -> str | None:
    """Why a bundle should wait until a controller has split a segment in it: most of its load is that topic's."""
    topics, segments = state.topics, state.topics.segments
    due = splits_by_itself(state, settings) & (topics.bundle[segments.row] == bundle)
    if not due.any():
        return None
    held = np.flatnonzero((topics.bundle == bundle) & topics.loaded & possible(topics.traffic))
    share_of = dict(zip(held.tolist(), load_shares(topics.traffic[held]).tolist(), strict=True))
    shares = np.array([share_of.get(row, 0.0) for row in segments.row[due].tolist()])
    by_topic = np.bincount(segments.scalable_topic[due], weights=shares, minlength=len(segments.names))
    topic = int(by_topic.argmax())
    if by_topic[topic] <= _DOMINANT_SHARE:
        return None
    return (
        f"{by_topic[topic]:.0%} of its load is from {segments.names[topic]}, whose controller is about to split it by "
        "itself: take a new snapshot once it has"
    )


def cure(state: ClusterState, settings: LoadBalancerSettings, topic: int, parts: int | None) -> str:
    """What helps against a topic (row) that is too much for one broker; `parts`: in how many parts it wouldn't be."""
    segments = state.topics.segments
    found = np.flatnonzero(segments.row == topic)
    if not len(found):
        name = str(state.topics.names[topic])
        return f"{_in_partitions(name, parts)}{_migration(name, settings)}"
    segment = int(found[0])
    if not segments.is_active[segment]:
        return "nothing is written to it any more, so this ends once it has been read"
    name = segments.names[int(segments.scalable_topic[segment])]
    if splits_by_itself(state, settings)[segment]:
        return f"the controller of {name} is about to split it by itself: take a new snapshot once it has"
    if len(key_hashes(str(state.topics.names[topic]))) == 1:
        return "all its keys have the same hash, so it can't be split: spread its load over more keys"
    own = shlex.quote(name.removeprefix("topic://"))  # a tenant chose it, and somebody will paste the command
    command = f"pulsar-admin scalable-topics split-segment {own} --segment-id {segments.id[segment]}"
    in_parts = "no number of segments is enough" if parts is None else f"in {parts} segments, each part {_FITS}"
    return f"{in_parts}; `{command}` halves it, but consider its keys first"


def _in_partitions(topic: str, parts: int | None) -> str:
    """How many partitions help: a multiple of those it has, over which its keys are spread anew, or a new topic's.

    Pulsar gives an existing topic without partitions none. Source: `PersistentTopicsBase` (409, 4.0.8).
    """
    if parts is None:
        return "no number of partitions is enough"
    if _whole(topic) != topic:
        return f"with {parts} times as many partitions, each {_FITS}, but consider its keys first"
    return f"as a new topic of {parts} partitions, each {_FITS}, but this one can't be given any"


def _whole(topic: str) -> str:
    """The partitioned topic of a partition; another topic itself."""
    whole, _, number = topic.rpartition("-partition-")
    return whole if whole and number.isdecimal() else topic


def _migration(topic: str, settings: LoadBalancerSettings) -> str:
    """The way to segments, which a controller splits as load grows; only a persistent topic of 5.0 and later has it."""
    if settings.behaviour[:2] < SCALABLE_SINCE or not topic.startswith("persistent://"):
        return ""
    own = shlex.quote(_whole(topic).removeprefix("persistent://"))
    return (
        f"; if all its clients are of Pulsar 5, `pulsar-admin scalable-topics migrate {own}` makes it a topic that its "
        "broker splits as load grows, which can't be undone"
    )


def not_simulated(state: ClusterState, settings: LoadBalancerSettings) -> str | None:
    """What simulations leave out because they keep all segments as they are; None without scalable topics."""
    topics, segments = state.topics, state.topics.segments
    if not len(segments):
        return None
    rates = np.where(possible(topics.traffic), rate_per_s(topics.traffic), 0.0)
    total = float(rates.sum())
    share = f" with {float(rates[segments.row].sum()) / total:.0%} of all messages" if total > 0 else ""
    due = segments.row[splits_by_itself(state, settings)]
    bundles = [state.bundle_name(int(bundle)) for bundle in np.unique(topics.bundle[due]) if bundle != NO_ROW]
    now = f"; now due to be split: {count(len(due), 'segment')} in {some_of(bundles)}" if len(due) else ""
    return (
        f"The cluster has {count(len(segments.names), 'scalable topic')}{share}. Their controllers, which split and "
        f"merge segments and so move load between bundles, are not simulated{now}."
    )
