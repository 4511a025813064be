"""The ledger on a real PostgreSQL: the same rules, enforced by that database."""

from __future__ import annotations

import re
import threading
import time as clock
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from sqlalchemy import URL, Pool, create_engine, event, make_url, text
from sqlalchemy.exc import ProgrammingError

from integration.scene import until
from pulsar_advisor.execution.consent.approval import propose, standing_approval, withdraw
from pulsar_advisor.execution.consent.policy import ApprovalPolicy
from pulsar_advisor.execution.ledger import opening, runs
from pulsar_advisor.execution.ledger.approvals import approvals_of_plan, record_refusal
from pulsar_advisor.execution.ledger.audit import audit
from pulsar_advisor.execution.ledger.held_run import LeaseLost, take_over
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.execution.ledger.proposals import proposals_of_plan
from pulsar_advisor.execution.ledger.runs import is_held, run_by_id, runs_of_plan
from pulsar_advisor.execution.ledger.seals import record_seal, seals_of_snapshot
from pulsar_advisor.execution.ledger.tables import Verification, VerifiedBroker
from pulsar_advisor.execution.ledger.trail import Trail
from pulsar_advisor.execution.ledger.upgrading import revisions
from pulsar_advisor.execution.ledger.verifications import record_verification
from pulsar_advisor.model.errors import Refused, StorageError
from pulsar_advisor.model.plans.sealed import digest_of, dump_plan
from pulsar_advisor.storage import store_clock
from unit.execution.actors import ALICE, approved, run, started
from unit.execution.doubles import FakeCluster, FakeTime, make_plan, split_step, unload_step

REPOSITORY = Path(__file__).parents[2]
PLAN = make_plan([unload_step(), split_step()])
WAITS = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


@pytest.fixture
def ledger(postgresql_url: str, time: FakeTime) -> Iterator[Ledger]:
    opened = open_ledger(postgresql_url, time.now_ms)
    yield opened
    opened.close()


def test_a_plan_is_carried_out_and_a_second_apply_does_nothing(ledger: Ledger, time: FakeTime) -> None:
    cluster = FakeCluster(time)
    plan = approved(ledger, PLAN)
    assert run(plan, ledger, cluster).outcome == "done"
    assert run(plan, ledger, cluster).outcome == "nothing_to_do"
    assert len(cluster.writes) == 2


