"""The runs of plans: listing them, and ending them from outside the process that carries them out.

That process writes to its run as a `HeldRun`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from sqlalchemy import ColumnElement, or_, select, update
from sqlalchemy.orm import Session

from pulsar_advisor.documents.runs import RunState
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.tables import UNFINISHED, Event, Hold, Run
from pulsar_advisor.execution.person import Person
from pulsar_advisor.storage.process import Process, has_ended

PARKED_AT_MS: Final = 0
"""The heartbeat of an active run that no process holds."""

STEP_SENT: Final = "step sent"
"""Kind of event: one call of a step is about to be sent."""
NOT_DRAINED: Final = "not drained"
DRAINED: Final = "drained"
"""Kinds of events: what the last look at the brokers that a finished plan drains found."""

LEASE_MS: Final = 180_000
"""`--resume` may take over a run whose holder hasn't renewed its lease for this long. Longer than the longest call: an
unload may take a broker 60 s."""


def kind_of_end(state: RunState) -> str:
    """The kind of the event that ends a run in this state."""
    return f"run {state}"


def run_by_id(ledger: Ledger, run_id: int) -> Run:
    """The run with this number."""
    with ledger.reading() as session:
        return session.get_one(Run, run_id)


def run_if_any(ledger: Ledger, number: int) -> Run | None:
    """The run with this number, or None."""
    with ledger.reading() as session:
        return session.get(Run, number)


def runs_of_plan(ledger: Ledger, digest: str) -> Sequence[Run]:
    """All runs of a plan, oldest first."""
    return ledger.all(select(Run).where(Run.digest == digest).order_by(Run.id))


def unfinished_run(runs: Sequence[Run]) -> Run | None:
    """The run among a plan's that is active or stopped; None without one."""
    return next((run for run in reversed(runs) if run.is_unfinished), None)


def runs_since(ledger: Ledger, cluster_name: str, ended_after_ms: int) -> Sequence[Run]:
    """The runs on a cluster (Pulsar's own name) that ended after a moment, or haven't, oldest first."""
    recent = or_(Run.ended_at_ms.is_(None), Run.ended_at_ms > ended_after_ms)
    return ledger.all(select(Run).where(Run.cluster_name == cluster_name, recent).order_by(Run.id))


def plans_with_runs(ledger: Ledger, digests: Iterable[str]) -> frozenset[str]:
    """The digests whose plan has had a run."""
    return frozenset(ledger.all(select(Run.digest).where(Run.digest.in_(digests)).distinct()))


def is_held(ledger: Ledger, run: Run) -> bool:
    """Whether the process that holds a run may still be working on it."""
    return run.state == "active" and may_work(holder_of(run), run.heartbeat_at_ms, ledger.now_ms())


def holder_of(run: Run) -> Process:
    """The process that holds a run, or was the last to hold it."""
    return Process(run.host, run.pid, run.process_namespace, run.process_began)


def may_work(holder: Process, heartbeat_at_ms: int, now_ms: int) -> bool:
    """Whether the holder of an active run may still be working on it."""
    return now_ms - heartbeat_at_ms <= LEASE_MS and not has_ended(holder)


def is_parked(run: Run, hold: Hold | None = None) -> bool:
    """Whether an active run waits without a process: as whoever had this `hold` parked it, if one is given."""
    return run.state == "active" and run.heartbeat_at_ms == PARKED_AT_MS and hold in (None, run.hold)


def abort_runs(ledger: Ledger, digest: str, person: Person, hold: Hold | None = None) -> Sequence[Run]:
    """End every active or stopped run of a plan; a process that holds one stops before its next call.

    With a `hold`, only the run with that hold is ended, and only if no process has taken it over since.
    """
    held = () if hold is None else (Run.id == hold[0], Run.lease == hold[1])
    which = (Run.digest == digest, Run.state.in_(UNFINISHED), *held)
    with ledger.writing() as session:
        return end_runs(ledger, session, "aborted", f"aborted by {person.name}", f"by {person}", *which)


def end_runs(
    ledger: Ledger, session: Session, state: RunState, sentence: str, detail: str, *which: ColumnElement[bool]
) -> Sequence[Run]:
    """End these runs in a state, within a write transaction; `sentence` is the runs', `detail` the events'."""
    values = {"state": state, "ended_at_ms": ledger.now_ms(), "sentence": sentence}
    ended = session.scalars(update(Run).where(*which).values(**values).returning(Run)).all()
    for run in ended:
        ledger.add_event(session, run.digest, kind_of_end(state), detail, [run], run.id)
    return ended


def record_drained(ledger: Ledger, digest: str, run: int, why_not: str) -> None:
    """Record why brokers that a run of a plan drained may not be stopped, though its steps are done.

    Without a reason, that they may be after all, if the last look found one.
    """
    looks = select(Event.kind).where(Event.run_id == run, Event.kind.in_((NOT_DRAINED, DRAINED)))
    with ledger.writing() as session:
        if why_not or session.scalar(looks.order_by(Event.id.desc()).limit(1)) == NOT_DRAINED:
            ledger.add_event(session, digest, NOT_DRAINED if why_not else DRAINED, why_not, run=run)


def end_unheld_run(ledger: Ledger, digest: str, why: str, hold: Hold | None = None) -> None:
    """Stop a plan's active run that no process continues: it lost its own, or is parked as `is_parked` says."""
    for run in runs_of_plan(ledger, digest):
        if run.state != "active" or is_held(ledger, run) or (is_parked(run) and not is_parked(run, hold)):
            continue
        with ledger.writing() as session:
            as_seen = (Run.id == run.id, Run.state == "active", Run.lease == run.lease)
            is_silent = Run.heartbeat_at_ms == run.heartbeat_at_ms
            end_runs(ledger, session, "stopped", why, why, *as_seen, is_silent)
