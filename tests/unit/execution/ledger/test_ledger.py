from __future__ import annotations

import logging
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, text

from pulsar_advisor.execution.consent.approval import propose, standing_approval, withdraw
from pulsar_advisor.execution.consent.policy import ApprovalPolicy
from pulsar_advisor.execution.ledger import ledger as ledger_module
from pulsar_advisor.execution.ledger import migrations
from pulsar_advisor.execution.ledger.audit import audit
from pulsar_advisor.execution.ledger.ledger import HeldRun, LeaseLost, Ledger, default_ledger_url, open_ledger
from pulsar_advisor.execution.ledger.tables import Base
from pulsar_advisor.execution.throttle import ApplyThrottle
from pulsar_advisor.model.errors import AdvisorError, Refused, StorageError, UsageError
from pulsar_advisor.model.plans.plan import Plan, digest_of, load_plan
from pulsar_advisor.storage.process import Process, this_process
from pulsar_advisor.storage.root import Root
from unit.execution.actors import ALICE, approved
from unit.execution.doubles import LOWER, NAMESPACE, FakeTime, make_plan, unload_step

PLAN = make_plan([unload_step()])
DIGEST = digest_of(PLAN)


def start(ledger: Ledger, plan: Plan = PLAN) -> HeldRun:
    approved(ledger, plan)
    return ledger.start_run(plan, standing_approval(ledger, plan, ApprovalPolicy()))


def test_the_migrations_make_exactly_the_tables(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.sqlite"
    open_ledger(url).close()
    with create_engine(url).connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []


def test_a_ledger_is_migrated_once_however_often_it_is_opened(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "alembic")
    url = f"sqlite:///{tmp_path}/ledger.sqlite"
    open_ledger(url).close()
    assert any("Running upgrade" in message for message in caplog.messages)
    caplog.clear()
    with create_engine(url).connect() as other:
        other.execute(text("BEGIN IMMEDIATE"))  # who opens a ledger waits for nobody who writes
        with closing(open_ledger(url)) as ledger:
            assert ledger.proposals(DIGEST) == []
    assert caplog.messages == []


@pytest.mark.parametrize("ahead_s", [200, -200])
def test_a_host_whose_clock_differs_judges_a_lease_like_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead_s: int
) -> None:
    url = f"sqlite:///{tmp_path}/ledger.sqlite"
    with closing(open_ledger(url)) as ledger:
        held = start(ledger)
    monkeypatch.setattr("pulsar_advisor.execution.ledger.ledger.has_ended", lambda _process: False)
    own, own_ns = time.time, time.time_ns
    monkeypatch.setattr("time.time", lambda: own() + ahead_s)
    monkeypatch.setattr("time.time_ns", lambda: own_ns() + ahead_s * 1_000_000_000)
    with closing(open_ledger(url)) as elsewhere:
        run = elsewhere.run(held.id)
        assert elsewhere.is_held(run)
        assert abs(elsewhere.now_ms() - run.heartbeat_at_ms) < 100_000


