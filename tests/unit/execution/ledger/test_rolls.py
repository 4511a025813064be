from __future__ import annotations

import pytest

from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.rolls import TURN_BEGUN, recorded_roll
from pulsar_advisor.execution.ledger.switches import switched_off
from pulsar_advisor.model.errors import StorageError
from unit.execution.actors import started
from unit.execution.doubles import MOVE, make_plan


@pytest.mark.parametrize(
    ("kind", "detail"),
    [
        *((TURN_BEGUN, detail) for detail in ("", "{", "[]", "null", "{}", '{"broker": 1, "plan": "sha256:00"}')),
        ("broker drained", '{"brokers": "b"}'),
        ("restart announced", '{"broker": "b", "by": "ann"}'),
        ("broker restarted", '{"broker": null}'),
        ("roll ended", "{}"),
    ],
)
def test_an_event_of_a_roll_that_can_not_be_read_is_named(ledger: Ledger, kind: str, detail: str) -> None:
    with ledger.writing() as session:
        ledger.add_event(session, "sha256:00", kind, detail)
    with pytest.raises(StorageError, match=rf"event 1 \('{kind}'\) can't be read"):
        recorded_roll(ledger, "sha256:00")


def test_a_broker_that_was_drained_before_any_turn_is_not_the_one_whose_turn_it_is(ledger: Ledger) -> None:
    with ledger.writing() as session:
        ledger.add_event(session, "sha256:00", "broker drained", '{"broker": "b"}')
    assert not recorded_roll(ledger, "sha256:00").is_drained


@pytest.mark.parametrize(
    ("kind", "detail"),
    [
        ("switched off", "{}"),
        ("switched off", '{"setting": "a", "before": 1}'),
        ("switched off", '{"setting": "a", "before": null, "effective": []}'),
        ("switched back", '{"how": "restored"}'),
    ],
)
def test_an_event_of_a_guard_that_can_not_be_read_is_named(ledger: Ledger, kind: str, detail: str) -> None:
    held = started(ledger, make_plan([MOVE]))
    with held.writing() as session:
        held.add_event(session, kind, detail)
    with pytest.raises(StorageError, match=rf"\('{kind}'\) can't be read"):
        switched_off(ledger)