def test_an_audit_beside_others_sees_one_moment(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    approved(ledger, PLAN)

    def trail_before_a_withdrawal(*of: object, **marks: object) -> Trail:
        trail = Trail(*of, **marks)  # type: ignore[arg-type]
        withdraw(ledger, digest_of(PLAN), ALICE, "not now")
        return trail

    monkeypatch.setattr("pulsar_advisor.execution.ledger.audit.Trail", trail_before_a_withdrawal)
    assert audit(ledger).findings == ()


def default(url: str, setting: str) -> None:
    """Let every session in the database begin with a setting, as an administrator may."""
    with create_engine(url).begin() as connection:
        connection.execute(text(f"ALTER DATABASE {make_url(url).database} SET {setting}"))


def test_a_writer_sees_what_was_written_while_it_waited_whatever_the_default_isolation(
    postgresql_url: str, time: FakeTime
) -> None:
    default(postgresql_url, "default_transaction_isolation = 'repeatable read'")
    with closing(open_ledger(postgresql_url, time.now_ms)) as ledger, ThreadPoolExecutor() as others:
        with ledger.writing() as session:
            ledger.add_event(session, digest_of(PLAN), "first", "")
            second = others.submit(propose, ledger, PLAN, ALICE)
            until(lambda: session.scalar(WAITS))
        second.result()
        assert [event.kind for event in ledger.events(digest_of(PLAN))] == ["first", "proposed"]


@pytest.mark.parametrize(
    "setting",
    [
        "client_encoding = 'LATIN1'",
        "client_encoding = 'SQL_ASCII'",
        "extra_float_digits = 0",
        "quote_all_identifiers = on",
    ],
)
def test_what_was_written_is_read_as_it_was_whatever_the_defaults(
    postgresql_url: str, time: FakeTime, setting: str
) -> None:
    default(postgresql_url, setting)
    with closing(open_ledger(postgresql_url, time.now_ms)) as ledger:
        held = started(ledger, PLAN)
        third = VerifiedBroker(broker="b1", actual_usage_ratio=1 / 3, as_predicted=True)
        verified = Verification(run_id=held.id, snapshot=PLAN.snapshot, at_ms=0, usage_judged=True, as_predicted=True)
        record_verification(ledger, verified, [], [third])
        record_refusal(ledger, held.digest, "Ελένη isn't there")
        assert ledger.events(held.digest)[-1].detail == "Ελένη isn't there"
        assert audit(ledger).findings == ()


@pytest.fixture
def limits_left() -> Iterator[list[tuple[str, ...]]]:
    """The limits that transactions leave in their sessions."""
    found: list[tuple[str, ...]] = []

    def look(connection: Any, _record: object) -> None:
        with connection.cursor() as cursor:
            limits = "current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout')"
            cursor.execute(f"SELECT {limits}")
            found.append(cursor.fetchone())
        connection.rollback()

    event.listen(Pool, "checkin", look)
    yield found
    event.remove(Pool, "checkin", look)


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_no_transaction_needs_or_leaves_anything_in_its_session_as_a_pooler_gives_the_next_one_another(
    postgresql_url: str, limits_left: list[tuple[str, ...]], driver: str
) -> None:
    prepared = text("SELECT count(*) FROM pg_prepared_statements")
    url = make_url(postgresql_url).set(drivername=f"postgresql+{driver}").render_as_string()
    with closing(open_ledger(url)) as ledger:
        propose(ledger, PLAN, ALICE)
        with ledger.reading() as session:
            assert [session.scalar(prepared) for _ in range(7)] == [0] * 7
    assert set(limits_left) == {("0", "0")}


@pytest.fixture
def taken() -> Iterator[list[int]]:
    """How many connections are in use, after each change."""
    found = [0]
    counts = {"checkout": lambda *_: found.append(found[-1] + 1), "checkin": lambda *_: found.append(found[-1] - 1)}
    for name, count in counts.items():
        event.listen(Pool, name, count)
    yield found
    for name, count in counts.items():
        event.remove(Pool, name, count)


@pytest.mark.parametrize("work", [lambda ledger: propose(ledger, PLAN, ALICE), Ledger.latest_ms], ids=["write", "read"])
def test_one_connection_is_in_use_at_a_time_as_a_second_might_wait_for_the_first(
    postgresql_url: str, monkeypatch: pytest.MonkeyPatch, taken: list[int], work: Callable[[Ledger], object]
) -> None:
    monkeypatch.setattr(store_clock, "ASK_EVERY_S", 600.0)
    monkeypatch.setattr(store_clock, "_ASKED_WITHIN_S", 600.0)
    with closing(open_ledger(postgresql_url)) as ledger:
        work(ledger)
    assert max(taken) == 1


def test_many_can_open_a_new_ledger_at_once(postgresql_url: str) -> None:
    threads = [threading.Thread(target=lambda: propose(open_ledger(postgresql_url), PLAN, ALICE)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(proposals_of_plan(open_ledger(postgresql_url), digest_of(PLAN))) == 4


def test_one_run_per_cluster_is_active(ledger: Ledger) -> None:
    started(ledger, PLAN)
    with pytest.raises(Refused, match="is active on cluster 'live'"):
        started(ledger, make_plan([unload_step()], seed=1))


def test_a_sequence_that_was_not_restored_with_its_rows_is_no_other_run(ledger: Ledger, postgresql_url: str) -> None:
    started(ledger, PLAN).end("done", "")
    with create_engine(postgresql_url).begin() as connection:
        connection.execute(text("ALTER SEQUENCE runs_id_seq RESTART"))
    with pytest.raises(StorageError, match=r"duplicate key .*runs_pkey"):
        started(ledger, make_plan([unload_step()], seed=1))


def test_whoever_lost_the_lease_can_not_write(ledger: Ledger, time: FakeTime) -> None:
    old = started(ledger, PLAN)
    time.pass_s(181)
    take_over(ledger, runs_of_plan(ledger, digest_of(PLAN))[0], approvals_of_plan(ledger, digest_of(PLAN))[0])
    with pytest.raises(LeaseLost, match="aborted or taken over"):
        old.sent("step-001", "PUT …", None)


def test_its_clock_is_the_servers_whatever_the_hosts_say(postgresql_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(open_ledger(postgresql_url)) as ledger:
        held = started(ledger, PLAN)
    monkeypatch.setattr(runs, "has_ended", lambda _process: False)
    own, own_ns = clock.time, clock.time_ns
    monkeypatch.setattr("time.time", lambda: own() + 200)
    monkeypatch.setattr("time.time_ns", lambda: own_ns() + 200 * 1_000_000_000)
    with closing(open_ledger(postgresql_url)) as elsewhere:
        assert is_held(elsewhere, run_by_id(elsewhere, held.id))


def test_a_holder_that_is_suspended_in_the_middle_of_a_write_does_not_keep_others_out(
    postgresql_url: str, time: FakeTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    suspended, other = (open_ledger(postgresql_url, time.now_ms) for _ in range(2))
    held = started(suspended, PLAN)
    time.pass_s(181)
    # All else is done under the true limit: on a busy machine it takes long.
    monkeypatch.setattr(opening, "ABANDONED_MS", 2000)
    suspended.close()  # it opens its next connection under this one
    with pytest.raises(StorageError, match="can't be used"), held.writing():
        take_over(other, runs_of_plan(other, digest_of(PLAN))[0], approvals_of_plan(other, digest_of(PLAN))[0])
    assert runs_of_plan(other, digest_of(PLAN))[0].lease == 2


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("DELETE FROM events", "never removed"),
        ("TRUNCATE events", "never removed"),
        ("TRUNCATE plans CASCADE", "never removed"),
        ("UPDATE events SET detail = 'nothing'", "never changes"),
        ("INSERT INTO events SELECT * FROM events ON CONFLICT (id) DO UPDATE SET detail = 'x'", "never changes"),
        ("UPDATE approvals SET withdrawn_at_ms = NULL", "has ended never changes"),
        ("UPDATE approvals SET expires_at_ms = 9999999999999", "never changes"),
        ("UPDATE runs SET state = 'stopped'", "has ended never changes"),
        ("DELETE FROM steps", "never removed"),
    ],
)
def test_the_database_refuses_what_the_advisor_never_does(
    ledger: Ledger, postgresql_url: str, time: FakeTime, change: str, why: str
) -> None:
    run(approved(ledger, PLAN), ledger, FakeCluster(time))
    withdraw(ledger, digest_of(PLAN), ALICE)
    with create_engine(postgresql_url).connect() as connection, pytest.raises(Exception, match=why):
        connection.execute(text(change))
    assert audit(ledger).findings == ()


def test_a_change_behind_its_back_and_a_guard_that_was_disabled_are_found(ledger: Ledger, postgresql_url: str) -> None:
    propose(ledger, PLAN, ALICE)
    with create_engine(postgresql_url).begin() as connection:
        connection.execute(text("ALTER TABLE proposals DISABLE TRIGGER proposals_fixed"))
        connection.execute(text("UPDATE proposals SET proposer = 'bob'"))
    assert audit(ledger).findings == (
        "proposals/1 is not as event 1 left it",
        "the trigger proposals_fixed was removed, disabled or changed",
    )


def test_a_second_ledger_in_another_schema_is_none_of_its_business(postgresql_url: str) -> None:
    for schema in ("first", "second"):
        with create_engine(postgresql_url).begin() as connection:
            connection.execute(text(f"CREATE SCHEMA {schema}"))
        open_ledger(f"{postgresql_url}?options=-csearch_path%3D{schema}").close()
    for schema in ("first", "second"):
        with closing(open_ledger(f"{postgresql_url}?options=-csearch_path%3D{schema}")) as ledger:
            assert audit(ledger).findings == ()


@pytest.mark.parametrize(
    ("change", "trigger"),
    [
        (
            "DROP TRIGGER plans_no_delete ON plans; CREATE TRIGGER plans_no_delete BEFORE DELETE ON plans "
            "FOR EACH ROW WHEN (false) EXECUTE FUNCTION ledger_refuses('rows of the ledger are never removed')",
            "plans_no_delete",
        ),
        (
            "DROP TRIGGER runs_final ON runs; CREATE TRIGGER runs_final BEFORE UPDATE ON runs "
            "FOR EACH ROW WHEN (OLD.state IN ('done')) EXECUTE FUNCTION ledger_refuses('what has ended never changes')",
            "runs_final",
        ),
        (
            "CREATE OR REPLACE FUNCTION ledger_refuses() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RETURN NEW; END $$",
            "events_no_delete",
        ),
    ],
    ids=["never fires", "fires less often", "refuses nothing"],
)
def test_a_guard_that_was_changed_is_found(ledger: Ledger, postgresql_url: str, change: str, trigger: str) -> None:
    with create_engine(postgresql_url).begin() as connection:
        connection.execute(text(change))
    assert f"the trigger {trigger} was removed, disabled or changed" in audit(ledger).findings


def test_an_approval_put_in_by_hand_is_none(ledger: Ledger, postgresql_url: str) -> None:
    propose(ledger, PLAN, ALICE)
    with create_engine(postgresql_url).begin() as connection:
        connection.execute(
            text(
                "INSERT INTO approvals (id, digest, approver, source, at_ms, expires_at_ms, comment, allows_splits, "
                "accepts_worse, accepts_low_confidence) "
                "VALUES (9, :digest, 'bob', 'airflow', 0, 99999999999999, '', true, true, true)"
            ),
            {"digest": digest_of(PLAN)},
        )
    with pytest.raises(Refused, match=r"doesn't prove the approval of bob: approvals/9 was added by no event"):
        standing_approval(ledger, PLAN, ApprovalPolicy())


def test_what_a_stage_wrote_is_sealed_once_and_never_changes(ledger: Ledger, postgresql_url: str) -> None:
    for sha256 in ("a" * 64, "a" * 64, "b" * 64):
        record_seal(ledger, "live", "20261121T083000Z", "validate", sha256, ())
    assert [seal.sha256[0] for seal in seals_of_snapshot(ledger, "live", "20261121T083000Z")] == ["a", "b"]
    with create_engine(postgresql_url).connect() as connection, pytest.raises(Exception, match="never changes"):
        connection.execute(text("UPDATE seals SET sha256 = 'c'"))
    assert audit(ledger).findings == ()


def test_a_ledger_of_an_earlier_release_is_chained_as_it_was_found(postgresql_url: str) -> None:
    with create_engine(postgresql_url).begin() as connection:
        command.upgrade(revisions(connection), "0002")
        plan = {"digest": digest_of(PLAN), "document": dump_plan(PLAN).decode()}
        connection.execute(text("INSERT INTO plans VALUES (:digest, 'demo', 'live', '', :document, 0)"), plan)
        connection.execute(text("INSERT INTO events VALUES (3, 0, :digest, NULL, NULL, 'proposed', '')"), plan)
    with closing(open_ledger(postgresql_url)) as upgraded:
        assert audit(upgraded).findings == ()
        propose(upgraded, PLAN, ALICE)
        assert audit(upgraded).findings == ()


def test_a_migration_waits_for_a_writer_of_the_earlier_release(
    postgresql_url: str, time: FakeTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    with create_engine(postgresql_url).begin() as connection:
        command.upgrade(revisions(connection), "0008")
    monkeypatch.setattr("pulsar_advisor.execution.ledger.ledger.HEAD", "0008")
    monkeypatch.setattr(opening, "HEAD", "0008")
    with closing(open_ledger(postgresql_url, time.now_ms)) as earlier, ThreadPoolExecutor() as others:
        monkeypatch.setattr(opening, "HEAD", "0009")
        with earlier.writing() as session:  # such as one that starts a run
            newer = others.submit(open_ledger, postgresql_url, time.now_ms)
            until(lambda: session.scalar(WAITS) or newer.done())
            assert not newer.done()
        newer.result().close()


def test_a_server_that_is_not_there_is_named_without_the_password() -> None:
    with pytest.raises(StorageError, match=r"advisor:\*\*\*@127\.0\.0\.1:1/x can't be used"):
        open_ledger("postgresql+psycopg://advisor:hunter2@127.0.0.1:1/x")


@dataclass(frozen=True)
class Roles:
    """Ledger addresses of the two roles that docker-compose.yaml makes."""

    owner: str
    application: str


def roles_made_by(url: URL) -> Roles:
    """The roles of docker-compose.yaml, made by its own SQL, by the user and in the database of the URL."""
    sql = (REPOSITORY / "docs" / "compose" / "ledger_roles.sql").read_text()
    owner, application = f"owner_{url.database}", f"application_{url.database}"
    for pattern, value in (
        (r"\\set .*\n", ""),
        (r":'\w+'", "'planted'"),
        (r"DATABASE ledger\b", f"DATABASE {url.database}"),
        (r"\bledger_owner\b", owner),
        (r"\bledger\b", application),
    ):
        sql = re.sub(pattern, value, sql)
    with create_engine(url).begin() as connection:
        connection.execute(text(sql))
    return Roles(*(url.set(username=name).render_as_string() for name in (owner, application)))


@pytest.fixture
def roles(postgresql_url: str) -> Roles:
    """The same in a database for this test alone."""
    url = make_url(postgresql_url)
    with create_engine(url).begin() as connection:
        connection.execute(text("GRANT CREATE ON SCHEMA public TO PUBLIC"))  # as pg_upgrade leaves one of before 15
    return roles_made_by(url)


def test_an_administrator_who_is_no_superuser_can_make_the_roles(postgresql_url: str) -> None:
    url = make_url(postgresql_url)
    administrator = f"administrator_{url.database}"
    with create_engine(url).begin() as connection:
        connection.execute(text(f"CREATE ROLE {administrator} LOGIN CREATEROLE CREATEDB"))
        connection.execute(text(f"ALTER DATABASE {url.database} OWNER TO {administrator}"))
    roles = roles_made_by(url.set(username=administrator))
    open_ledger(roles.owner).close()
    open_ledger(roles.application).close()


def test_the_application_has_its_owner_migrate_and_then_does_all_that_the_advisor_does(
    roles: Roles, time: FakeTime
) -> None:
    with pytest.raises(StorageError, match="open it once as the owner of its tables"):
        open_ledger(roles.application)
    open_ledger(roles.owner).close()
    with closing(open_ledger(roles.application, time.now_ms)) as ledger:
        assert run(approved(ledger, PLAN), ledger, FakeCluster(time)).outcome == "done"
        withdraw(ledger, digest_of(PLAN), ALICE)
        assert audit(ledger).findings == ()


def test_tables_that_were_restored_without_their_privileges_need_no_migration(roles: Roles) -> None:
    open_ledger(roles.owner).close()
    with create_engine(roles.owner).begin() as connection:
        application = make_url(roles.application).username
        connection.execute(text(f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {application}"))
    with pytest.raises(StorageError, match="can't be used: permission denied for table alembic_version"):
        open_ledger(roles.application)


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM events",
        "TRUNCATE events",
        "DELETE FROM steps",
        "ALTER TABLE events DISABLE TRIGGER ALL",
        "DROP TRIGGER events_no_delete ON events",
        "DROP TABLE events CASCADE",
        "CREATE OR REPLACE FUNCTION ledger_refuses() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$",
        "SET session_replication_role = replica",
        "CREATE TABLE mine (id int)",
        "COPY (SELECT 1) TO PROGRAM 'id'",
    ],
)
def test_the_application_can_not_touch_what_guards_the_ledger(roles: Roles, change: str) -> None:
    open_ledger(roles.owner).close()
    with (
        create_engine(roles.application).connect() as connection,
        pytest.raises(ProgrammingError, match=r"permission denied|must be (owner|superuser)"),
    ):
        connection.execute(text(change))
