"""The history of a roll: its turns and their plans, the brokers restarted, and how it ended.

These are events of the roll's own plan. The plan of a later turn has an event that names the roll.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from pulsar_advisor.execution.ledger.ledger import Ledger, recorded
from pulsar_advisor.execution.ledger.pauses import PAUSE_LIFTED, pause_of_plan
from pulsar_advisor.execution.ledger.runs import STEP_SENT, is_held, kind_of_end
from pulsar_advisor.execution.ledger.tables import Approval, Event, PlanRecord, PlanSummary, Run
from pulsar_advisor.execution.person import Person
from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.plans.goal import ROLL
from pulsar_advisor.model.text.reader import reader

TURN_BEGUN: Final = "turn begun"
_DRAINED: Final = "broker drained"
_ANNOUNCED: Final = "restart announced"
_RESTARTED: Final = "broker restarted"
_ENDED: Final = "roll ended"
_GIVEN_UP: Final = "roll given up"
_TAKEN_UP: Final = "roll taken up"
_OF: Final = "turn of a roll"

ALL_RESTARTED: Final = "every broker was restarted"
"""Why a roll ends by itself."""


@dataclass(frozen=True)
class RollTurn:
    """A turn that was begun."""

    broker: str
    plan: str | None
    """The digest of the plan that drains the broker. Earlier releases recorded None where it had nothing to move; as no
    run is of it, such a turn is planned again."""
    started_at_ms: int | None
    """When the broker's process had started, by its own clock; None if it doesn't say."""
    moves: int = 0
    """Unloads of that plan."""
    moves_in_all: int = 0
    """Unloads of this turn and, as expected at that time, of the turns after it."""


@dataclass(frozen=True)
class _OfBroker:
    """What the events say that a broker is drained, or was restarted."""

    broker: str


@dataclass(frozen=True)
class _Announced:
    """What the event says that somebody announces a restart."""

    broker: str
    by: str
    source: str


@dataclass(frozen=True)
class _Ended:
    """What the end of a roll says."""

    why: str


@dataclass(frozen=True)
class _OfRoll:
    """What the plan of a later turn says."""

    roll: str


@dataclass(frozen=True)
class RecordedRoll:
    """What happened so far."""

    turns: tuple[RollTurn, ...] = ()
    """Oldest first. A turn whose plan was made again appears again."""
    is_drained: bool = False
    """Whether the broker of the last turn was seen to have nothing left that clients use."""
    announced: Person | None = None
    """Who says that this broker has been restarted, if somebody does."""
    announced_at_ms: int | None = None
    """When they said so."""
    restarted: tuple[str, ...] = ()
    """Brokers (ids), in the order of their restarts."""
    ended: str | None = None
    """Why it ended, in words; None while it hasn't."""
    pause: str | None = None
    """Who asked for a pause, in words; None without a request, or once it was lifted."""
    is_turn_again: bool = False
    """Whether the balancer was on since the broker was emptied, or another plan's call was sent since its turn began:
    its turn is planned again, and switches the balancer off."""
    is_given_up: bool = False
    """Whether whatever carried it on, such as a task, has ended, and nothing has taken it up since."""

    @property
    def turn(self) -> RollTurn | None:
        """The turn in progress: its broker has not been restarted yet."""
        last = self.turns[-1] if self.turns else None
        return None if last is None or last.broker in self.restarted else last


def recorded_roll(ledger: Ledger, digest: str) -> RecordedRoll:
    """What happened in the roll with this digest."""
    with ledger.reading() as session:
        return _recorded(session, digest)


def _recorded(session: Session, digest: str) -> RecordedRoll:
    kinds = (TURN_BEGUN, _DRAINED, _ANNOUNCED, _RESTARTED, _ENDED, _GIVEN_UP, _TAKEN_UP, PAUSE_LIFTED)
    seen = RecordedRoll()
    for event in session.scalars(select(Event).where(Event.digest == digest, Event.kind.in_(kinds)).order_by(Event.id)):
        seen = _after(session, seen, event)
    is_waiting = seen.is_drained and seen.announced is None and seen.ended is None and seen.turn is not None
    if is_waiting and _others_move(session, digest, seen.turns):
        seen = replace(seen, is_drained=False, is_turn_again=True)
    return replace(seen, pause=pause_of_plan(session, digest))


