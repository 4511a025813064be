"""Checks that a ledger still holds what was written to it: its event chain, rows, plans and triggers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain as concatenated
from typing import Any, Final

from sqlalchemy import Row, func, select, text
from sqlalchemy.orm import Session

from pulsar_advisor.documents.audit_result import AuditResult
from pulsar_advisor.execution.ledger.chain import ChainHead
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.plan_summary import summary_of
from pulsar_advisor.execution.ledger.tables import (
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
from pulsar_advisor.execution.ledger.trail import EMPTY, Trail, names_written, stored_rows
from pulsar_advisor.execution.ledger.triggers import POSTGRESQL_BODY, TABLES, Trigger, triggers
from pulsar_advisor.model.plans.sealed import is_sealed_as

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


def audit(ledger: Ledger, known: Collection[ChainHead] = ()) -> AuditResult:
    """Find edits, removals and reordering, and events and rows that contradict each other.

    The `known` heads were recorded earlier, in a report or elsewhere (`heads`). They reveal a chain whose end was cut
    off or that was rewritten as a whole, which the database alone can't show. All of them are checked, since the newest
    may be that of the rewritten chain.
    """
    known = sorted(known, key=lambda head: head.event)
    with ledger.reading() as session:
        trail = Trail(session, marks={head.event for head in known})
        findings = tuple(
            concatenated(
                trail.broken,
                *(trail.unlike(stored_rows(session, table)) for table in _ROWS),
                trail.unseen(),
                _changed_plans(_plans(session)),
                _changed_summaries(session, _plans(session), trail.newest),
                _missing_triggers(session),
                _not_reached(trail, known),
            )
        )
    return AuditResult(
        intact=not findings,
        head=str(trail.head),
        findings=findings,
        known_heads=len(known),
        newest_known_head=str(known[-1]) if known else None,
    )


def why_unproven(ledger: Ledger, approval: Approval) -> str | None:
    """What breaks the chain from an approved plan's proposals by its approval to the ledger's end; None if it holds.

    A row inserted or changed behind the advisor's back has no event, or one with another hash.
    """
    with ledger.reading() as session:
        of_plan = select(Proposal).where(Proposal.digest == approval.digest)
        record = session.get_one(PlanRecord, approval.digest)
        rows: list[Base] = [record, *session.scalars(of_plan), session.get_one(Approval, approval.id)]
        first = select(func.min(Event.id)).where(Event.digest == approval.digest).scalar_subquery()
        before = session.scalars(select(Event).where(Event.id < first).order_by(Event.id.desc()).limit(1)).one_or_none()
        trail = Trail(session, ChainHead(before.id, before.chain) if before else EMPTY)
        found = concatenated(
            () if len(rows) > 2 else (f"{approval.digest} was never proposed",),
            trail.broken,
            _changed_plans([record]),
            trail.unlike((row.name, row.hash) for row in rows),
            # Whoever removed their own proposal could approve the plan.
            trail.unseen(names_written(session, approval.digest, Proposal)),
        )
        return next(found, None)


def _plans(session: Session) -> Iterator[Row[Any]]:
    """The plans, a few at a time in memory. A document may not be text: SQLite stores any type."""
    plans = select(PlanRecord.__table__).order_by(PlanRecord.digest)
    return iter(session.execute(plans.execution_options(yield_per=50)))


def _changed_plans(records: Iterable[PlanRecord | Row[Any]]) -> Iterator[str]:
    for record in records:
        if not is_sealed_as(str(record.document).encode(), record.digest):
            yield f"plans/{record.digest} holds a document with another digest"


def _changed_summaries(session: Session, records: Iterable[Row[Any]], newest_event: Mapping[str, int]) -> Iterator[str]:
    """Summaries that contradict their plan or its events, so that lists would be wrong."""
    summaries = {summary.digest: summary for summary in session.execute(select(PlanSummary.__table__))}
    for record in records:
        summary = summaries.pop(record.digest, None)
        expected = {
            **{column: getattr(record, column) for column in ("cluster", "snapshot", "recorded_at_ms")},
            **vars(summary_of(str(record.document))),
            "last_event": newest_event.get(record.digest, 0),
        }
        if summary is None:
            yield f"plans/{record.digest} has no summary"
        elif any(getattr(summary, column) != value for column, value in expected.items()):
            yield f"plan_summaries/{summary.digest} is not what its plan and events say"
    for summary in summaries.values():
        yield f"plan_summaries/{summary.digest} belongs to no plan"


def _missing_triggers(session: Session) -> Iterator[str]:
    sqlite = session.get_bind().dialect.name == "sqlite"
    if sqlite:
        query = "SELECT name, sql AS how FROM sqlite_master WHERE type = 'trigger'"
    else:
        query = (
            "SELECT tgname AS name, pg_get_triggerdef(t.oid, true) || ' ' || prosrc AS how "
            "FROM pg_trigger t JOIN pg_proc p ON p.oid = tgfoid "
            "WHERE NOT tgisinternal AND tgenabled = 'O' AND pg_table_is_visible(tgrelid)"
        )
    found = {row.name: row.how for row in session.execute(text(query))}

    def exists(trigger: Trigger) -> bool:
        how = found.get(trigger.name, "")
        if sqlite:
            return bool(how == trigger.create("sqlite"))
        return _words(how) == _words(f"{trigger.create('postgresql')} {POSTGRESQL_BODY}")

    for table in TABLES:
        for trigger in triggers(table, "sqlite" if sqlite else "postgresql"):
            if not exists(trigger):
                yield f"the trigger {trigger.name} was removed, disabled or changed"


def _words(statement: str) -> list[str]:
    """The words of a statement without what PostgreSQL adds when it shows one: casts, and `IN` written as an array."""
    without_casts = re.sub(r"::[a-z]+( varying)?(\[\])?", "", statement.lower())
    return [word for word in re.findall(r"'[^']*'|[\w.]+", without_casts) if word not in ("in", "any", "array")]


def _not_reached(trail: Trail, known: Sequence[ChainHead]) -> Iterator[str]:
    """The first of the known heads that the ledger doesn't hold."""
    for head in known:
        if head.event not in trail.marked:
            yield f"event {head.event} of a known head is missing: the ledger ends with event {trail.head.event}"
            return
        if trail.marked[head.event] != head.chain:
            yield f"event {head.event} is not that of a known head: the chain was rewritten"
            return
