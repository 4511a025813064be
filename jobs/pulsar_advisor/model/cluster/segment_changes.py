"""What the controllers of scalable topics did between two snapshots: which segments took over whose keys.

At any moment a topic's active segments divide its key hashes among them. So two snapshots are joined by key range,
which works even if segments that came and went in between have left the topic's layout. Besides splits and merges, a
segment's entries may be divided into more buckets for more consumers: another one takes over its range.
Source: Pulsar `SegmentTopicName`, `HashRange`, `SegmentLayout.rebucketSegment` (5.0.1).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, ClusterState
from pulsar_advisor.model.text.some_of import count, some_of

_KEYS: Final = re.compile(r"segment://.+/([0-9a-f]{4})-([0-9a-f]{4})-[0-9]+")


@dataclass(frozen=True)
class SegmentChange:
    """The segments that had some of a topic's keys, and those that have these keys now, each with its bundle."""

    scalable_topic: str
    before: Mapping[str, str | None]
    after: Mapping[str, str | None]

    @property
    def sentence(self) -> str:
        """What happened, and which bundles gave and got the load."""
        gave, got = (sorted({one for one in of.values() if one is not None}) for of in (self.before, self.after))
        parts = f"{len(self.before)} of its segments became {count(len(self.after), 'other')}"
        return f"{self.scalable_topic}: {parts}, so load went from {some_of(gave)} to {some_of(got)}"


def segment_changes(before: ClusterState, after: ClusterState) -> tuple[SegmentChange, ...]:
    """The segments replaced by others between two states, by topic and key; only of topics that both have."""
    then, now = _active(before), _active(after)
    both = sorted(then.keys() & now.keys())
    return tuple(change for topic in both for change in _changes(topic, then[topic], now[topic]))


def _changes(topic: str, then: Mapping[str, str | None], now: Mapping[str, str | None]) -> Iterable[SegmentChange]:
    starts = sorted(_starts(then) & _starts(now))
    groups: defaultdict[int, tuple[dict[str, str | None], dict[str, str | None]]] = defaultdict(lambda: ({}, {}))
    for side, segments in enumerate((then, now)):
        for name, bundle in segments.items():
            groups[bisect_right(starts, _start(name))][side][name] = bundle
    for _, (gone, come) in sorted(groups.items()):
        if gone.keys() != come.keys():
            yield SegmentChange(topic, gone, come)


def _starts(segments: Iterable[str]) -> set[int]:
    return {_start(name) for name in segments}


def _start(name: str) -> int:
    return key_hashes(name).start


def key_hashes(segment: str) -> range:
    """The hashes of the keys that a segment serves; all of them for one that still has an ordinary topic's name."""
    found = _KEYS.fullmatch(segment)
    return range(int(found[1], 16), int(found[2], 16) + 1) if found else range(0x10000)


def _active(state: ClusterState) -> dict[str, dict[str, str | None]]:
    """By scalable topic, its active segments, each with its bundle if that is known."""
    topics, segments = state.topics, state.topics.segments
    found: defaultdict[str, dict[str, str | None]] = defaultdict(dict)
    for at in np.flatnonzero(segments.is_active).tolist():
        row = int(segments.row[at])
        bundle = int(topics.bundle[row])
        name = None if bundle == NO_ROW else state.bundle_name(bundle)
        found[segments.names[int(segments.scalable_topic[at])]][str(topics.names[row])] = name
    return dict(found)
