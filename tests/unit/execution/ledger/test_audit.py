from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from sqlalchemy import create_engine, text

from pulsar_advisor.documents.document import as_json
from pulsar_advisor.execution.consent.approval import standing_approval, withdraw
from pulsar_advisor.execution.ledger.audit import audit
from pulsar_advisor.execution.ledger.chain import ChainHead
from pulsar_advisor.execution.ledger.held_run import start_run
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.plans.sealed import digest_of
from unit.execution.actors import ALICE, FOUR_EYES, approved, run
from unit.execution.doubles import FakeCluster, FakeTime, make_plan, split_step, unload_step
from unit.properties import examples

PLAN = make_plan([unload_step(), split_step()])


@pytest.fixture
def used(ledger: Ledger, cluster: FakeCluster) -> Ledger:
    """A plan that was approved, withdrawn, approved again and carried out."""
    approved(ledger, PLAN)
    withdraw(ledger, digest_of(PLAN), ALICE, "not now")
    run(approved(ledger, PLAN), ledger, cluster)
    return ledger


def behind_its_back(folder: Path, *changes: str) -> None:
    """Change the database as its owner can: without its guards, which are put back afterwards."""
    with create_engine(f"sqlite:///{folder}/ledger.sqlite").begin() as connection:
        guards = connection.execute(text("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")).all()
        for name, _ in guards:
            connection.execute(text(f"DROP TRIGGER {name}"))
        for change in changes:
            connection.exec_driver_sql(change)
        for _, statement in guards:
            connection.execute(text(statement))


def test_a_ledger_that_was_only_used_is_as_it_was_written(used: Ledger) -> None:
    result = audit(used)
    assert (result.exit_code, result.findings, result.head) == (0, (), str(used.head()))
    assert used.head().event == len(used.events(digest_of(PLAN)))


