from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, event, text

from pulsar_advisor.execution.consent.approval import propose, withdraw
from pulsar_advisor.execution.ledger.approvals import record_refusal
from pulsar_advisor.execution.ledger.audit import audit
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.pauses import pause_requested
from pulsar_advisor.execution.ledger.plans import recorded_plan
from pulsar_advisor.execution.ledger.rolls import open_rolls
from pulsar_advisor.execution.ledger.steps import last_confirmed_at_ms
from pulsar_advisor.execution.ledger.switches import switched_off
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.plans.sealed import digest_of, load_plan
from unit.execution.actors import ALICE, started
from unit.execution.doubles import FakeTime, make_plan, unload_step

PLAN = make_plan([unload_step()])
DIGEST = digest_of(PLAN)


def test_a_plan_can_be_read_from_the_ledger_alone(ledger: Ledger, tmp_path: Path) -> None:
    propose(ledger, PLAN, ALICE)
    with create_engine(f"sqlite:///{tmp_path}/ledger.sqlite").connect() as connection:
        document = connection.scalar(text("SELECT document FROM plans"))
    assert load_plan(str(document).encode()) == recorded_plan(ledger, DIGEST) == PLAN


def test_a_plan_that_it_never_got_is_named(ledger: Ledger) -> None:
    with pytest.raises(UsageError, match=f"the ledger has no plan {DIGEST}"):
        recorded_plan(ledger, DIGEST)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("DELETE FROM events", "never removed"),
        ("UPDATE events SET detail = 'nothing'", "never changes"),
        ("REPLACE INTO events SELECT id, 0, digest, NULL, NULL, kind, '', '{}', '' FROM events", "never replaced"),
        ("DELETE FROM proposals", "never removed"),
        ("UPDATE proposals SET proposer = 'bob'", "never changes"),
        ("UPDATE approvals SET withdrawn_at_ms = NULL", "has ended never changes"),
        ("UPDATE approvals SET expires_at_ms = 9999999999999", "never changes"),
        ("REPLACE INTO approvals SELECT * FROM approvals", "never replaced"),
        ("DELETE FROM approvals", "never removed"),
        ("UPDATE plans SET document = '{}'", "never changes"),
        ("UPDATE runs SET digest = 'x'", "never changes"),
        ("UPDATE runs SET state = 'stopped'", "has ended never changes"),
        ("UPDATE steps SET state = 'pending'", "has ended never changes"),
        ("DELETE FROM steps", "never removed"),
    ],
)
def test_the_database_refuses_what_the_advisor_never_does(
    ledger: Ledger, tmp_path: Path, change: str, why: str
) -> None:
    run = started(ledger, PLAN)
    run.sent("step-001", "PUT …", None)
    run.conclude("step-001", "confirmed", "")
    run.end("done", "")
    withdraw(ledger, DIGEST, ALICE)
    engine = create_engine(f"sqlite:///{tmp_path}/ledger.sqlite")
    with engine.connect() as connection, pytest.raises(Exception, match=why):
        connection.execute(text(change))
    assert audit(ledger).findings == ()


@pytest.mark.parametrize(
    "query",
    [
        lambda ledger: pause_requested(ledger, 1),
        switched_off,
        lambda ledger: switched_off(ledger, "live"),
        lambda ledger: last_confirmed_at_ms(ledger, "live", "shop/orders", 1),
        lambda ledger: open_rolls(ledger, "demo"),
    ],
    ids=["a run's pause", "settings that runs switched off", "those of a cluster", "a namespace's last move", "rolls"],
)
def test_what_is_asked_for_each_step_or_page_reads_neither_all_events_nor_all_steps(
    ledger: Ledger, query: Callable[[Ledger], object]
) -> None:
    sent: list[tuple[Any, ...]] = []
    event.listen(ledger._engine, "before_cursor_execute", lambda *call: sent.append(call[2:4]))
    query(ledger)
    (asked,) = (statement for statement in sent if statement[0].startswith("SELECT"))
    with ledger.reading() as session:
        explained = session.connection().exec_driver_sql(f"EXPLAIN QUERY PLAN {asked[0]}", asked[1])
    whole = [row.detail for row in explained if "INDEX" not in row.detail]
    assert [detail for detail in whole if {"events", "steps"}.intersection(detail.split())] == []


def test_no_text_in_an_event_acts_on_a_terminal(ledger: Ledger) -> None:
    record_refusal(ledger, "sha256:0", "topic persistent://a/b/\x1b[2J\u202e")
    (event,) = ledger.events("sha256:0")
    assert event.detail == "topic persistent://a/b/\\x1b[2J\\u202e"


def test_a_time_that_is_none_is_not_the_latest(ledger: Ledger, tmp_path: Path, time: FakeTime) -> None:
    propose(ledger, PLAN, ALICE)
    with create_engine(f"sqlite:///{tmp_path}/ledger.sqlite").begin() as connection:
        connection.execute(text("DROP TRIGGER events_fixed"))
        connection.execute(text("UPDATE events SET at_ms = 'tomorrow'"))
    assert ledger.latest_ms() == time.ms
