"""Reads the segments of scalable topics, which topic lists omit, from the admin API or the metadata store.

A segment is a topic of the domain `segment`. A segment that was an ordinary topic before it became scalable keeps its
name. Source: Pulsar `ScalableTopics`, `ScalableTopicResources`, `SegmentInfo`, `SegmentTopicName` (5.0.0-M1 and
5.0.1).
"""

# ruff: noqa: N815 (the field names are the keys of the documents)

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from pulsar_advisor.admin.answer import ErrorAnswer
from pulsar_advisor.admin.decoding import decode
from pulsar_advisor.admin.metadata_store import MetadataReader, segment_load_path
from pulsar_advisor.admin.read_client import SCALABLE_TOPICS_SINCE, ReadClient
from pulsar_advisor.capture.documents import AllowList, Count, Number, Text
from pulsar_advisor.capture.session import Session
from pulsar_advisor.capture.surfaces import BrokerFacts, Line
from pulsar_advisor.model.configuration.releases import release_number
from pulsar_advisor.model.text.plain_text import plain

SURFACE: Final = "segments"
_LOADS: Final = "segment_loads"
"""A surface of its own: a segment is known even without its load."""

Hash = Annotated[int, Meta(ge=0, le=0xFFFF)]
SegmentId = Annotated[int, Meta(ge=0, le=2**63 - 1)]
SegmentIds = list[SegmentId] | None | UnsetType


class HashRange(AllowList):
    """The range of its topic's key hashes that a segment serves, both ends included."""

    start: Hash
    end: Hash


class Segment(AllowList):
    """`SegmentInfo`: one segment of a topic, and the segments that it was split or merged from and into."""

    segmentId: SegmentId
    hashRange: HashRange
    state: Text = UNSET
    """`ACTIVE`, or `SEALED`: nothing is written to it any more, but consumers may still read it."""
    parentIds: SegmentIds = UNSET
    childIds: SegmentIds = UNSET
    createdAtMs: Count = UNSET
    sealedAtMs: Count = UNSET
    legacyTopicName: Text = UNSET

    def topic(self, of: str) -> str:
        """Its complete name, as a segment of the topic `of`, `topic://…`."""
        if self.legacyTopicName:
            return self.legacyTopicName
        own = f"{self.hashRange.start:04x}-{self.hashRange.end:04x}-{self.segmentId}"
        return f"segment://{of.removeprefix('topic://')}/{own}"


class ScalableTopic(AllowList):
    """`ScalableTopicMetadata`: the segments that still have messages, by id."""

    segments: dict[SegmentId, Segment]


class SegmentLoad(AllowList):
    """`SegmentLoadStats`: what the topic's controller knows of a segment's load, messages/s and bytes/s.

    Brokers from 5.0.1 on write `byteRateIn` and `byteRateOut`, which are kept under the names of 5.0.0-M1.
    """

    msgRateIn: Number = UNSET
    bytesRateIn: Number = UNSET
    msgRateOut: Number = UNSET
    bytesRateOut: Number = UNSET
    byteRateIn: Number = UNSET
    byteRateOut: Number = UNSET

    def __post_init__(self) -> None:
        if self.byteRateIn is not UNSET:
            self.bytesRateIn, self.byteRateIn = self.byteRateIn, UNSET
        if self.byteRateOut is not UNSET:
            self.bytesRateOut, self.byteRateOut = self.byteRateOut, UNSET


SCALABLE_TOPIC: Final = msgspec.json.Decoder(ScalableTopic)
_LOAD: Final = msgspec.json.Decoder(SegmentLoad)


def read_segments(session: Session, facts: BrokerFacts, namespaces: Iterable[str]) -> None:
    """Read the segments from brokers, if their release has scalable topics."""
    brokers = [
        broker for broker, release in facts.releases.items() if release_number(release)[:2] >= SCALABLE_TOPICS_SINCE
    ]
    if not brokers:
        return

    def read(client: ReadClient, namespace: str) -> None:
        try:
            topics = client.scalable_topics(namespace)
        except ErrorAnswer as error:
            if error.status != 404:
                raise
            client.policies(namespace)  # also 404 if the namespace is gone; else the release lacks this list
            session.journal.miss(SURFACE, error.own_words, namespace=namespace)
            return
        if strange := [topic for topic in topics if not topic.startswith(f"topic://{namespace}/")]:
            session.journal.miss(
                SURFACE, f"the list has {plain(strange[0])}, which is not of this namespace", namespace=namespace
            )
            return
        documents = [(topic, layout) for topic in topics if (layout := client.scalable_topic(topic)) is not None]
        layouts = [(topic, decode(layout, SCALABLE_TOPIC)) for topic, layout in documents]
        if any(_is_strange(session, topic, layout) for topic, layout in layouts):
            return
        session.files.extend(SURFACE, [line for topic, layout in layouts for line in _lines("rest", topic, layout)])
        facts.segments_listed.add(namespace)

    session.files.extend(SURFACE, [])
    session.for_each("scalable topics", SURFACE, list(namespaces), read, among=brokers)


def miss_unlisted_segments(session: Session, facts: BrokerFacts) -> None:
    """Record the namespaces whose segments are loaded somewhere, but weren't listed."""
    for namespace in sorted(facts.namespaces_with_segments - facts.segments_listed):
        session.journal.miss(
            SURFACE,
            "brokers serve segments of scalable topics here, and none lists them: those that aren't loaded are unknown",
            namespace=namespace,
        )


def stored_segments(session: Session, metadata: MetadataReader) -> Iterator[Line]:
    """The same lines for every segment in the metadata store, each with the load that its topic's controller knows."""
    decoded = session.decoded(SURFACE, metadata.scalable_topics(), SCALABLE_TOPIC)
    found = [(topic, node, layout) for topic, node, layout in decoded if not _is_strange(session, topic, layout)]
    nodes = metadata.segment_loads((node.path, list(layout.segments)) for _, node, layout in found)
    loads = {
        path: {"load": load, "loadModifiedAt": node.modified_at_ms}
        for path, node, load in session.decoded(_LOADS, nodes, _LOAD)
    }
    for topic, node, layout in found:
        for id_, line in zip(layout.segments, _lines("zookeeper", topic, layout), strict=True):
            yield line | loads.get(segment_load_path(node.path, id_), {})


def _namespace(topic: str) -> str:
    return "/".join(topic.removeprefix("topic://").split("/", 2)[:2])


def _is_strange(session: Session, topic: str, layout: ScalableTopic) -> bool:
    """Whether a segment has a name that is impossible for this topic, which is then recorded."""
    namespace = _namespace(topic)
    names = (segment.legacyTopicName for segment in layout.segments.values() if segment.legacyTopicName)
    strange = next((name for name in names if not name.startswith(f"persistent://{namespace}/")), None)
    if strange is not None:
        what = f"{plain(topic)} has a segment {plain(strange)}, which is not of its namespace"
        session.journal.miss(SURFACE, what, namespace=namespace)
    return strange is not None


def _lines(source: str, topic: str, layout: ScalableTopic) -> Iterator[Line]:
    namespace = _namespace(topic)
    for segment in layout.segments.values():
        yield {
            "source": source,
            "namespace": namespace,
            "scalableTopic": topic,
            "topic": segment.topic(topic),
            "document": segment,
        }
