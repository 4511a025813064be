"""Whole runs of `pulsar_maintenance` on several clusters; snapshots and ledger are real, clusters are doubles."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException
from sqlalchemy import update

from dags.conftest import RunDag, Stages, pass_waits
from pulsar_advisor.execution.cluster.cluster_port import Override
from pulsar_advisor.execution.consent.approval import propose
from pulsar_advisor.execution.ledger.held_run import HeldRun
from pulsar_advisor.execution.ledger.runs import run_by_id
from pulsar_advisor.execution.ledger.switches import record_switching_off
from pulsar_advisor.execution.ledger.tables import Run
from pulsar_advisor.execution.run.guard.settings import OFF
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor_airflow import tasks
from pulsar_advisor_airflow.tasks import maintenance, runs
from unit.execution.actors import ALICE, started

pytestmark = pytest.mark.airflow

SHEDDING = "loadBalancerSheddingEnabled"


@pytest.fixture
def two_clusters(stages: Stages, monkeypatch: pytest.MonkeyPatch, registered: Callable[..., None]) -> None:
    """`demo`, and `down`, which can't be reached."""
    registered("demo", "down")
    connection = json.dumps({"conn_type": "pulsar_admin", "extra": {"admin_urls": "http://127.0.0.1:1"}})
    for name in ("demo", "down"):
        monkeypatch.setenv(f"AIRFLOW_CONN_PULSAR_{name.upper()}", connection)