def test_an_approval_of_an_earlier_release_accepts_no_low_confidence(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.sqlite"
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.set_main_option("path_separator", "os")
    with create_engine(url).begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        connection.execute(text("INSERT INTO plans VALUES (:digest, 'demo', 'live', '', '', 0)"), {"digest": DIGEST})
        connection.execute(
            text("INSERT INTO approvals VALUES (1, :digest, 'bob', 'airflow', 0, 1, '', 1, 1, NULL)"),
            {"digest": DIGEST},
        )
    [approval] = open_ledger(url).approvals(DIGEST)
    assert approval.consents == {"splits", "worse"}


def test_a_ledger_can_be_opened_again_and_by_many_at_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/new/ledger.sqlite"
    threads = [threading.Thread(target=lambda: propose(open_ledger(url), PLAN, ALICE)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(open_ledger(url).proposals(DIGEST)) == 4


def test_a_plan_can_be_read_from_the_ledger_alone(ledger: Ledger, tmp_path: Path) -> None:
    propose(ledger, PLAN, ALICE)
    with create_engine(f"sqlite:///{tmp_path}/ledger.sqlite").connect() as connection:
        document = connection.scalar(text("SELECT document FROM plans"))
    assert load_plan(str(document).encode()) == PLAN


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
    run = start(ledger)
    run.sent("step-001", "PUT …", None)
    run.conclude("step-001", "confirmed", "")
    run.end("done", "")
    withdraw(ledger, DIGEST, ALICE)
    engine = create_engine(f"sqlite:///{tmp_path}/ledger.sqlite")
    with engine.connect() as connection, pytest.raises(Exception, match=why):
        connection.execute(text(change))
    assert audit(ledger).findings == ()


def test_a_new_ledger_is_for_its_user_alone(tmp_path: Path) -> None:
    open_ledger(f"sqlite:///{tmp_path}/ledger.sqlite").close()
    assert (tmp_path / "ledger.sqlite").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("before", "after"), [(0o644, 0o600), (0o640, 0o600), (0o664, 0o660), (0o660, 0o660)])
def test_others_are_kept_out_and_a_group_that_writes_is_not(tmp_path: Path, before: int, after: int) -> None:
    file = tmp_path / "ledger.sqlite"
    file.touch()
    file.chmod(before)
    open_ledger(f"sqlite:///{file}").close()
    assert file.stat().st_mode & 0o777 == after


def test_a_folder_or_another_file_named_by_mistake_keeps_its_permissions(tmp_path: Path) -> None:
    folder, file = tmp_path / "root", tmp_path / "notes"
    folder.mkdir(0o755)
    file.write_text("not a ledger")
    file.chmod(0o644)
    for path, mode in ((folder, 0o755), (file, 0o644)):
        with pytest.raises(StorageError, match="can't be used"):
            open_ledger(f"sqlite:///{path}")
        assert path.stat().st_mode & 0o777 == mode


@pytest.fixture
def earlier(tmp_path: Path) -> str:
    """A ledger as a release before the hash chain left it: one plan done, another half-way, an approval withdrawn."""
    script = (Path(__file__).parents[3] / "data" / "ledger" / "revision-0002.sql").read_text()
    with closing(sqlite3.connect(tmp_path / "earlier.sqlite")) as connection:
        connection.executescript(script)
    return f"sqlite:///{tmp_path}/earlier.sqlite"


def test_a_ledger_of_an_earlier_release_is_chained_as_it_was_found(earlier: str) -> None:
    with closing(open_ledger(earlier)) as ledger:
        assert (audit(ledger).findings, ledger.head().event) == ((), 17)
        done, half = (ledger.runs(digest)[0] for digest in ledger_digests(ledger))
        assert (done.state, half.state) == ("done", "stopped")
        (first, *_) = ledger.approvals(done.digest)
        assert (first.withdrawn_at_ms is None, first.throttle) == (False, ApplyThrottle())


def test_an_approval_of_an_earlier_release_can_be_withdrawn(earlier: str) -> None:
    with closing(open_ledger(earlier)) as ledger:
        half = ledger_digests(ledger)[1]
        assert [step.state for step in ledger.steps(ledger.runs(half)[0].id).values()] == ["confirmed", "pending"]
        ledger.abort(half, ALICE)
        assert audit(ledger).findings == ()


def ledger_digests(ledger: Ledger) -> list[str]:
    with ledger.reading() as session:
        return list(session.scalars(text("SELECT digest FROM plans ORDER BY recorded_at_ms")))


def test_one_run_per_cluster_is_active(ledger: Ledger) -> None:
    start(ledger)
    other = approved(ledger, make_plan([unload_step()], seed=1))
    with pytest.raises(Refused, match=r"run 1 of plan sha256:.* is active on cluster 'live': process"):
        start(ledger, other)


def test_another_cluster_may_have_its_own_run(ledger: Ledger) -> None:
    start(ledger)
    elsewhere = PLAN.identity.model_copy(update={"cluster_name": "elsewhere"})
    assert start(ledger, make_plan([unload_step()], identity=elsewhere)).id == 2


def test_a_step_can_not_be_confirmed_before_it_is_sent(ledger: Ledger) -> None:
    run = start(ledger)
    with pytest.raises(StorageError, match="does not let step step-001 of run 1 become 'confirmed'"):
        run.conclude("step-001", "confirmed", "")
    assert run.steps()["step-001"].state == "pending"


def test_a_confirmed_step_is_never_sent_again(ledger: Ledger) -> None:
    run = start(ledger)
    run.sent("step-001", "PUT …", None)
    run.conclude("step-001", "confirmed", "")
    with pytest.raises(StorageError, match="become 'sent'"):
        run.sent("step-001", "PUT …", None)


def test_whoever_lost_the_lease_can_not_write(ledger: Ledger, time: FakeTime) -> None:
    old = start(ledger)
    time.pass_s(181)
    new = ledger.take_over(ledger.runs(DIGEST)[0], ledger.approvals(DIGEST)[0])
    with pytest.raises(LeaseLost, match="aborted or taken over"):
        old.sent("step-001", "PUT …", None)
    new.sent("step-001", "PUT …", None)
    assert new.steps()["step-001"].attempts == 1


def test_only_one_of_two_takes_a_run_over(ledger: Ledger, time: FakeTime) -> None:
    start(ledger)
    time.pass_s(181)
    (abandoned,) = ledger.runs(DIGEST)
    ledger.take_over(abandoned, ledger.approvals(DIGEST)[0])
    with pytest.raises(Refused, match="by somebody else just now"):
        ledger.take_over(abandoned, ledger.approvals(DIGEST)[0])


def test_a_heartbeat_keeps_the_lease(ledger: Ledger, time: FakeTime) -> None:
    run = start(ledger)
    time.pass_s(170)
    run.renew()
    time.pass_s(170)
    with pytest.raises(Refused, match="last heard from 170 s ago"):
        ledger.take_over(ledger.runs(DIGEST)[0], ledger.approvals(DIGEST)[0])


def test_a_holder_that_renews_its_lease_while_another_makes_up_its_mind_keeps_the_run(
    ledger: Ledger, time: FakeTime
) -> None:
    run = start(ledger)
    (as_read,) = ledger.runs(DIGEST)
    time.pass_s(170)
    run.renew()
    time.pass_s(20)
    with pytest.raises(Refused, match="by somebody else just now"):
        ledger.take_over(as_read, ledger.approvals(DIGEST)[0])
    run.sent("step-001", "PUT …", None)


def test_a_clock_that_was_set_back_does_not_silence_the_holder(ledger: Ledger, time: FakeTime) -> None:
    run = start(ledger)
    time.set_ahead_s = -3600
    run.renew()
    assert ledger.runs(DIGEST)[0].heartbeat_at_ms == time.now_ms()


def test_a_holder_stays_alive_while_it_waits(ledger: Ledger, time: FakeTime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_module, "_RENEW_MS", 1)
    run = start(ledger)
    renewed = threading.Event()
    monkeypatch.setattr(run, "renew", renewed.set)
    with run.kept():
        assert renewed.wait(10)


@pytest.mark.parametrize(
    ("holder", "held"),
    [
        (this_process(), True),
        (replace(this_process(), id=2**22), False),
        (replace(this_process(), began="0"), False),
        (replace(this_process(), id=2**22, namespace="another boot pid:[1]"), True),
        (replace(this_process(), id=2**22, namespace=""), True),
    ],
    ids=["alive", "ended", "its id was given away", "in another PID namespace", "of an earlier release"],
)
def test_a_run_is_free_at_once_only_if_its_process_has_certainly_ended(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, holder: Process, held: bool
) -> None:
    monkeypatch.setattr(ledger_module, "this_process", lambda: holder)
    start(ledger)
    assert ledger.is_held(ledger.runs(DIGEST)[0]) == held


def test_a_stopped_run_can_not_go_on_while_another_is_active(ledger: Ledger) -> None:
    start(ledger).end("stopped", "drifted")
    start(ledger, make_plan([unload_step()], seed=1))
    with pytest.raises(Refused, match="run 2 of plan"):
        ledger.take_over(ledger.runs(DIGEST)[0], ledger.approvals(DIGEST)[0])


def test_unresolved_bundles_are_known_until_their_run_is_aborted(ledger: Ledger) -> None:
    run = start(ledger)
    run.sent("step-001", "PUT …", None)
    run.conclude("step-001", "unresolved", "")
    run.end("stopped", "")
    assert ledger.unresolved_bundles("live", except_of="") == {f"{NAMESPACE}/{LOWER}": 1}
    ledger.abort(DIGEST, ALICE)
    assert ledger.unresolved_bundles("live", except_of="") == {}


def test_the_default_ledger_lies_beside_a_local_root(tmp_path: Path) -> None:
    assert default_ledger_url(Root(str(tmp_path), "demo")) == f"sqlite:///{tmp_path}/ledger.sqlite"


def test_an_object_store_has_no_default_ledger() -> None:
    with pytest.raises(UsageError, match="name one with --ledger URL"):
        default_ledger_url(Root("memory://bucket/advisor", "demo"))


@pytest.mark.parametrize("url", ["", "nonsense"])
def test_a_ledger_url_must_be_one(url: str) -> None:
    with pytest.raises(UsageError, match="is not a ledger URL"):
        open_ledger(url)


def test_a_file_that_is_no_ledger_is_named(tmp_path: Path) -> None:
    (tmp_path / "ledger.sqlite").write_text("not a database, but long enough to be taken for one" * 100)
    with pytest.raises(StorageError, match=r"ledger sqlite:///.*ledger\.sqlite can't be used: file is not a database"):
        open_ledger(f"sqlite:///{tmp_path}/ledger.sqlite")


def test_a_ledger_of_a_newer_release_is_left_alone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.sqlite"
    open_ledger(url).close()
    with create_engine(url).begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StorageError, match="was written by a newer release"):
        open_ledger(url)


def test_a_password_in_a_url_that_is_none_is_not_repeated() -> None:
    with pytest.raises(UsageError) as refusal:
        open_ledger("postgresql//advisor:hunter2@db")
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize(
    "url", ["nosuch://advisor:hunter2@db/x", "nosuch://db/x?password=hunter2", "sqlite:////proc/no/f?key=hunter2"]
)
def test_no_message_about_a_ledger_holds_its_password(url: str) -> None:
    with pytest.raises(AdvisorError) as refusal:
        open_ledger(url)
    assert "hunter2" not in str(refusal.value)


def test_a_database_without_a_driver_is_named() -> None:
    with pytest.raises(UsageError, match=r"no driver for ledger nosuchdatabase://advisor:\*\*\*@db"):
        open_ledger("nosuchdatabase://advisor:hunter2@db")


def test_no_text_in_an_event_acts_on_a_terminal(ledger: Ledger) -> None:
    ledger.record_refusal("sha256:0", "topic persistent://a/b/\x1b[2J\u202e")
    (event,) = ledger.events("sha256:0")
    assert event.detail == "topic persistent://a/b/\\x1b[2J\\u202e"
