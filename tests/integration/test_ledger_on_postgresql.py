"""The ledger on a real PostgreSQL: the same rules, enforced by that database."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from sqlalchemy import create_engine, text

from pulsar_advisor.execution import ledger as ledger_module
from pulsar_advisor.execution.approval import ApprovalPolicy, propose, standing_approval
from pulsar_advisor.execution.ledger import HeldRun, LeaseLost, Ledger, open_ledger
from pulsar_advisor.execution.undo import undo_plan
from pulsar_advisor.model.errors import Refused, StorageError
from pulsar_advisor.model.plan import Plan, digest_of
from unit.execution.actors import ALICE, approved, run
from unit.execution.doubles import FakeCluster, FakeTime, make_plan, split_step, unload_step

PLAN = make_plan([unload_step(), split_step()])


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


@pytest.fixture
def ledger(postgresql_url: str, time: FakeTime) -> Iterator[Ledger]:
    opened = open_ledger(postgresql_url, time.now_ms)
    yield opened
    opened.close()


def start(ledger: Ledger, plan: Plan) -> HeldRun:
    approved(ledger, plan)
    return ledger.start_run(plan, standing_approval(ledger, plan, ApprovalPolicy()), undo_plan(plan))


def test_a_plan_is_carried_out_and_a_second_apply_does_nothing(ledger: Ledger, time: FakeTime) -> None:
    cluster = FakeCluster(time)
    plan = approved(ledger, PLAN)
    assert run(plan, ledger, cluster).outcome == "done"
    assert run(plan, ledger, cluster).outcome == "nothing_to_do"
    assert len(cluster.writes) == 2


def test_many_can_open_a_new_ledger_at_once(postgresql_url: str) -> None:
    threads = [threading.Thread(target=lambda: propose(open_ledger(postgresql_url), PLAN, ALICE)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(open_ledger(postgresql_url).proposals(digest_of(PLAN))) == 4


def test_one_run_per_cluster_is_active(ledger: Ledger) -> None:
    start(ledger, PLAN)
    with pytest.raises(Refused, match="is active on cluster 'live'"):
        start(ledger, make_plan([unload_step()], seed=1))


def test_whoever_lost_the_lease_can_not_write(ledger: Ledger, time: FakeTime) -> None:
    old = start(ledger, PLAN)
    time.pass_s(181)
    ledger.take_over(ledger.runs(digest_of(PLAN))[0])
    with pytest.raises(LeaseLost, match="aborted or taken over"):
        old.sent("step-001", "PUT …", None)


def test_a_holder_that_is_suspended_in_the_middle_of_a_write_does_not_keep_others_out(
    postgresql_url: str, time: FakeTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "ABANDONED_MS", 500)
    suspended, other = (open_ledger(postgresql_url, time.now_ms) for _ in range(2))
    held = start(suspended, PLAN)
    time.pass_s(181)
    with pytest.raises(StorageError, match="can't be used"), held._transaction():
        other.take_over(other.runs(digest_of(PLAN))[0])
    assert other.runs(digest_of(PLAN))[0].lease == 2


@pytest.mark.parametrize("change", ["DELETE FROM events", "UPDATE events SET detail = 'nothing'"])
def test_events_are_only_ever_added(ledger: Ledger, postgresql_url: str, change: str) -> None:
    propose(ledger, PLAN, ALICE)
    with (
        create_engine(postgresql_url).connect() as connection,
        pytest.raises(Exception, match="events are only ever added"),
    ):
        connection.execute(text(change))


def test_a_server_that_is_not_there_is_named_without_the_password() -> None:
    with pytest.raises(StorageError, match=r"advisor:\*\*\*@127\.0\.0\.1:1/x can't be used"):
        open_ledger("postgresql+psycopg://advisor:hunter2@127.0.0.1:1/x")
