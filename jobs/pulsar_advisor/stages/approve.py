"""`approve`: records a named person's consent to exactly one plan in the ledger."""

from __future__ import annotations

from pulsar_advisor.execution.consent.approval import approve as run

__all__ = ["run"]
