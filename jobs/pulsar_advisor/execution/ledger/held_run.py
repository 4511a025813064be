"""A run that this process holds: started or taken over, kept by a lease, and written to step by step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import Final

from sqlalchemy import ColumnElement, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from pulsar_advisor.documents.runs import RunState, StepState
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.pauses import RESUMED, pause_of_run
from pulsar_advisor.execution.ledger.plans import record_plan
from pulsar_advisor.execution.ledger.rolls import require_no_other_roll
from pulsar_advisor.execution.ledger.runs import (
    LEASE_MS,
    PARKED_AT_MS,
    STEP_SENT,
    end_runs,
    is_held,
    is_parked,
    run_by_id,
)
from pulsar_advisor.execution.ledger.seals import RELEASE
from pulsar_advisor.execution.ledger.steps import StepValues, change_step, steps_of_run
from pulsar_advisor.execution.ledger.tables import UNFINISHED, Approval, Base, Run, StepRecord
from pulsar_advisor.execution.ledger.unfinished import way_to_end, ways
from pulsar_advisor.execution.person import system_user
from pulsar_advisor.model.errors import AdvisorError, Refused, StorageError
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import seal
from pulsar_advisor.storage.lease import repeated
from pulsar_advisor.storage.process import this_process

_RENEW_MS: Final = 15_000
_ONE_ACTIVE: Final = ("runs_one_active_per_cluster", "runs.cluster_name")
"""How PostgreSQL and SQLite name the index that a second active run violates."""


class LeaseLost(AdvisorError):
    """The run was aborted or taken over: this process must not do anything more."""

    exit_code = 5


class HeldRun:
    """A run that this process may write to. Each write renews the lease first and raises `LeaseLost` if it is lost."""

    def __init__(self, ledger: Ledger, run: Run) -> None:
        self._ledger = ledger
        self.id = run.id
        self.digest = run.digest
        self.cluster_name = run.cluster_name
        self.hold = run.hold
        self._approval = run.approval_id
        self._renewed_at_ms = run.heartbeat_at_ms

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """A write transaction that renews the lease first. Raises `LeaseLost`."""
        with self._ledger.writing() as session:
            now_ms = self._ledger.now_ms()
            ours = session.execute(
                update(Run)
                .where(Run.id == self.id, Run.lease == self.hold[1], Run.state == "active")
                .values(heartbeat_at_ms=now_ms)
                .returning(Run.id)
            )
            if ours.scalar_one_or_none() is None:
                raise LeaseLost(f"run {self.id} was aborted or taken over by another process: this one stops")
            yield session
        self._renewed_at_ms = now_ms

    def add_event(
        self, session: Session, kind: str, detail: str, rows: Iterable[Base] = (), step: str | None = None
    ) -> None:
        """Add an event of this run to the chain; `rows` are written with it."""
        self._ledger.add_event(session, self.digest, kind, detail, rows, self.id, step)

    def renew(self) -> None:
        """Renew the lease, unless that was done recently. Raises `LeaseLost`."""
        # A clock that was set back must not stop renewals.
        if abs(self._ledger.now_ms() - self._renewed_at_ms) >= _RENEW_MS:
            self.require()

    def require(self) -> None:
        """Renew the lease now. Raises `LeaseLost`."""
        with self.writing():
            pass

    def is_overtaken(self) -> bool:
        """Whether another process has taken over the run."""
        return run_by_id(self._ledger, self.id).hold != self.hold

    def kept(self) -> AbstractContextManager[None]:
        """Keep the lease until the block ends, even while a call to the cluster or a read of it takes minutes."""
        return repeated(self.renew, _RENEW_MS / 1000)

    def steps(self) -> Mapping[str, StepRecord]:
        """The steps by id, in plan order, as they are now."""
        return dict(self._steps)

    @cached_property
    def _steps(self) -> dict[str, StepRecord]:
        # Read once: while the lease holds, they change here only, and without it nothing more is written or sent.
        return dict(steps_of_run(self._ledger, self.id))

    def sent(self, step_id: str, request: str, topic: str | None) -> None:
        """Record that a call is about to be sent. Raises `Refused` if the run's approval was withdrawn."""
        with self.writing() as session:
            require_not_withdrawn(session, self._approval)
            now_ms = self._ledger.now_ms()
            values: dict[str, ColumnElement[int] | str | int] = {
                "attempts": StepRecord.attempts + 1,
                "sent_at_ms": now_ms,
                "observation": "",
            }
            if topic is not None:
                values["topic"] = topic
            changed = change_step(session, self.id, step_id, "sent", values)
            self.add_event(session, STEP_SENT, request, [changed], step_id)
        self._steps[step_id] = changed

    def conclude(self, step_id: str, state: StepState, observation: str) -> None:
        """Record the result of a step and what was observed."""
        with self.writing() as session:
            values: StepValues = {"observation": observation, "ended_at_ms": self._ledger.now_ms()}
            changed = change_step(session, self.id, step_id, state, values)
            self.add_event(session, f"step {state}", observation, [changed], step_id)
        self._steps[step_id] = changed

    def note(self, step_id: str, kind: str, detail: str) -> None:
        """Record an event of a step without changing its state."""
        with self.writing() as session:
            self.add_event(session, kind, detail, step=step_id)

    def park(self, why: str) -> None:
        """Leave the run active and without a process: it can be taken over at once."""
        with self.writing() as session:
            session.execute(update(Run).where(Run.id == self.id).values(heartbeat_at_ms=PARKED_AT_MS))
            self.add_event(session, "run parked", why)

    def end(self, state: RunState, sentence: str) -> None:
        """End the run."""
        with self.writing() as session:
            end_runs(self._ledger, session, state, sentence, sentence, Run.id == self.id)


