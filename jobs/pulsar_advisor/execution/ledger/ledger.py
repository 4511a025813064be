"""The ledger: a database of plans, proposals, approvals, runs and steps. It allows one active run per cluster.

Nothing here talks to a cluster. Every method is one transaction; treat the rows it returns as read-only.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import URL, Connection, Engine, create_engine, event, func, inspect, or_, select, text, update
from sqlalchemy.exc import DBAPIError, IntegrityError, NoSuchModuleError, OperationalError, SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker
from upath import UPath

from pulsar_advisor.execution.ledger.address import ledger_url, without_secrets
from pulsar_advisor.execution.ledger.chain import START, ChainHead, chained, row_hash
from pulsar_advisor.execution.ledger.plan_summary import summary_values
from pulsar_advisor.execution.ledger.tables import (
    GUARD_EVENTS,
    Approval,
    Base,
    Event,
    PlanRecord,
    PlanSummary,
    Proposal,
    Run,
    RunState,
    Seal,
    StepRecord,
    StepState,
    Verification,
    VerifiedBroker,
    VerifiedBundle,
)
from pulsar_advisor.execution.person import Person
from pulsar_advisor.execution.telemetry import log_event
from pulsar_advisor.execution.throttle import ApplyThrottle
from pulsar_advisor.model.errors import AdvisorError, Refused, StorageError, UsageError
from pulsar_advisor.model.plans.plan import Plan, Sealed, Step, seal
from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor.planning.plans.consent import ConsentName
from pulsar_advisor.storage.lease import renewed
from pulsar_advisor.storage.process import Process, has_ended, this_process
from pulsar_advisor.storage.root import Root
from pulsar_advisor.storage.store_clock import carried_on, store_time

LEASE_MS: Final = 180_000
"""`--resume` may take over a run whose holder hasn't renewed its lease for this long. Longer than the longest call: an
unload may take a broker 60 s."""

_RENEW_MS: Final = 15_000

ABANDONED_MS: Final = 30_000
"""PostgreSQL ends a transaction that is idle for this long; ours last milliseconds."""

_SQLITE_HEADER: Final = b"SQLite format 3\0"
_VERSIONS: Final = "alembic_version"
_MIGRATION_LOCK: Final = 7_074_215  # arbitrary, but the same for every advisor
_WRITE_LOCK: Final = 7_074_216
_NOT_PERMITTED: Final = "42501"
"""PostgreSQL's `insufficient_privilege`."""

_ONCE_IT_CAN_BE_USED: Final = (
    "check its server, disk space and permissions; what it has recorded is kept, and `apply --resume` continues a run"
)

_NEWEST: Final = 1000

_READS: Final = "only reads"
"""Option of a transaction."""
_ADDED: Final = "events to be logged once they are committed"

_PAUSE: Final = "pause requested"
_PAUSE_LIFTED: Final = "pause lifted"
_RESUMED: Final = "run resumed"
_PARKED_AT_MS: Final = 0
"""The heartbeat of an active run that no process holds."""
_SWITCHED_OFF, _SWITCHED_BACK = GUARD_EVENTS

_BEFORE: Final[Mapping[StepState, frozenset[StepState]]] = {
    "sent": frozenset({"pending", "sent", "unresolved"}),
    "confirmed": frozenset({"sent", "unresolved"}),
    "failed": frozenset({"sent", "unresolved"}),
    "unresolved": frozenset({"sent", "unresolved"}),
    "skipped": frozenset({"pending"}),
}
"""The states from which a step may enter each state."""


class LeaseLost(AdvisorError):
    """The run was aborted or taken over: this process must not do anything more."""

    exit_code = 5


@dataclass(frozen=True)
class SwitchedOff:
    """A dynamic setting that a run switched off."""

    run: int
    digest: str
    setting: str
    before: str | None
    """Its previous override; None: it had none."""
    written: str | None = None
    """The value that switched it off, which nobody else writes; None in ledgers of earlier releases."""
    effective: Mapping[str, str] = field(default_factory=dict)
    """The value in each broker's memory before, by broker id; empty in ledgers of earlier releases."""


def bundle_name(step: Step) -> str:
    """`tenant/namespace/0x..._0x...` of a step."""
    return f"{step.namespace}/{step.bundle}"


def default_ledger_url(root: Root) -> str:
    """SQLite beside a local root. Raises `UsageError` for an object store, which can't hold a ledger."""
    if root.path.protocol not in ("", "file"):
        raise UsageError(f"root {root.path} is an object store, which can't hold a ledger: name one with --ledger URL")
    return f"sqlite:///{root.path.path}/ledger.sqlite"


