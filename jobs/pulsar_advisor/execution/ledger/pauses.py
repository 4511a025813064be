"""Pauses of a run: requested and lifted by a person, or lifted by a resumption."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.tables import Event, Run
from pulsar_advisor.execution.person import Person

RESUMED: Final = "run resumed"
"""Kind of the event of a resumption that lifts the pause."""
_PAUSE: Final = "pause requested"
_PAUSE_LIFTED: Final = "pause lifted"


def request_pause(ledger: Ledger, digest: str, person: Person) -> Sequence[Run]:
    """Ask the holders of a plan's active runs to end them after the steps in flight; return those runs."""
    with ledger.writing() as session:
        active = session.scalars(select(Run).where(Run.digest == digest, Run.state == "active")).all()
        for run in active:
            ledger.add_event(session, digest, _PAUSE, f"by {person.name} ({person.source})", run=run.id)
        return active


def lift_pause(ledger: Ledger, digest: str, person: Person) -> Sequence[Run]:
    """Let the paused runs of a plan go on; return them."""
    with ledger.writing() as session:
        active = session.scalars(select(Run).where(Run.digest == digest, Run.state == "active")).all()
        paused = [run for run in active if _pause_in_force(session, run.id) is not None]
        for run in paused:
            ledger.add_event(session, digest, _PAUSE_LIFTED, f"by {person.name} ({person.source})", run=run.id)
        return paused


def pause_requested(ledger: Ledger, run_id: int) -> str | None:
    """Who requested a pause that hasn't been lifted, by a resumption either, in words; None without a request."""
    with ledger.reading() as session:
        last = _pause_in_force(session, run_id)
        return f"paused {last.detail}" if last is not None else None


def _pause_in_force(session: Session, run_id: int) -> Event | None:
    """The request for a pause that hasn't been lifted."""
    turns = select(Event).where(Event.run_id == run_id, Event.kind.in_((_PAUSE, _PAUSE_LIFTED, RESUMED)))
    last = session.scalars(turns.order_by(Event.id.desc()).limit(1)).one_or_none()
    return last if last is not None and last.kind == _PAUSE else None
