"""A cluster, its ledger and the advisor's processes, and what must hold at each instant whatever happens between.

A process has instants: before and after it records an event or sends a call, and in each wait. At an instant it may
die, or anything else may happen: also another process, from beginning to end.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal, NamedTuple, Protocol
from unittest import mock

from sqlalchemy import StaticPool, create_engine, select
from sqlalchemy.orm import Session

from pulsar_advisor.execution.cluster.cluster_port import Override, Reply, Split, Unload
from pulsar_advisor.execution.consent.approval import approve, propose
from pulsar_advisor.execution.ledger import held_run, rolls, runs
from pulsar_advisor.execution.ledger.approvals import Terms
from pulsar_advisor.execution.ledger.ledger import READS, Ledger
from pulsar_advisor.execution.ledger.opening import _make_sqlite_transactional, open_ledger
from pulsar_advisor.execution.ledger.runs import LEASE_MS
from pulsar_advisor.execution.ledger.switches import switched_off
from pulsar_advisor.execution.ledger.tables import Run
from pulsar_advisor.execution.roll.conduct import Roll
from pulsar_advisor.execution.roll.status import status_of
from pulsar_advisor.execution.run.guard.settings import GUARDED, OFF
from pulsar_advisor.execution.throttle import ApplyThrottle
from pulsar_advisor.model.bounds import MAX_AGE
from pulsar_advisor.model.errors import AdvisorError, ClusterUnreachable, StorageError
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.storage.process import this_process
from unit.execution.actors import ALICE, BOB, FOUR_EYES
from unit.execution.doubles import FakeTime, Killed
from unit.execution.roll.doubles import RestartedCluster, roll_of, rolled

APPROVED: Final = "a run begins, goes on and sends each call only while its plan is approved"
UNBALANCED: Final = "a run sends only while the cluster's own balancer is off"
UNDISTURBED: Final = "nothing is unloaded, nor the balancer switched on, under a run of another process that lives"
ONCE: Final = "what has arrived is not sent again"
KNOWN: Final = "what is off is in the ledger"
EMPTY: Final = "a broker is named for its restart only while it serves nothing, and the balancer can't fill it"
FORESEEN: Final = "no command ends with a failure that nobody foresaw"
COMES_TO_REST: Final = "once nothing disturbs, all that was begun ends by the commands that people are shown"

HOUR_S: Final = 3600
UNLOADS_LATE_S: Final = 40.0
"""When a late unload acts: before its process may give it up."""
SWITCHES_LATE_S: Final = 100.0
"""When a late call about the balancer acts: before it counts as lost."""
THROTTLE: Final = ApplyThrottle(max_age_s=MAX_AGE.greatest, on_drift="skip", pause_s=1.0, canary_hold_s=2.0, guard=True)

Outage = Literal["", "busy", "refused", "unanswered", "late", "unreadable"]
"""What becomes of calls: not carried out, with an answer or without; carried out at once or later, without an answer.
`unreadable`: reads fail, too."""


class Event(Protocol):
    def happen(self, world: World) -> None: ...


class At(NamedTuple):
    """What happens to a process at one of its instants."""

    did: str
    """What it did last: the kind of an event that it recorded, `unload`, `off` or `on` for a call that it sent, `wait`,
    or `begin`."""
    nth: int
    """How often it had done that."""
    since: int
    """How many instants ago that was; 0: just now."""
    event: Event | None
    """None: the process dies."""


class Seen(NamedTuple):
    """How the world was."""

    is_balanced: bool
    ms: int
    changes: int


@dataclass
class Pulsar(RestartedCluster):
    """A cluster with outages, whose own balancer moves bundles while it is on."""

    outage: Outage = ""
    until_ms: int = 0
    since: dict[str, int] = field(default_factory=dict)
    """Since which change each bundle has been where it is."""
    changes: int = 0

    @property
    def present(self) -> Outage:
        return self.outage if self.time.ms < self.until_ms else ""

    @property
    def is_balanced(self) -> bool:
        return any(self.overrides.get(name) != OFF for name in GUARDED)

    @property
    def is_at_work(self) -> bool:
        return bool(self._later)

    def send(self, write: Unload | Split | Override) -> Reply:
        outage = self.present
        if outage in ("busy", "refused", "unreadable"):
            return Reply(503, "busy") if outage == "busy" else Reply(None, "connection refused")
        if outage == "late":
            self.later(SWITCHES_LATE_S if isinstance(write, Override) else UNLOADS_LATE_S, lambda: self.act(write))
        else:
            self.act(write)
        return Reply(None, "timed out") if outage else Reply(204, "")

    def act(self, write: Unload | Split | Override) -> None:
        self.changes += 1
        if isinstance(write, Override):
            self._override(write)
        elif isinstance(write, Unload) and write.destination in self.brokers:
            self.bring(f"{write.namespace}/{write.bundle}", write.destination)

    def bring(self, bundle: str, broker: str) -> None:
        self.changes += 1
        self.owners[bundle], self.since[bundle] = broker, self.changes


class Process:
    """One process of the advisor, from its beginning to its end."""

    def __init__(self, world: World, troubles: Sequence[At]) -> None:
        self.world, self.troubles, self.id, self.is_dead = world, troubles, world.next_pid, False
        self.ledger, self.port = LedgerOfProcess(self), PortOfProcess(self)
        self.clock = replace(world.time.clock, sleep=self.sleep)
        self.last, self.done, self.since = "begin", Counter(["begin"]), 0
        self.seen = deque([world.seen()], maxlen=2)
        """How the world was after what it did last, and before that: nobody can look and send at once."""

    def did(self, what: str) -> None:
        self.last, self.since = what, 0
        self.done[what] += 1
        self.pass_by()
        self.seen.append(self.world.seen())

    def pass_by(self) -> None:
        """One instant."""
        if self.is_dead:  # nothing that would tidy up has an effect any more
            raise Killed
        self.world.look()
        now, self.since = (self.last, self.done[self.last], self.since), self.since + 1
        for trouble in self.troubles:
            if trouble[:3] == now:
                if trouble.event is None:
                    self.is_dead = True
                    raise Killed
                trouble.event.happen(self.world)
                self.world.running = self.id
                self.world.look()

    def sleep(self, seconds: float) -> None:
        last, since = self.last, self.since
        self.did("wait")
        self.last, self.since = last, since
        self.world.time.pass_s(max(seconds, 1.0))

    def line(self, text: str) -> None:
        self.world.require("unexpected failure" not in text, FORESEEN, text)

    def roll(self, plan: Plan) -> Roll:
        of = roll_of(plan, self.ledger, self.world.pulsar, progress=self.line, clock=self.clock)
        return replace(of, cluster=self.port)


@cache
def empty_ledger() -> bytes:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "ledger.sqlite"
        open_ledger(f"sqlite:///{file}", FakeTime().now_ms).close()
        return file.read_bytes()


class QuickLedger(Ledger):
    """A ledger in memory with one connection, whose reads share a session: nothing happens within one."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        connection = sqlite3.connect(":memory:")
        connection.deserialize(empty_ledger())
        writes, reads = (create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool) for _ in "wr")
        _make_sqlite_transactional(writes)
        super().__init__(writes, now_ms)
        self.reader = Session(reads)

    @contextmanager
    def _transaction(self, *options: str) -> Iterator[Session]:
        if READS in options:
            yield self.reader
            return
        with super()._transaction(*options) as session:
            yield session
        self.reader.expunge_all()