def ledger_exists(url: str) -> bool:
    """False only if a SQLite file is missing; other ledgers are checked when opened.

    Raises `UsageError` if the URL is not one.
    """
    parsed = ledger_url(url)
    return not _is_file(parsed) or Path(str(parsed.database)).exists()


def _is_file(url: URL) -> bool:
    return url.get_backend_name() == "sqlite" and url.database not in (None, "", ":memory:")


def open_ledger(url: str, now_ms: Callable[[], int] | None = None) -> Ledger:
    """Open a ledger (SQLite, PostgreSQL) by its address, see `ledger_address`; create or upgrade its tables.

    Its clock is that of the place where it is kept, the same for every host: `now_ms` is for tests.
    Raises `UsageError` if the URL is not one, `StorageError` if the database can't be used or is from a newer release.
    """
    parsed = ledger_url(url)
    try:
        if _is_file(parsed):
            _make_private(Path(str(parsed.database)))
        engine = create_engine(parsed, pool_pre_ping=True)  # a page may use it again after hours
    except (NoSuchModuleError, ImportError) as error:
        raise UsageError(
            f"no driver for ledger {without_secrets(parsed)}: {error}; use sqlite:///FILE or postgresql://…"
        ) from error
    except OSError as error:
        raise StorageError(
            f"can't open or create ledger {without_secrets(parsed)}: {error.strerror or error}: check its disk and "
            "permissions; to look at one that can only be read, copy it first"
        ) from error
    if engine.dialect.name == "sqlite":
        _make_sqlite_transactional(engine)
    if engine.dialect.name == "postgresql":
        _end_abandoned_transactions(engine)
    with named_errors(engine):
        try:
            if not _is_current(engine):
                with engine.begin() as connection:
                    _upgrade(connection)
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", getattr(error.orig, "pgcode", None)) != _NOT_PERMITTED:
                raise
            raise StorageError(
                f"ledger {without_secrets(parsed)} has to be migrated, which its user may not do: open it once as the "
                "owner of its tables (`pulsar-advisor audit verify --ledger …`)"
            ) from error
    return Ledger(engine, now_ms or carried_on(lambda: _asked(engine)))


def _asked(engine: Engine) -> int:
    """The time (epoch milliseconds) of the database server, or of the file system that holds the file."""
    if engine.dialect.name == "postgresql":
        with named_errors(engine), engine.connect() as connection:
            return int(connection.execute(text("SELECT extract(epoch FROM clock_timestamp()) * 1000")).scalar_one())
    if not _is_file(engine.url):
        return time.time_ns() // 1_000_000
    return round(1000 * store_time(UPath(str(engine.url.database)).parent).timestamp())


def head_of(address: str | None, root: Root) -> str | None:
    """The last event of the ledger at an address, by default beside a local root, as `NUMBER:HASH`.

    None if there is no ledger; none is created.
    """
    if address is None and root.path.protocol not in ("", "file"):
        return None
    url = address or default_ledger_url(root)
    if not ledger_exists(url):
        return None
    with closing(open_ledger(url)) as ledger:
        return str(ledger.head())


def _make_private(file: Path) -> None:
    """Restrict the ledger's file to its owner, and create it if missing.

    A group with write permission keeps its access: it was granted on purpose, to share the ledger. What isn't a ledger,
    a folder or a file of another kind that was named by mistake, is left alone; the database then says what is wrong.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.is_dir():
        return
    file.touch(mode=0o600)
    with file.open("rb") as content:
        if content.read(len(_SQLITE_HEADER)) not in (b"", _SQLITE_HEADER):
            return
    mode = stat.S_IMODE(file.stat().st_mode)
    private = mode & (0o660 if mode & stat.S_IWGRP else 0o600)
    if private != mode and file.stat().st_uid == os.getuid():
        file.chmod(private)


def _make_sqlite_transactional(engine: Engine) -> None:
    # Python's driver opens transactions late, and none before CREATE TABLE. With BEGIN IMMEDIATE, two processes that
    # open a new ledger, or write to an old one, wait for each other instead of failing halfway. Readers wait for none.
    @event.listens_for(engine, "connect")
    def configure(connection, _record):  # type: ignore[no-untyped-def]
        connection.isolation_level = None
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA busy_timeout = 30000")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        reads = connection.get_execution_options().get(_READS)
        connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


def _end_abandoned_transactions(engine: Engine) -> None:
    # A process that is suspended during a write, or whose host is lost, keeps its rows locked until the server notices,
    # which may take hours with TCP. Until then, no other process could take over its run.
    @event.listens_for(engine, "connect")
    def configure(connection, _record):  # type: ignore[no-untyped-def]
        with connection.cursor() as cursor:
            cursor.execute(f"SET idle_in_transaction_session_timeout = {ABANDONED_MS}")
            cursor.execute(f"SET lock_timeout = {2 * ABANDONED_MS}")
        connection.commit()


def _is_current(engine: Engine) -> bool:
    """Whether the tables are this release's. Takes no lock: pages, and runs that wait, ask every few seconds."""
    with engine.connect().execution_options(**{_READS: True}) as connection:
        if not inspect(connection).has_table(_VERSIONS):
            return False
        return bool(connection.scalar(text(f"SELECT version_num FROM {_VERSIONS}")) == _newest_revision())