def test_hashes_follow_from_the_columns_as_the_page_of_formats_says(used: Ledger, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as database:
        database.row_factory = sqlite3.Row
        hashes: dict[str, str] = {}
        chain = ""
        for event in database.execute("SELECT * FROM events ORDER BY id"):
            hashes |= json.loads(event["rows"])
            link = {"event": hash_of(event, columns_of(database, "events"), "chain"), "previous": chain}
            chain = sha256(canonical(link)).hexdigest()
            assert event["chain"] == chain
        for name, expected in hashes.items():
            table, _, key = name.partition("/")
            columns = columns_of(database, table)
            row = database.execute(f"SELECT * FROM {table} WHERE {next(iter(columns))} = ?", [key]).fetchone()
            assert hash_of(row, columns, "heartbeat_at_ms") == expected
    assert {name.partition("/")[0] for name in hashes} == {"plans", "proposals", "approvals", "runs", "steps"}


def columns_of(database: sqlite3.Connection, table: str) -> dict[str, str]:
    """Column -> its declared type, the primary key first."""
    return {column["name"]: column["type"] for column in database.execute(f"PRAGMA table_info({table})")}


def hash_of(row: sqlite3.Row, columns: dict[str, str], left_out: str) -> str:
    """The hash of a row without NULLs and this column."""
    values = {name: row[name] for name in columns if row[name] is not None and name != left_out}
    typed = {name: bool(value) if columns[name] == "BOOLEAN" else value for name, value in values.items()}
    return sha256(canonical(typed)).hexdigest()


def canonical(value: dict[str, object]) -> bytes:
    """RFC 8785, for values without fractions."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def test_an_empty_ledger_is_intact(ledger: Ledger) -> None:
    assert as_json(audit(ledger)) == {
        "schema": "pulsar-advisor/audit-result/1",
        "intact": True,
        "head": "0:",
        "findings": [],
        "known_heads": 0,
        "newest_known_head": None,
    }


def test_the_head_of_an_empty_ledger_is_reached_by_whatever_follows(ledger: Ledger, cluster: FakeCluster) -> None:
    before = ChainHead.parse(str(ledger.head()))
    assert audit(ledger, [before]).findings == ()
    run(approved(ledger, PLAN), ledger, cluster)
    assert audit(ledger, [before]).findings == ()


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize(
    ("change", "finding"),
    [
        ("UPDATE events SET detail = 'by carol' WHERE id = 2", r"event 2 \('approved'\) was changed"),
        ("UPDATE events SET at_ms = at_ms - 1 WHERE id = 4", "event 4"),
        ("UPDATE events SET rows = 'x' WHERE id = 2", "event 2 does not say which rows it wrote"),
        ("DELETE FROM events WHERE id = 3", "event 3 is missing"),
        ("DELETE FROM events", "approvals/1 was added by no event"),
        ("UPDATE events SET id = -id WHERE id IN (1, 2)", "event 1 is missing"),
        ("UPDATE approvals SET withdrawn_at_ms = NULL", "approvals/1 is not as event 3 left it"),
        ("UPDATE approvals SET approver = 'carol' WHERE id = 2", "approvals/2 is not as event"),
        ("UPDATE approvals SET expires_at_ms = expires_at_ms + 1 WHERE id = 2", "approvals/2 is not as event"),
        ("UPDATE approvals SET throttle = NULL WHERE id = 2", "approvals/2 is not as event"),
        ("UPDATE proposals SET proposer = 'bob'", "proposals/1 is not as event 1 left it"),
        ("DELETE FROM proposals", "proposals/1, which event 1 wrote, was removed"),
        ("UPDATE steps SET state = 'pending'", "steps/1 is not as event"),
        ("UPDATE runs SET state = 'aborted'", "runs/1 is not as event"),
        ("UPDATE plans SET document = '{}'", "holds a document with another digest"),
        ("DELETE FROM plans", "plan_summaries/.* belongs to no plan"),
        ("UPDATE plan_summaries SET last_event = 0", "plan_summaries/.* is not what its plan and events say"),
        ("UPDATE plan_summaries SET maximum_after = 0.01", "plan_summaries/.* is not what its plan and events say"),
        ("UPDATE plan_summaries SET maximum_after = 'low'", "plan_summaries/.* is not what its plan and events say"),
        ("UPDATE plan_summaries SET recorded_at_ms = 1", "plan_summaries/.* is not what its plan and events say"),
        (
            "INSERT INTO approvals SELECT 9, digest, approver, source, at_ms, expires_at_ms, comment, allows_splits, "
            "accepts_worse, NULL, accepts_low_confidence, throttle FROM approvals WHERE id = 1",
            "approvals/9 was added by no event",
        ),
    ],
)
def test_every_change_behind_its_back_is_found(used: Ledger, tmp_path: Path, change: str, finding: str) -> None:
    behind_its_back(tmp_path, "PRAGMA foreign_keys = OFF", change)
    assert re.search(finding, "; ".join(audit(used).findings))


def test_events_in_another_order_are_found(used: Ledger, tmp_path: Path) -> None:
    exchange = [f"UPDATE events SET id = {new} WHERE id = {old}" for old, new in ((4, -1), (5, 4), (-1, 5))]
    behind_its_back(tmp_path, *exchange)
    assert [finding.partition(" (")[0] for finding in audit(used).findings][:2] == ["event 4", "event 5"]


def test_a_heartbeat_is_no_change(ledger: Ledger, time: FakeTime) -> None:
    approved(ledger, PLAN)
    held = start_run(ledger, PLAN, standing_approval(ledger, PLAN, FOUR_EYES))
    time.pass_s(60)
    held.renew()
    assert audit(ledger).findings == ()


def test_a_head_from_the_middle_of_the_chain_is_reached(used: Ledger) -> None:
    event = used.events(digest_of(PLAN))[2]
    assert audit(used, [ChainHead.parse(f"{event.id}:{event.chain}")]).findings == ()


@pytest.mark.parametrize("words", ["", "17", "x:00", "3:ABC", "3:" + "g" * 64, "1" * 5000 + ":" + "0" * 64])
def test_a_head_has_a_number_and_a_hash(words: str) -> None:
    with pytest.raises(UsageError, match="expected NUMBER:HASH"):
        ChainHead.parse(words)


@pytest.mark.parametrize(
    "change", ["DROP TRIGGER approvals_final", "DROP TRIGGER events_no_replace; CREATE TRIGGER events_no_replace"]
)
def test_a_guard_that_is_gone_or_weaker_is_found(used: Ledger, tmp_path: Path, change: str) -> None:
    drop, _, create = change.partition("; ")
    with create_engine(f"sqlite:///{tmp_path}/ledger.sqlite").begin() as connection:
        connection.execute(text(drop))
        if create:
            connection.execute(text(f"{create} BEFORE INSERT ON events BEGIN SELECT 1; END"))
    assert audit(used).findings == (f"the trigger {drop.split()[-1]} was removed, disabled or changed",)


@given(st.data())
@examples(10, suppress_health_check=[HealthCheck.too_slow])
def test_no_single_value_can_be_changed_unnoticed(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("ledger")
    time = FakeTime()
    ledger = open_ledger(f"sqlite:///{folder}/ledger.sqlite", time.now_ms)
    run(approved(ledger, PLAN), ledger, FakeCluster(time))
    with ledger.reading() as session:
        tables = ("events", "plans", "proposals", "approvals", "runs", "steps")
        table = data.draw(st.sampled_from(tables))
        rows = session.execute(text(f"SELECT rowid AS place, * FROM {table}")).mappings().all()
    row = dict(data.draw(st.sampled_from(rows)))
    place = row.pop("place")
    column = data.draw(st.sampled_from(sorted(set(row) - {"heartbeat_at_ms", "state"})))
    value = row[column]
    other = f"{value}x" if isinstance(value, str) else 1 - value if value in (0, 1) else 7_000_000
    behind_its_back(
        folder, "PRAGMA foreign_keys = OFF", f"UPDATE {table} SET {column} = '{other}' WHERE rowid = {place}"
    )
    assert audit(ledger).findings != ()
    ledger.close()
