"""Whole runs of `pulsar_rebalance`, form to verdict: real gate, ledger, executor; cluster and Spark are doubles."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from dags.conftest import Answer, RunDag, Stages, announced
from dags.rebalancing import FAST, kinds, last_request
from pulsar_advisor.execution.cluster.cluster_port import Unload
from pulsar_advisor.execution.ledger.approvals import approvals_of_plan
from pulsar_advisor.execution.ledger.proposals import proposals_of_plan
from pulsar_advisor.execution.throttle import ApplyThrottle
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.storage.plans import write_plan
from pulsar_advisor.storage.root import Root
from unit.execution.doubles import B1, B2, LOWER, NAMESPACE, make_plan, unload_step

pytestmark = pytest.mark.airflow


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
    carried_out = {"cluster": "demo", "digest": digest_of(stages.plan), "run": 1}
    assert announced(2) == [carried_out, {**carried_out, "snapshot": stages.root.snapshots()[-1]}]
    values = handed_on()
    assert {("apply", "return_value"), ("verify", "return_value")} <= values.keys()
    assert [key for key, value in values.items() if NAMESPACE in value or B1 in value] == []


@pytest.mark.slow
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
        f"recommend {arguments} --max-unloads=3 --max-splits=2",
        "report",
    ]


@pytest.mark.slow
def test_an_empty_list_in_the_form_is_none(stages: Stages, run_dag: RunDag) -> None:
    lists = ("what_if", "goal_brokers", "goal_onto", "exclude_namespace", "first_broker", "approvers")
    run_dag("pulsar_rebalance", {**dict.fromkeys(lists), **FAST}, Answer("Reject"))
    [recommended] = [called for called in stages.calls if called.startswith("recommend")]
    assert recommended.endswith("--max-unloads=10 --max-splits=2")


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


@pytest.mark.slow
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


@pytest.mark.slow
def test_guard_and_pace_are_shown_approved_and_used(stages: Stages, run_dag: RunDag) -> None:
    run_dag("pulsar_rebalance", {"guard": True, "in_flight": 3, **FAST}, Answer("Approve"))
    assert "the cluster's own balancer is switched off during the run" in (last_request().body or "")
    [approval] = approvals_of_plan(stages.ledger(), digest_of(stages.plan))
    assert approval.throttle == ApplyThrottle(guard=True, in_flight=3, pause_s=0, canary_hold_s=30)
    assert [kind for kind in kinds(stages) if kind.startswith("switched")] == ["switched off"] * 2 + [
        "switched back"
    ] * 2


@pytest.mark.slow
def test_a_run_whose_balancer_can_not_be_restored_is_verified_and_fails_the_dag_run(
    stages: Stages, run_dag: RunDag
) -> None:
    stages.cluster.on_event = lambda what: setattr(stages.cluster, "rejects_overrides", what == "after the call")
    state, tasks = run_dag("pulsar_rebalance", {"guard": True, **FAST}, Answer("Approve"))
    assert state == "failed"
    assert [tasks[name] for name in ("apply", "verify", "restore_guard")] == ["success", "success", "failed"]


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
    step = unload_step(executable=False, not_executable_because="its broker is down")
    stages.plan = make_plan([step], snapshot=stages.plan.snapshot)
    state, tasks = run_dag("pulsar_rebalance", FAST)
    assert (state, tasks["propose"], tasks["approve"], tasks["apply"]) == ("success", "success", "skipped", "skipped")
    assert "no step can be carried out: its broker is down" in stages.ledger().events(digest_of(stages.plan))[-1].detail


def test_an_outcome_other_than_predicted_fails_verify(stages: Stages, run_dag: RunDag) -> None:
    real = stages.state

    def moved_back(*asked: Any) -> Any:
        stages.cluster.owners[f"{NAMESPACE}/{LOWER}"] = "10.0.0.1:8080"
        return real(*asked)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pulsar_advisor.stages.verify.cluster_state", moved_back)
        state, tasks = run_dag("pulsar_rebalance", FAST, Answer("Approve"))
    assert (state, tasks["apply"], tasks["verify"]) == ("failed", "success", "failed")