@cache
def _newest_revision() -> str | None:
    return ScriptDirectory.from_config(_migrations()).get_current_head()


def _upgrade(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
    config = _migrations()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _migrations() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


@contextmanager
def named_errors(engine: Engine) -> Iterator[None]:
    """Within the block, the database's errors become a `StorageError` that names the ledger, without its secrets."""
    place = without_secrets(engine.url)
    try:
        yield
    except CommandError as error:
        raise StorageError(f"ledger {place} was written by a newer release: {error}; use that release") from error
    except SQLAlchemyError as error:
        cause = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        todo = f": {_ONCE_IT_CAN_BE_USED}" if isinstance(error, OperationalError) else ""
        raise StorageError(f"ledger {place} can't be used: {cause}{todo}") from error


class Ledger:
    """The record of plans and their execution. Create one with `open_ledger`."""

    def __init__(self, engine: Engine, now_ms: Callable[[], int]) -> None:
        self._engine = engine
        self._sessions = sessionmaker(engine, expire_on_commit=False)
        self.now_ms = now_ms

    def close(self) -> None:
        """Close the database."""
        self._engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A read transaction; on SQLite, any number of them at once."""
        with self._transaction(_READS) as session:
            yield session

    @contextmanager
    def _transaction(self, *options: str) -> Iterator[Session]:
        with named_errors(self._engine), self._sessions.begin() as session:
            session.connection(execution_options=dict.fromkeys(options, True))
            yield session
        for added in session.info.pop(_ADDED, ()):
            log_event(added)

    @contextmanager
    def _writing(self) -> Iterator[Session]:
        """A write transaction; one at a time, since each event follows the one before it."""
        with self._transaction() as session:
            if self._engine.dialect.name == "postgresql":
                session.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _WRITE_LOCK})
            yield session

    def _record_plan(self, session: Session, plan: Sealed) -> PlanRecord:
        record = session.get(PlanRecord, plan.digest)
        if record is None:
            record = PlanRecord(
                digest=plan.digest,
                cluster=plan.cluster,
                cluster_name=plan.cluster_name,
                snapshot=plan.snapshot,
                document=plan.content.decode(),
                recorded_at_ms=self.now_ms(),
            )
            session.add(record)
            session.flush()  # before the rows that refer to it
            session.add(_summary(record))
        return record

    def _add_event(
        self,
        session: Session,
        digest: str,
        kind: str,
        detail: str,
        rows: Iterable[Base] = (),
        run: int | None = None,
        step: str | None = None,
    ) -> None:
        """Add an event to the chain; `rows` are written with it."""
        detail = plain(detail, keep="\n")  # topics, reasons and comments may contain anything
        session.flush()  # assigns keys to new rows
        hashes = {row.name: row_hash(row.hashed_columns) for row in rows}
        last = _last_event(session)
        added = Event(
            id=last.event + 1,
            at_ms=self.now_ms(),
            digest=digest,
            run_id=run,
            step_id=step,
            kind=kind,
            detail=detail,
            rows=json.dumps(hashes, sort_keys=True),
        )
        added.chain = chained(last.chain, added.hashed_columns)
        session.add(added)
        session.flush()
        session.execute(update(PlanSummary).where(PlanSummary.digest == digest).values(last_event=added.id))
        session.info.setdefault(_ADDED, []).append(added)

    def head(self) -> ChainHead:
        """The last event."""
        with self.reading() as session:
            return _last_event(session)

    def latest_ms(self) -> int:
        """The time now, or that of the latest of the last events if the clock was set back since."""
        newest = select(Event.at_ms).order_by(Event.id.desc()).limit(_NEWEST).subquery()
        with self.reading() as session:
            return max(self.now_ms(), session.scalar(select(func.max(newest.c.at_ms))) or 0)

    def record_proposal(self, plan: Sealed, proposer: Person, not_computed_here: str | None = None) -> None:
        """Record that somebody proposed a plan, and why it can't be computed here: see `Proposal`."""
        with self._writing() as session:
            record = self._record_plan(session, plan)
            proposal = Proposal(
                digest=record.digest,
                proposer=proposer.name,
                source=proposer.source,
                at_ms=self.now_ms(),
                not_computed_here=not_computed_here,
            )
            session.add(proposal)
            detail = f"by {proposer.name} ({proposer.source})"
            if not_computed_here:
                detail += f"; not computed here: {not_computed_here}"
            self._add_event(session, record.digest, "proposed", detail, [record, proposal])

    def record_approval(
        self,
        plan: Plan,
        approver: Person,
        *,
        expires_at_ms: int,
        comment: str,
        consents: Collection[ConsentName],
        throttle: ApplyThrottle,
    ) -> Approval:
        """Record an approval that the policy allowed (see `approval.approve`, the only caller)."""
        with self._writing() as session:
            record = self._record_plan(session, seal(plan))
            approval = Approval(
                digest=record.digest,
                approver=approver.name,
                source=approver.source,
                at_ms=self.now_ms(),
                expires_at_ms=expires_at_ms,
                comment=comment,
                allows_splits="splits" in consents,
                accepts_worse="worse" in consents,
                accepts_low_confidence="low_confidence" in consents,
                throttle_json=throttle.as_json(),
            )
            session.add(approval)
            detail = f"by {approver.name} ({approver.source})" + (f": {comment}" if comment else "")
            self._add_event(session, record.digest, "approved", detail, [record, approval])
            return approval

    def withdraw_approvals(self, digest: str, person: Person, comment: str) -> int:
        """Withdraw a plan's valid approvals and those that an active run relies on; return their number."""
        with self._writing() as session:
            relied_on = select(Run.approval_id).where(Run.digest == digest, Run.state == "active")
            standing = select(Approval).where(
                Approval.digest == digest,
                Approval.withdrawn_at_ms.is_(None),
                or_(Approval.expires_at_ms > self.now_ms(), Approval.id.in_(relied_on)),
            )
            approvals = session.scalars(standing).all()
            for approval in approvals:
                approval.withdrawn_at_ms = self.now_ms()
            if approvals:
                detail = f"by {person.name} ({person.source}): {comment}"
                self._add_event(session, digest, "withdrawn", detail, approvals)
            return len(approvals)

    def record_seal(
        self, cluster: str, snapshot: str, stage: str, sha256: str, plans: Collection[str], release: str
    ) -> None:
        """Record what a stage wrote about a snapshot of a cluster (its name in paths), unless that is known."""
        with self._writing() as session:
            of_stage = (Seal.cluster == cluster, Seal.snapshot == snapshot, Seal.stage == stage)
            last = session.scalars(select(Seal).where(*of_stage).order_by(Seal.id.desc()).limit(1)).one_or_none()
            if last is not None and (last.sha256, last.release) == (sha256, release):
                return
            seal = Seal(
                cluster=cluster,
                snapshot=snapshot,
                stage=stage,
                sha256=sha256,
                plans="\n".join(plans),
                release=release,
                at_ms=self.now_ms(),
            )
            session.add(seal)
            detail = f"{stage} of snapshot {snapshot} of cluster {cluster}"
            self._add_event(session, f"sha256:{sha256}", "sealed", detail, [seal])

    def seals(self, cluster: str, snapshot: str) -> Sequence[Seal]:
        """What stages wrote about a snapshot of a cluster (its name in paths), oldest first."""
        with self.reading() as session:
            of_snapshot = select(Seal).where(Seal.cluster == cluster, Seal.snapshot == snapshot)
            return session.scalars(of_snapshot.order_by(Seal.id)).all()

    def record_refusal(self, digest: str, reason: str) -> None:
        """Record that an attempt to approve or apply a plan was refused."""
        with self._writing() as session:
            self._add_event(session, digest, "refused", reason)

    def record_rejection(self, digest: str, answer: str) -> None:
        """Record that the answer to a request for approval was no, or didn't come in time."""
        with self._writing() as session:
            self._add_event(session, digest, "rejected", answer)

    def proposals(self, digest: str) -> Sequence[Proposal]:
        """Who proposed a plan, oldest first."""
        with self.reading() as session:
            return session.scalars(select(Proposal).where(Proposal.digest == digest).order_by(Proposal.id)).all()

    def approvals(self, digest: str) -> Sequence[Approval]:
        """All approvals of a plan, including withdrawn and expired ones, oldest first."""
        with self.reading() as session:
            return session.scalars(select(Approval).where(Approval.digest == digest).order_by(Approval.id)).all()

    def plan(self, digest: str) -> PlanRecord | None:
        """A plan, with its document."""
        with self.reading() as session:
            return session.get(PlanRecord, digest)

    def summary(self, digest: str) -> PlanSummary | None:
        """What lists say of a plan."""
        with self.reading() as session:
            return session.get(PlanSummary, digest)

    def run_if_any(self, number: int) -> Run | None:
        """A run by its number."""
        with self.reading() as session:
            return session.get(Run, number)

    def runs(self, digest: str) -> Sequence[Run]:
        """All runs of a plan, oldest first."""
        with self.reading() as session:
            return session.scalars(select(Run).where(Run.digest == digest).order_by(Run.id)).all()

    def steps(self, run_id: int) -> Mapping[str, StepRecord]:
        """The steps of a run by id, in plan order."""
        with self.reading() as session:
            rows = session.scalars(select(StepRecord).where(StepRecord.run_id == run_id).order_by(StepRecord.id))
            return {row.step_id: row for row in rows}

    def events(
        self, digest: str, run: int | None = None, before: int | None = None, count: int | None = None
    ) -> Sequence[Event]:
        """The events of a plan, oldest first: of one run only, before a number, only the newest ones."""
        query = select(Event).where(Event.digest == digest).order_by(Event.id.desc()).limit(count)
        if run is not None:
            query = query.where(Event.run_id == run)
        if before is not None:
            query = query.where(Event.id < before)
        with self.reading() as session:
            return session.scalars(query).all()[::-1]

    def unresolved_bundles(self, cluster_name: str, except_of: str) -> Mapping[str, int]:
        """Bundles with a call of unknown outcome, and its run; excludes aborted runs and one plan."""
        with self.reading() as session:
            rows = session.execute(
                select(StepRecord.bundle, Run.id)
                .join(Run, Run.id == StepRecord.run_id)
                .where(
                    Run.cluster_name == cluster_name,
                    Run.digest != except_of,
                    Run.state.in_(("active", "stopped")),
                    StepRecord.state.in_(("sent", "unresolved")),
                )
            )
            return {row.bundle: row.id for row in rows}

    def last_confirmed_at_ms(self, cluster_name: str, namespace: str) -> int:
        """When a step on a bundle of this namespace was last confirmed, in any run; 0 if never."""
        with self.reading() as session:
            last = session.scalar(
                select(func.max(StepRecord.ended_at_ms))
                .join(Run, Run.id == StepRecord.run_id)
                .where(
                    Run.cluster_name == cluster_name,
                    StepRecord.state == "confirmed",
                    StepRecord.bundle.startswith(f"{namespace}/", autoescape=True),
                )
            )
            return last or 0

    def record_verification(
        self, verification: Verification, bundles: Sequence[VerifiedBundle], brokers: Sequence[VerifiedBroker]
    ) -> None:
        """Record the result of comparing a run with a snapshot; only the first result per snapshot is kept."""
        with self._writing() as session:
            known = select(Verification.id).where(
                Verification.run_id == verification.run_id, Verification.snapshot == verification.snapshot
            )
            if session.scalar(known) is not None:
                return
            session.add(verification)
            session.flush()
            rows: list[VerifiedBundle | VerifiedBroker] = [*bundles, *brokers]
            for row in rows:
                row.verification_id = verification.id
            session.add_all(rows)
            run = session.get_one(Run, verification.run_id)
            outcome = "as predicted" if verification.as_predicted else "deviates"
            detail = f"with snapshot {verification.snapshot}: {outcome}"
            self._add_event(session, run.digest, "verified", detail, [verification, *rows], run.id)

    def verifications(self, digest: str) -> Sequence[Verification]:
        """The results of `verify` for the runs of a plan, oldest first."""
        with self.reading() as session:
            query = select(Verification).join(Run, Run.id == Verification.run_id).where(Run.digest == digest)
            return session.scalars(query.order_by(Verification.id)).all()

    def start_run(self, plan: Plan, approval: Approval) -> HeldRun:
        """Start a run with all executable steps pending. Raises `Refused` if the cluster has another active run."""
        try:
            with self._writing() as session:
                record = self._record_plan(session, seal(plan))
                run = Run(
                    digest=record.digest,
                    cluster_name=plan.identity.cluster_name,
                    approval_id=approval.id,
                    state="active",
                    lease=1,
                    started_at_ms=self.now_ms(),
                    sentence="",
                    **_holder(self.now_ms()),
                )
                session.add(run)
                session.flush()
                steps = [
                    StepRecord(
                        run_id=run.id,
                        step_id=step.id,
                        bundle=bundle_name(step),
                        state="pending",
                        attempts=0,
                        observation="",
                    )
                    for step in plan.steps
                    if step.executable
                ]
                session.add_all(steps)
                detail = f"on {run.host} by process {run.pid}, approved by {approval.approver} ({approval.source})"
                self._add_event(session, run.digest, "run started", detail, [record, run, *steps], run.id)
        except StorageError as error:
            if isinstance(error.__cause__, IntegrityError):
                raise Refused(self._who_is_active(plan.identity.cluster_name)) from error
            raise
        return HeldRun(self, run)

    def _who_is_active(self, cluster_name: str) -> str:
        with self.reading() as session:
            run = session.scalar(select(Run).where(Run.cluster_name == cluster_name, Run.state == "active"))
        if run is None:
            return f"another run on cluster '{cluster_name}' was active a moment ago: try again"
        if self.is_parked(run):
            return (
                f"run {run.id} of plan {run.digest} is parked on cluster '{cluster_name}': it goes on after its wait, "
                "or once its pause is lifted. Wait for it, or end it with `apply --abort`"
            )
        age_s = (self.now_ms() - run.heartbeat_at_ms) // 1000
        return (
            f"run {run.id} of plan {run.digest} is active on cluster '{cluster_name}': process {run.pid} on "
            f"{run.host}, last heard from {age_s} s ago. Wait for it; if it crashed, `apply` that plan with --resume, "
            "or end it with --abort"
        )

    def is_held(self, run: Run) -> bool:
        """Whether the process that holds a run may still be working on it."""
        holder = Process(run.host, run.pid, run.process_namespace, run.process_began)
        is_recent = self.now_ms() - run.heartbeat_at_ms <= LEASE_MS
        return run.state == "active" and is_recent and not has_ended(holder)

    def take_over(self, run: Run, approval: Approval, *, lifts_pause: bool = True) -> HeldRun:
        """Continue a stopped or parked run, or one whose holder is gone; from now on, it relies on this approval.

        Somebody who resumes a run lifts its pause; the end of a wait does not. Raises `Refused` while its holder may be
        alive, also if it has renewed its lease since `run` was read.
        """
        now_ms = self.now_ms()
        if self.is_held(run):
            raise Refused(
                f"run {run.id} is still held by process {run.pid} on {run.host}, last heard from "
                f"{(now_ms - run.heartbeat_at_ms) // 1000} s ago: it can be resumed {LEASE_MS // 1000} s after the "
                "last sign of life, or ended with --abort"
            )
        try:
            with self._writing() as session:
                taken = session.execute(
                    update(Run)
                    .where(
                        Run.id == run.id,
                        Run.lease == run.lease,
                        Run.heartbeat_at_ms == run.heartbeat_at_ms,
                        Run.state.in_(("active", "stopped")),
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
                    raise Refused(f"run {run.id} was resumed or aborted by somebody else just now: look again")
                detail = f"on {taken.host} by process {taken.pid}, approved by {approval.approver} ({approval.source})"
                kind = _RESUMED if lifts_pause else "run continued"
                self._add_event(session, run.digest, kind, detail, [taken], taken.id)
        except StorageError as error:
            if isinstance(error.__cause__, IntegrityError):
                raise Refused(self._who_is_active(run.cluster_name)) from error
            raise
        return HeldRun(self, taken)

    def abort(self, digest: str, person: Person) -> Sequence[Run]:
        """End every active or stopped run of a plan; a process that holds one stops before its next call."""
        with self._writing() as session:
            ended = session.scalars(
                update(Run)
                .where(Run.digest == digest, Run.state.in_(("active", "stopped")))
                .values(state="aborted", ended_at_ms=self.now_ms(), sentence=f"aborted by {person.name}")
                .returning(Run)
            ).all()
            for run in ended:
                self._add_event(session, digest, "run aborted", f"by {person.name} ({person.source})", [run], run.id)
            return ended

    def request_pause(self, digest: str, person: Person) -> Sequence[Run]:
        """Ask the holders of a plan's active runs to end them after the steps in flight; return those runs."""
        with self._writing() as session:
            active = session.scalars(select(Run).where(Run.digest == digest, Run.state == "active")).all()
            for run in active:
                self._add_event(session, digest, _PAUSE, f"by {person.name} ({person.source})", run=run.id)
            return active

    def lift_pause(self, digest: str, person: Person) -> Sequence[Run]:
        """Let the paused runs of a plan go on; return them."""
        with self._writing() as session:
            active = session.scalars(select(Run).where(Run.digest == digest, Run.state == "active")).all()
            paused = [run for run in active if _pause_in_force(session, run.id) is not None]
            for run in paused:
                self._add_event(session, digest, _PAUSE_LIFTED, f"by {person.name} ({person.source})", run=run.id)
            return paused

    def end_parked(self, digest: str, why: str) -> None:
        """Stop a plan's parked run, which no process would continue; a run that a process holds goes on."""
        with self._writing() as session:
            parked = (Run.digest == digest, Run.state == "active", Run.heartbeat_at_ms == _PARKED_AT_MS)
            values = {"state": "stopped", "ended_at_ms": self.now_ms(), "sentence": why}
            for run in session.scalars(update(Run).where(*parked).values(**values).returning(Run)).all():
                self._add_event(session, digest, "run stopped", why, [run], run.id)

    def is_parked(self, run: Run) -> bool:
        """Whether an active run waits without a process."""
        return run.state == "active" and run.heartbeat_at_ms == _PARKED_AT_MS

    def pause_requested(self, run_id: int) -> str | None:
        """Who requested a pause that hasn't been lifted, by a resumption either, in words; None without a request."""
        with self.reading() as session:
            last = _pause_in_force(session, run_id)
            return f"paused {last.detail}" if last is not None else None

    def run(self, run_id: int) -> Run:
        """One run."""
        with self.reading() as session:
            return session.get_one(Run, run_id)

    def switched_off(self, cluster_name: str | None = None) -> Sequence[SwitchedOff]:
        """Settings of a cluster, else of all, that runs switched off and that are not known to be restored."""
        of_guards = select(Event, Run.cluster_name).join(Run, Run.id == Event.run_id)
        if cluster_name is not None:
            of_guards = of_guards.where(Run.cluster_name == cluster_name)
        with self.reading() as session:
            events = session.execute(of_guards.where(Event.kind.in_(GUARD_EVENTS)).order_by(Event.id))
            off: dict[tuple[str, str], SwitchedOff] = {}
            for row, of_cluster in events:
                switch = json.loads(row.detail)
                off.pop((of_cluster, switch["setting"]), None)
                if row.kind == _SWITCHED_OFF and row.run_id is not None:
                    off[of_cluster, switch["setting"]] = SwitchedOff(row.run_id, row.digest, **switch)
            return tuple(off.values())

    def switched_back(self, switch: SwitchedOff, how: str) -> None:
        """Record that we no longer keep a setting switched off."""
        with self._writing() as session:
            detail = json.dumps({"setting": switch.setting, "how": how}, sort_keys=True)
            self._add_event(session, switch.digest, _SWITCHED_BACK, detail, run=switch.run)


class HeldRun:
    """A run that this process may write to. Each write renews the lease first and raises `LeaseLost` if it is lost."""

    def __init__(self, ledger: Ledger, run: Run) -> None:
        self._ledger = ledger
        self.id = run.id
        self.digest = run.digest
        self.cluster_name = run.cluster_name
        self._lease = run.lease
        self._renewed_at_ms = run.heartbeat_at_ms

    @contextmanager
    def _writing(self) -> Iterator[Session]:
        with self._ledger._writing() as session:
            now_ms = self._ledger.now_ms()
            ours = session.execute(
                update(Run)
                .where(Run.id == self.id, Run.lease == self._lease, Run.state == "active")
                .values(heartbeat_at_ms=now_ms)
                .returning(Run.id)
            )
            if ours.scalar_one_or_none() is None:
                raise LeaseLost(f"run {self.id} was aborted or taken over by another process: this one stops")
            yield session
        self._renewed_at_ms = now_ms

    def renew(self) -> None:
        """Renew the lease, unless that was done recently. Raises `LeaseLost`."""
        # A clock that was set back must not stop renewals.
        if abs(self._ledger.now_ms() - self._renewed_at_ms) >= _RENEW_MS:
            with self._writing():
                pass

    def is_overtaken(self) -> bool:
        """Whether another process has taken over the run."""
        return self._ledger.run(self.id).lease != self._lease

    def kept(self) -> AbstractContextManager[None]:
        """Keep the lease until the block ends, even while a call to the cluster or a read of it takes minutes."""
        return renewed(self.renew, _RENEW_MS / 1000)

    def steps(self) -> Mapping[str, StepRecord]:
        """The steps by id, in plan order."""
        return self._ledger.steps(self.id)

    def sent(self, step_id: str, request: str, topic: str | None) -> None:
        """Record that a call is about to be sent."""
        with self._writing() as session:
            now_ms = self._ledger.now_ms()
            values = {"attempts": StepRecord.attempts + 1, "sent_at_ms": now_ms}
            changed = self._change(session, step_id, "sent", values if topic is None else {**values, "topic": topic})
            self._ledger._add_event(session, self.digest, "step sent", request, [changed], self.id, step_id)

    def conclude(self, step_id: str, state: StepState, observation: str) -> None:
        """Record the result of a step and what was observed."""
        with self._writing() as session:
            values = {"observation": observation, "ended_at_ms": self._ledger.now_ms()}
            changed = self._change(session, step_id, state, values)
            self._ledger._add_event(session, self.digest, f"step {state}", observation, [changed], self.id, step_id)

    def _change(self, session: Session, step_id: str, state: StepState, values: Mapping[str, object]) -> StepRecord:
        changed = session.execute(
            update(StepRecord)
            .where(StepRecord.run_id == self.id, StepRecord.step_id == step_id, StepRecord.state.in_(_BEFORE[state]))
            .values(state=state, **values)
            .returning(StepRecord)
        ).scalar_one_or_none()
        if changed is None:
            raise StorageError(f"the ledger does not let step {step_id} of run {self.id} become '{state}'")
        return changed

    def note(self, step_id: str, kind: str, detail: str) -> None:
        """Record an event of a step without changing its state."""
        with self._writing() as session:
            self._ledger._add_event(session, self.digest, kind, detail, (), self.id, step_id)

    def switching_off(self, setting: str, before: str | None, written: str, effective: Mapping[str, str]) -> None:
        """Record that a dynamic setting is about to be switched off; the arguments are those of `SwitchedOff`."""
        with self._writing() as session:
            switch = {"setting": setting, "before": before, "written": written, "effective": dict(effective)}
            detail = json.dumps(switch, sort_keys=True)
            self._ledger._add_event(session, self.digest, _SWITCHED_OFF, detail, run=self.id)

    def park(self, why: str) -> None:
        """Leave the run active and without a process: it can be taken over at once."""
        with self._writing() as session:
            session.execute(update(Run).where(Run.id == self.id).values(heartbeat_at_ms=_PARKED_AT_MS))
            self._ledger._add_event(session, self.digest, "run parked", why, run=self.id)

    def end(self, state: RunState, sentence: str) -> None:
        """End the run."""
        with self._writing() as session:
            ended = session.execute(
                update(Run)
                .where(Run.id == self.id)
                .values(state=state, sentence=sentence, ended_at_ms=self._ledger.now_ms())
                .returning(Run)
            ).scalar_one()
            self._ledger._add_event(session, self.digest, f"run {state}", sentence, [ended], self.id)


def _summary(record: PlanRecord) -> PlanSummary:
    return PlanSummary(
        digest=record.digest,
        cluster=record.cluster,
        snapshot=record.snapshot,
        recorded_at_ms=record.recorded_at_ms,
        **summary_values(record.document),
        last_event=0,
    )


def _pause_in_force(session: Session, run_id: int) -> Event | None:
    """The request for a pause that hasn't been lifted."""
    turns = select(Event).where(Event.run_id == run_id, Event.kind.in_((_PAUSE, _PAUSE_LIFTED, _RESUMED)))
    last = session.scalars(turns.order_by(Event.id.desc()).limit(1)).one_or_none()
    return last if last is not None and last.kind == _PAUSE else None


def _last_event(session: Session) -> ChainHead:
    last = session.execute(select(Event.id, Event.chain).order_by(Event.id.desc()).limit(1)).first()
    return ChainHead(last.id, last.chain) if last else ChainHead(0, START)


def _holder(now_ms: int) -> dict[str, object]:
    process = this_process()
    return {
        "host": process.host,
        "pid": process.id,
        "process_namespace": process.namespace,
        "process_began": process.began,
        "heartbeat_at_ms": now_ms,
    }