def _after(session: Session, seen: RecordedRoll, event: Event) -> RecordedRoll:
    """The roll after one more event."""
    unannounced = replace(seen, announced=None, announced_at_ms=None)
    if event.kind == TURN_BEGUN:
        turns = (*seen.turns, recorded(event, RollTurn))
        return replace(unannounced, turns=turns, is_drained=False, is_turn_again=False)
    if event.kind == _DRAINED:
        return replace(seen, is_drained=recorded(event, _OfBroker).broker in {turn.broker for turn in seen.turns[-1:]})
    if event.kind == _ANNOUNCED:
        said = recorded(event, _Announced)
        if said.broker in seen.restarted:  # somebody else said so, too, and the roll has gone on
            return seen
        return replace(seen, announced=Person(said.by, said.source), announced_at_ms=event.at_ms)
    if event.kind == _RESTARTED:
        return replace(unannounced, restarted=(*seen.restarted, recorded(event, _OfBroker).broker))
    if event.kind == _ENDED:
        return replace(seen, ended=recorded(event, _Ended).why)
    if event.kind != PAUSE_LIFTED:
        seen = replace(seen, is_given_up=event.kind == _GIVEN_UP)
    # The cluster's own balancer was on meanwhile. A run's pause doesn't count.
    is_moved = seen.is_drained or _is_moved(session, seen.turns, event.id)
    if is_moved and seen.announced is None and event.run_id is None:
        return replace(seen, is_drained=False, is_turn_again=True)
    return seen


def _is_moved(session: Session, turns: Sequence[RollTurn], before: int) -> bool:
    """Whether the last turn's plan was carried out before an event."""
    if not turns:
        return False
    done = select(Event.id).where(Event.digest == turns[-1].plan, Event.kind == kind_of_end("done"), Event.id < before)
    return session.scalars(done.limit(1)).one_or_none() is not None


def _others_move(session: Session, roll: str, turns: Sequence[RollTurn]) -> bool:
    """Whether another plan's call was sent to the roll's cluster since its last turn began.

    One may run while the roll's approval isn't in force, also between the last look at the broker and its record.
    """
    cluster = select(PlanRecord.cluster_name).where(PlanRecord.digest == roll).scalar_subquery()
    begun = select(func.max(Event.id)).where(Event.digest == roll, Event.kind == TURN_BEGUN).scalar_subquery()
    sent = select(Event.id).join(Run, Run.id == Event.run_id).where(Event.id > begun, Event.kind == STEP_SENT)
    of_others = sent.where(Run.cluster_name == cluster, Run.digest.not_in(_plans(roll, turns)))
    return session.scalars(of_others.limit(1)).one_or_none() is not None


def add_turn(ledger: Ledger, session: Session, roll: str, turn: RollTurn) -> None:
    """Record within a write transaction that a turn of the roll with this digest begins."""
    ledger.add_event(session, roll, TURN_BEGUN, _detail(asdict(turn)))
    if turn.plan is not None and turn.plan != roll:
        ledger.add_event(session, turn.plan, _OF, _detail({"roll": roll}))


def has_gone_on(session: Session, roll: str, seen: RecordedRoll) -> bool:
    """Whether a turn was begun, a broker restarted or the roll ended since it was seen like this."""
    now = _recorded(session, roll)
    return (now.turns, now.restarted, now.ended) != (seen.turns, seen.restarted, seen.ended)


def record_drained(ledger: Ledger, roll: str, broker: str, seen: RecordedRoll) -> bool:
    """Record that the broker whose turn it is has nothing left that clients use, unless the roll isn't as `seen` then.

    Returns whether it is recorded.
    """
    return _record_if(ledger, roll, seen, _DRAINED, {"broker": broker})


