"""Documents that real brokers gave, broken: by chance, and by whoever knows what parsers choke on."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import zstandard
from hypothesis import strategies as st

from unit.capture.recorded_cluster import RECORDED

LOAD_MANAGERS = ("modular", "simple", "extensible")

_HOSTILE = (
    *(b"[" * 50_000, b'{"a":' * 50_000, b"\xff", b"\xc3(", b"\xed\xa0\x80", b"\x00", b'"\\ud800"', b"\\u0000"),
    *(b"1e999", b"-1e999", b"NaN", b"1" * 400, b"1" * 5_000, b"-0", b"null", b"true", b'"x"', b"[]", b"{}", b'""'),
    *(b'"http://[bad"', b'"http://a:1@b:2"', b'"\\u001b[2J"', b'"NaN"', b'"-Infinity"', b"9223372036854775808"),
)
_FOREIGN: tuple[Any, ...] = (
    *(None, True, -1, 2**63, 10**30, 1e308, "x", "NaN", "http://[bad", "\x1b[2J\u202e", "", [], {}, [None], {"x": []}),
)


@cache
def recorded(load_manager: str) -> dict[str, Any]:
    """`brokers`, `answers` (path, status, body) and `nodes` (path -> content)."""
    content = (RECORDED / f"documents-{load_manager}.json.zst").read_bytes()
    document: dict[str, Any] = json.loads(zstandard.ZstdDecompressor().decompress(content))
    return document


@cache
def answers(ending: str) -> tuple[bytes, ...]:
    """Bodies of the recorded answers of all load managers whose path ends so."""
    found = (answer for manager in LOAD_MANAGERS for answer in recorded(manager)["answers"])
    return tuple(sorted({answer["body"].encode() for answer in found if answer["path"].endswith(ending)}))


@cache
def nodes(beginning: str) -> tuple[bytes, ...]:
    """Contents of the recorded ZooKeeper nodes of all load managers whose path begins so."""
    found = (item for manager in LOAD_MANAGERS for item in recorded(manager)["nodes"].items())
    return tuple(sorted({content.encode() for path, content in found if path.startswith(beginning)}))


@st.composite
def mutated(draw: st.DrawFn, seeds: tuple[bytes, ...]) -> bytes:
    """One of the documents, with something cut out of it, put into it, or put in the place of a value."""
    body = draw(st.sampled_from(seeds))
    kind = draw(st.sampled_from(("bytes", "value", "key", "cut")))
    if kind == "bytes":
        begin = draw(st.integers(0, len(body)))
        end = draw(st.integers(begin, min(len(body), begin + 20)))
        return body[:begin] + draw(st.sampled_from(_HOSTILE) | st.binary(max_size=20)) + body[end:]
    if kind == "cut":
        return body[: draw(st.integers(0, len(body)))]
    try:
        document = json.loads(body)
    except ValueError:
        return draw(st.sampled_from(_HOSTILE))
    return json.dumps(_changed(draw, document, kind), ensure_ascii=draw(st.booleans())).encode()


def _changed(draw: st.DrawFn, value: Any, kind: str) -> Any:
    """The value with one thing somewhere in it replaced."""
    if not isinstance(value, dict | list) or not value or draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from(_FOREIGN))
    if isinstance(value, list):
        index = draw(st.integers(0, len(value) - 1))
        return [_changed(draw, entry, kind) if index == at else entry for at, entry in enumerate(value)]
    key = draw(st.sampled_from(sorted(value)))
    if kind == "key" and draw(st.booleans()):
        return {str(draw(st.sampled_from(_FOREIGN))) if key == name else name: entry for name, entry in value.items()}
    return value | {key: _changed(draw, value[key], kind)}
