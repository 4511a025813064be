"""The tables of the ledger: who proposed, approved and applied which plan, and what was observed.

All times are epoch milliseconds. `migrations` creates these tables; a test checks that the two agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, ClassVar, Final, get_args

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Double,
    ForeignKey,
    Index,
    String,
    Text,
    UniqueConstraint,
    event,
    false,
    inspect,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from pulsar_advisor.documents.runs import RunState, StepState
from pulsar_advisor.execution.ledger.chain import row_hash
from pulsar_advisor.execution.throttle import ApplyThrottle, throttle_from_json
from pulsar_advisor.model.errors import StorageError
from pulsar_advisor.model.text.reader import reader
from pulsar_advisor.planning.plans.consent import CONSENTS, ConsentName

UNFINISHED: Final[tuple[RunState, ...]] = ("active", "stopped")
"""States of a run that may go on."""
OPEN: Final[tuple[StepState, ...]] = ("sent", "unresolved")
"""States of a step whose call may still act."""

RUN_STATES: Final[tuple[RunState, ...]] = get_args(RunState)
STEP_STATES: Final[tuple[StepState, ...]] = get_args(StepState)

GUARD_EVENTS: Final = ("switched off", "switched back")
"""Kinds of events about a run's guard."""

Hold = tuple[int, int]
"""What a process that holds a run has: the run's number and lease."""

_STATES: Final = "states"
"""Key in the `info` of a column that holds one of them."""
_GREATEST: Final = 2**53
"""Of a `Count` in documents."""

_Key = Annotated[int, mapped_column(primary_key=True)]
_Millis = Annotated[int, mapped_column(BigInteger)]
_Digest = Annotated[str, mapped_column(String(71), ForeignKey("plans.digest"), index=True)]
_Name = Annotated[str, mapped_column(String(200))]


def _one_of(column: str, values: tuple[str, ...]) -> str:
    return f"{column} IN ({', '.join(repr(value) for value in values)})"


OF_GUARDS: Final = text(_one_of("kind", GUARD_EVENTS))
"""Which events those are, in the words of their index: SQLite uses it for no others."""


class Base(DeclarativeBase):
    """Registry of the ledger's tables."""

    type_annotation_map: ClassVar = {float: Double}  # as from SQLAlchemy 2.1 on
    _not_hashed: ClassVar[frozenset[str]] = frozenset()

    @property
    def name(self) -> str:
        """`<table>/<primary key>`: the row's name in events."""
        return "/".join((self.__tablename__, *map(str, inspect(self).mapper.primary_key_from_instance(self))))

    @classmethod
    def hashed_column_names(cls) -> tuple[str, ...]:
        """All columns except those that change without an event."""
        return tuple(str(column.name) for column in cls.__table__.c if column.name not in cls._not_hashed)

    @property
    def hash(self) -> str:
        """`row_hash` of these columns."""
        keys = {attribute.columns[0].name: attribute.key for attribute in inspect(type(self)).column_attrs}
        return row_hash({column: getattr(self, keys[column]) for column in self.hashed_column_names()})


@event.listens_for(Base, "load", propagate=True)
def _require_values(row: Base, _context: object) -> None:
    """Raise `StorageError` for a value of another type than its column's, as SQLite may hold, a number beyond those in
    documents, and a state that there isn't.
    """
    for key, kind, states in _types(type(row)):
        value: Any = row.__dict__.get(key)
        is_known = not states or value in states
        if value is None or (is_known and isinstance(value, kind) and (kind is not int or 0 <= value <= _GREATEST)):
            continue
        raise StorageError(
            f"the ledger holds {repr(value)[:40]} as {key} of {row.name}, which no release writes: {reader().audit} to "
            "see what else was changed, or put back a copy"
        )


@cache
def _types(table: type[Base]) -> tuple[tuple[str, type[Any], tuple[str, ...]], ...]:
    """The attributes of a table's rows, the types of their values and, of a state, the only ones there are."""
    columns = ((one.key, one.columns[0]) for one in inspect(table).column_attrs)
    return tuple((key, column.type.python_type, column.info.get(_STATES, ())) for key, column in columns)


class PlanRecord(Base):
    """A plan as proposed; `document` is its canonical JSON, so the ledger can be read without the plan's file."""

    __tablename__ = "plans"

    digest: Mapped[str] = mapped_column(String(71), primary_key=True)
    cluster: Mapped[_Name]
    cluster_name: Mapped[_Name]
    snapshot: Mapped[str] = mapped_column(String(16))
    document: Mapped[str] = mapped_column(Text)
    recorded_at_ms: Mapped[_Millis]


