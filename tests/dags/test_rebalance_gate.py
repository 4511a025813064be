"""The gate of `pulsar_rebalance`: who is asked about which plan, what they see, and which answers approve it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from dags.conftest import Answer, RunDag, Stages, pass_waits
from dags.rebalancing import FAST, kinds, last_request
from pulsar_advisor.execution.consent.approval import approve, propose
from pulsar_advisor.execution.ledger.approvals import approvals_of_plan
from pulsar_advisor.execution.ledger.proposals import proposals_of_plan
from pulsar_advisor.execution.ledger.runs import runs_of_plan
from pulsar_advisor.execution.ledger.switches import record_switching_off
from pulsar_advisor.execution.person import Person
from pulsar_advisor.execution.run.guard.settings import OFF
from pulsar_advisor.execution.throttle import ApplyThrottle
from pulsar_advisor.model.cluster.snapshot_id import snapshot_id
from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.plans.plan import Doubt, Plan
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.storage.plans import write_plan
from pulsar_advisor_airflow import tasks
from pulsar_advisor_airflow.tasks import proposals
from unit.execution.actors import ALICE, FOUR_EYES, approved, started
from unit.execution.doubles import (
    LOWER,
    NAMESPACE,
    make_plan,
    split_step,
    unload_step,
)

pytestmark = pytest.mark.airflow

BELOW_THE_GATE = ("apply", "after.capture", "after.normalize", "verify")


def test_a_plan_that_was_carried_out_is_not_put_before_anybody_again(stages: Stages, run_dag: RunDag) -> None:
    digest = stages.write_plan()
    with closing(stages.ledger()) as ledger:
        started(ledger, stages.plan).end("done", "")
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


@pytest.mark.slow
def test_an_unknown_digest_fails_without_asking_anybody(stages: Stages, run_dag: RunDag) -> None:
    state, tasks = run_dag("pulsar_rebalance", {"digest": f"sha256:{'0' * 64}"})
    assert (state, tasks["plan_by_digest"], tasks["approve"]) == ("failed", "failed", "upstream_failed")


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize(
    ("answer", "said"),
    [(Answer("Reject"), "by olive"), (Answer("Reject", person=None), "no answer in time")],
    ids=["rejected", "timed out"],
)
def test_without_a_yes_nothing_is_written(
    stages: Stages, run_dag: RunDag, calls: list[str], answer: Answer, said: str
) -> None:
    state, tasks = run_dag("pulsar_rebalance", FAST, answer)
    assert (state, tasks["approve"]) == ("failed", "failed")
    assert {tasks[name] for name in BELOW_THE_GATE} == {"upstream_failed"}
    assert stages.cluster.writes == []
    assert approvals_of_plan(stages.ledger(), digest_of(stages.plan)) == []
    rejection = stages.ledger().events(digest_of(stages.plan))[-1]
    assert (rejection.kind, rejection.detail.partition(" (airflow, ")[0]) == ("rejected", said)
    called_about = [call.partition(" demo ")[0] for call in calls]  # a person who answered needn't be called
    assert called_about == ["approval.waiting", *(["task.failed"] if answer.person is None else [])]


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize(
    "answer",
    [
        Answer("Approve", person="dag_test"),
        pytest.param(Answer("Approve", person="DAG_TEST"), marks=pytest.mark.slow),
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

    asked: list[tuple[object, ...]] = []
    answers = "pulsar_advisor.execution.consent.approval.approve_automatically"
    monkeypatch.setattr(approval, "approval_policy", lambda _cluster: SimpleNamespace(automatic="any plan"))
    monkeypatch.setattr(answers, lambda _ledger, plan, **of: asked.append((plan, of["terms"].valid_for_s)))
    place = {"plan": None, "root": "/root", "cluster": "demo"}
    gate = approval.PlanApprovalOperator(task_id="approve", **place, asks_policy=asks_policy, valid_for_h=1)
    why_a_person = gate._approve_automatically(None, "the plan", ApplyThrottle(), None)  # type: ignore[arg-type]
    assert (why_a_person, asked) == ((None, [("the plan", 3600)]) if asks_policy else ("", []))


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


@pytest.mark.slow
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

    pass_waits(monkeypatch)
    state, ended = run_dag("pulsar_rebalance", FAST, Answer("Reject", meanwhile=begin))
    assert (ended["approve"], ended["apply"], ended["restore_guard"]) == ("failed", below, "success")
    assert state == "failed"
    assert [run.state for run in runs_of_plan(stages.ledger(), digest_of(stages.plan))] == ["active"]
    assert len(begun) == 1


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
def test_who_clears_only_the_task_while_an_answer_is_awaited_does_not_propose_in_another_name(
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


def test_a_plan_of_an_unknown_user_is_not_proposed(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> None:
    dag_run = SimpleNamespace(triggering_user_name=None, clear_number=0)
    ti = SimpleNamespace(try_number=1, max_tries=2, task=SimpleNamespace(retries=2))
    monkeypatch.setattr(proposals, "get_current_context", lambda: {"dag_run": dag_run, "ti": ti})
    with pytest.raises(AirflowFailException, match="so the plan has no proposer"):
        tasks.propose("demo", asdict(write_plan(stages.root, stages.plan)))


@pytest.mark.parametrize(
    ("source", "begun_h_ago", "answered"), [("airflow", 1, True), ("airflow", -1, False), ("another system", 1, False)]
)
def test_only_what_airflow_vouches_for_since_the_dag_run_began_is_an_answer_at_its_gate(
    stages: Stages, source: str, begun_h_ago: int, answered: bool
) -> None:
    from pulsar_advisor_airflow.operators.approval import PlanApprovalOperator

    gate = PlanApprovalOperator(task_id="approve", plan=None, root=stages.root.url, cluster="demo")
    dag_run = SimpleNamespace(start_date=datetime.now(UTC) - timedelta(hours=begun_h_ago))
    with closing(stages.ledger()) as ledger:
        propose(ledger, stages.plan, ALICE)
        who = Person("bob", source)
        approve(ledger, stages.plan, digest=digest_of(stages.plan), approver=who, policy=FOUR_EYES)
        assert gate._approver_in({"dag_run": dag_run}, ledger, stages.plan) == ("bob" if answered else None)


@pytest.mark.slow
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


@pytest.mark.slow
def test_splits_need_a_tick_of_their_own(stages: Stages, run_dag: RunDag) -> None:
    stages.plan = make_plan([split_step(1)])
    state, _ = run_dag("pulsar_rebalance", FAST, Answer("Approve", again={"allow_splits": True, "comment": "go"}))
    assert state == "success"
    [approval] = approvals_of_plan(stages.ledger(), digest_of(stages.plan))
    assert (approval.consents, approval.comment) == ({"splits"}, "go")
    assert len(stages.cluster.writes) == 1


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


@pytest.mark.slow
def test_without_approvers_named_anybody_may_be_asked(stages: Stages, run_dag: RunDag) -> None:
    run_dag("pulsar_rebalance", FAST, Answer("Reject"))
    request = last_request()
    assert request.assigned_users == []
