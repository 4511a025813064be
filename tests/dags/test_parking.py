"""`apply` is deferred while its run is parked; the triggerer keeps nothing that the database doesn't have."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any
from unittest.mock import patch

import pytest
from airflow.sdk import DAG
from airflow.sdk.module_loading import import_string

from dags.conftest import Answer, RunDag, Stages, cancel
from pulsar_advisor.documents.document import as_json
from pulsar_advisor.execution.cluster.cluster_port import Unload
from pulsar_advisor.execution.consent.approval import standing_approval
from pulsar_advisor.execution.ledger.held_run import HeldRun, take_over
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.runs import run_by_id
from pulsar_advisor.execution.run.parking import Parking
from pulsar_advisor.execution.run.steering import abort, go_on, pause
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor_airflow.triggers.parked_run import ParkedRunTrigger
from unit.execution.actors import ALICE, FOUR_EYES, started
from unit.execution.doubles import B2, LOWER, NAMESPACE

pytestmark = pytest.mark.airflow

WAIT = as_json(Parking("pause", 0.1))


@pytest.fixture
def ledger(stages: Stages) -> Iterator[Ledger]:
    with closing(stages.ledger()) as ledger:
        yield ledger


@pytest.fixture
def parked(stages: Stages, ledger: Ledger) -> HeldRun:
    held = started(ledger, stages.plan)
    held.park("waits 60 s between two waves")
    return held


@pytest.fixture
def trigger(stages: Stages, parked: HeldRun, monkeypatch: pytest.MonkeyPatch) -> ParkedRunTrigger:
    """As another triggerer would build it from the database."""
    monkeypatch.setattr("pulsar_advisor_airflow.triggers.parked_run.POLL_S", 0.05)
    name, arguments = ParkedRunTrigger(stages.root.url, stages.root.cluster, parked.id, WAIT).serialize()
    again: ParkedRunTrigger = import_string(name)(**json.loads(json.dumps(arguments)))
    return again


def fires(trigger: ParkedRunTrigger, looks: int) -> bool:
    """Whether it does when it has looked at the run so often, however long a look takes here."""
    left, why_not = iter(range(looks)), trigger._why_not

    async def counted(*, is_over: bool) -> str | None:
        if next(left, None) is None:
            raise TimeoutError
        return await why_not(is_over=is_over)

    async def first() -> Any:
        return await anext(trigger.run())

    with patch.object(trigger, "_why_not", counted):
        try:
            return bool(asyncio.run(first()).payload == {"waited": trigger.wait})
        except TimeoutError:
            return False


def test_a_trigger_fires_once_the_time_is_over(trigger: ParkedRunTrigger) -> None:
    assert fires(trigger, 100)


def test_a_pause_keeps_the_run_parked_until_it_is_lifted(
    stages: Stages, ledger: Ledger, trigger: ParkedRunTrigger, capsys: pytest.CaptureFixture[str]
) -> None:
    pause(ledger, stages.plan, ALICE)
    assert not fires(trigger, 5)
    logged = "".join(capsys.readouterr())  # by Airflow's own logger
    assert (logged.count("the run is parked: paused by alice (airflow)"), "alembic" in logged) == (1, False)
    go_on(ledger, stages.plan, ALICE)
    assert fires(trigger, 100)


def test_a_run_that_somebody_ended_is_not_waited_for(stages: Stages, ledger: Ledger, trigger: ParkedRunTrigger) -> None:
    trigger.wait = as_json(Parking("pause", 3600))
    assert not fires(trigger, 5)
    abort(ledger, stages.plan, ALICE)
    assert fires(trigger, 100)


def test_a_run_that_another_task_has_parked_again_is_not_gone_on_with_nor_stopped(
    stages: Stages, ledger: Ledger, trigger: ParkedRunTrigger, parked: HeldRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    trigger.wait = as_json(Parking("pause", 0.1, hold=(1, 1)))
    seen, approval = run_by_id(ledger, parked.id), standing_approval(ledger, stages.plan, FOUR_EYES)
    take_over(ledger, seen, approval).park("waits 60 s while the first step holds")
    cancel(trigger, monkeypatch, "failed")
    assert (fires(trigger, 5), run_by_id(ledger, parked.id).state) == (False, "active")


def test_a_run_that_a_shell_has_gone_on_with_occupies_no_worker_until_it_ends(
    stages: Stages, ledger: Ledger, trigger: ParkedRunTrigger, parked: HeldRun
) -> None:
    approval = standing_approval(ledger, stages.plan, FOUR_EYES)
    shell = take_over(ledger, run_by_id(ledger, parked.id), approval)
    assert not fires(trigger, 5)
    shell.end("stopped", "ended by SIGINT")
    assert fires(trigger, 100)


@pytest.mark.slow
def test_a_ledger_that_can_not_be_read_keeps_the_run_parked(
    trigger: ParkedRunTrigger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__LEDGER", "sqlite:////proc/nowhere/ledger.sqlite")
    assert not fires(trigger, 5)
    monkeypatch.delenv("AIRFLOW__PULSAR_ADVISOR__LEDGER")
    assert fires(trigger, 100)


def test_a_run_that_another_triggerer_waits_for_instead_is_not_stopped(
    ledger: Ledger, trigger: ParkedRunTrigger, parked: HeldRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancel(trigger, monkeypatch, "deferred")
    assert run_by_id(ledger, parked.id).state == "active"


def test_a_user_who_stops_the_waiting_task_stops_the_run(
    ledger: Ledger, trigger: ParkedRunTrigger, parked: HeldRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancel(trigger, monkeypatch, "failed")
    assert (run_by_id(ledger, parked.id).state, run_by_id(ledger, parked.id).sentence) == (
        "stopped",
        "the task was stopped in Airflow",
    )


def test_no_apply_or_capture_of_our_dags_waits_in_a_worker(dags: Mapping[str, DAG]) -> None:
    waiting = [
        task
        for dag in dags.values()
        for task in dag.tasks
        if task.task_type in ("PulsarApplyOperator", "PulsarCaptureOperator")
    ]
    assert [task.task_id for task in waiting if not task.deferrable] == []
    assert {"apply", "undo.apply", "fresh.capture"} <= {task.task_id for task in waiting}


@pytest.mark.slow
def test_an_apply_that_was_parked_through_its_hold_is_carried_out_once(
    stages: Stages, run_dag: RunDag, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pulsar_advisor_airflow.operators.apply.PARK_FROM_S", 1.0)
    state, tasks = run_dag("pulsar_rebalance", {"pause_s": 0, "canary_hold_s": 1, "offer_undo_h": 0}, Answer("Approve"))
    assert (state, tasks["apply"], tasks["verify"]) == ("success", "success", "success")
    assert stages.cluster.writes == [Unload(NAMESPACE, LOWER, B2)]
    kinds = [event.kind for event in ledger.events(digest_of(stages.plan)) if event.kind.startswith("run")]
    assert kinds == ["run started", "run parked", "run continued", "run done"]
