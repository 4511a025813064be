"""Whole runs of `pulsar_rebalance`: real wiring, gate, ledger and executor; cluster and Spark are doubles."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from dags.conftest import Answer, RunDag, Stages
from pulsar_advisor.documents.document import as_json
from pulsar_advisor.execution.cluster.cluster_port import Unload
from pulsar_advisor.execution.consent.approval import propose, standing_approval
from pulsar_advisor.execution.ledger.approvals import approvals_of_plan
from pulsar_advisor.execution.ledger.held_run import start_run
from pulsar_advisor.execution.ledger.proposals import proposals_of_plan
from pulsar_advisor.execution.ledger.runs import runs_of_plan
from pulsar_advisor.execution.ledger.switches import record_switching_off
from pulsar_advisor.execution.ledger.unfinished import ended_runs
from pulsar_advisor.execution.person import Person
from pulsar_advisor.execution.run.emptied import Left
from pulsar_advisor.execution.run.guard.settings import OFF
from pulsar_advisor.execution.run.parking import Parking
from pulsar_advisor.execution.throttle import ApplyThrottle
from pulsar_advisor.model.cluster.snapshot_id import snapshot_id
from pulsar_advisor.model.errors import ClusterUnreachable, Refused, StorageError
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.plans.plan import Doubt, Plan, digest_of
from pulsar_advisor.storage.plans import write_plan
from pulsar_advisor.storage.process import Process, this_process
from pulsar_advisor.storage.root import Root
from pulsar_advisor_airflow import tasks
from pulsar_advisor_airflow.tasks import outcome, proposals, runs
from unit.execution.actors import FOUR_EYES, approved, started
from unit.execution.doubles import (
    B1,
    B2,
    B3,
    LOWER,
    NAMESPACE,
    UPPER,
    FakeCluster,
    make_plan,
    split_step,
    unload_step,
)

pytestmark = pytest.mark.airflow

BELOW_THE_GATE = ("apply", "after.capture", "after.normalize", "verify")
FAST = {"pause_s": 0, "canary_hold_s": 30, "offer_undo_h": 0}
"""No wait long enough for the run to be parked, and no offer to undo it."""


def kinds(stages: Stages) -> list[str]:
    return [event.kind for event in stages.ledger().events(digest_of(stages.plan))]


def last_request() -> Any:
    """The newest request for approval in Airflow's database."""
    from airflow.models.hitl import HITLDetail
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        return session.scalars(select(HITLDetail).order_by(HITLDetail.created_at.desc())).first()


def handed_on() -> dict[tuple[str, str], str]:
    """What the tasks of the newest run handed on, by task and key."""
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        rows = session.scalars(select(XComModel).order_by(XComModel.dag_run_id)).all()
        return {(row.task_id, row.key): str(row.value) for row in rows if row.dag_run_id == rows[-1].dag_run_id}


