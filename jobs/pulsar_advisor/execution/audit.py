"""Checks that a ledger still holds what was written to it: its event chain, rows, plans and triggers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain as concatenated
from typing import Any, Final

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from pulsar_advisor.execution.chain import START, ChainHead, chained, row_hash
from pulsar_advisor.execution.ledger import Ledger
from pulsar_advisor.execution.ledger_tables import (
    Approval,
    Base,
    Event,
    PlanRecord,
    Proposal,
    Run,
    StepRecord,
    Verification,
    VerifiedBroker,
    VerifiedBundle,
)
from pulsar_advisor.execution.ledger_triggers import TABLES_SINCE_0005, TABLES_SINCE_0006, Trigger, triggers
from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.model.plan import digest_of, load_plan

AUDIT_RESULT_SCHEMA: Final = "pulsar-advisor/audit-result/1"

_ROWS: Final[tuple[type[Base], ...]] = (
    PlanRecord,
    Proposal,
    Approval,
    Run,
    StepRecord,
    Verification,
    VerifiedBundle,
    VerifiedBroker,
)
"""The tables whose rows are named in events."""


@dataclass(frozen=True)
class AuditResult:
    """The findings of an audit. Without findings, the ledger is as it was written, up to `head`."""

    head: ChainHead
    findings: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """0: as written. 5: deviates."""
        return 5 if self.findings else 0

    def as_document(self) -> dict[str, Any]:
        """The result as JSON data (`docs/formats.md`)."""
        return {
            "schema": AUDIT_RESULT_SCHEMA,
            "intact": not self.findings,
            "head": str(self.head),
            "findings": list(self.findings),
        }


def audit(ledger: Ledger, known_head: ChainHead | None = None) -> AuditResult:
    """Find edits, removals and reordering, and events and rows that contradict each other.

    `known_head` was recorded earlier, in a report or elsewhere. It reveals that the end of the chain was cut off or the
    whole chain rewritten, which the database alone can't show.
    """
    with ledger.reading() as session:
        events = session.scalars(select(Event).order_by(Event.id)).all()
        rows = [row for table in _ROWS for row in session.scalars(select(table))]
        findings = tuple(
            concatenated(
                _broken_links(events),
                _contradictions(events, rows),
                _changed_plans(rows),
                _missing_triggers(session),
                _not_reached(events, known_head),
            )
        )
        head = ChainHead(events[-1].id, events[-1].chain) if events else ChainHead(0, START)
    return AuditResult(head, findings)


def _broken_links(events: Sequence[Event]) -> Iterator[str]:
    """Events that don't follow the one before. Gaps that the chain spans date from before the chain existed."""
    previous, number = START, 0
    for event in events:
        if chained(previous, event.hashed_columns) != event.chain:
            if event.id != number + 1:
                yield f"event {number + 1} is missing: the next one there is has number {event.id}"
            else:
                yield f"event {event.id} ('{event.kind}') was changed, moved or put in: its chain hash is another"
        previous, number = event.chain, event.id


def _contradictions(events: Sequence[Event], rows: list[Base]) -> Iterator[str]:
    """Rows that differ from what the last event that wrote them left."""
    noted: dict[str, tuple[str, int]] = {}
    for event in events:
        try:
            noted |= {name: (digest, event.id) for name, digest in json.loads(event.rows).items()}
        except (ValueError, AttributeError):
            yield f"event {event.id} does not say which rows it wrote: '{event.rows[:40]}'"
    for row in rows:
        digest, number = noted.pop(row.name, ("", 0))
        if not number:
            yield f"{row.name} was added by no event"
        elif row_hash(row.hashed_columns) != digest:
            yield f"{row.name} is not as event {number} left it"
    for name, (_, number) in noted.items():
        yield f"{name}, which event {number} wrote, was removed"


def _changed_plans(rows: list[Base]) -> Iterator[str]:
    for row in rows:
        if isinstance(row, PlanRecord):
            try:
                found = digest_of(load_plan(row.document.encode()))
            except AdvisorError as error:
                found = str(error)
            if found != row.digest:
                yield f"{row.name} holds another document: {found}"


def _missing_triggers(session: Session) -> Iterator[str]:
    sqlite = session.get_bind().dialect.name == "sqlite"
    if sqlite:
        query = "SELECT name, sql AS how FROM sqlite_master WHERE type = 'trigger'"
    else:
        query = "SELECT tgname AS name, tgenabled::text AS how FROM pg_trigger WHERE NOT tgisinternal"
    found = {row.name: row.how for row in session.execute(text(query))}

    def exists(trigger: Trigger) -> bool:
        return found.get(trigger.name) == (trigger.create("sqlite") if sqlite else "O")

    for table in (*TABLES_SINCE_0005, *TABLES_SINCE_0006):
        for trigger in triggers(table, "sqlite" if sqlite else "postgresql"):
            if not exists(trigger):
                yield f"the trigger {trigger.name} was removed, disabled or changed"


def _not_reached(events: Sequence[Event], known: ChainHead | None) -> Iterator[str]:
    if known is None or known.event == 0:  # the head of an empty ledger
        return
    chains = {event.id: event.chain for event in events}
    if known.event not in chains:
        yield f"event {known.event} of the known head is not there: the ledger ends with event {max(chains, default=0)}"
    elif chains[known.event] != known.chain:
        yield f"event {known.event} is not the one of the known head: the chain was written anew"