class LedgerOfProcess(QuickLedger):
    """Its connection to the ledger."""

    def __init__(self, process: Process) -> None:
        vars(self).update(vars(process.world.ledger))
        self.process, self.added = process, list[str]()

    @contextmanager
    def writing(self) -> Iterator[Session]:
        self.process.pass_by()
        self.added = []
        try:
            with super().writing() as session:
                yield session
        except BaseException:
            self.process.world.events += 1  # what it added is not there
            raise
        for kind in self.added:
            self.process.did(kind)

    def add_event(self, session: Session, digest: str, kind: str, detail: str, *more: Any, **others: Any) -> None:
        super().add_event(session, digest, kind, detail, *more, **others)
        self.added.append(kind)
        self.process.world.recorded(self.process, digest, kind, detail)


class PortOfProcess:
    """Its connection to the cluster."""

    def __init__(self, process: Process) -> None:
        self.process, self.world = process, process.world

    def __getattr__(self, name: str) -> Callable[..., object]:
        def read(*arguments: Any) -> object:
            if self.process.is_dead:
                raise Killed
            if self.world.pulsar.present == "unreadable":
                raise ClusterUnreachable("an answer was lost")
            return getattr(self.world.pulsar, name)(*arguments)

        return read

    def send(self, call: Unload | Override) -> Reply:
        self.process.pass_by()
        self.world.sends(self.process, call)
        reply = self.world.pulsar.send(call)
        self.process.did("unload" if isinstance(call, Unload) else "off" if call.value == OFF else "on")
        return reply


