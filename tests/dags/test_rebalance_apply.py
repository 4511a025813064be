"""Tries of `apply`: each goes on where the last one ended, and leaves another DAG run's run alone."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from contextlib import closing, nullcontext
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException, TaskDeferred

from dags.conftest import Answer, RunDag, Stages
from dags.rebalancing import FAST, kinds
from pulsar_advisor.documents.document import as_json
from pulsar_advisor.execution.cluster.cluster_port import Unload
from pulsar_advisor.execution.ledger.runs import runs_of_plan
from pulsar_advisor.execution.ledger.tables import Hold
from pulsar_advisor.execution.ledger.unfinished import ended_runs
from pulsar_advisor.execution.run.emptied import Left
from pulsar_advisor.execution.run.end_of_run import AttemptResult
from pulsar_advisor.execution.run.options import ApplyOptions
from pulsar_advisor.execution.run.parking import Parking
from pulsar_advisor.model.errors import ClusterUnreachable, Refused, StorageError
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.storage.plans import write_plan
from pulsar_advisor.storage.process import Process, this_process
from pulsar_advisor_airflow import tasks
from pulsar_advisor_airflow.tasks import outcome
from unit.execution.actors import started
from unit.execution.doubles import B1, B2, LOWER, NAMESPACE, UPPER, FakeCluster, make_plan, unload_step

pytestmark = pytest.mark.airflow


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


@pytest.mark.parametrize(("try_number", "max_tries", "is_retried"), [(1, 2, False), (2, 2, True), (2, 3, False)])
def test_a_task_that_was_cleared_begins_anew(try_number: int, max_tries: int, is_retried: bool) -> None:
    from pulsar_advisor_airflow import failures

    task_instance = SimpleNamespace(try_number=try_number, max_tries=max_tries, task=SimpleNamespace(retries=2))
    assert failures.is_retried({"ti": task_instance}) == is_retried


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


@pytest.mark.parametrize(
    ("try_number", "max_tries", "cleared_at", "hour"),
    [
        (1, 2, None, 17),
        (2, 2, None, 17),
        (2, 3, None, 41),
        (3, 3, timedelta(hours=17, minutes=10), 41),
        (3, 3, timedelta(hours=16, minutes=50), 17),
    ],
)
def test_a_cleared_apply_goes_on_until_the_next_time_of_day(
    try_number: int, max_tries: int, cleared_at: timedelta | None, hour: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pulsar_advisor_airflow.operators.apply import PulsarApplyOperator

    operator = PulsarApplyOperator(
        task_id="apply", plan={}, root="/root", cluster="demo", pulsar_conn_id="pulsar_default", until="17:00"
    )
    asked: list[datetime] = []

    def run(_waited: object, until: datetime, **_: object) -> None:
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
    store = {} if cleared_at is None else {"cleared_at": (midnight + cleared_at).isoformat()}
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


def task_instance(try_number: int, max_tries: int, pushed: dict[str, object]) -> SimpleNamespace:
    """One of a task with two retries, which says something in `pushed`."""
    return SimpleNamespace(
        try_number=try_number,
        max_tries=max_tries,
        task=SimpleNamespace(retries=2),
        xcom_push=lambda key, value: pushed.update({key: value}),
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

    def run(*_: object, lifts_pause: bool, **__: object) -> None:
        lifted.append(lifts_pause)
        raise Refused("that is all")

    monkeypatch.setattr(operator, "_run", run)
    this_try = task_instance(try_number, max_tries, {})
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
    this_try = task_instance(try_number, max_tries, {})
    operator.execute({"ti": this_try, "task_state_store": kept})
    assert (bool(asked), store["begun"]) == (asks, True)


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


def test_a_try_that_can_not_ask_the_ledger_has_begun_what_it_may_have_begun(
    stages: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the next one would take the run for another's, and leave it."""
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__LEDGER", "sqlite:////proc/nowhere/ledger.sqlite")
    assert apply_operator(stages.root.url)._is_under_way(by_anybody=False)