@pytest.fixture
def reached(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection reaches the double."""

    @contextmanager
    def transport(_connection: Any, writes: bool) -> Any:
        yield SimpleNamespace()

    monkeypatch.setattr("pulsar_advisor.stages.apply.AdminTransport", transport)
    monkeypatch.setattr("pulsar_advisor.stages.apply.AdminCluster", lambda _transport: stages.cluster)


@contextmanager
def guarding(stages: Stages) -> Iterator[HeldRun]:
    """A run that has switched shedding off."""
    with closing(stages.ledger()) as ledger:
        held = started(ledger, stages.plan)
        record_switching_off(held, SHEDDING, "true", OFF, {})
        stages.cluster.send(Override(SHEDDING, OFF))
        yield held


def left_off(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that switched shedding off, and whose process was lost."""
    with guarding(stages) as held:
        held.end("stopped", "lost")


def test_what_a_lost_run_left_off_is_restored(
    stages: Stages, run_dag: RunDag, two_clusters: None, reached: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_off(stages, monkeypatch)
    state, _ = run_dag("pulsar_maintenance")
    assert (state, stages.cluster.override(SHEDDING)) == ("success", "true")


def test_only_clusters_whose_balancer_was_left_off_take_a_task_and_one_that_has_a_new_name_is_among_them(
    stages: Stages, two_clusters: None, registered: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tasks.clusters_to_restore() == []
    left_off(stages, monkeypatch)
    assert tasks.clusters_to_restore() == ["demo"]
    registered("down", "renamed")
    with closing(stages.ledger()) as ledger:
        propose(ledger, stages.plan.model_copy(update={"cluster": "renamed"}), ALICE)
    assert tasks.clusters_to_restore() == ["renamed", "demo"]


def test_a_balancer_that_can_not_be_restored_is_told_to_the_notifiers(
    stages: Stages,
    run_dag: RunDag,
    two_clusters: None,
    reached: None,
    monkeypatch: pytest.MonkeyPatch,
    noted: list[str],
) -> None:
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__GUARD_NOTIFIERS", "dags.notifiers.noting_the_guard")
    left_off(stages, monkeypatch)
    stages.cluster.rejects_overrides = True
    assert run_dag("pulsar_maintenance")[0] == "failed"
    (message,) = noted
    assert message.startswith(f"restore_guard: ATTENTION: {SHEDDING} of cluster 'live' was switched off by run 1")


def test_a_balancer_left_off_is_told_though_its_cluster_has_no_entry_any_more(
    stages: Stages, run_dag: RunDag, reached: None, monkeypatch: pytest.MonkeyPatch, noted: list[str]
) -> None:
    """Whoever removed the entry while a run was going on removed the DAG that would have restored it, too."""
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__GUARD_NOTIFIERS", "dags.notifiers.noting_the_guard")
    left_off(stages, monkeypatch)
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__CLUSTER", "renamed")
    assert run_dag("pulsar_maintenance")[0] == "failed"
    (message,) = noted
    assert message.startswith(f"restore_guard: ATTENTION: {SHEDDING} of cluster 'live' was switched off by run 1")
    assert "'demo' has no entry in the registry any more: add it again" in message


def test_after_its_task_a_run_is_waited_for_until_it_has_ended_or_lost_its_lease(
    stages: Stages, two_clusters: None, reached: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = {"digest": digest_of(stages.plan)}
    monkeypatch.setattr(maintenance, "has_begun", lambda: True)
    monkeypatch.setattr(runs, "last_held", lambda: (1, 1))
    with guarding(stages) as held:
        with monkeypatch.context() as long:
            pass_waits(long)
            with pytest.raises(AirflowException, match=f"run {held.id} goes on, though its task has ended"):
                tasks.restore_guard("demo", plan)
        assert stages.cluster.override(SHEDDING) == OFF
        monkeypatch.setattr(runs, "sleep", lambda _s: held.end("stopped", "killed"))
        tasks.restore_guard("demo", plan)
    assert stages.cluster.override(SHEDDING) == "true"


def test_a_run_whose_worker_was_killed_while_its_end_was_awaited_is_waited_for_until_its_lease_ends(
    stages: Stages, two_clusters: None, reached: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had renewed its lease since, so that the lease outlasts the wait."""
    monkeypatch.setattr(maintenance, "has_begun", lambda: True)
    monkeypatch.setattr(runs, "last_held", lambda: (1, 1))
    pass_waits(monkeypatch)
    with guarding(stages) as held, closing(stages.ledger()) as ledger:
        sleeps = itertools.count(1)

        def sleep(_s: float) -> None:
            age_ms = 179_000 if next(sleeps) < 5 else 181_000
            with ledger.writing() as session:
                session.execute(update(Run).values(heartbeat_at_ms=ledger.now_ms() - age_ms))

        monkeypatch.setattr(runs, "sleep", sleep)
        tasks.restore_guard("demo", {"digest": held.digest})
        assert run_by_id(ledger, held.id).sentence == "its task in Airflow has ended"
    assert stages.cluster.override(SHEDDING) == "true"


def test_a_run_that_goes_on_after_its_task_and_leaves_the_balancer_on_is_no_failure(
    stages: Stages, two_clusters: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "has_begun", lambda: True)
    pass_waits(monkeypatch)
    with closing(stages.ledger()) as ledger:
        held = started(ledger, stages.plan)
        tasks.restore_guard("demo", {"digest": held.digest})
        assert run_by_id(ledger, held.id).state == "active"


@pytest.mark.parametrize(("lease", "becomes"), [(1, "stopped"), (2, "active")], ids=["by it", "by another task"])
def test_after_its_task_a_run_that_it_parked_is_ended(
    stages: Stages, two_clusters: None, reached: None, monkeypatch: pytest.MonkeyPatch, lease: int, becomes: str
) -> None:
    """Nothing would continue it: the trigger that waited has fired, or could not reach the ledger."""
    monkeypatch.setattr(maintenance, "has_begun", lambda: True)
    monkeypatch.setattr(runs, "last_held", lambda: (1, lease))
    with guarding(stages) as held:
        held.park("waits 60 s between two waves")
        tasks.restore_guard("demo", {"digest": held.digest})
        with closing(stages.ledger()) as ledger:
            run = run_by_id(ledger, held.id)
        assert (run.state, run.sentence) == (becomes, "its task in Airflow has ended" if becomes == "stopped" else "")


def test_a_cluster_that_is_another_one_is_left_alone(
    stages: Stages, run_dag: RunDag, two_clusters: None, reached: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_off(stages, monkeypatch)
    stages.cluster.name = "other"
    state, _ = run_dag("pulsar_maintenance")
    assert (state, stages.cluster.override(SHEDDING)) == ("failed", OFF)


def test_a_cluster_that_is_down_does_not_keep_the_audit_from_its_turn(
    stages: Stages, run_dag: RunDag, two_clusters: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_off(stages, monkeypatch)
    state, tasks = run_dag("pulsar_maintenance")
    assert (state, tasks["audit_ledger"]) == ("failed", "success")


def test_a_ledger_that_is_still_empty_or_has_grown_passes_the_audit(stages: Stages, run_dag: RunDag) -> None:
    assert run_dag("pulsar_maintenance")[0] == "success"
    with closing(stages.ledger()) as ledger:
        propose(ledger, stages.plan, ALICE)
    assert run_dag("pulsar_maintenance")[0] == "success"


def test_the_audit_keeps_the_head_and_compares_the_ledger_with_all_that_were_kept(
    stages: Stages, run_dag: RunDag, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__HEADS", f"{tmp_path}/heads, log")
    with closing(stages.ledger()) as ledger:
        propose(ledger, stages.plan, ALICE)
        head = ledger.head()
    assert run_dag("pulsar_maintenance")[0] == "success"
    [file] = (tmp_path / "heads").iterdir()
    assert head.chain in file.name
    file.rename(file.with_name(file.name.replace(head.chain, "0" * 64)))  # that of another chain
    state, tasks = run_dag("pulsar_maintenance")
    assert (state, tasks["audit_ledger"]) == ("failed", "failed")


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_ledger_that_was_cut_off_since_the_last_run_fails_the_audit(
    stages: Stages, run_dag: RunDag, by_hand: bool
) -> None:
    with closing(stages.ledger()) as ledger:
        propose(ledger, stages.plan, ALICE)
    assert run_dag("pulsar_maintenance", has_logical_date=not by_hand)[0] == "success"
    Path(stages.root.ledger_url.removeprefix("sqlite:///")).unlink()
    state, tasks = run_dag("pulsar_maintenance", has_logical_date=not by_hand)
    assert (state, tasks["audit_ledger"]) == ("failed", "failed")
