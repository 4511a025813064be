"""The steps of runs: what was sent, and what was observed of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from sqlalchemy import BigInteger, ColumnElement, cast, func, or_, select, update
from sqlalchemy.orm import Session

from pulsar_advisor.documents.runs import StepState
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.tables import OPEN, UNFINISHED, Run, StepRecord
from pulsar_advisor.model.errors import StorageError

_BEFORE: Final[Mapping[StepState, tuple[StepState, ...]]] = {
    "pending": ("sent",),
    "sent": ("pending", *OPEN),
    "confirmed": OPEN,
    "failed": OPEN,
    "unresolved": OPEN,
    "skipped": ("pending",),
}
"""The states from which a step may enter each state."""


def steps_of_run(ledger: Ledger, run_id: int) -> Mapping[str, StepRecord]:
    """The steps of a run by id, in plan order."""
    rows = ledger.all(select(StepRecord).where(StepRecord.run_id == run_id).order_by(StepRecord.id))
    return {row.step_id: row for row in rows}


def open_steps(ledger: Ledger, cluster_name: str, except_of: str = "") -> Sequence[tuple[Run, StepRecord]]:
    """The steps with a call of unknown outcome, each after its run; not of aborted runs, nor of one plan."""
    with ledger.reading() as session:
        rows = session.execute(
            select(Run, StepRecord)
            .join(Run, Run.id == StepRecord.run_id)
            .where(
                Run.cluster_name == cluster_name,
                Run.digest != except_of,
                Run.state.in_(UNFINISHED),
                StepRecord.state.in_(OPEN),
            )
        )
        return [(row.Run, row.StepRecord) for row in rows]


def last_confirmed_at_ms(ledger: Ledger, cluster_name: str, namespace: str, since_ms: int) -> int:
    """When a step on a bundle of this namespace was last confirmed, in any run; 0 if not since a moment."""
    recent = select(Run.id).where(
        Run.cluster_name == cluster_name, or_(Run.ended_at_ms.is_(None), Run.ended_at_ms >= since_ms)
    )
    with ledger.reading() as session:
        last = session.scalar(
            select(func.max(cast(StepRecord.ended_at_ms, BigInteger))).where(
                StepRecord.run_id.in_(recent),
                StepRecord.state == "confirmed",
                StepRecord.bundle.startswith(f"{namespace}/", autoescape=True),
            )
        )
        return last or 0


def confirmed_steps(ledger: Ledger, cluster_name: str, from_ms: int, until_ms: int) -> Sequence[tuple[StepRecord, str]]:
    """The confirmed steps of any run that were sent in a period, in order, each with its plan's digest."""
    with ledger.reading() as session:
        rows = session.execute(
            select(StepRecord, Run.digest)
            .join(Run, Run.id == StepRecord.run_id)
            .where(
                Run.cluster_name == cluster_name,
                StepRecord.state == "confirmed",
                StepRecord.sent_at_ms >= from_ms,
                StepRecord.sent_at_ms < until_ms,
            )
            .order_by(StepRecord.sent_at_ms, StepRecord.id)
        )
        return [(row.StepRecord, row.digest) for row in rows]


StepValues = Mapping[str, ColumnElement[int] | str | int]
"""What is recorded of a step, by column."""


def change_step(session: Session, run_id: int, step_id: str, state: StepState, values: StepValues) -> StepRecord:
    """Let a step enter a state, and return its row. Raises `StorageError` if that can't follow its present state."""
    changed = session.execute(
        update(StepRecord)
        .where(StepRecord.run_id == run_id, StepRecord.step_id == step_id, StepRecord.state.in_(_BEFORE[state]))
        .values(state=state, **values)
        .returning(StepRecord)
    ).scalar_one_or_none()
    if changed is None:
        raise StorageError(f"the ledger does not let step {step_id} of run {run_id} become '{state}'")
    return changed


def is_left(records: Mapping[str, StepRecord]) -> bool:
    """Whether a run has a step left to send, or a call to look at."""
    return has_open_call(records) or any(record.state == "pending" for record in records.values())


def has_open_call(records: Mapping[str, StepRecord]) -> bool:
    """Whether a run has a call to look at, as its outcome isn't known."""
    return any(record.is_open for record in records.values())