class PlanSummary(Base):
    """What lists say of a plan, from its document (`plan_summary.Summary`): an index, which events don't name."""

    __tablename__ = "plan_summaries"
    __table_args__ = (
        Index("plan_summaries_by_snapshot", "cluster", "snapshot", "recorded_at_ms"),
        Index("plan_summaries_by_event", "cluster", "last_event"),
    )

    digest: Mapped[str] = mapped_column(String(71), ForeignKey("plans.digest"), primary_key=True)
    cluster: Mapped[_Name]
    snapshot: Mapped[str] = mapped_column(String(16))
    recorded_at_ms: Mapped[_Millis]
    shedder: Mapped[str] = mapped_column(Text)
    placement: Mapped[str] = mapped_column(Text)
    executable_steps: Mapped[int]
    maximum_before: Mapped[float | None]
    maximum_after: Mapped[float | None]
    steps_sha256: Mapped[str] = mapped_column(String(64))
    undoes: Mapped[str | None] = mapped_column(String(71))
    problem: Mapped[str] = mapped_column(Text)
    last_event: Mapped[int]
    """The number of its newest event; 0: none yet."""


class Proposal(Base):
    """Somebody proposed a plan."""

    __tablename__ = "proposals"

    id: Mapped[_Key]
    digest: Mapped[_Digest]
    proposer: Mapped[_Name]
    source: Mapped[_Name]
    """What vouches for the name: an authenticating system (`airflow`), or `unauthenticated:<user of the machine>`."""
    at_ms: Mapped[_Millis]
    not_computed_here: Mapped[str | None] = mapped_column(Text)
    """Why the plan can't be computed again from its snapshot; empty: it was, byte for byte. NULL in proposals of
    releases that did not look."""


class Seal(Base):
    """What a stage wrote about a snapshot: one row whenever its result changes."""

    __tablename__ = "seals"
    __table_args__ = (Index("seals_of_a_snapshot", "cluster", "snapshot"),)

    id: Mapped[_Key]
    cluster: Mapped[_Name]
    snapshot: Mapped[str] = mapped_column(String(16))
    stage: Mapped[str] = mapped_column(String(16))
    sha256: Mapped[str] = mapped_column(String(64))
    """Hash of the result (`storage.results`), in hexadecimal."""
    plans: Mapped[str] = mapped_column(Text)
    """The digests of the plans that a recommendation lists, one a line; empty for other stages."""
    release: Mapped[str] = mapped_column(String(40))
    """The advisor's release."""
    at_ms: Mapped[_Millis]


class Approval(Base):
    """Somebody approved exactly one plan, for a limited time, with these consents and this throttle."""

    __tablename__ = "approvals"

    id: Mapped[_Key]
    digest: Mapped[_Digest]
    approver: Mapped[_Name]
    source: Mapped[_Name]
    at_ms: Mapped[_Millis]
    expires_at_ms: Mapped[_Millis]
    comment: Mapped[str] = mapped_column(Text)
    allows_splits: Mapped[bool]
    accepts_worse: Mapped[bool]
    accepts_low_confidence: Mapped[bool] = mapped_column(server_default=false())
    withdrawn_at_ms: Mapped[int | None] = mapped_column(BigInteger)
    throttle_json: Mapped[str | None] = mapped_column("throttle", Text)
    """`ApplyThrottle` as JSON; NULL in approvals from releases that did not record it."""

    def is_in_force(self, at_ms: int) -> bool:
        """Whether it is neither withdrawn nor expired at a moment."""
        return self.withdrawn_at_ms is None and self.expires_at_ms > at_ms

    @property
    def throttle(self) -> ApplyThrottle:
        """The approved limits."""
        return throttle_from_json(self.throttle_json)

    @property
    def consents(self) -> frozenset[ConsentName]:
        """What the approver agreed to besides the plan itself."""
        given: dict[ConsentName, bool] = {
            "splits": self.allows_splits,
            "worse": self.accepts_worse,
            "low_confidence": self.accepts_low_confidence,
        }
        return frozenset(name for name, is_given in given.items() if is_given)

    @property
    def terms(self) -> Iterator[str]:
        """What was approved with the plan, in words: the consents as the reader knows them, then the limits."""
        for consent in CONSENTS:
            if consent.name in self.consents:
                yield f"consent: {consent.known_as}"
        yield from self.throttle.sentences()


class Run(Base):
    """One attempt to apply a plan. Only the process with the current `lease` number may write; the database allows one
    active run per Pulsar cluster name."""

    __tablename__ = "runs"
    _not_hashed = frozenset({"heartbeat_at_ms"})
    __table_args__ = (
        CheckConstraint(_one_of("state", RUN_STATES), name="runs_state"),
        Index(
            "runs_one_active_per_cluster",
            "cluster_name",
            unique=True,
            sqlite_where=text("state = 'active'"),
            postgresql_where=text("state = 'active'"),
        ),
    )

    id: Mapped[_Key]
    digest: Mapped[_Digest]
    cluster_name: Mapped[_Name]
    approval_id: Mapped[int] = mapped_column(ForeignKey("approvals.id"))
    """The approval it relies on: the one at its start, then the one at each resumption."""
    state: Mapped[RunState] = mapped_column(String(16), info={_STATES: RUN_STATES})
    lease: Mapped[int]
    host: Mapped[_Name]
    pid: Mapped[int]
    process_namespace: Mapped[str] = mapped_column(String(200), server_default="")
    """Boot id, PID namespace and start time (clock ticks) of the holder: see `storage.process`."""
    process_began: Mapped[str] = mapped_column(String(40), server_default="")
    heartbeat_at_ms: Mapped[_Millis]
    """0 while the run is parked: active, and held by no process."""
    started_at_ms: Mapped[_Millis]
    ended_at_ms: Mapped[int | None] = mapped_column(BigInteger)
    sentence: Mapped[str] = mapped_column(Text)
    """Why it ended this way; empty while active."""

    @property
    def hold(self) -> Hold:
        """What its holder, or else its last one, has of it."""
        return self.id, self.lease

    @property
    def is_unfinished(self) -> bool:
        """Whether it may go on."""
        return self.state in UNFINISHED