def start_run(ledger: Ledger, plan: Plan, approval: Approval) -> HeldRun:
    """Start a run with all executable steps pending.

    Raises `Refused` if the cluster has another active run, or if meanwhile another process started this plan or the
    approval was withdrawn.
    """
    with _only_active_run(ledger, plan.identity.cluster_name, approval) as session:
        record = record_plan(ledger, session, seal(plan))
        begun = select(Run).where(Run.digest == record.digest, Run.state.in_(("done", "stopped", "aborted")))
        if (other := session.scalars(begun.limit(1)).one_or_none()) is not None:
            raise Refused(f"somebody else began run {other.id} of this plan, now {other.state}: check it")
        run = Run(
            digest=record.digest,
            cluster_name=plan.identity.cluster_name,
            approval_id=approval.id,
            state="active",
            lease=1,
            started_at_ms=ledger.now_ms(),
            sentence="",
            **_holder(ledger.now_ms()),
        )
        session.add(run)
        session.flush()
        steps = [
            StepRecord(
                run_id=run.id,
                step_id=step.id,
                bundle=step.bundle_name,
                state="pending",
                attempts=0,
                observation="",
            )
            for step in plan.steps
            if step.executable
        ]
        session.add_all(steps)
        detail = _carried_out(run, approval)
        ledger.add_event(session, run.digest, "run started", detail, [record, run, *steps], run.id)
    return HeldRun(ledger, run)


def take_over(
    ledger: Ledger, run: Run, approval: Approval, *, lifts_pause: bool = True, pause: int | None = None
) -> HeldRun:
    """Continue a stopped or parked run, or one whose holder is gone; from now on, it relies on this approval.

    A person's resumption lifts the `pause` (`pause_of_run`) that they knew of, and none that was asked for since; the
    end of a wait lifts none. Raises `Refused` if the holder may be alive, including if it has renewed its lease since
    `run` was read, or if the approval was withdrawn meanwhile.
    """
    now_ms = ledger.now_ms()
    if is_held(ledger, run):
        raise Refused(
            f"run {run.id} is still held by process {run.pid} on {run.host}, last active "
            f"{max(0, now_ms - run.heartbeat_at_ms) // 1000} s ago: it can be resumed {LEASE_MS // 1000} s after the "
            f"process was last active; or {way_to_end(ledger, run)}"
        )
    with _only_active_run(ledger, run.cluster_name, approval) as session:
        taken = session.execute(
            update(Run)
            .where(
                Run.id == run.id,
                Run.lease == run.lease,
                Run.heartbeat_at_ms == run.heartbeat_at_ms,
                Run.state.in_(UNFINISHED),
            )
            .values(
                state="active",
                lease=Run.lease + 1,
                ended_at_ms=None,
                sentence="",
                approval_id=approval.id,
                **_holder(now_ms),
            )
            .returning(Run)
        ).scalar_one_or_none()
        if taken is None:
            raise Refused(f"somebody else has just resumed or aborted run {run.id}: check it")
        detail = _carried_out(taken, approval)
        is_lifted = lifts_pause and pause_of_run(session, run.id) == pause
        kind = RESUMED if is_lifted else "run continued"
        ledger.add_event(session, run.digest, kind, detail, [taken], taken.id)
    return HeldRun(ledger, taken)


@contextmanager
def _only_active_run(ledger: Ledger, cluster_name: str, approval: Approval) -> Iterator[Session]:
    """A write transaction that makes a run of the approved plan active.

    Raises `Refused` if the cluster has another active run or a roll under way, or if the approval was withdrawn.
    """
    now_ms = ledger.latest_ms()
    try:
        with ledger.writing() as session:
            require_not_withdrawn(session, approval.id)
            require_no_other_roll(ledger, session, cluster_name, approval.digest, now_ms)
            yield session
    except StorageError as error:
        if isinstance(error.__cause__, IntegrityError) and any(name in str(error) for name in _ONE_ACTIVE):
            raise Refused(_who_is_active(ledger, cluster_name)) from error
        raise


def require_not_withdrawn(session: Session, approval_id: int) -> None:
    """Raise `Refused` if it was withdrawn. In a write transaction, so a later withdrawal finds what relies on it."""
    approval = session.get_one(Approval, approval_id)
    if approval.withdrawn_at_ms is not None:
        raise Refused(f"the approval of {approval.approver} was withdrawn")


def _who_is_active(ledger: Ledger, cluster_name: str) -> str:
    active = ledger.all(select(Run).where(Run.cluster_name == cluster_name, Run.state == "active"))
    if not active:
        return f"another run on cluster '{cluster_name}' was active a moment ago: try again"
    run = active[0]
    if is_parked(run):
        return (
            f"run {run.id} of plan {run.digest} is parked on cluster '{cluster_name}': it goes on after its wait, "
            f"or once its pause is lifted. Wait for it, or {way_to_end(ledger, run)}"
        )
    age_s = max(0, ledger.now_ms() - run.heartbeat_at_ms) // 1000
    return (
        f"run {run.id} of plan {run.digest} is active on cluster '{cluster_name}': process {run.pid} on "
        f"{run.host}, last active {age_s} s ago. Wait for it; if it crashed, {ways(ledger, run)}"
    )


def _carried_out(run: Run, approval: Approval) -> str:
    """By which process, of which user and release, and by which approval."""
    process = f"process {run.pid} of {system_user()}, release {RELEASE}"
    return f"on {run.host} by {process}, approved by {approval.approver} ({approval.source})"


def _holder(now_ms: int) -> dict[str, str | int]:
    process = this_process()
    return {
        "host": process.host,
        "pid": process.id,
        "process_namespace": process.namespace,
        "process_began": process.began,
        "heartbeat_at_ms": now_ms,
    }
