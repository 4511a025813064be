"""Checks that a ledger still holds what was written to it: its event chain, rows, plans and triggers."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain as concatenated
from typing import Any, Final

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from pulsar_advisor.execution.chain import START, ChainHead, chained, row_hash
from pulsar_advisor.execution.ledger import Ledger
from pulsar_advisor.execution.ledger_tables import (
    Approval,
    Base,
    Event,
    PlanRecord,
    PlanSummary,
    Proposal,
    Run,
    Seal,
    StepRecord,
    Verification,
    VerifiedBroker,
    VerifiedBundle,
)
from pulsar_advisor.execution.ledger_triggers import (
    TABLES_SINCE_0005,
    TABLES_SINCE_0006,
    TABLES_SINCE_0007,
    Trigger,
    triggers,
)
from pulsar_advisor.execution.plan_summary import summary_values
from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.model.plan import digest_of, load_plan
from pulsar_advisor.model.some_of import count

AUDIT_RESULT_SCHEMA: Final = "pulsar-advisor/audit-result/1"

_EMPTY: Final = ChainHead(0, START)

_ROWS: Final[tuple[type[Base], ...]] = (
    PlanRecord,
    Proposal,
    Approval,
    Run,
    StepRecord,
    Verification,
    VerifiedBundle,
    VerifiedBroker,
    Seal,
)
"""The tables whose rows are named in events."""


@dataclass(frozen=True)
class AuditResult:
    """The findings of an audit. Without findings, the ledger is as it was written, up to `head`, as far as it shows."""

    head: ChainHead
    findings: tuple[str, ...]
    known: tuple[ChainHead, ...]
    """The heads that it was compared with, oldest first."""

    @property
    def compared(self) -> str:
        """What the known heads let the audit exclude."""
        if not self.known:
            return (
                "no head of this ledger is known that was kept elsewhere (--heads, --head), so this can't exclude that "
                "everything was wiped, that an older copy was put back, or that the whole chain was written anew"
            )
        return f"compared with {count(len(self.known), 'head')} kept elsewhere, the newest {self.known[-1]}"

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
            "known_heads": len(self.known),
            "newest_known_head": str(self.known[-1]) if self.known else None,
        }


def audit(ledger: Ledger, known: Collection[ChainHead] = ()) -> AuditResult:
    """Find edits, removals and reordering, and events and rows that contradict each other.

    The `known` heads were recorded earlier, in a report or elsewhere (`heads`). They reveal that the end of the chain
    was cut off or the whole chain rewritten, which the database alone can't show. All of them count: a chain that was
    written anew has a newest head, too.
    """
    known = sorted(known, key=lambda head: head.event)
    with ledger.reading() as session:
        events = session.scalars(select(Event).order_by(Event.id)).all()
        rows = [row for table in _ROWS for row in session.scalars(select(table))]
        findings = tuple(
            concatenated(
                _broken_links(events),
                _contradictions(events, rows),
                _changed_plans(rows),
                _changed_summaries(session, rows),
                _missing_triggers(session),
                _not_reached(events, known),
            )
        )
        head = ChainHead(events[-1].id, events[-1].chain) if events else _EMPTY
    return AuditResult(head, findings, tuple(known))


def why_unproven(ledger: Ledger, approval: Approval) -> str | None:
    """What breaks the chain from an approved plan's proposals by its approval to the ledger's end; None if it holds.

    A row that was put in, or changed, behind the advisor's back has no event, or one with another hash.
    """
    with ledger.reading() as session:
        of_plan = select(Proposal).where(Proposal.digest == approval.digest)
        record = session.get_one(PlanRecord, approval.digest)
        rows: list[Base] = [record, *session.scalars(of_plan), session.get_one(Approval, approval.id)]
        first = select(func.min(Event.id)).where(Event.digest == approval.digest).scalar_subquery()
        before = session.scalars(select(Event).where(Event.id < first).order_by(Event.id.desc()).limit(1)).one_or_none()
        events = session.scalars(select(Event).where(Event.id >= first).order_by(Event.id)).all()
        found = concatenated(
            () if len(rows) > 2 else (f"{approval.digest} was never proposed",),
            _broken_links(events, ChainHead(before.id, before.chain) if before else _EMPTY),
            _changed_plans([record]),
            _unlike_their_events(rows, _noted(events)),
        )
        return next(found, None)


def _broken_links(events: Sequence[Event], after: ChainHead = _EMPTY) -> Iterator[str]:
    """Events that don't follow the one before. Gaps that the chain spans date from before the chain existed."""
    previous, number = after.chain, after.event
    for event in events:
        if chained(previous, event.hashed_columns) != event.chain:
            if event.id != number + 1:
                yield f"event {number + 1} is missing: the next one there is has number {event.id}"
            else:
                yield f"event {event.id} ('{event.kind}') was changed, moved or put in: its chain hash is another"
        previous, number = event.chain, event.id