def _record_if(ledger: Ledger, roll: str, seen: RecordedRoll, kind: str, said: Mapping[str, str]) -> bool:
    with ledger.writing() as session:
        is_as_seen = _recorded(session, roll) == seen
        if is_as_seen:
            ledger.add_event(session, roll, kind, _detail(said))
        return is_as_seen


def record_announced(ledger: Ledger, roll: str, broker: str, person: Person, seen: RecordedRoll) -> bool:
    """Record that somebody says that the broker whose turn it is has been restarted, as `record_drained` does."""
    said = {"broker": broker, "by": person.name, "source": person.source}
    return _record_if(ledger, roll, seen, _ANNOUNCED, said)


def record_restarted(ledger: Ledger, roll: str, broker: str, how: str) -> None:
    """Record that the broker whose turn it was has been restarted, and how that is known. Recorded only once."""
    with ledger.writing() as session:
        if broker not in _recorded(session, roll).restarted:
            ledger.add_event(session, roll, _RESTARTED, _detail({"broker": broker, "how": how}))


def record_end(ledger: Ledger, roll: str, why: str) -> None:
    """Record the end of a roll: it has no further turn. Recorded only once."""
    with ledger.writing() as session:
        if _recorded(session, roll).ended is None:
            ledger.add_event(session, roll, _ENDED, _detail({"why": why}))


def give_up(ledger: Ledger, roll: str) -> None:
    """Record that the process of a roll that isn't over has ended: the balancer is switched on again."""
    with ledger.writing() as session:
        recorded = _recorded(session, roll)
        if recorded.turns and recorded.ended is None and not recorded.is_given_up:
            ledger.add_event(session, roll, _GIVEN_UP, _detail({}))


def take_up(ledger: Ledger, roll: str) -> None:
    """Record that a roll that was given up is carried on again."""
    with ledger.writing() as session:
        if _recorded(session, roll).is_given_up:
            ledger.add_event(session, roll, _TAKEN_UP, _detail({}))


def gone_on_again(session: Session, roll: str) -> Event | None:
    """The last event by which a roll that was paused, or given up, goes on; None if there is none."""
    again = Event.kind.in_((PAUSE_LIFTED, _TAKEN_UP))
    events = select(Event).where(Event.digest == roll, Event.run_id.is_(None), again)
    return session.scalars(events.order_by(Event.id.desc()).limit(1)).one_or_none()


def plans_of_roll(session: Session, roll: str) -> tuple[str, ...]:
    """The digests of the plans of its turns, oldest first; the roll's own plan comes first."""
    return _plans(roll, _recorded(session, roll).turns)


def _plans(roll: str, turns: Sequence[RollTurn]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((roll, *(turn.plan for turn in turns if turn.plan))))


def active_run_of_roll(session: Session, roll: str) -> int | None:
    """The number of the active run among its turns; None if no run is active."""
    active = select(Run.id).where(Run.digest.in_(plans_of_roll(session, roll)), Run.state == "active")
    return session.scalars(active.limit(1)).one_or_none()


def runs_of_roll(ledger: Ledger, roll: str) -> Sequence[Run]:
    """The runs of its turns, oldest first."""
    with ledger.reading() as session:
        return _runs(session, roll)


def roll_and_runs(ledger: Ledger, roll: str) -> tuple[RecordedRoll, Sequence[Run]]:
    """Both of one moment, so that no run is of a turn that was begun later."""
    with ledger.reading() as session:
        return _recorded(session, roll), _runs(session, roll)


def _runs(session: Session, roll: str) -> Sequence[Run]:
    digests = plans_of_roll(session, roll)
    return session.scalars(select(Run).where(Run.digest.in_(digests)).order_by(Run.id)).all()