@pytest.mark.parametrize("waited", [None, Parking("hold", 60)], ids=["first", "again"])
@pytest.mark.parametrize(
    ("parking", "is_called"),
    [(Parking("hold", 60), False), (Parking("pause", 60), False), (Parking("request", 0), True)],
    ids=["hold", "pause", "request"],
)
def test_somebody_is_called_about_a_run_that_waits_for_a_person_not_for_the_clock(
    monkeypatch: pytest.MonkeyPatch, calls: list[str], waited: Parking | None, parking: Parking, *, is_called: bool
) -> None:
    """By default every run holds its first step for a minute."""
    result = {"outcome": "partial", "digest": "sha256:0", "run": 1, "sentence": "paused by olive"}
    nothing = {"steps": (), "undoable_steps": (), "refusals": (), "still_off": ()}
    parked = AttemptResult.model_validate({**result, **nothing, "parking": parking})
    operator = apply_operator()
    monkeypatch.setattr(operator, "_run", lambda *_, **__: parked)
    task = SimpleNamespace(retries=2)
    ti = SimpleNamespace(try_number=1, max_tries=2, task=task, dag_id="pulsar_rebalance", run_id="r", task_id="apply")
    with pytest.raises(TaskDeferred):
        operator._carried_out({"ti": ti, "task": operator, "dag": None}, waited)
    assert [call.partition(" /")[0] for call in calls] == (
        ["run.parked demo run 1 of sha256:0: paused by olive"] if is_called else []
    )


def test_apply_counts_what_airflow_vouches_for_and_lifts_no_pause_unless_it_may(
    stages: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[ApplyOptions] = []
    monkeypatch.setattr("pulsar_advisor.stages.apply.run", lambda *stage, **_: given.append(stage[3]))
    operator = apply_operator(stages.root.url)
    operator.plan = asdict(write_plan(stages.root, stages.plan))
    operator._run(None, None, lifts_pause=False, last_held=None, on_held=lambda _hold: None)
    assert [(options.policy.require_authenticated, options.lifts_pause) for options in given] == [(True, False)]


@pytest.mark.parametrize(
    ("try_number", "max_tries", "kept", "may_take"),
    [(1, 2, None, None), (2, 2, [0, 0], (0, 0)), (2, 2, None, None), (2, 2, [4, 1], (4, 1)), (2, 3, [4, 1], None)],
    ids=["first", "retry of one that held no run", "retry of an earlier release's", "retry", "cleared by a person"],
)
def test_a_retry_goes_on_with_what_an_earlier_try_held_and_says_what_it_holds(
    try_number: int, max_tries: int, kept: list[int] | None, may_take: Hold | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pulsar_advisor_airflow.operators import apply

    operator, asked = apply_operator(), list[object]()

    def run(*_: object, last_held: Hold | None, on_held: Callable[[Hold], None], **__: object) -> None:
        asked.append(last_held)
        on_held((4, 2))
        raise Refused("that is all")

    monkeypatch.setattr(operator, "_run", run)
    monkeypatch.setattr(operator, "_require_nobody_at_it", lambda: None)
    monkeypatch.setattr(operator, "_is_under_way", lambda **_: True)
    monkeypatch.setattr(apply, "show_begun", lambda *_: None)
    store, pushed = {"held": kept} if kept else {}, dict[str, object]()
    state = SimpleNamespace(get=store.get, set=lambda key, value: store.update({key: value}))
    ti = task_instance(try_number, max_tries, pushed)
    with pytest.raises(Refused):
        operator.execute({"ti": ti, "task_state_store": state})
    assert (asked, store["held"], pushed) == ([may_take], [4, 2], {"held": [4, 2]})


def test_a_first_try_says_that_it_holds_no_run_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    operator, store, pushed = apply_operator(), dict[str, object](), dict[str, object]()
    monkeypatch.setattr(operator, "_require_nobody_at_it", lambda: None)
    monkeypatch.setattr(operator, "_carried_out", lambda *_: None)
    state = SimpleNamespace(get=store.get, set=lambda key, value: store.update({key: value}))
    operator.execute({"ti": task_instance(1, 2, pushed), "task_state_store": state})
    assert (store["held"], pushed["held"]) == ([0, 0], [0, 0])


@pytest.mark.slow
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


@pytest.mark.slow
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
