"""Unloads and splits that are put to live brokers and to the fault server alike, and what each answered, hop by hop.

Brokers are named by their part in the scene: the leader, the owner of the bundle, and the other one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

Part = Literal["leader", "owner", "other"]

BOUNDARIES: Final = (0, 0x40000000, 0x80000000, 0xC0000000, 0xFFFFFFFF)
RANGE: Final = "0x00000000_0x40000000"
MIDDLE: Final = 0x20000000
MOST_HOPS: Final = 5


@dataclass(frozen=True)
class Put:
    """One request, and the scene it meets: a namespace of four bundles, of which the first is asked about."""

    name: str
    verb: Literal["unload", "split"]
    asked: Part
    range: str = RANGE
    query: Mapping[str, str] = field(default_factory=dict)
    """A value such as `{owner}` is replaced with a broker's id."""
    body: Any = None
    owned: bool = True
    topics: int = 2
    """How many topics the bundle has."""
    was_split: bool = False
    """Whether the bundle was split before, so that its range is no bundle any more."""
    namespace: Literal["there", "missing", "of a missing tenant"] = "there"


@dataclass(frozen=True)
class Reply:
    """What one broker answered."""

    status: int
    reason: str
    location: str | None = None


@dataclass(frozen=True)
class Hop:
    """A reply, by parts: who gave it, and to which broker and with which query it redirects."""

    at: Part
    status: int
    reason: str
    to: Part | None = None
    query: Mapping[str, str] = field(default_factory=dict)


TO_THE_OTHER: Final = {"destinationBroker": "{other}"}
AT_POSITION: Final = {"splitAlgorithmName": "specified_positions_divide", "unload": "false"}


def _unload(name: str, asked: Part = "owner", **scene: Any) -> Put:
    return Put(name, "unload", asked, **scene)


def _split(name: str, *positions: Any, asked: Part = "owner", **scene: Any) -> Put:
    return Put(name, "split", asked, query=AT_POSITION, body=list(positions), **scene)


PUTS: Final = (
    _unload("unload at the owner"),
    _unload("unload at the leader, which isn't the owner", "leader"),
    _unload("unload at a broker that is neither", "other"),
    _unload("unload of a bundle without an owner", "other", owned=False),
    _unload("unload with a destination, at the owner", query=TO_THE_OTHER),
    _unload("unload with a destination, at the leader", "leader", query=TO_THE_OTHER),
    _unload("unload with a destination, at a broker that is neither", "other", query=TO_THE_OTHER),
    _unload("unload with a destination, without an owner", "other", owned=False, query=TO_THE_OTHER),
    _unload("unload with the owner as destination", query={"destinationBroker": "{owner}"}),
    _unload("unload with an inactive destination", query={"destinationBroker": "127.0.0.77:1"}),
    _unload("unload of a range that is no bundle", range="0x00000000_0x30000000"),
    _unload("unload of a bundle that was split", was_split=True),
    _unload("unload of a text that is no range", range="garbage"),
    _unload("unload of a reversed range", range="0x40000000_0x00000000"),
    _unload("unload of a range with a third part", range=f"{RANGE}_junk"),
    _unload("unload of a range in capitals", range="0X00000000_0X40000000"),
    _unload("unload in a missing namespace", "leader", namespace="missing"),
    _unload("unload in a missing tenant", "leader", namespace="of a missing tenant"),
    _split("split at the owner", MIDDLE),
    _split("split at a broker that is neither", MIDDLE, asked="other"),
    _split("split of a bundle without an owner", MIDDLE, asked="other", owned=False),
    _split("split at two positions", MIDDLE // 2, MIDDLE),
    _split("split outside of the bundle", 0x50000000),
    _split("split at the bundle's own boundary", 0x40000000),
    _split("split of a bundle with one topic", MIDDLE, topics=1),
    _split("split at a text", "here"),
    _split("split of a bundle that was split", MIDDLE // 2, was_split=True),
    _split("split of a range that is no bundle", MIDDLE // 2, range="0x00000000_0x30000000"),
    _split("split of a text that is no range", MIDDLE, range="garbage"),
    _split("split in a missing namespace", MIDDLE, asked="leader", namespace="missing"),
)
"""Not among them: a position given twice, to which Modular brokers give no answer at all."""

Send = Callable[[str, str, Mapping[str, str], Any], Reply]
"""Puts (broker id, path, query, body) to a broker."""


def hops(put: Put, namespace: str, parts: Mapping[Part, str], send: Send) -> list[Hop]:
    """Put it, and follow where the brokers redirect to."""
    at: Part = put.asked
    path = f"/admin/v2/namespaces/{namespace}/{put.range}/{put.verb}"
    query = {key: value.format(**parts) for key, value in put.query.items()}
    found: list[Hop] = []
    while len(found) < MOST_HOPS:
        reply = send(parts[at], path, query, put.body)
        hop = _hop(at, reply, parts)
        found.append(hop)
        if hop.to is None:
            break
        at, query = hop.to, {key: value.format(**parts) for key, value in hop.query.items()}
    return found


def _hop(at: Part, reply: Reply, parts: Mapping[Part, str]) -> Hop:
    if reply.location is None:
        return Hop(at, reply.status, _by_parts(reply.reason, parts))
    # Read with the eyes of a test: the product has its own strict reading.
    target, _, text = reply.location.partition("?")
    broker = target.partition("://")[2].partition("/")[0]
    to = next(part for part, broker_id in parts.items() if broker_id == broker)
    query = dict(pair.split("=", 1) for pair in text.split("&") if pair)
    return Hop(at, reply.status, "", to, {key: _by_parts(value, parts) for key, value in sorted(query.items())})


def _by_parts(text: str, parts: Mapping[Part, str]) -> str:
    for part, broker_id in parts.items():
        text = text.replace(broker_id, f"{{{part}}}").replace(broker_id.replace(":", "%3A"), f"{{{part}}}")
    return text


def reason_of(body: str) -> str:
    """The reason in an error's body, which may be JSON or plain text."""
    try:
        document = json.loads(body)
    except ValueError:
        return body.strip()
    return str(document.get("reason", "")) if isinstance(document, dict) else body.strip()


def as_documents(found: Sequence[Hop]) -> list[dict[str, Any]]:
    """Hops as JSON values, without what is empty."""
    return [{key: value for key, value in vars_of(hop).items() if value not in (None, "", {})} for hop in found]


def vars_of(hop: Hop) -> dict[str, Any]:
    """A hop's fields."""
    return {"at": hop.at, "status": hop.status, "reason": hop.reason, "to": hop.to, "query": dict(hop.query)}
