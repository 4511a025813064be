"""The hash chain of the ledger's events, and the hashes of the rows they wrote; `docs/formats.md` has the definition.

Anyone with write access to the database can also compute a new chain; only a head kept elsewhere reveals that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Self

import msgspec

from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.plans.canonical_json import CanonicalizationError, canonical_json

Value = str | int | float | bool | None

START: Final = ""
"""The chain hash before the first event."""


@dataclass(frozen=True)
class ChainHead:
    """The last event of a ledger at some moment: its number and its chain hash. As text: `<number>:<hash>`."""

    event: int
    chain: str

    def __str__(self) -> str:
        return f"{self.event}:{self.chain}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a head. Raises `UsageError` for anything else."""
        if text.strip() == str(cls(0, START)):
            return cls(0, START)
        found = re.fullmatch(r"([0-9]{1,19}):([0-9a-f]{64})", text.strip())
        if found is None:
            raise UsageError(f"'{text}' is not the head of a ledger; expected NUMBER:HASH as a report shows it")
        return cls(int(found[1]), found[2])


def row_hash(row: Mapping[str, Value]) -> str:
    """SHA-256 (hex) of a row by column name. It omits NULLs, so that a column added later doesn't change the hash."""
    columns = {column: value for column, value in row.items() if value is not None}
    # Except for fractions, msgspec writes what RFC 8785 demands, because column names are ASCII. An integer without a
    # canonical form gets a hash that nothing matches.
    content = canonical_json(columns) if float in map(type, columns.values()) else _plain_json(columns)
    return sha256(content).hexdigest()


def _hash_if_any(row: Mapping[str, Value]) -> str:
    try:
        return row_hash(row)
    except CanonicalizationError:  # such as an infinite fraction, of which no release has recorded a hash
        return ""


def hashes_of(columns: Sequence[str], fractions: bool) -> Callable[[Iterable[Sequence[Value]]], list[str]]:
    """The `row_hash`es of rows that all have these columns, by their values in the columns' order; empty without one.

    `fractions`: whether a column may hold numbers with a fraction.
    """
    if fractions:
        return lambda rows: [_hash_if_any(dict(zip(columns, values, strict=True))) for values in rows]
    # An audit computes a few million of these. Encoding a row as a struct takes less than half as long as a mapping,
    # and a function call per row would take as long as the hash.
    struct = msgspec.defstruct("Row", [(column, Value, None) for column in columns], omit_defaults=True, gc=False)
    return lambda rows: [sha256(_plain_json(struct(*values))).hexdigest() for values in rows]


class _Link(msgspec.Struct, gc=False):
    event: str
    previous: str


def chained(previous: str, event: str) -> str:
    """Chain hash (hex) of an event after one with chain hash `previous`; `event`: the hash of its row without that."""
    return sha256(_plain_json(_Link(event, previous))).hexdigest()


_plain_json: Final = msgspec.json.Encoder(order="sorted").encode
