"""The offer of `pulsar_rebalance` to take a run back, and what comes of it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from dags.conftest import Answer, RunDag, Stages
from dags.rebalancing import FAST, last_request
from pulsar_advisor.execution.cluster.cluster_port import Unload
from pulsar_advisor.execution.ledger.runs import runs_of_plan
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.storage.plans import write_plan
from pulsar_advisor_airflow import tasks
from pulsar_advisor_airflow.tasks import proposals, runs
from unit.execution.actors import started
from unit.execution.doubles import B1, B2, LOWER, NAMESPACE, UPPER, make_plan, split_step, unload_step

pytestmark = pytest.mark.airflow


@pytest.mark.slow
def test_a_plan_that_was_carried_out_is_undone_after_an_approval_of_its_own(stages: Stages, run_dag: RunDag) -> None:
    conf = {"digest": stages.write_plan(), **FAST}
    run_dag("pulsar_rebalance", conf, Answer("Approve"))
    form = {"allow_splits": False, "accept_worse": True, "accept_low_confidence": False, "comment": "back"}
    _, tasks = run_dag("pulsar_rebalance", {**conf, "undo": True}, Answer("Approve", form=form))
    assert (tasks["undo_plan"], tasks["plan_by_digest"], tasks["apply"]) == ("success", "skipped", "success")
    assert stages.cluster.writes == [Unload(NAMESPACE, LOWER, B2), Unload(NAMESPACE, LOWER, B1)]


@pytest.mark.slow
def test_a_run_that_went_wrong_is_taken_back_if_somebody_accepts_the_offer(half_done: Stages, run_dag: RunDag) -> None:
    form = {"allow_splits": False, "accept_worse": True, "accept_low_confidence": False, "comment": "back"}
    state, tasks = run_dag("pulsar_rebalance", FAST | {"offer_undo_h": 1}, Answer("Approve", form=form, undo="Approve"))
    assert (state, tasks["apply"], tasks["undo.apply"]) == ("failed", "failed", "success")
    assert half_done.cluster.writes == [Unload(NAMESPACE, LOWER, B2), Unload(NAMESPACE, LOWER, B1)]


@pytest.mark.slow
def test_a_run_that_is_taken_back_and_leaves_the_balancer_off_has_it_restored(
    half_done: Stages, run_dag: RunDag
) -> None:
    cluster, changes_owner = half_done.cluster, half_done.cluster.on_event

    def reject_overrides_in_the_second_run(what: str) -> None:
        changes_owner(what)
        cluster.rejects_overrides = len(cluster.effects) > 1

    cluster.on_event = reject_overrides_in_the_second_run
    form = {"allow_splits": False, "accept_worse": True, "accept_low_confidence": False, "comment": "back"}
    conf = FAST | {"guard": True, "offer_undo_h": 1}
    _, tasks = run_dag("pulsar_rebalance", conf, Answer("Approve", form=form, undo="Approve"))
    assert (tasks["undo.apply"], cluster.overrides != {}) == ("success", True)
    assert tasks["undo.restore_guard"] == "failed", "it tried: here no broker answers it"


@pytest.mark.slow
def test_the_offer_to_undo_is_declined_by_default(half_done: Stages, run_dag: RunDag) -> None:
    state, tasks = run_dag("pulsar_rebalance", FAST | {"offer_undo_h": 1}, Answer("Approve"))
    assert (state, tasks["undo.approve"], tasks["undo.apply"]) == ("failed", "success", "skipped")
    assert tasks["undo.restore_guard"] == "skipped"
    assert len(half_done.cluster.writes) == 1


@pytest.mark.slow
def test_an_offer_is_made_too_once_tasks_of_the_dag_run_were_cleared(
    half_done: Stages, run_dag: RunDag, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.models.taskinstance import TaskInstance, clear_task_instances
    from airflow.utils.session import create_session

    run_dag("pulsar_rebalance", FAST, Answer("Approve"))
    with create_session() as session:
        gate = session.get(TaskInstance, last_request().ti_id)
        clear_task_instances([gate], session)
        gate.dag_run.set_state("running")  # as the scheduler does, with a new start
        monkeypatch.setattr(proposals, "get_current_context", lambda: {"dag_run": gate.dag_run})
        monkeypatch.setattr(proposals, "has_begun", lambda: True)
        monkeypatch.setattr(runs, "last_held", lambda: (1, 1))
        plan = asdict(write_plan(half_done.root, half_done.plan))
        assert tasks.offered_undo("demo", plan, "pulsar_default", 1)["digest"] != plan["digest"]


def begun(monkeypatch: pytest.MonkeyPatch, *, hours_ago: float = 1) -> None:
    """Tasks run in a DAG run of uma's that was to begin then, and has begun to carry its plan out."""
    dag_run = SimpleNamespace(run_after=datetime.now(UTC) - timedelta(hours=hours_ago), triggering_user_name="uma")
    monkeypatch.setattr(proposals, "get_current_context", lambda: {"dag_run": dag_run})
    monkeypatch.setattr(proposals, "has_begun", lambda: True)
    monkeypatch.setattr(runs, "last_held", lambda: (1, 1))


