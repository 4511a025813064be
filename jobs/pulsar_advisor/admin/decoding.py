"""An answer's document and what it says: decoded by type, and nothing of it trusted."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec

from pulsar_advisor.model.errors import ClusterUnreachable

T = TypeVar("T")

_QUOTED = re.compile(r"'[^']*'")
_LONGEST_KEY: Final = 200
"""Characters of a document's key in a message."""


class UnreadableAnswer(ClusterUnreachable):
    """A document arrived but can't be decoded. `error` says where and why, without any value from the document."""

    def __init__(self, url: str, error: str, body: bytes | bytearray) -> None:
        super().__init__(f"{url}: can't decode the response of {len(body)} bytes: {error}")
        self.url = url
        self.error = error
        self.size = len(body)
        self.sha256 = hashlib.sha256(body).hexdigest()


@dataclass(frozen=True)
class Document:
    """An undecoded response body and the address it came from."""

    url: str
    body: bytes | bytearray


def decode(document: Document, decoder: msgspec.json.Decoder[T], part: msgspec.Raw | None = None) -> T:
    """The document (or a part cut out of it) as the decoder's type; fields it doesn't name are never materialised.

    Raises `UnreadableAnswer` about the whole document.
    """
    try:
        return decoder.decode(document.body if part is None else part)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise unreadable(document, error) from error


def decode_once(document: Document, decoder: msgspec.json.Decoder[T]) -> T:
    """As `decode`, but refuses an object with a duplicate key: which of the values counts would be a guess.

    It takes several times as long, so it is for documents whose every figure matters to the advice.
    """
    value = decode(document, decoder)
    try:
        json.loads(bytes(document.body), object_pairs_hook=_refuse_twice)
    except (ValueError, RecursionError) as error:
        raise unreadable(document, error) from error
    return value


def _refuse_twice(members: list[tuple[str, object]]) -> None:
    seen: set[str] = set()
    for name, _ in members:
        if name in seen:
            raise ValueError(f"the key {name[:_LONGEST_KEY]} appears twice")
        seen.add(name)


def unreadable(document: Document, error: Exception) -> UnreadableAnswer:
    """The error for a document that can't be decoded; values are stripped from the decoder's message."""
    return UnreadableAnswer(document.url, _QUOTED.sub("'…'", str(error)), document.body)
