"""Dynamic settings that runs switched off, from just before the call until they are known to be restored."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Row, select
from sqlalchemy.orm import Session

from pulsar_advisor.execution.ledger.held_run import HeldRun
from pulsar_advisor.execution.ledger.ledger import Ledger, recorded
from pulsar_advisor.execution.ledger.rolls import gone_on_again
from pulsar_advisor.execution.ledger.runs import STEP_SENT
from pulsar_advisor.execution.ledger.tables import GUARD_EVENTS, OF_GUARDS, Event, Run

_SWITCHED_OFF, _SWITCHED_BACK = GUARD_EVENTS

LEFT_AS_IT_IS: Final = "left as it is"
"""How a setting is switched back that a person wants to stay off."""
MAY_ACT_MS: Final = 120_000
"""How long after its record a call may still act if nothing shows that it did: a proxy may hand it on to a broker when
whoever sent it has stopped waiting, or is gone."""


@dataclass(frozen=True)
class SwitchedOff:
    """A dynamic setting that a run switched off."""

    event: int
    """The event that recorded it: a run may switch a setting off more than once."""
    at_ms: int
    """When that was: just before the call."""
    run: int
    digest: str
    setting: str
    before: str | None
    """Its previous override; None: it had none."""
    written: str | None = None
    """The value that switched it off, which only the advisor writes; None in ledgers of earlier releases."""
    effective: Mapping[str, str] = field(default_factory=dict)
    """The value in each broker's memory before, by broker id; empty in ledgers of earlier releases."""

    @property
    def was_found(self) -> bool:
        """Whether it was off already as only the advisor leaves it: the run that did so is missing from the ledger."""
        return self.written is not None and self.before == self.written


@dataclass(frozen=True)
class _OfSetting:
    """What every event about a guard says."""

    setting: str
    how: str = ""
    """How it was switched back, in words."""


def record_switching_off(
    run: HeldRun, setting: str, before: str | None, written: str, effective: Mapping[str, str]
) -> None:
    """Record that a dynamic setting is about to be switched off; the arguments are those of `SwitchedOff`."""
    with run.writing() as session:
        switch = {"setting": setting, "before": before, "written": written, "effective": dict(effective)}
        detail = json.dumps(switch, sort_keys=True)
        run.add_event(session, _SWITCHED_OFF, detail)


def record_late(ledger: Ledger, run: HeldRun, setting: str) -> bool:
    """Record once more that a run, which may be over, has switched a setting off; returns whether that is recorded.

    Not if the ledger knows that it is off, or a person decided that it stays so.
    """
    with ledger.writing() as session:
        said = [row for row in _of_guards(session, run.cluster_name) if recorded(row, _OfSetting).setting == setting]
        if said[-1].kind == _SWITCHED_OFF or recorded(said[-1], _OfSetting).how.startswith(LEFT_AS_IT_IS):
            return False
        ours = next(row for row in reversed(said) if row.kind == _SWITCHED_OFF and row.run_id == run.id)
        run.add_event(session, _SWITCHED_OFF, ours.detail)
        return True


def record_switched_back(ledger: Ledger, switch: SwitchedOff, how: str) -> None:
    """Record that the advisor no longer keeps a setting switched off; not if a run has switched it off again since."""
    with ledger.writing() as session:
        if switch.event not in {still.event for still in _switched_off(session)}:
            return
        detail = json.dumps({"setting": switch.setting, "how": how}, sort_keys=True)
        ledger.add_event(session, switch.digest, _SWITCHED_BACK, detail, run=switch.run)


def switched_off(ledger: Ledger, cluster_name: str | None = None) -> Sequence[SwitchedOff]:
    """Settings of a cluster (default: all) that runs switched off and that are not known to be restored."""
    with ledger.reading() as session:
        return _switched_off(session, cluster_name)


def may_still_act(ledger: Ledger, switch: SwitchedOff) -> bool:
    """Whether the call that switches a setting off may act later: it is recent, and its run didn't go on after it."""
    went_on = select(Event.id).where(
        Event.run_id == switch.run, Event.id > switch.event, Event.kind.in_((_SWITCHED_OFF, STEP_SENT))
    )
    return ledger.now_ms() - switch.at_ms < MAY_ACT_MS and not ledger.all(went_on.limit(1))


def stays_off(ledger: Ledger, cluster_name: str, setting: str) -> bool:
    """Whether a setting was last left as a run had left it, by a person's decision."""
    with ledger.reading() as session:
        said = [recorded(row, _OfSetting) for row in _of_guards(session, cluster_name)]
    return next((one.how for one in reversed(said) if one.setting == setting), "").startswith(LEFT_AS_IT_IS)


def settled_at_ms(ledger: Ledger, cluster_name: str, roll: str) -> int:
    """From when on no earlier call can switch on what is recorded as off on a roll's cluster; 0 if none ever could.

    Only the outcome of such calls is recorded, so one may be on its way where a setting was given back within
    `MAY_ACT_MS` before it was switched off, was still off since an earlier run, or is off since before a pause of the
    roll was lifted, or the roll was taken up: until then, anybody may have restored it.
    """
    last: dict[str, Row[Any]] = {}
    settled: dict[str, int] = {}
    with ledger.reading() as session:
        for row in _of_guards(session, cluster_name):
            setting = recorded(row, _OfSetting).setting
            before = last.get(setting)
            is_disturbed = before is not None and (
                before.kind == _SWITCHED_OFF or row.at_ms - before.at_ms < MAY_ACT_MS
            )
            settled[setting] = row.at_ms + MAY_ACT_MS if row.kind == _SWITCHED_OFF and is_disturbed else 0
            last[setting] = row
        again = gone_on_again(session, roll)
    is_off = [row for row in last.values() if row.kind == _SWITCHED_OFF]
    at_ms = again.at_ms + MAY_ACT_MS if again is not None and any(row.id < again.id for row in is_off) else 0
    return max([at_ms, *settled.values()])


def _of_guards(session: Session, cluster_name: str | None) -> Sequence[Row[Any]]:
    """The events about guards on a cluster (None: on all), oldest first."""
    columns = (Event.id, Event.at_ms, Event.run_id, Event.digest, Event.kind, Event.detail, Run.cluster_name)
    of_guards = select(*columns).join(Run, Run.id == Event.run_id).where(OF_GUARDS)
    if cluster_name is not None:
        of_guards = of_guards.where(Run.cluster_name == cluster_name)
    # Ordered by SQLite, they would be looked for among all events, without their index.
    return sorted(session.execute(of_guards), key=lambda row: row.id)


def _switched_off(session: Session, cluster_name: str | None = None) -> Sequence[SwitchedOff]:
    """As `switched_off`."""
    off: dict[tuple[str, str], SwitchedOff] = {}
    for row in _of_guards(session, cluster_name):
        setting = recorded(row, _OfSetting).setting
        off.pop((row.cluster_name, setting), None)
        if row.kind == _SWITCHED_OFF:
            of_event = {"event": row.id, "at_ms": row.at_ms, "run": row.run_id, "digest": row.digest}
            off[row.cluster_name, setting] = recorded(row, SwitchedOff, **of_event)
    return tuple(off.values())