class StepRecord(Base):
    """The state of one executable step of a run."""

    __tablename__ = "steps"
    __table_args__ = (
        CheckConstraint(_one_of("state", STEP_STATES), name="steps_state"),
        UniqueConstraint("run_id", "step_id", name="steps_once_per_run"),
    )

    id: Mapped[_Key]
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"))
    step_id: Mapped[_Name]
    bundle: Mapped[str] = mapped_column(Text)
    """`tenant/namespace/0x..._0x...`"""
    state: Mapped[StepState] = mapped_column(String(16), info={_STATES: STEP_STATES})
    attempts: Mapped[int]
    sent_at_ms: Mapped[int | None] = mapped_column(BigInteger)
    ended_at_ms: Mapped[int | None] = mapped_column(BigInteger)
    topic: Mapped[str | None] = mapped_column(Text)
    """A topic that was loaded before its bundle was unloaded: the one to look up if no client brings it back."""
    observation: Mapped[str] = mapped_column(Text)
    """The last observation, for a person."""

    @property
    def is_open(self) -> bool:
        """Whether the outcome of its call is unknown."""
        return self.state in OPEN

    @property
    def is_left_out(self) -> bool:
        """Whether it ended without effect, so that steps that depend on it can't be sent."""
        return self.state in ("failed", "skipped")

    @property
    def is_confirmed(self) -> bool:
        """Whether the cluster showed its effect."""
        return self.state == "confirmed"


class Verification(Base):
    """The comparison of a run with a later snapshot; one per snapshot."""

    __tablename__ = "verifications"
    __table_args__ = (UniqueConstraint("run_id", "snapshot", name="verifications_once_per_snapshot"),)

    id: Mapped[_Key]
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"))
    snapshot: Mapped[str] = mapped_column(String(16))
    at_ms: Mapped[_Millis]
    usage_judged: Mapped[bool]
    """False if the brokers may still have reported figures from before the run ended."""
    as_predicted: Mapped[bool]


class VerifiedBundle(Base):
    """A bundle of the plan: its expected owner (NULL: any but its old one) and the one found (NULL: none)."""

    __tablename__ = "verified_bundles"

    id: Mapped[_Key]
    verification_id: Mapped[int] = mapped_column(ForeignKey("verifications.id"), index=True)
    bundle: Mapped[str] = mapped_column(Text)
    predicted: Mapped[str | None] = mapped_column(String(200))
    actual: Mapped[str | None] = mapped_column(String(200))
    as_predicted: Mapped[bool]


class VerifiedBroker(Base):
    """A broker's predicted and captured figures; NULL if unknown. Usage: weighted maximum, 0..1."""

    __tablename__ = "verified_brokers"

    id: Mapped[_Key]
    verification_id: Mapped[int] = mapped_column(ForeignKey("verifications.id"), index=True)
    broker: Mapped[_Name]
    before_usage_ratio: Mapped[float | None]
    predicted_usage_ratio: Mapped[float | None]
    actual_usage_ratio: Mapped[float | None]
    predicted_msg_rate_per_s: Mapped[float | None]
    actual_msg_rate_per_s: Mapped[float | None]
    predicted_throughput_bytes_per_s: Mapped[float | None]
    actual_throughput_bytes_per_s: Mapped[float | None]
    predicted_bundles: Mapped[int | None]
    actual_bundles: Mapped[int | None]
    as_predicted: Mapped[bool]


class Event(Base):
    """An event. Events are numbered from 1 without gaps, and form a hash chain (`chain`)."""

    __tablename__ = "events"
    _not_hashed = frozenset({"chain"})
    __table_args__ = (
        Index(
            "events_of_guards",
            "run_id",
            sqlite_where=OF_GUARDS,
            postgresql_where=OF_GUARDS,
        ),
    )

    id: Mapped[_Key]
    at_ms: Mapped[_Millis]
    digest: Mapped[str] = mapped_column(String(71), index=True)
    run_id: Mapped[int | None]
    step_id: Mapped[str | None] = mapped_column(String(200))
    kind: Mapped[str] = mapped_column(String(40))
    detail: Mapped[str] = mapped_column(Text)
    rows: Mapped[str] = mapped_column(Text)
    """JSON: the name of each row written with the event, and its hash afterwards."""
    chain: Mapped[str] = mapped_column(String(64))
    """SHA-256 (hex) of the event before it and of this one."""