def roll_of_plan(ledger: Ledger, digest: str) -> str | None:
    """The digest of the roll that a plan is a turn of, or of the plan itself if it is a roll; else None."""
    with ledger.reading() as session:
        return _roll_of(session, digest)


def _roll_of(session: Session, digest: str) -> str | None:
    summary = session.get(PlanSummary, digest)
    if summary is None or summary.shedder != ROLL:
        return None
    named = select(Event).where(Event.digest == digest, Event.kind == _OF).order_by(Event.id).limit(1)
    of = session.scalars(named).one_or_none()
    return digest if of is None else recorded(of, _OfRoll).roll


def goes_on(ledger: Ledger, roll: str) -> bool:
    """Whether a roll that was begun still goes on: it moves bundles, or waits for a restart.

    It doesn't go on if it or its approval has ended, while it is paused or given up, or if the last turn's run ended
    early or lost its process: then a person has to look first.
    """
    now_ms = ledger.latest_ms()
    with ledger.reading() as session:
        return _goes_on(ledger, session, roll, now_ms)


def _goes_on(ledger: Ledger, session: Session, roll: str, now_ms: int) -> bool:
    runs, recorded = _runs(session, roll), _recorded(session, roll)
    if not runs or recorded.ended is not None or recorded.pause is not None or recorded.is_given_up:
        return False
    approvals = session.scalars(select(Approval).where(Approval.digest == roll)).all()
    if not any(approval.is_in_force(now_ms) for approval in approvals):
        return False
    return runs[-1].state == "done" or is_held(ledger, runs[-1])


def roll_under_way(ledger: Ledger, cluster_name: str) -> str | None:
    """The digest of the roll in progress on a cluster (Pulsar's own name), if any."""
    now_ms = ledger.latest_ms()
    with ledger.reading() as session:
        return _under_way(ledger, session, cluster_name, now_ms)


def require_no_other_roll(ledger: Ledger, session: Session, cluster_name: str, digest: str, now_ms: int) -> None:
    """Raise `Refused` within a transaction if a roll is under way on a cluster that this plan is no turn of.

    That plan could fill a drained broker, and whatever ends switches the balancer on. `now_ms` is `Ledger.latest_ms`,
    asked before the transaction.
    """
    other = _under_way(ledger, session, cluster_name, now_ms)
    if other is not None and other != _roll_of(session, digest):
        raise Refused(wait_for_roll(other))


def _under_way(ledger: Ledger, session: Session, cluster_name: str, now_ms: int) -> str | None:
    newest = (
        select(Run.digest)
        .join(PlanSummary, PlanSummary.digest == Run.digest)
        .where(Run.cluster_name == cluster_name, PlanSummary.shedder == ROLL)
        .order_by(Run.id.desc())
        .limit(1)
    )
    digest = session.scalars(newest).one_or_none()
    roll = None if digest is None else _roll_of(session, digest)
    return roll if roll is not None and _goes_on(ledger, session, roll, now_ms) else None


def wait_for_roll(roll: str) -> str:
    """Why nothing else may be carried out on a cluster while this roll is under way, and what to do."""
    return f"the roll {roll} is under way on this cluster: wait for its end, or {reader().end_roll}"


def open_rolls(ledger: Ledger, cluster: str) -> Sequence[str]:
    """The digests of the rolls begun on a cluster (its name in the root) that aren't over, the newest first.

    There may be several: one that is paused or given up keeps no other from beginning.
    """
    of_rolls = select(Event.digest).join(PlanSummary, PlanSummary.digest == Event.digest)
    begun = of_rolls.where(
        PlanSummary.cluster == cluster, PlanSummary.shedder == ROLL, Event.kind.in_((TURN_BEGUN, _ENDED))
    )
    still = begun.group_by(Event.digest).having(func.sum(case((Event.kind == _ENDED, 1), else_=0)) == 0)
    return ledger.all(still.order_by(func.min(Event.id).desc()))


def _detail(values: Mapping[str, str | int | None]) -> str:
    return json.dumps(values, sort_keys=True)
