"""The hash chain of the ledger's events, and the hashes of the rows they wrote; `docs/formats.md` has the definition.

Anyone with write access to the database can also compute a new chain; only a head kept elsewhere reveals that.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

import msgspec

from pulsar_advisor.model.canonical_json import canonical_json
from pulsar_advisor.model.errors import UsageError

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
    return _sha256({column: value for column, value in row.items() if value is not None})


def chained(previous: str, event: Mapping[str, Value]) -> str:
    """Chain hash (hex) of an event after one with chain hash `previous`; `event` is its row without the hash."""
    return _sha256({"previous": previous, "event": row_hash(event)})


def _sha256(document: Mapping[str, Value]) -> str:
    return hashlib.sha256(_canonical(dict(document))).hexdigest()


def _canonical(document: dict[str, Value]) -> bytes:
    """RFC 8785. An audit asks for a few million of these, and but for numbers with a fraction msgspec writes the same.

    Names of columns are ASCII. An integer that has no canonical form has one here, and so a hash that nothing matches.
    """
    if float in map(type, document.values()):
        return canonical_json(document)
    return msgspec.json.encode(document, order="sorted")