def test_an_approved_plan_is_carried_out_and_verified_by_tasks_that_hand_on_ids_and_nothing_of_the_cluster(
    stages: Stages, run_dag: RunDag, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__HEADS", f"{tmp_path}/heads")
    state, tasks = run_dag("pulsar_rebalance", FAST, Answer("Approve"))
    assert (state, tasks["verify"], tasks["plan_by_digest"]) == ("success", "success", "skipped")
    assert stages.cluster.writes == [Unload(NAMESPACE, LOWER, B2)]
    [approval] = approvals_of_plan(stages.ledger(), digest_of(stages.plan))
    assert (approval.approver, approval.source, approval.comment) == ("olive", "airflow", "")
    [proposal] = proposals_of_plan(stages.ledger(), digest_of(stages.plan))
    assert (proposal.proposer, proposal.source) == ("dag_test", "airflow")
    assert len(list((tmp_path / "heads").iterdir())) == 1
    values = handed_on()
    assert {("apply", "return_value"), ("verify", "return_value")} <= values.keys()
    assert [key for key, value in values.items() if NAMESPACE in value or B1 in value] == []


@pytest.mark.full
def test_the_gate_and_apply_link_to_report_plan_and_ledger(stages: Stages, run_dag: RunDag) -> None:
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    run_dag("pulsar_rebalance", FAST, Answer("Approve"))
    links = XComModel.key.startswith("_link_")
    with create_session() as session:
        rows = session.scalars(select(XComModel).where(links).order_by(XComModel.dag_run_id)).all()
        shown = {(row.task_id, row.key): row.value for row in rows}
    digest = digest_of(stages.plan)
    for task in ("approve", "apply"):
        assert stages.plan.snapshot in shown[task, "_link_ReportLink"]
        assert digest in shown[task, "_link_PlanLink"]
        assert "#ledger" in shown[task, "_link_LedgerLink"]
    assert stages.plan.snapshot in shown["fresh.recommend", "_link_ReportLink"]


def test_the_form_reaches_the_stages(stages: Stages, run_dag: RunDag) -> None:
    conf = {"shedder": "OverloadShedder", "splits": False, "view": "published", "max_unloads": 3, **FAST}
    run_dag("pulsar_rebalance", conf, Answer("Reject"))
    arguments = "--shedder=OverloadShedder --placement=configured --no-splits --no-unload-children --view=published"
    assert stages.calls == [
        "capture",
        "normalize",
        "validate",
        f"recommend {arguments} --max-unloads=3 --max-splits=2 --goal= --brokers= --to= --ceiling=",
        "report",
    ]


@pytest.mark.slow
def test_an_empty_list_in_the_form_is_none(stages: Stages, run_dag: RunDag) -> None:
    lists = ("what_if", "goal_brokers", "goal_onto", "exclude_namespace", "first_broker", "approvers")
    run_dag("pulsar_rebalance", {**dict.fromkeys(lists), **FAST}, Answer("Reject"))
    [recommended] = [called for called in stages.calls if called.startswith("recommend")]
    assert recommended.endswith("--max-unloads=10 --max-splits=2 --goal= --brokers= --to= --ceiling=")


@pytest.mark.parametrize(
    "contradiction", [{"undo": True}, {"digest": "abcdef", "goal": "conform"}], ids=["undo", "digest"]
)
def test_a_form_that_contradicts_itself_fails_before_anything_is_captured(
    stages: Stages, run_dag: RunDag, contradiction: dict[str, Any]
) -> None:
    state, tasks = run_dag("pulsar_rebalance", {**contradiction, **FAST})
    assert (state, tasks["given_or_fresh"], tasks["approve"]) == ("failed", "failed", "upstream_failed")
    assert stages.calls == []


def test_a_goal_limits_what_if_settings_and_the_history_reach_recommend_one_argument_each(
    stages: Stages, run_dag: RunDag
) -> None:
    settings = ["loadBalancerBrokerThresholdShedderPercentage=5", "defaultNamespaceBundleSplitAlgorithm=x --root=/tmp"]
    limits = {
        "max_per_source": 2,
        "max_megabytes_per_s": 50,
        "exclude_namespace": ["shop/orders", "logs"],
        "first_broker": ["broker-1"],
    }
    goal = {"goal": "relieve", "goal_brokers": ["broker-1"], "goal_onto": ["broker-2"], "goal_to_percent": 60}
    run_dag("pulsar_rebalance", {**limits, **goal, "what_if": settings, "history": 0, **FAST}, Answer("Reject"))
    [recommended] = [call for call in stages.arguments if call[0] == "recommend"]
    names = ("--goal", "--brokers", "--to", "--max-per", "--max-top", "--max-mega", "--ex", "--first", "--onto")
    assert [word for word in recommended if word.startswith((*names, "--set", "--history"))] == [
        *(f"--set={setting}" for setting in settings),
        "--history=0",
        "--max-per-source=2",
        "--max-megabytes-per-s=50",
        "--exclude-namespace=shop/orders",
        "--exclude-namespace=logs",
        "--first-broker=broker-1",
        "--goal=relieve",
        "--brokers=broker-1",
        "--onto=broker-2",
        "--to=60",
    ]


@pytest.mark.full
def test_the_dag_of_a_cluster_reaches_that_cluster_only(
    stages: Stages, run_dag: RunDag, monkeypatch: pytest.MonkeyPatch, registered: Callable[..., None]
) -> None:
    registered("demo", "other")
    stages.root = Root(stages.root.url, "other")
    stages.plan = stages.plan.model_copy(update={"cluster": "other"})
    admin = {"conn_type": "pulsar_admin", "password": "eyJ.a.b", "extra": {"admin_urls": "http://other:1"}}
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR_OTHER", json.dumps(admin))
    state, _ = run_dag("pulsar_rebalance__other", FAST, Answer("Approve"))
    assert state == "success"
    assert {url for options in stages.captured_with for url in options.admin.admin_urls} == {"http://other:1"}
    assert len(stages.root.snapshots()) == 2
    assert Root(stages.root.url, "demo").snapshots() == []


@pytest.mark.full
def test_guard_and_pace_are_shown_approved_and_used(stages: Stages, run_dag: RunDag) -> None:
    run_dag("pulsar_rebalance", {"guard": True, "in_flight": 3, **FAST}, Answer("Approve"))
    assert "the cluster's own balancer is switched off during the run" in (last_request().body or "")
    [approval] = approvals_of_plan(stages.ledger(), digest_of(stages.plan))
    assert approval.throttle == ApplyThrottle(guard=True, in_flight=3, pause_s=0, canary_hold_s=30)
    assert [kind for kind in kinds(stages) if kind.startswith("switched")] == ["switched off"] * 2 + [
        "switched back"
    ] * 2


@pytest.mark.full
def test_a_run_whose_balancer_can_not_be_restored_is_verified_and_fails_the_dag_run(
    stages: Stages, run_dag: RunDag
) -> None:
    stages.cluster.on_event = lambda what: setattr(stages.cluster, "rejects_overrides", what == "after the call")
    state, tasks = run_dag("pulsar_rebalance", {"guard": True, **FAST}, Answer("Approve"))
    assert state == "failed"
    assert [tasks[name] for name in ("apply", "verify", "restore_guard")] == ["success", "success", "failed"]


@pytest.mark.slow
def test_a_plan_that_was_carried_out_is_undone_after_an_approval_of_its_own(stages: Stages, run_dag: RunDag) -> None:
    conf = {"digest": stages.write_plan(), **FAST}
    run_dag("pulsar_rebalance", conf, Answer("Approve"))
    form = {"allow_splits": False, "accept_worse": True, "accept_low_confidence": False, "comment": "back"}
    _, tasks = run_dag("pulsar_rebalance", {**conf, "undo": True}, Answer("Approve", form=form))
    assert (tasks["undo_plan"], tasks["plan_by_digest"], tasks["apply"]) == ("success", "skipped", "success")
    assert stages.cluster.writes == [Unload(NAMESPACE, LOWER, B2), Unload(NAMESPACE, LOWER, B1)]


@pytest.fixture
def half_done(stages: Stages) -> Stages:
    """A plan whose second step no longer matches the cluster once its run has begun."""
    plan = make_plan([unload_step(1), unload_step(2, bundle=UPPER, source=B1)], snapshot=stages.plan.snapshot)
    stages.plan = plan
    stages.cluster.on_event = lambda what: (
        stages.cluster.owners.update({f"{NAMESPACE}/{UPPER}": B3}) if what == "after the call" else None
    )
    return stages


@pytest.mark.slow
def test_a_run_that_went_wrong_is_taken_back_if_somebody_accepts_the_offer(half_done: Stages, run_dag: RunDag) -> None:
    form = {"allow_splits": False, "accept_worse": True, "accept_low_confidence": False, "comment": "back"}
    state, tasks = run_dag("pulsar_rebalance", FAST | {"offer_undo_h": 1}, Answer("Approve", form=form, undo="Approve"))
    assert (state, tasks["apply"], tasks["undo.apply"]) == ("failed", "failed", "success")
    assert half_done.cluster.writes == [Unload(NAMESPACE, LOWER, B2), Unload(NAMESPACE, LOWER, B1)]


@pytest.mark.full
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


@pytest.mark.full
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
        plan = asdict(write_plan(half_done.root, half_done.plan))
        assert tasks.offered_undo("demo", plan, "pulsar_default", 1)["digest"] != plan["digest"]


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
        monkeypatch.setattr(proposals, "has_begun", lambda: True)
        began = datetime.now(UTC) - timedelta(hours=1)
        dag_run = SimpleNamespace(run_after=began, triggering_user_name="uma")
        monkeypatch.setattr(proposals, "get_current_context", lambda: {"dag_run": dag_run})
        offered = tasks.offered_undo("demo", asdict(write_plan(stages.root, plan)), "pulsar_default", 1)
        assert (offered["file"].startswith("undo"), runs_of_plan(ledger, digest_of(plan))[0].state) == (True, "stopped")


def test_nothing_is_offered_for_a_run_that_only_split(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> None:
    """A split can't be undone, so the offer would fail, and call somebody."""
    plan = make_plan([split_step(1), unload_step(2)])
    with closing(stages.ledger()) as ledger:
        held = started(ledger, plan)
        held.sent("step-001", "PUT /split", None)
        held.conclude("step-001", "confirmed", "split")
        held.end("stopped", "1 of 2 steps confirmed")
    dag_run = SimpleNamespace(run_after=datetime.now(UTC) - timedelta(hours=1))
    monkeypatch.setattr(proposals, "get_current_context", lambda: {"dag_run": dag_run})
    monkeypatch.setattr(proposals, "has_begun", lambda: True)
    with pytest.raises(AirflowSkipException, match="moved nothing"):
        tasks.offered_undo("demo", asdict(write_plan(stages.root, plan)), "pulsar_default", 1)


def test_an_undo_that_can_move_nothing_back_fails_and_is_not_offered(
    stages: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It went by the gate, which skips such a plan, and ended as a success."""
    plan = make_plan([unload_step(1), unload_step(2, UPPER)])
    with closing(stages.ledger()) as ledger:
        held = started(ledger, plan)
        held.sent("step-001", "PUT /unload", None)
        held.conclude("step-001", "confirmed", "moved")
        held.end("stopped", "1 of 2 steps confirmed")
    reference = asdict(write_plan(stages.root, plan))
    dag_run = SimpleNamespace(run_after=datetime.now(UTC) - timedelta(hours=1))
    monkeypatch.setattr(proposals, "get_current_context", lambda: {"dag_run": dag_run})
    monkeypatch.setattr(proposals, "has_begun", lambda: True)
    with pytest.raises(AirflowFailException, match=f"nothing can be moved back: .* on {B1} already"):
        tasks.undo_plan("demo", reference["digest"], "pulsar_default")
    with pytest.raises(AirflowSkipException, match="nothing can be moved back"):
        tasks.offered_undo("demo", reference, "pulsar_default", 1)


@pytest.mark.full
def test_nothing_is_offered_for_a_run_that_went_well(stages: Stages, run_dag: RunDag) -> None:
    state, tasks = run_dag("pulsar_rebalance", FAST | {"offer_undo_h": 1}, Answer("Approve"))
    assert (state, tasks["as_predicted"], tasks["undo.offer"]) == ("success", "success", "skipped")


def plan_of_digits_only(plan: Plan) -> Plan:
    """One whose digest begins like a number, which a template could make of it."""
    seeded = (plan.model_copy(update={"seed": seed}) for seed in count())
    return next(one for one in seeded if digest_of(one).removeprefix("sha256:")[:8].isdecimal())


def test_a_plan_given_by_its_digest_is_carried_out_without_recommending_again(stages: Stages, run_dag: RunDag) -> None:
    stages.plan = plan_of_digits_only(stages.plan.model_copy(update={"snapshot": stages.snapshot()}))
    write_plan(stages.root, stages.plan)
    digits = digest_of(stages.plan).removeprefix("sha256:")[:8]
    state, tasks = run_dag("pulsar_rebalance", {"digest": digits, **FAST}, Answer("Approve"))
    assert (state, tasks["fresh.capture"], tasks["propose"]) == ("success", "skipped", "success")
    assert stages.calls == ["capture", "normalize"]  # those after apply
    assert len(stages.cluster.writes) == 1


@pytest.mark.slow
def test_somebody_is_called_when_an_approval_waits_and_when_a_task_failed(
    stages: Stages, run_dag: RunDag, monkeypatch: pytest.MonkeyPatch, noted: list[str]
) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example/balance")
    both = "dags.notifiers.failing, dags.notifiers.noting_calls"  # the first takes neither the call nor the gate
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__CALL_NOTIFIERS", both)
    state, tasks = run_dag("pulsar_rebalance", FAST, Answer("Approve", person="dag_test"))
    assert (state, tasks["approve"]) == ("failed", "failed")
    waits, failed = noted
    link = "https://airflow.example/balance/dags/pulsar_rebalance/runs/manual__"
    assert waits.startswith(f"approval.waiting demo Rebalance Pulsar cluster demo? {digest_of(stages.plan)} {link}")
    assert waits.endswith("/tasks/approve/required_actions")
    assert failed.startswith("task.failed demo pulsar_rebalance: approve failed: dag_test may not approve")
    assert link in failed


def test_a_plan_that_was_carried_out_is_not_put_before_anybody_again(stages: Stages, run_dag: RunDag) -> None:
    digest = stages.write_plan()
    with closing(stages.ledger()) as ledger:
        approved(ledger, stages.plan)
        start_run(ledger, stages.plan, standing_approval(ledger, stages.plan, FOUR_EYES)).end("done", "")
    state, tasks = run_dag("pulsar_rebalance", {"digest": digest, **FAST})
    assert (state, tasks["propose"], tasks["approve"]) == ("failed", "failed", "upstream_failed")
    assert kinds(stages).count("proposed") == 1


def test_the_request_names_who_proposed_the_plan_before_and_so_can_not_approve_it(
    stages: Stages, run_dag: RunDag
) -> None:
    digest = stages.write_plan()
    with closing(stages.ledger()) as ledger:
        propose(ledger, stages.plan, Person("olive", "airflow"))
    state, tasks = run_dag("pulsar_rebalance", {"digest": digest, **FAST}, Answer("Approve"))
    assert (state, tasks["approve"]) == ("failed", "failed"), "as olive approved it"
    assert "- proposed before by **olive**, who can't approve it" in (last_request().body or "")


def test_a_plan_of_a_snapshot_too_old_to_be_sent_is_put_before_nobody(stages: Stages, run_dag: RunDag) -> None:
    snapshot = snapshot_id(datetime.now(UTC) - timedelta(hours=7))
    digest = stages.write_plan(snapshot)
    state, tasks = run_dag("pulsar_rebalance", {"digest": digest, **FAST})
    assert (state, tasks["propose"], tasks["approve"]) == ("failed", "success", "failed")
    refused = stages.ledger().events(digest)[-1]
    assert f"the snapshot {snapshot} is 7.1 h old, more than the 6h that are allowed" in refused.detail


@pytest.mark.slow
def test_who_is_asked_again_sees_what_a_run_before_has_left(half_done: Stages, run_dag: RunDag) -> None:
    run_dag("pulsar_rebalance", FAST, Answer("Approve"))
    run_dag("pulsar_rebalance", {"digest": digest_of(half_done.plan), **FAST}, Answer("Reject"))
    body = last_request().body or ""
    assert "**carried out in part**, in run 1" in body
    assert "| 1 | step-002 |" in body
    assert "| step-001 |" not in body


@pytest.mark.full
def test_an_unknown_digest_fails_without_asking_anybody(stages: Stages, run_dag: RunDag) -> None:
    state, tasks = run_dag("pulsar_rebalance", {"digest": f"sha256:{'0' * 64}"})
    assert (state, tasks["plan_by_digest"], tasks["approve"]) == ("failed", "failed", "upstream_failed")


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize(
    ("answer", "said"),
    [(Answer("Reject"), "by olive"), (Answer("Reject", person=None), "no answer in time")],
    ids=["rejected", "timed out"],
)
def test_without_a_yes_nothing_is_written(stages: Stages, run_dag: RunDag, answer: Answer, said: str) -> None:
    state, tasks = run_dag("pulsar_rebalance", FAST, answer)
    assert (state, tasks["approve"]) == ("failed", "failed")
    assert {tasks[name] for name in BELOW_THE_GATE} == {"upstream_failed"}
    assert stages.cluster.writes == []
    assert approvals_of_plan(stages.ledger(), digest_of(stages.plan)) == []
    rejection = stages.ledger().events(digest_of(stages.plan))[-1]
    assert (rejection.kind, rejection.detail.partition(" (airflow, ")[0]) == ("rejected", said)


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize(
    "answer",
    [
        Answer("Approve", person="dag_test"),
        pytest.param(Answer("Approve", person="DAG_TEST"), marks=pytest.mark.full),
        Answer("Approve", person=None),
    ],
    ids=["by the proposer", "by the proposer in capitals", "by no user"],
)
def test_an_approval_that_is_none_fails_the_run_and_nothing_is_written(
    stages: Stages, run_dag: RunDag, answer: Answer
) -> None:
    state, tasks = run_dag("pulsar_rebalance", FAST, answer)
    assert (state, tasks["approve"]) == ("failed", "failed")
    assert {tasks[name] for name in BELOW_THE_GATE} == {"upstream_failed"}
    assert stages.cluster.writes == []
    assert approvals_of_plan(stages.ledger(), digest_of(stages.plan)) == []
    assert kinds(stages) == ["proposed", "refused"]


@pytest.mark.parametrize(
    ("responder", "proposer", "why"),
    [(None, "alice", "doesn't report who"), ("olive", None, "somebody unknown"), ("ALICE", "alice", "another person")],
)
def test_only_a_known_person_other_than_the_known_proposer_can_answer(
    responder: str | None, proposer: str | None, why: str
) -> None:
    from pulsar_advisor_airflow.operators.approval import _another_person

    with pytest.raises(Refused, match=why):
        _another_person(responder, proposer)


@pytest.mark.parametrize("asks_policy", [False, True])
def test_a_gate_that_no_policy_may_answer_asks_none(monkeypatch: pytest.MonkeyPatch, asks_policy: bool) -> None:
    from pulsar_advisor_airflow.operators import approval

    asked: list[object] = []
    answers = "pulsar_advisor.execution.consent.approval.approve_automatically"
    monkeypatch.setattr(approval, "approval_policy", lambda _cluster: SimpleNamespace(automatic="any plan"))
    monkeypatch.setattr(answers, lambda _ledger, plan, **_: asked.append(plan))
    place = {"plan": None, "root": "/root", "cluster": "demo"}
    gate = approval.PlanApprovalOperator(task_id="approve", **place, asks_policy=asks_policy)
    why_a_person = gate._approve_automatically(None, "the plan", ApplyThrottle(), None)  # type: ignore[arg-type]
    assert (why_a_person, asked) == ((None, ["the plan"]) if asks_policy else ("", []))


TICKED = {"accept_low_confidence": True, "comment": ""}
NOT_TICKED = {"accept_low_confidence": False, "comment": ""}


@pytest.fixture
def unsure(stages: Stages) -> Stages:
    """A plan with a step of low confidence."""
    toss = Doubt(confidence="low", sentence="A near-tie decided.")
    stages.plan = make_plan([unload_step(confidence="low", doubts=(toss,))], snapshot=stages.plan.snapshot)
    return stages


@pytest.mark.slow
def test_who_forgets_a_tick_is_asked_again_and_what_was_missing_is_recorded(unsure: Stages, run_dag: RunDag) -> None:
    state, tasks = run_dag("pulsar_rebalance", FAST, Answer("Approve", form=NOT_TICKED, again=TICKED))
    assert (state, tasks["approve"], len(unsure.cluster.writes)) == ("success", "success", 1)
    missing = "olive approved it without ticking: Accept steps of low confidence"
    assert [event.detail for event in unsure.ledger().events(digest_of(unsure.plan)) if event.kind == "refused"] == [
        missing
    ]


@pytest.mark.full
def test_without_the_tick_nothing_is_written(unsure: Stages, run_dag: RunDag) -> None:
    state, tasks = run_dag("pulsar_rebalance", FAST, Answer("Approve", form=NOT_TICKED))
    assert (state, tasks["approve"], unsure.cluster.writes) == ("failed", "failed", [])


@pytest.mark.slow
def test_only_needed_consents_are_asked_for_and_others_are_none(stages: Stages, run_dag: RunDag) -> None:
    form = {"allow_splits": True, "accept_worse": True, "accept_low_confidence": True, "comment": "go"}
    run_dag("pulsar_rebalance", FAST, Answer("Approve", form=form))
    assert list(last_request().params) == ["comment"]
    [approval] = approvals_of_plan(stages.ledger(), digest_of(stages.plan))
    assert (approval.consents, approval.comment) == (frozenset(), "go")


def lose_the_gate(
    monkeypatch: pytest.MonkeyPatch, received: Callable[[], AbstractContextManager[object]] = nullcontext
) -> None:
    """Have a gate's task fail once it has received the answer, which is done within `received`."""
    from pulsar_advisor_airflow.operators.approval import PlanApprovalOperator

    answer_received = PlanApprovalOperator.execute_complete

    def lost(self: Any, context: Any, event: Any, **shown: Any) -> Any:
        with received():
            answer_received(self, context, event, **shown)
        raise RuntimeError("the scheduler believes that this task is gone")

    monkeypatch.setattr(PlanApprovalOperator, "execute_complete", lost)


@pytest.mark.slow
def test_a_gate_that_airflow_took_for_lost_after_the_answer_does_not_ask_again(
    stages: Stages, run_dag: RunDag, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_the_gate(monkeypatch)
    asked: list[str] = []
    answer = Answer("Approve", meanwhile=lambda run_id, _session: asked.append(run_id))
    state, tasks = run_dag("pulsar_rebalance", FAST, answer)
    assert (state, tasks["approve"], len(asked)) == ("success", "success", 1)
    assert len(approvals_of_plan(stages.ledger(), digest_of(stages.plan))) == 1
    assert len(stages.cluster.writes) == 1


@pytest.mark.slow
def test_a_gate_that_airflow_took_for_lost_after_a_rejection_does_not_ask_again(
    stages: Stages, run_dag: RunDag, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_the_gate(monkeypatch, lambda: pytest.raises(AirflowFailException))
    asked: list[str] = []
    answer = Answer("Reject", meanwhile=lambda run_id, _session: asked.append(run_id))
    state, tasks = run_dag("pulsar_rebalance", FAST, answer)
    assert (state, tasks["approve"], tasks["apply"], len(asked)) == ("failed", "failed", "upstream_failed", 1)
    assert kinds(stages) == ["proposed", "rejected"]


@pytest.mark.slow
@pytest.mark.parametrize("below", ["upstream_failed", "skipped"])
def test_a_rejection_says_nothing_about_a_run_that_another_dag_run_of_the_plan_has_begun(
    stages: Stages, run_dag: RunDag, monkeypatch: pytest.MonkeyPatch, below: str
) -> None:
    """It would wait for that run, fail, and call somebody about a balancer that is off as it should be.

    Airflow has the tasks below the gate skipped if somebody marks the DAG run as failed meanwhile.
    """
    from airflow.models.taskinstance import TaskInstance
    from sqlalchemy import select

    begun: list[int] = []

    def begin(run_id: str, session: Any) -> None:
        with closing(stages.ledger()) as ledger:
            held = started(ledger, stages.plan)
            record_switching_off(held, "loadBalancerSheddingEnabled", "true", OFF, {})
            begun.append(held.id)
        if below == "skipped":
            due = TaskInstance.task_id.not_in(("approve", "restore_guard", "as_predicted"))
            in_run = select(TaskInstance).where(TaskInstance.run_id == run_id, TaskInstance.state.is_(None), due)
            for task in session.scalars(in_run):
                task.state = below

    ticks = count(0, 100)
    monkeypatch.setattr(runs, "monotonic", lambda: next(ticks))
    monkeypatch.setattr(runs, "sleep", lambda _s: None)
    state, ended = run_dag("pulsar_rebalance", FAST, Answer("Reject", meanwhile=begin))
    assert (ended["approve"], ended["apply"], ended["restore_guard"]) == ("failed", below, "success")
    assert state == "failed"
    assert [run.state for run in runs_of_plan(stages.ledger(), digest_of(stages.plan))] == ["active"]
    assert len(begun) == 1


@pytest.mark.parametrize("fails_first", [False, True])
def test_a_plan_that_another_dag_run_carries_out_is_left_to_that_one(
    stages: Stages, run_dag: RunDag, monkeypatch: pytest.MonkeyPatch, fails_first: bool
) -> None:
    """It would go on as soon as somebody stops that one, or be the end of its wait; also as a retry."""
    failures = iter([StorageError("the ledger doesn't answer")] if fails_first else [])

    def seen(*asked: Any) -> Any:
        if (failure := next(failures, None)) is not None:
            raise failure
        return ended_runs(*asked)

    monkeypatch.setattr("pulsar_advisor_airflow.operators.apply.ended_runs", seen)

    def begin(_run_id: str, _session: Any) -> None:
        with closing(stages.ledger()) as ledger:
            started(ledger, stages.plan).park("pause")

    state, ended = run_dag("pulsar_rebalance", FAST, Answer("Approve", meanwhile=begin))
    assert (state, ended["approve"], ended["apply"], ended["restore_guard"]) == (
        "failed",
        "success",
        "failed",
        "success",
    )
    assert [run.state for run in runs_of_plan(stages.ledger(), digest_of(stages.plan))] == ["active"]
    assert stages.cluster.writes == []


@pytest.mark.parametrize(
    ("states", "said"),
    [
        ({"capture": "skipped", "approve": "success", "apply": "success"}, None),
        ({"capture": "success", "approve": "skipped", "apply": "skipped"}, "nothing to carry out"),
        ({"capture": "failed", "approve": "skipped", "apply": "skipped"}, "failed: capture"),
        ({"capture": "success", "approve": "success", "apply": "skipped"}, "somebody ended this DAG run"),
    ],
)
def test_a_dag_run_that_somebody_ended_is_no_success(
    monkeypatch: pytest.MonkeyPatch, states: Mapping[str, str], said: str | None
) -> None:
    above = SimpleNamespace(
        upstream_task_ids={"approve", "apply"}, get_flat_relative_ids=lambda upstream: set(states) if upstream else ()
    )
    ti = SimpleNamespace(dag_id="dag", run_id="run", task=above, get_task_states=lambda **_: {"run": states})
    monkeypatch.setattr(outcome, "get_current_context", lambda: {"ti": ti})
    with nullcontext() if said is None else pytest.raises(AirflowException, match=said):
        tasks.require_success()


def test_who_clears_a_dag_run_does_not_have_a_plan_proposed_in_another_name(
    stages: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They could approve it, and so carry out alone what is theirs."""

    def proposed(plan: Plan, times_cleared: int) -> dict[str, str]:
        dag_run = SimpleNamespace(triggering_user_name="alice", clear_number=times_cleared)
        ti = SimpleNamespace(try_number=1, max_tries=2, task=SimpleNamespace(retries=2))
        monkeypatch.setattr(proposals, "get_current_context", lambda: {"dag_run": dag_run, "ti": ti})
        return tasks.propose("demo", None, asdict(write_plan(stages.root, plan)))

    made_since = make_plan([unload_step()], seed=1)
    proposed(stages.plan, times_cleared=0)
    assert proposed(stages.plan, times_cleared=1)["digest"] == digest_of(stages.plan), "as she proposed this one"
    with pytest.raises(AirflowFailException, match="trigger a DAG run of your own"):
        proposed(made_since, times_cleared=1)
    assert proposals_of_plan(stages.ledger(), digest_of(made_since)) == []


@pytest.mark.slow
def test_nor_does_who_clears_the_task_alone_while_the_dag_run_waits_for_an_answer(
    stages: Stages, run_dag: RunDag, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `reset_dag_runs: false` Airflow doesn't count the DAG run as cleared."""
    from airflow.models.taskinstance import TaskInstance, clear_task_instances
    from airflow.sdk.exceptions import AirflowFailException
    from sqlalchemy import select

    made_since = make_plan([unload_step()], seed=1)
    times_cleared = []

    def clear(run_id: str, session: Any) -> None:
        one = select(TaskInstance).where(TaskInstance.run_id == run_id, TaskInstance.task_id == "propose")
        proposing = session.scalars(one).one()
        clear_task_instances([proposing], session, dag_run_state=False)
        times_cleared.append(proposing.dag_run.clear_number)
        context = {"dag_run": proposing.dag_run, "ti": proposing}
        with monkeypatch.context() as patched, suppress(AirflowFailException):
            patched.setattr(proposals, "get_current_context", lambda: context)
            tasks.propose("demo", None, asdict(write_plan(stages.root, made_since)))
        session.rollback()

    run_dag("pulsar_rebalance", FAST, Answer("Reject", meanwhile=clear))
    assert times_cleared == [0]
    assert proposals_of_plan(stages.ledger(), digest_of(made_since)) == []


@pytest.mark.parametrize(("try_number", "max_tries", "is_retried"), [(1, 2, False), (2, 2, True), (2, 3, False)])
def test_a_task_that_was_cleared_begins_anew(try_number: int, max_tries: int, is_retried: bool) -> None:
    from pulsar_advisor_airflow import failures

    task_instance = SimpleNamespace(try_number=try_number, max_tries=max_tries, task=SimpleNamespace(retries=2))
    assert failures.is_retried({"ti": task_instance}) == is_retried


@pytest.mark.full
def test_an_approval_given_before_the_run_does_not_answer_its_gate(stages: Stages, run_dag: RunDag) -> None:
    digest = stages.write_plan()
    with closing(stages.ledger()) as ledger:
        approved(ledger, stages.plan)
    state, tasks = run_dag("pulsar_rebalance", {"digest": digest, **FAST}, Answer("Reject"))
    assert (state, tasks["approve"], tasks["apply"]) == ("failed", "failed", "upstream_failed")


@pytest.mark.slow
def test_a_gate_set_by_hand_is_recorded(stages: Stages, run_dag: RunDag) -> None:
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session

    from pulsar_advisor_airflow import listeners

    run_dag("pulsar_rebalance", FAST, Answer("Reject"))
    with create_session() as session:
        gate = session.get(TaskInstance, last_request().ti_id)
    listeners.on_task_instance_success(previous_state="running", task_instance=gate)  # its own end
    assert stages.ledger().events(digest_of(stages.plan))[-1].kind == "rejected"
    listeners.on_task_instance_failed(previous_state=None, task_instance=gate)
    recorded = stages.ledger().events(digest_of(stages.plan))[-1]
    assert (recorded.kind, recorded.detail[:38]) == ("refused", "the gate was set to failed by hand, wh")


def test_a_gate_marked_as_a_success_is_no_approval(stages: Stages, run_dag: RunDag) -> None:
    state, tasks = run_dag("pulsar_rebalance", FAST, mark_success="approve")
    assert (state, tasks["approve"], tasks["apply"]) == ("failed", "success", "failed")
    assert stages.cluster.writes == []


def test_what_to_do_next_is_something_to_press(stages: Stages, run_dag: RunDag, calls: list[str]) -> None:
    run_dag("pulsar_rebalance", FAST, mark_success="approve")
    [said] = [message for message in calls if "apply failed" in message]
    assert "have it approved by somebody else: trigger pulsar_rebalance with its digest" in said


def test_a_plan_exchanged_while_the_gate_waits_is_neither_approved_nor_carried_out(
    stages: Stages, run_dag: RunDag
) -> None:
    def exchange(run_id: str, session: Any) -> None:
        from airflow.models.xcom import XComModel

        other = stages.plan.model_copy(update={"seed": 7})
        plan = asdict(write_plan(stages.root, other))
        XComModel.set(
            "return_value", plan, dag_id="pulsar_rebalance", task_id="propose", run_id=run_id, session=session
        )

    state, tasks = run_dag("pulsar_rebalance", FAST, Answer("Approve", meanwhile=exchange))
    [approval] = approvals_of_plan(stages.ledger(), digest_of(stages.plan))
    assert approval.approver == "olive"
    assert (state, tasks["approve"], tasks["apply"]) == ("failed", "success", "failed")
    assert stages.cluster.writes == []


@pytest.mark.full
def test_splits_need_a_tick_of_their_own(stages: Stages, run_dag: RunDag) -> None:
    stages.plan = make_plan([split_step(1)])
    state, _ = run_dag("pulsar_rebalance", FAST, Answer("Approve", again={"allow_splits": True, "comment": "go"}))
    assert state == "success"
    [approval] = approvals_of_plan(stages.ledger(), digest_of(stages.plan))
    assert (approval.consents, approval.comment) == ({"splits"}, "go")
    assert len(stages.cluster.writes) == 1


def test_a_snapshot_that_must_not_be_used_ends_the_run_before_anybody_is_asked(stages: Stages, run_dag: RunDag) -> None:
    stages.fit_for_use = False
    state, tasks = run_dag("pulsar_rebalance", FAST)
    assert (state, tasks["fresh.require_trusted_snapshot"], tasks["approve"]) == ("failed", "failed", "upstream_failed")


@pytest.mark.slow
def test_with_nothing_to_do_nobody_is_asked(stages: Stages, run_dag: RunDag) -> None:
    stages.nothing_to_do = True
    state, tasks = run_dag("pulsar_rebalance", FAST)
    assert (state, tasks["fresh.plan"], tasks["approve"], tasks["apply"]) == (
        "success",
        "skipped",
        "skipped",
        "skipped",
    )


@pytest.mark.slow
def test_a_plan_of_predictions_only_is_put_before_nobody(stages: Stages, run_dag: RunDag) -> None:
    step = unload_step().model_copy(update={"executable": False, "not_executable_because": "its broker is down"})
    stages.plan = make_plan([step], snapshot=stages.plan.snapshot)
    state, tasks = run_dag("pulsar_rebalance", FAST)
    assert (state, tasks["propose"], tasks["approve"], tasks["apply"]) == ("success", "success", "skipped", "skipped")
    assert "no step can be carried out: its broker is down" in stages.ledger().events(digest_of(stages.plan))[-1].detail


def test_a_world_that_changed_after_the_approval_fails_apply_without_a_retry(stages: Stages, run_dag: RunDag) -> None:
    stages.cluster.owners[f"{NAMESPACE}/{LOWER}"] = B2
    state, tasks = run_dag("pulsar_rebalance", FAST, Answer("Approve"))
    assert (state, tasks["apply"], tasks["verify"]) == ("failed", "failed", "upstream_failed")
    assert stages.cluster.writes == []


@pytest.mark.slow
def test_a_try_of_apply_waits_for_the_one_before_it_until_its_time_of_day(stages: Stages, run_dag: RunDag) -> None:
    soon = datetime.now(UTC) + timedelta(hours=1)
    run_dag("pulsar_rebalance", {**FAST, "until": f"{soon:%H:%M}"}, Answer("Approve"))
    assert stages.applied_with is not None
    assert stages.applied_with.wait_for_holder
    assert stages.applied_with.lifts_pause, "as somebody began it"
    assert stages.applied_with.until == soon.replace(second=0, microsecond=0)


@pytest.mark.slow
def test_a_broker_that_clients_use_after_its_drain_fails_apply(
    stages: Stages, run_dag: RunDag, monkeypatch: pytest.MonkeyPatch
) -> None:
    decision = stages.plan.decision.model_copy(update={"figures": {"moves": 1, "excluded": 0}})
    goal = Goal("drain", (B1,), None, 0.85)
    stages.plan = make_plan([unload_step()], shedder="drain", goal=goal, decision=decision)
    monkeypatch.setattr("pulsar_advisor.execution.apply.left_on", lambda *_: Left(used=(f"{NAMESPACE}/{UPPER}",)))
    state, tasks = run_dag("pulsar_rebalance", FAST, Answer("Approve"))
    assert (state, tasks["apply"], tasks["verify"]) == ("failed", "failed", "upstream_failed")
    assert [run.state for run in runs_of_plan(stages.ledger(), digest_of(stages.plan))] == ["done"]


@pytest.mark.parametrize(("try_number", "max_tries", "hour"), [(1, 2, 17), (2, 2, 17), (2, 3, 41), (3, 3, 41)])
def test_a_cleared_apply_goes_on_until_the_next_time_of_day(
    try_number: int, max_tries: int, hour: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pulsar_advisor_airflow.operators.apply import PulsarApplyOperator

    operator = PulsarApplyOperator(
        task_id="apply", plan={}, root="/root", cluster="demo", pulsar_conn_id="pulsar_default", until="17:00"
    )
    asked: list[datetime] = []

    def run(_waited: object, until: datetime, *, lifts_pause: bool) -> None:
        asked.append(until)
        raise Refused("that is all")

    monkeypatch.setattr(operator, "_run", run)
    midnight = datetime(2026, 11, 27, tzinfo=UTC)
    this_try = SimpleNamespace(
        try_number=try_number,
        max_tries=max_tries,
        task=SimpleNamespace(retries=2),
        start_date=midnight + timedelta(hours=17, minutes=20),
    )
    dag_run = SimpleNamespace(start_date=midnight + timedelta(hours=15))
    store = {"cleared_at": (midnight + timedelta(hours=17, minutes=10)).isoformat()} if try_number == 3 else {}
    kept = SimpleNamespace(get=store.get, set=store.__setitem__)
    context = {"ti": this_try, "dag_run": dag_run, "task_state_store": kept}
    with pytest.raises(Refused):
        operator.go_on(context, {"waited": as_json(Parking("pause", 60))})
    assert asked == [midnight + timedelta(hours=hour)]


def apply_operator(root: str = "/root", digest: str = "sha256:0") -> Any:
    from pulsar_advisor_airflow.operators.apply import PulsarApplyOperator

    reference = {"snapshot": "20261121T083000Z", "file": "a.json", "digest": digest}
    return PulsarApplyOperator(
        task_id="apply", plan=reference, root=root, cluster="demo", pulsar_conn_id="pulsar_default"
    )


@pytest.mark.parametrize(
    ("try_number", "max_tries", "lifts"),
    [(1, 2, True), (2, 2, False), (2, 3, True)],
    ids=["first", "retry", "cleared by a person"],
)
def test_only_a_try_that_a_person_began_lifts_a_pause(
    try_number: int, max_tries: int, lifts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = apply_operator()
    lifted: list[bool] = []

    def run(*_: object, lifts_pause: bool) -> None:
        lifted.append(lifts_pause)
        raise Refused("that is all")

    monkeypatch.setattr(operator, "_run", run)
    this_try = SimpleNamespace(try_number=try_number, max_tries=max_tries, task=SimpleNamespace(retries=2))
    with pytest.raises(Refused):
        operator.go_on({"ti": this_try}, {"waited": as_json(Parking("pause", 60))})
    assert lifted == [lifts]


@pytest.mark.parametrize(
    ("try_number", "max_tries", "has_begun", "asks"),
    [(1, 2, False, True), (2, 2, False, True), (2, 2, True, False), (2, 3, False, False)],
    ids=["first", "retry of one that failed before it asked", "retry", "cleared by a person"],
)
def test_apply_asks_whether_another_carries_the_plan_out_until_it_has_begun(
    try_number: int, max_tries: int, has_begun: bool, asks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pulsar_advisor_airflow.operators import apply

    operator = apply_operator()
    asked: list[bool] = []
    monkeypatch.setattr(operator, "_require_nobody_at_it", lambda: asked.append(True))
    monkeypatch.setattr(operator, "_carried_out", lambda *_: None)
    monkeypatch.setattr(apply, "show_begun", lambda *_: None)
    store: dict[str, object] = {"begun": True} if has_begun else {}
    kept = SimpleNamespace(get=store.get, set=lambda key, value: store.update({key: value}))
    this_try = SimpleNamespace(try_number=try_number, max_tries=max_tries, task=SimpleNamespace(retries=2))
    operator.execute({"ti": this_try, "task_state_store": kept})
    assert (bool(asked), store) == (asks, {"begun": True})


@pytest.mark.parametrize(
    ("has_begun", "begun_by", "asks_again"),
    [
        (True, None, True),
        (True, Process("worker-2", 1), False),
        (False, this_process(), False),
        (False, Process("worker-2", 1), True),
    ],
    ids=["nobody", "an earlier try", "this try", "another, in the seconds of this try"],
)
def test_after_a_try_that_began_no_run_apply_asks_again(
    stages: Stages, monkeypatch: pytest.MonkeyPatch, has_begun: bool, begun_by: Process | None, asks_again: bool
) -> None:
    from pulsar_advisor_airflow.operators import apply

    def unanswered(*_: object) -> None:
        if begun_by is not None:
            with closing(stages.ledger()) as ledger:
                started(ledger, stages.plan)
        raise ClusterUnreachable("the brokers don't answer")

    operator = apply_operator(stages.root.url, digest_of(stages.plan))
    monkeypatch.setattr("pulsar_advisor.execution.ledger.held_run.this_process", lambda: begun_by)
    monkeypatch.setattr(operator, "_carried_out", unanswered)
    monkeypatch.setattr(operator, "_require_nobody_at_it", lambda: None)
    monkeypatch.setattr(apply, "show_begun", lambda *_: None)
    store: dict[str, object] = {"begun": has_begun}
    kept = SimpleNamespace(get=store.get, set=lambda key, value: store.update({key: value}))
    this_try = SimpleNamespace(try_number=2, max_tries=2, task=SimpleNamespace(retries=2))
    with pytest.raises(ClusterUnreachable):
        operator.execute({"ti": this_try, "task_state_store": kept})
    assert store == {"begun": not asks_again}


@pytest.mark.full
def test_a_try_of_apply_that_ends_with_its_worker_is_followed_by_one_that_does_the_rest(
    stages: Stages, run_dag: RunDag
) -> None:
    stages.plan = make_plan([unload_step(1), unload_step(2, UPPER)], snapshot=stages.plan.snapshot)

    def stop_worker(what: str) -> None:
        if what == "after the call" and len(stages.cluster.effects) == 1:
            os.kill(os.getpid(), signal.SIGTERM)

    stages.cluster.on_event = stop_worker
    state, tasks = run_dag("pulsar_rebalance", FAST, Answer("Approve"))
    assert stages.applied_with is not None
    assert not stages.applied_with.lifts_pause, "as Airflow began it"
    assert (state, tasks["apply"]) == ("success", "success")
    assert stages.cluster.writes == [Unload(NAMESPACE, LOWER, B2), Unload(NAMESPACE, UPPER, B2)]
    assert [kind for kind in kinds(stages) if kind.startswith("run")] == [
        "run started",
        "run stopped",
        "run continued",
        "run done",
    ]


@pytest.mark.full
def test_a_try_of_apply_whose_worker_ends_before_the_first_call_is_followed_by_one_that_does_it_all(
    stages: Stages, run_dag: RunDag, monkeypatch: pytest.MonkeyPatch
) -> None:
    stops = iter([lambda: os.kill(os.getpid(), signal.SIGTERM)])

    def active_brokers() -> frozenset[str]:
        if runs_of_plan(stages.ledger(), digest_of(stages.plan)):
            next(stops, lambda: None)()
        return FakeCluster.active_brokers(stages.cluster)

    monkeypatch.setattr(stages.cluster, "active_brokers", active_brokers)
    state, tasks = run_dag("pulsar_rebalance", FAST, Answer("Approve"))
    assert (state, tasks["apply"]) == ("success", "success")
    assert stages.cluster.writes == [Unload(NAMESPACE, LOWER, B2)]
    assert [kind for kind in kinds(stages) if kind.startswith("run")] == [
        "run started",
        "run refused",
        "run started",
        "run done",
    ]


def test_an_outcome_other_than_predicted_fails_verify(stages: Stages, run_dag: RunDag) -> None:
    real = stages.state

    def moved_back(*asked: Any) -> Any:
        stages.cluster.owners[f"{NAMESPACE}/{LOWER}"] = "10.0.0.1:8080"
        return real(*asked)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pulsar_advisor.stages.verify.cluster_state", moved_back)
        state, tasks = run_dag("pulsar_rebalance", FAST, Answer("Approve"))
    assert (state, tasks["apply"], tasks["verify"]) == ("failed", "success", "failed")


@pytest.mark.slow
def test_a_proposer_is_not_the_only_one_who_may_answer(stages: Stages, run_dag: RunDag) -> None:
    """Else the gate would wait for its time-out."""
    state, tasks = run_dag("pulsar_rebalance", {"approvers": ["dag_test"], **FAST})
    assert (state, tasks["approve"]) == ("failed", "failed")
    refused = stages.ledger().events(digest_of(stages.plan))[-1]
    assert (refused.kind, refused.detail.partition(":")[0]) == ("refused", "only dag_test, who proposed it, may answer")


def test_the_request_shows_the_digest_and_each_step_to_those_who_may_answer(stages: Stages, run_dag: RunDag) -> None:
    stages.plan = make_plan([unload_step(), split_step()])
    run_dag("pulsar_rebalance", {"approvers": ["olive", "uma"], **FAST}, Answer("Reject"))
    request = last_request()
    assert [person["name"] for person in request.assigned_users] == ["olive", "uma"]
    assert digest_of(stages.plan) in request.subject
    body = request.body or ""
    for part in (
        f"| 1 | step-001 | `{NAMESPACE}/{LOWER}`",
        "step-001 is sent first, as it disturbs the fewest topics; nothing else is sent unless its effect holds",
        "it splits 1 bundle, which can't be undone",
        "0 s between two calls",
        "approved for 4 h",
        "**dag_test** proposes 1 unload and 1 split",
    ):
        assert part in body


POLICY = """
schema: pulsar-advisor/approval-policy/1
automatic:
  max_moves: 9
  min_gain_ratio: 0.001
  min_confidence: medium
  namespaces: ["*"]
  window: {days: [mon, tue, wed, thu, fri, sat, sun], from: "00:00", to: "00:00"}
"""


@pytest.mark.slow
def test_no_policy_approves_what_was_not_computed_here_and_the_person_asked_is_told(
    stages: Stages, run_dag: RunDag, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__APPROVAL_POLICY", str(tmp_path / "policy.yaml"))
    state, tasks = run_dag("pulsar_rebalance", FAST)
    assert (state, tasks["apply"]) == ("success", "success")
    stages.not_computed_here = "its snapshot was carried here"
    stages.plan = make_plan([unload_step()], seed=1)
    run_dag("pulsar_rebalance", FAST, Answer("Reject"))
    body = last_request().body or ""
    assert "**not computed here**, so check its figures yourself: its snapshot was carried here" in body
    [proposal] = proposals_of_plan(stages.ledger(), digest_of(stages.plan))
    assert proposal.not_computed_here == "its snapshot was carried here"


@pytest.mark.slow
def test_what_the_advisor_does_not_compute_is_not_even_proposed(stages: Stages, run_dag: RunDag) -> None:
    stages.not_computed_here = Refused("no recommendation lists it")
    state, tasks = run_dag("pulsar_rebalance", FAST)
    assert (state, tasks["propose"], tasks["approve"]) == ("failed", "failed", "upstream_failed")


@pytest.mark.full
def test_without_approvers_named_anybody_may_be_asked(stages: Stages, run_dag: RunDag) -> None:
    run_dag("pulsar_rebalance", FAST, Answer("Reject"))
    request = last_request()
    assert request.assigned_users == []
