"""Scalable topics as their controllers leave them after any number of splits and merges."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

FIRST, LAST = 0, 0xFFFF


@dataclass(frozen=True)
class Segment:
    """One segment; its parents and children by id."""

    topic: str
    """Of the whole, `topic://tenant/namespace/name`."""
    id: int
    start: int
    end: int
    state: str = "ACTIVE"
    parents: tuple[int, ...] = ()
    children: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """Its complete name."""
        return f"segment://{self.topic.removeprefix('topic://')}/{self.start:04x}-{self.end:04x}-{self.id}"

    @property
    def line(self) -> dict[str, Any]:
        """As a capture writes it."""
        return {
            "source": "rest",
            "namespace": "/".join(self.topic.removeprefix("topic://").split("/")[:2]),
            "scalableTopic": self.topic,
            "topic": self.name,
            "document": {
                "segmentId": self.id,
                "hashRange": {"start": self.start, "end": self.end},
                "state": self.state,
                "parentIds": list(self.parents),
                "childIds": list(self.children),
            },
        }


def scalable_topic(name: str, changes: int, chance: random.Random) -> list[Segment]:
    """The segments of a topic of one segment after this many splits and merges, sealed ones included."""
    segments = [Segment(name, 0, FIRST, LAST)]
    for _ in range(changes):
        active = sorted((one for one in segments if one.state == "ACTIVE"), key=lambda one: one.start)
        wide = [one for one in active if one.end > one.start]
        if len(active) > 1 and (not wide or chance.random() < 0.25):
            place = chance.randrange(len(active) - 1)
            segments = merged(segments, active[place], active[place + 1])
        else:
            segments = split(segments, chance.choice(wide))
    return segments


def split(segments: list[Segment], one: Segment) -> list[Segment]:
    """The segments after one of them was split in the middle."""
    middle, lower, upper = (one.start + one.end) // 2, len(segments), len(segments) + 1
    return [
        *_sealed(segments, (one.id,), (lower, upper)),
        Segment(one.topic, lower, one.start, middle, parents=(one.id,)),
        Segment(one.topic, upper, middle + 1, one.end, parents=(one.id,)),
    ]


def merged(segments: list[Segment], one: Segment, next_: Segment) -> list[Segment]:
    """The segments after two neighbours became one."""
    both = (one.id, next_.id)
    return [
        *_sealed(segments, both, (len(segments),)),
        Segment(one.topic, len(segments), one.start, next_.end, parents=both),
    ]


def _sealed(segments: list[Segment], ids: tuple[int, ...], children: tuple[int, ...]) -> list[Segment]:
    return [replace(one, state="SEALED", children=children) if one.id in ids else one for one in segments]
