"""The result of `audit verify`: whether a ledger is as it was written."""

from __future__ import annotations

from typing import ClassVar

from pulsar_advisor.documents.document import Document
from pulsar_advisor.model.errors import Deviates
from pulsar_advisor.model.text.reader import reader
from pulsar_advisor.model.text.some_of import count


class AuditResult(Document):
    """The findings of an audit. Without findings, the ledger is as it was written, up to `head`, as far as it shows."""

    SCHEMA: ClassVar = "pulsar-advisor/audit-result/1"
    MADE_BY: ClassVar = "audit verify"

    intact: bool
    head: str
    """The last event, `NUMBER:HASH`."""
    findings: tuple[str, ...]
    known_heads: int = 0
    """How many heads kept elsewhere it was compared with."""
    newest_known_head: str | None = None

    @property
    def compared(self) -> str:
        """What the known heads let the audit exclude."""
        if not self.known_heads:
            return (
                "no head of this ledger is known that was kept elsewhere, so the audit can't exclude that the ledger "
                f"was wiped, replaced by an older copy, or rewritten as a whole: {reader().name_heads}"
            )
        return f"compared with {count(self.known_heads, 'head')} kept elsewhere, the newest {self.newest_known_head}"

    @property
    def exit_code(self) -> int:
        """0: as written. 5: deviates."""
        return 0 if self.intact else Deviates.exit_code
