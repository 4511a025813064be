"""A head of a ledger's chain, kept where the ledger's owner can't reach it."""

from __future__ import annotations

from typing import ClassVar

from pulsar_advisor.documents.document import Document


class LedgerHead(Document):
    """The last event of a ledger, and the hash of its chain up to there."""

    SCHEMA: ClassVar = "pulsar-advisor/ledger-head/1"
    MADE_BY: ClassVar = "apply"

    head: str
    """`NUMBER:HASH`, as `audit verify --head` takes it."""
    kept_at: str
    """ISO 8601, UTC."""
