"""The hash chain of the ledger's events, and the hashes of the rows they wrote; `docs/formats.md` has the definition.

Anyone with write access to the database can also compute a new chain; only a head kept elsewhere reveals that.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

import msgspec

from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.plans.canonical_json import canonical_json

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
        found = re.fullmatch(r"(\d+):([0-9a-f]{64})", text.strip())
        if found is None:
            raise UsageError(f"'{text}' is not the head of a ledger; expected NUMBER:HASH as a report shows it")
        return cls(int(found[1]), found[2])


def row_hash(row: Mapping[str, Value]) -> str:
    """SHA-256 (hex) of a row by column name. It omits NULLs, so that a column added later doesn't change the hash."""
    columns = {column: value for column, value in row.items() if value is not None}
    # But for numbers with a fraction msgspec writes what RFC 8785 demands, as names of columns are ASCII; an integer
    # without a canonical form gets a hash that nothing matches.
    content = canonical_json(columns) if float in map(type, columns.values()) else _plain_json(columns)
    return _sha256(content)


def hash_of_rows(columns: Sequence[str]) -> Callable[[Sequence[Value]], str]:
    """The `row_hash` of rows that all have these columns, by their values in the columns' order."""
    # An audit asks for a few million of these: as a struct a row is written in less than half of a mapping's time.
    struct = msgspec.defstruct("Row", [(column, Value, None) for column in columns], omit_defaults=True, gc=False)

    def hashed(values: Sequence[Value]) -> str:
        if float in map(type, values):
            return row_hash(dict(zip(columns, values, strict=True)))
        return _sha256(_plain_json(struct(*values)))

    return hashed


class _Link(msgspec.Struct, gc=False):
    event: str
    previous: str


def chained(previous: str, event: str) -> str:
    """Chain hash (hex) of an event after one with chain hash `previous`; `event`: the hash of its row without that."""
    return _sha256(_plain_json(_Link(event, previous)))


_plain_json: Final = msgspec.json.Encoder(order="sorted").encode


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
