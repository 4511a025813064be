from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import create_engine

from pulsar_advisor.execution.ledger.approvals import approvals_of_plan
from pulsar_advisor.execution.ledger.audit import audit
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.runs import runs_of_plan
from pulsar_advisor.execution.ledger.steps import steps_of_run
from pulsar_advisor.model.errors import StorageError
from pulsar_advisor.model.plans.sealed import digest_of
from unit.execution.actors import approved, run
from unit.execution.doubles import FakeCluster, make_plan, unload_step

PLAN = make_plan([unload_step()])


@pytest.fixture(params=["'tomorrow'", "X'00ff'", "1.5", "-1", "9007199254740993"])
def written_by_hand(request: pytest.FixtureRequest, ledger: Ledger, tmp_path: Path) -> Ledger:
    """A ledger in which the owner of its file has changed when an approval expires."""
    approved(ledger, PLAN)
    with create_engine(f"sqlite:///{tmp_path}/ledger.sqlite").begin() as connection:
        connection.exec_driver_sql("DROP TRIGGER approvals_fixed")
        connection.exec_driver_sql(f"UPDATE approvals SET expires_at_ms = {request.param}")
    return ledger


def test_a_value_that_no_release_writes_is_named(written_by_hand: Ledger) -> None:
    with pytest.raises(StorageError, match=r"holds .+ as expires_at_ms of approvals/1, which no release writes: run"):
        approvals_of_plan(written_by_hand, digest_of(PLAN))


@pytest.mark.parametrize("table", ["runs", "steps"])
def test_a_state_that_gets_past_the_databases_own_check_is_named(
    ledger: Ledger, cluster: FakeCluster, tmp_path: Path, table: str
) -> None:
    run(approved(ledger, PLAN), ledger, cluster)
    with create_engine(f"sqlite:///{tmp_path}/ledger.sqlite").begin() as connection:
        connection.exec_driver_sql("PRAGMA ignore_check_constraints = ON")
        for name in connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'trigger'").scalars():
            connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS {name}")
        connection.exec_driver_sql(f"UPDATE {table} SET state = 'ended'")
    with pytest.raises(StorageError, match=f"holds 'ended' as state of {table}/1, which no release writes: run"):
        [steps_of_run(ledger, one.id) for one in runs_of_plan(ledger, digest_of(PLAN))]


def test_no_run_relies_on_such_a_value(written_by_hand: Ledger, cluster: FakeCluster) -> None:
    with pytest.raises(StorageError, match="expires_at_ms of approvals/1"):
        run(PLAN, written_by_hand, cluster)
    assert cluster.writes == []


def test_an_audit_finds_such_a_value(written_by_hand: Ledger) -> None:
    assert "approvals/1 is not as event 2 left it" in audit(written_by_hand).findings