class World:
    """All that there is, and what has gone wrong in it."""

    def __init__(self) -> None:
        self.time = FakeTime()
        small = rolled(self.time)
        self.pulsar = Pulsar(self.time, bounds=small.bounds, owners=small.owners, all_topics=small.all_topics)
        self.ledger = QuickLedger(self.time.now_ms)
        self.plans: dict[str, Plan] = {}
        """By digest, oldest first; for a roll, not those of its later turns."""
        self.approved_until_ms: dict[str, int] = {}
        """Of the plans that Bob has approved, unless he has withdrawn that."""
        self.drained: tuple[str, str] | None = None
        """The roll and the broker that were last recorded as drained."""
        self.living: set[int] = set()
        self.running = self.next_pid = 1000
        self.events = 0
        self.looked: object = None
        self.wrong: list[str] = []

    def require(self, holds: bool, rule: str, about: object = "") -> None:
        """Note that a rule is broken: raised here, the advisor would take it for a failure of its own."""
        if not holds:
            self.wrong.append(f"{rule}: {about}")

    @contextmanager
    def exists(self) -> Iterator[None]:
        """While the block runs, the processes are those of this world; they renew a lease only where they write."""
        me, recorded = this_process(), rolls._recorded
        # Read once until something is recorded: most of a walk's time would go there.
        known: dict[tuple[int, str], rolls.RecordedRoll] = {}

        def remembered(session: Session, digest: str) -> rolls.RecordedRoll:
            if (key := (self.events, digest)) not in known:
                known[key] = recorded(session, digest)
            return known[key]

        with (
            mock.patch.object(held_run, "this_process", lambda: replace(me, id=self.running)),
            mock.patch.object(held_run, "repeated", lambda *_: nullcontext()),
            mock.patch.object(runs, "has_ended", lambda holder: holder.id not in self.living),
            mock.patch.object(rolls, "_recorded", remembered),
        ):
            yield
        self.ledger.reader.close()
        self.ledger.close()

    @contextmanager
    def process(self, troubles: Sequence[At] = ()) -> Iterator[Process]:
        """A process; it ends with the block, which an error of the advisor's or its death may cut short."""
        self.next_pid += 1
        process, before = Process(self, troubles), self.running
        self.living.add(process.id)
        self.running = process.id
        try:
            yield process
        except Killed:
            pass
        except AdvisorError as error:
            self.require(not isinstance(error, StorageError), FORESEEN, error)
        finally:
            self.living.remove(process.id)
            self.running = before

    def approve(self, plan: Plan) -> None:
        """Alice proposes a plan, and Bob approves it for an hour, unless he has."""
        digest = digest_of(plan)
        if self.approved_until_ms.get(digest, 0) > self.time.ms:
            return
        with self.process() as by:
            if digest not in self.plans:
                propose(by.ledger, plan, ALICE)
                self.plans[digest] = plan
            terms = Terms(throttle=THROTTLE, valid_for_s=HOUR_S, consents=("worse",))
            row = approve(by.ledger, plan, digest=digest, approver=BOB, policy=FOUR_EYES, terms=terms)
            self.approved_until_ms[digest] = row.expires_at_ms

    def seen(self) -> Seen:
        return Seen(self.pulsar.is_balanced, self.time.ms, self.pulsar.changes)

    def recorded(self, by: Process, digest: str, kind: str, detail: str) -> None:
        """A process is recording an event."""
        self.events += 1
        if kind in ("turn begun", "broker drained"):
            self.drained = (digest, json.loads(detail)["broker"]) if kind == "broker drained" else None
        if kind in ("run started", "run resumed", "run continued", "step sent"):
            plan = rolls.roll_of_plan(self.ledger, digest) or digest
            self.require(self.approved_until_ms.get(plan, 0) > by.seen[-1].ms, APPROVED, kind)

    def sends(self, by: Process, call: Unload | Override) -> None:
        """A process is sending a call."""
        if isinstance(call, Override) and call.value == OFF:
            return
        with self.ledger.reading() as session:
            active = session.scalars(select(Run).where(Run.state == "active")).all()
        for run in active:
            is_anothers = run.pid in self.living - {by.id} and self.time.ms - run.heartbeat_at_ms <= LEASE_MS
            self.require(not is_anothers, UNDISTURBED, f"run {run.id}, {call}")
        if isinstance(call, Unload):
            bundle = f"{call.namespace}/{call.bundle}"
            self.require(not all(seen.is_balanced for seen in by.seen), UNBALANCED, bundle)
            has_arrived = self.pulsar.owners[bundle] == call.destination
            self.require(not has_arrived or self.pulsar.since.get(bundle, inf) > by.seen[0].changes, ONCE, bundle)

    def look(self) -> None:
        """What anybody may see now."""
        self.pulsar.cluster_name()  # what is late may act
        now = (self.events, self.pulsar.changes)
        if now == self.looked or self.drained is None:
            return
        self.looked = now
        roll, broker = self.drained
        if self.pulsar.is_balanced or self.pulsar.owned_bundles(broker):
            is_named = status_of(self.ledger, self.plans[roll]).restart == broker
            self.require(not is_named, EMPTY, f"{broker}, {self.pulsar.overrides}, {self.pulsar.owners}")

    def check(self) -> None:
        """What must hold between two commands."""
        self.look()
        known = {switch.setting for switch in switched_off(self.ledger)}
        self.require(known >= self.pulsar.overrides.keys(), KNOWN, self.pulsar.overrides)