def stopped_after_one(stages: Stages, plan: Plan) -> dict[str, str]:
    """The reference to a plan whose run has stopped after its first step was confirmed."""
    with closing(stages.ledger()) as ledger:
        held = started(ledger, plan)
        held.sent("step-001", "PUT", None)
        held.conclude("step-001", "confirmed", "as asked")
        held.end("stopped", "1 of 2 steps confirmed")
    return asdict(write_plan(stages.root, plan))


@pytest.mark.parametrize("ends_itself", [True, False])
def test_the_offer_waits_for_the_worker_whose_task_somebody_stopped(
    stages: Stages, monkeypatch: pytest.MonkeyPatch, ends_itself: bool
) -> None:
    """Airflow starts it as soon as the task's state is set, and kills a worker that doesn't end within seconds."""
    plan = make_plan([unload_step(1), unload_step(2, UPPER)])
    with closing(stages.ledger()) as ledger:
        held = started(ledger, plan)
        held.sent("step-001", "PUT /unload", None)
        held.conclude("step-001", "confirmed", "moved")
        stages.cluster.owners[f"{NAMESPACE}/{LOWER}"] = B2

        def end(_s: float) -> None:
            if ends_itself:
                held.end("stopped", "1 of 2 steps confirmed")
            else:
                monkeypatch.setattr("pulsar_advisor.execution.ledger.runs.has_ended", lambda _process: True)

        monkeypatch.setattr(runs, "sleep", end)
        begun(monkeypatch)
        offered = tasks.offered_undo("demo", asdict(write_plan(stages.root, plan)), "pulsar_default", 1)
        assert (offered["file"].startswith("undo"), runs_of_plan(ledger, digest_of(plan))[0].state) == (True, "stopped")


def test_a_plan_of_another_cluster_in_an_edited_xcom_fails_before_its_run_is_looked_at(
    stages: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = make_plan([unload_step()], cluster="other")
    begun(monkeypatch)
    monkeypatch.setattr(proposals, "await_end", lambda *_: pytest.fail("another cluster's run may be ended"))
    with closing(stages.ledger()) as ledger:
        started(ledger, plan)
        named = {"snapshot": plan.snapshot, "file": "plan.json", "digest": digest_of(plan)}
        with pytest.raises(AirflowFailException, match="is for cluster 'other'"):
            tasks.offered_undo("demo", named, "pulsar_default", 1)


def test_nothing_is_offered_for_a_run_that_only_split(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> None:
    """A split can't be undone, so the offer would fail, and call somebody."""
    plan = stopped_after_one(stages, make_plan([split_step(1), unload_step(2)]))
    begun(monkeypatch)
    with pytest.raises(AirflowSkipException, match="moved nothing"):
        tasks.offered_undo("demo", plan, "pulsar_default", 1)


def test_nothing_is_offered_for_a_run_that_ended_before_the_dag_run_began(
    stages: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = stopped_after_one(stages, make_plan([unload_step(1), unload_step(2, UPPER)]))
    stages.cluster.owners[f"{NAMESPACE}/{LOWER}"] = B2
    begun(monkeypatch, hours_ago=-1)
    with pytest.raises(AirflowSkipException, match="moved nothing"):
        tasks.offered_undo("demo", plan, "pulsar_default", 1)


def test_an_undo_that_can_move_nothing_back_fails_and_is_not_offered(
    stages: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It went by the gate, which skips such a plan, and ended as a success."""
    reference = stopped_after_one(stages, make_plan([unload_step(1), unload_step(2, UPPER)]))
    begun(monkeypatch)
    with pytest.raises(AirflowFailException, match=f"nothing can be moved back: .* on {B1} already"):
        tasks.undo_plan("demo", reference["digest"], "pulsar_default")
    with pytest.raises(AirflowSkipException, match="nothing can be moved back"):
        tasks.offered_undo("demo", reference, "pulsar_default", 1)


@pytest.mark.slow
def test_nothing_is_offered_for_a_run_that_went_well(stages: Stages, run_dag: RunDag) -> None:
    state, tasks = run_dag("pulsar_rebalance", FAST | {"offer_undo_h": 1}, Answer("Approve"))
    assert (state, tasks["as_predicted"], tasks["undo.offer"]) == ("success", "success", "skipped")