def _contradictions(events: Sequence[Event], rows: list[Base]) -> Iterator[str]:
    """Rows that differ from what the last event that wrote them left."""
    for event in events:
        if _rows_of(event) is None:
            yield f"event {event.id} does not say which rows it wrote: '{event.rows[:40]}'"
    noted = _noted(events)
    yield from _unlike_their_events(rows, noted)
    there = {row.name for row in rows}
    for name, (_, number) in noted.items():
        if name not in there:
            yield f"{name}, which event {number} wrote, was removed"


def _rows_of(event: Event) -> dict[str, str] | None:
    """The rows that an event wrote, each with its hash afterwards; None if it can't be read."""
    try:
        return dict(json.loads(event.rows))
    except (ValueError, TypeError):
        return None


def _noted(events: Sequence[Event]) -> dict[str, tuple[str, int]]:
    """Each row that events wrote -> its hash after the last of them, and the number of that event."""
    return {name: (digest, event.id) for event in events for name, digest in (_rows_of(event) or {}).items()}


def _unlike_their_events(rows: Sequence[Base], noted: Mapping[str, tuple[str, int]]) -> Iterator[str]:
    for row in rows:
        digest, number = noted.get(row.name, ("", 0))
        if not number:
            yield f"{row.name} was added by no event"
        elif row_hash(row.hashed_columns) != digest:
            yield f"{row.name} is not as event {number} left it"


def _changed_plans(rows: Sequence[Base]) -> Iterator[str]:
    for row in rows:
        if isinstance(row, PlanRecord):
            try:
                found = digest_of(load_plan(row.document.encode()))
            except AdvisorError as error:
                found = str(error)
            if found != row.digest:
                yield f"{row.name} holds another document: {found}"


def _changed_summaries(session: Session, rows: list[Base]) -> Iterator[str]:
    """Summaries that say something else than their plan, which lists would show."""
    summaries = {summary.digest: summary for summary in session.scalars(select(PlanSummary))}
    for row in rows:
        if isinstance(row, PlanRecord):
            summary = summaries.pop(row.digest, None)
            expected = {"cluster": row.cluster, "snapshot": row.snapshot, **summary_values(row.document)}
            if summary is None:
                yield f"{row.name} has no summary"
            elif any(getattr(summary, column) != value for column, value in expected.items()):
                yield f"{summary.name} is not what its plan says"
    for summary in summaries.values():
        yield f"{summary.name} is of no plan"


def _missing_triggers(session: Session) -> Iterator[str]:
    sqlite = session.get_bind().dialect.name == "sqlite"
    if sqlite:
        query = "SELECT name, sql AS how FROM sqlite_master WHERE type = 'trigger'"
    else:
        query = "SELECT tgname AS name, tgenabled::text AS how FROM pg_trigger WHERE NOT tgisinternal"
    found = {row.name: row.how for row in session.execute(text(query))}

    def exists(trigger: Trigger) -> bool:
        return found.get(trigger.name) == (trigger.create("sqlite") if sqlite else "O")

    for table in (*TABLES_SINCE_0005, *TABLES_SINCE_0006, *TABLES_SINCE_0007):
        for trigger in triggers(table, "sqlite" if sqlite else "postgresql"):
            if not exists(trigger):
                yield f"the trigger {trigger.name} was removed, disabled or changed"


def _not_reached(events: Sequence[Event], known: Sequence[ChainHead]) -> Iterator[str]:
    """The first of the known heads that the ledger doesn't hold."""
    chains = {0: START} | {event.id: event.chain for event in events}
    for head in known:
        if head.event not in chains:
            yield f"event {head.event} of a known head is not there: the ledger ends with event {max(chains)}"
            return
        if chains[head.event] != head.chain:
            yield f"event {head.event} is not the one of a known head: the chain was written anew"
            return
