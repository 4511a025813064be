"""Pauses of runs, which a person or a resumption lifts; and of rolls, recorded for their plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import ColumnElement, Row, select
from sqlalchemy.orm import Session

from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.tables import Event, Run
from pulsar_advisor.execution.person import Person

RESUMED: Final = "run resumed"
"""Kind of event of a resumption, which lifts the pause."""
_PAUSE: Final = "pause requested"
PAUSE_LIFTED: Final = "pause lifted"

_TURNS: Final = (
    select(Event.id, Event.kind, Event.detail)
    .where(Event.kind.in_((_PAUSE, PAUSE_LIFTED, RESUMED)))
    .order_by(Event.id.desc())
    .limit(1)
)
"""The newest such event; built once, since waiting runs query it every second."""


def request_pause(ledger: Ledger, digest: str, person: Person) -> Sequence[Run]:
    """Ask the holders of a plan's active runs to end them after the steps in flight; return those runs."""
    with ledger.writing() as session:
        active = session.scalars(select(Run).where(Run.digest == digest, Run.state == "active")).all()
        for run in active:
            ledger.add_event(session, digest, _PAUSE, f"by {person}", run=run.id)
        return active


def lift_pause(ledger: Ledger, digest: str, person: Person) -> Sequence[Run]:
    """Let the paused runs of a plan go on; return them."""
    with ledger.writing() as session:
        active = session.scalars(select(Run).where(Run.digest == digest, Run.state == "active")).all()
        paused = [run for run in active if pause_of_run(session, run.id) is not None]
        for run in paused:
            ledger.add_event(session, digest, PAUSE_LIFTED, f"by {person}", run=run.id)
        return paused


def request_pause_of_plan(ledger: Ledger, digest: str, person: Person) -> None:
    """Ask a roll to begin no further run, and to end the current one after its steps in flight."""
    with ledger.writing() as session:
        ledger.add_event(session, digest, _PAUSE, f"by {person}")


def lift_pause_of_plan(ledger: Ledger, digest: str, person: Person) -> None:
    """Lift such a pause, if one is in force."""
    with ledger.writing() as session:
        if pause_of_plan(session, digest) is not None:
            ledger.add_event(session, digest, PAUSE_LIFTED, f"by {person}")


def plan_pause_requested(ledger: Ledger, digest: str) -> str | None:
    """As `pause_of_plan`."""
    with ledger.reading() as session:
        return pause_of_plan(session, digest)


def pause_of_plan(session: Session, digest: str) -> str | None:
    """Who asked for a pause of the plan, in words; None without a request."""
    return _in_words(_in_force(session, Event.digest == digest, Event.run_id.is_(None)))


def pause_requested(ledger: Ledger, run_id: int) -> str | None:
    """Who requested a run's pause, in words; None without a request, or once a person or a resumption lifted it."""
    with ledger.reading() as session:
        return _in_words(_of_run(session, run_id))


def request_in_force(ledger: Ledger, run_id: int) -> int | None:
    """As `pause_of_run`."""
    with ledger.reading() as session:
        return pause_of_run(session, run_id)


def pause_of_run(session: Session, run_id: int) -> int | None:
    """The event that requested a run's pause: the same person may request a second one. None as `pause_requested`."""
    pause = _of_run(session, run_id)
    return None if pause is None else pause.id


def _of_run(session: Session, run_id: int) -> Row[int, str, str] | None:
    # The index by digest finds a plan's events: by the run alone, each query would read all of the ledger's.
    digest = select(Run.digest).where(Run.id == run_id).scalar_subquery()
    return _in_force(session, Event.digest == digest, Event.run_id == run_id)


def _in_force(session: Session, *of: ColumnElement[bool]) -> Row[int, str, str] | None:
    """The event that requested the pause in force; None if there is none."""
    last = session.execute(_TURNS.where(*of)).first()
    return last if last is not None and last.kind == _PAUSE else None


def _in_words(pause: Row[int, str, str] | None) -> str | None:
    return None if pause is None else f"paused {pause.detail}"
