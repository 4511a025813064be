"""Whole runs of `pulsar_rolling_restart`: real wiring, gate, ledger and turns; cluster and Spark are doubles."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException, TaskDeferred

from dags.conftest import Answer, RunDag, Stages, cancel, pass_waits
from dags.rebalancing import last_request
from pulsar_advisor.execution.consent.policy import ApprovalPolicy
from pulsar_advisor.execution.ledger.approvals import approvals_of_plan
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.plans import recorded_plan
from pulsar_advisor.execution.ledger.rolls import give_up, open_rolls, recorded_roll
from pulsar_advisor.execution.person import Person
from pulsar_advisor.execution.roll.conduct import Roll, go_on
from pulsar_advisor.execution.roll.status import drained_by, status_of
from pulsar_advisor.execution.roll.steering import announce, end, pause
from pulsar_advisor.execution.run.guard import left_off
from pulsar_advisor.execution.run.guard.settings import GUARDED, OFF
from pulsar_advisor.model.cluster.snapshot_id import snapshot_id
from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.storage.plans import write_plan
from pulsar_advisor_airflow import tasks
from pulsar_advisor_airflow.operators import roll as operator
from pulsar_advisor_airflow.tasks import maintenance
from pulsar_advisor_airflow.triggers import roll as trigger
from unit.execution.actors import approved
from unit.execution.doubles import make_plan, unload_step
from unit.execution.roll.doubles import (
    OLIVE,
    ORDER,
    THROTTLE,
    RestartedCluster,
    drained,
    go_on_after,
    roll_of,
    roll_plan,
    rolled,
)

pytestmark = pytest.mark.airflow

FAST = {"pause_s": 0, "canary_hold_s": 1}


@pytest.fixture
def cluster(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> RestartedCluster:
    """A cluster whose brokers are restarted, and the DAG's way to it."""
    cluster = rolled(stages.cluster.time)
    stages.plan = roll_plan(cluster)
    stages._roll = stages._recommend  # type: ignore[attr-defined]

    @contextmanager
    def reached(plan: Plan, *given: Any) -> Iterator[Roll]:
        root, ledger, _options, policy, turn, progress, interruption = given
        cluster.time.ms = max(cluster.time.ms, time.time_ns() // 1_000_000 + 60_000)

        def plan_anew(goal: Goal) -> tuple[Plan, None]:
            cluster.time.pass_s(1)
            anew = roll_plan(cluster, goal.brokers)
            turn(root.snapshot(anew.snapshot), goal)
            return anew, None

        changes = {"plan_anew": plan_anew, "policy": policy, "progress": progress, "interruption": interruption}
        yield roll_of(plan, ledger, cluster, **changes)

    monkeypatch.setattr("pulsar_advisor.stages.roll.reached", reached)
    monkeypatch.setattr("pulsar_advisor.stages.apply.AdminTransport", lambda _connection, **_: nullcontext())
    monkeypatch.setattr("pulsar_advisor.stages.apply.AdminCluster", lambda _transport: cluster)
    monkeypatch.setattr(trigger, "POLL_S", 0.1)
    return cluster


@contextmanager
def meanwhile(stages: Stages, act: Callable[[Ledger, Plan, str], None]) -> Iterator[list[str]]:
    """Have somebody act whenever a broker is drained; gives the brokers that were."""
    done, drained = threading.Event(), list[str]()

    def look() -> None:
        while not done.wait(0.1):
            with closing(stages.ledger()) as ledger:
                if not (digests := open_rolls(ledger, stages.plan.cluster)):
                    continue
                plan = recorded_plan(ledger, digests[0])
                if (broker := status_of(ledger, plan).restart) is not None:
                    drained.append(broker)
                    act(ledger, plan, broker)

    somebody = threading.Thread(target=look)
    somebody.start()
    try:
        yield drained
    finally:
        done.set()
        somebody.join()


def restarting(cluster: RestartedCluster) -> Callable[[Ledger, Plan, str], None]:
    """What whoever restarts a drained broker does, and says."""

    def restart(ledger: Ledger, plan: Plan, broker: str) -> None:
        cluster.restart(broker)
        announce(ledger, plan, broker, OLIVE)

    return restart


def test_every_broker_is_drained_and_restarted_under_one_approval(
    stages: Stages, run_dag: RunDag, cluster: RestartedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whom it calls can't be reached: that ends neither the gate nor the roll.
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__CALL_NOTIFIERS", "dags.notifiers.failing")

    def restart(ledger: Ledger, plan: Plan, broker: str) -> None:
        assert cluster.owned_bundles(broker) == frozenset()
        assert set(GUARDED) <= cluster.overrides.keys()
        restarting(cluster)(ledger, plan, broker)

    with meanwhile(stages, restart) as restarted:
        state, states = run_dag("pulsar_rolling_restart", FAST, Answer("Approve"))
    assert (state, states["roll"], states["restore_guard"]) == ("success", "success", "success")
    assert restarted == list(ORDER)
    assert cluster.overrides == {}
    [approval] = approvals_of_plan(stages.ledger(), digest_of(stages.plan))
    assert (approval.approver, approval.throttle.guard) == ("olive", True)
    assert round((approval.expires_at_ms - approval.at_ms) / 3_600_000, 2) == 24
    turns = [call for call in stages.calls if call.startswith("turn")]
    assert [call.rpartition("--left=")[2] for call in turns] == [",".join(ORDER[1:]), ORDER[2]]


def test_the_task_fails_while_a_later_turn_goes_on_without_it(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> None:
    said = list[str]()
    monkeypatch.setattr(maintenance, "has_begun", lambda: True)
    pass_waits(monkeypatch)
    with closing(stages.ledger()) as ledger:
        roll = drained(ledger, "demo")

        def end_of_its_task() -> None:
            with pytest.raises(AirflowException) as failed:
                tasks.restore_guard("demo", {"digest": roll.digest})
            said.append(str(failed.value))

        roll.cluster.once("before the call", end_of_its_task)
        roll.cluster.restart(ORDER[0])
        go_on_after(roll, ORDER[0])
    assert said == ["run 2 goes on, though its task has ended: the cluster's balancer is off"]


def test_a_plan_that_somebody_edited_into_an_xcom_gives_up_no_roll_of_another_cluster(
    stages: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "has_begun", lambda: True)
    with closing(stages.ledger()) as ledger:
        roll = drained(ledger, "other")
        tasks.restore_guard("demo", {"digest": roll.digest})
        assert not roll.look().recorded.is_given_up


def test_a_brokers_name_does_not_control_the_terminal_that_shows_the_triggerers_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    waits = iter(["b\x1b[2J:8080 is drained", None])
    waiting = trigger.RollTrigger("root", "demo", "sha256:0")
    monkeypatch.setattr(waiting, "_waits_for", lambda: next(waits))
    monkeypatch.setattr(trigger, "POLL_S", 0)
    asyncio.run(anext(waiting.run()))
    assert r"the roll waits: b\x1b[2J:8080 is drained" in "".join(capsys.readouterr())


@pytest.mark.parametrize("is_off_again", [False, True])
def test_a_balancer_that_somebody_switches_on_while_a_drained_broker_waits_fails_the_task(
    stages: Stages,
    run_dag: RunDag,
    cluster: RestartedCluster,
    monkeypatch: pytest.MonkeyPatch,
    calls: list[str],
    is_off_again: bool,
) -> None:
    """A broker that is filling again must not be restarted, nor one that has been filling until a worker looks."""
    monkeypatch.setattr(trigger, "BALANCER_POLL_S", 0.0)
    look = trigger.RollTrigger._why_balancer_is_on

    def look_and_switch_off(self: trigger.RollTrigger, cluster_name: str) -> str | None:
        why = look(self, cluster_name)
        if why and is_off_again:
            cluster.overrides[GUARDED[0]] = OFF
        return why

    switches = iter(["true"])

    def switch_on(_ledger: Ledger, _plan: Plan, _broker: str) -> None:
        cluster.overrides[GUARDED[0]] = next(switches, cluster.overrides[GUARDED[0]])

    monkeypatch.setattr(trigger.RollTrigger, "_why_balancer_is_on", look_and_switch_off)

    with meanwhile(stages, switch_on):
        state, states = run_dag("pulsar_rolling_restart", FAST, Answer("Approve"))
    assert (state, states["roll"], states["restore_guard"]) == ("failed", "failed", "success")
    with closing(stages.ledger()) as ledger:
        assert recorded_roll(ledger, digest_of(stages.plan)).is_given_up
    assert cluster.overrides == ({} if is_off_again else {GUARDED[0]: "true"})
    assert sum("roll.waiting" in said for said in calls) == 1


@pytest.mark.parametrize(("drains", "is_given_up"), [(1, True), (2, False)], ids=["", "drained again since"])
def test_a_broker_is_given_up_only_if_it_was_not_drained_again_since_the_triggerer_looked(
    stages: Stages, monkeypatch: pytest.MonkeyPatch, drains: int, is_given_up: bool
) -> None:
    with closing(stages.ledger()) as ledger:
        roll = drained(ledger, "demo")
        by = {"why_filling": "somebody switched it on", "drained_by": drained_by(status_of(ledger, roll.plan))}
        if drains == 2:
            give_up(ledger, roll.digest)
            go_on(roll)
        task = roll_operator(stages)
        task.plan = asdict(write_plan(stages.root, roll.plan))
        monkeypatch.setattr(operator, "Call", lambda *_, **__: lambda _context: None)
        monkeypatch.setattr(task, "_carry_on", lambda *_: 0.0)
        said = f"{ORDER[0]} was drained, but somebody switched it on. Don't restart it; .*: clear its task roll"
        with pytest.raises(AirflowFailException, match=said) if is_given_up else pytest.raises(TaskDeferred):
            task.go_on({}, by)
        assert recorded_roll(ledger, roll.digest).is_given_up == is_given_up


def test_a_triggerer_that_can_not_see_the_balancer_waits_for_the_restart_nevertheless(
    stages: Stages, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(trigger, "BALANCER_POLL_S", 0.0)
    with closing(stages.ledger()) as ledger:
        digest = drained(ledger, "demo").digest
    waiting = trigger.RollTrigger(stages.root.url, "demo", digest, pulsar_conn_id="no_such_connection")
    assert [waiting._waits_for() for _ in range(2)] == [f"{ORDER[0]} is drained, and waits for its restart"] * 2
    assert "".join(capsys.readouterr()).count("there is no connection 'no_such_connection'") == 1


def test_a_triggerer_that_can_not_read_the_ledger_keeps_the_roll_waiting(
    stages: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(stages.ledger()) as ledger:
        waiting = trigger.RollTrigger(stages.root.url, "demo", drained(ledger, "demo").digest)
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__LEDGER", "sqlite:////proc/nowhere/ledger.sqlite")
    assert waiting._waits_for() is not None


@pytest.mark.parametrize(
    ("state", "goes_on"),
    [("deferred", True), ("running", True), ("null", True), ("failed", False), ("deleted", False)],
    ids=["another triggerer waits", "after another one has waited", "cleared", "stopped", "deleted"],
)
def test_a_roll_that_no_task_carries_on_any_more_is_given_up(
    stages: Stages, monkeypatch: pytest.MonkeyPatch, state: str, goes_on: bool
) -> None:
    """With the DAG run its task `restore_guard` is deleted, too: `pulsar_maintenance` switches the balancer on."""
    with closing(stages.ledger()) as ledger:
        roll = drained(ledger, "demo")
        cancel(trigger.RollTrigger(stages.root.url, "demo", roll.digest), monkeypatch, state)
        assert bool(left_off.left_off_by_cluster(ledger)) is not goes_on


def roll_operator(stages: Stages) -> operator.PulsarRollOperator:
    place = {"root": stages.root.url, "cluster": "demo", "pulsar_conn_id": "pulsar_default"}
    return operator.PulsarRollOperator(task_id="roll", plan={"digest": digest_of(stages.plan)}, **place)


@pytest.mark.parametrize("order", [pause, end])
def test_a_roll_that_somebody_pauses_or_ends_between_two_moves_has_not_failed(
    stages: Stages, cluster: RestartedCluster, order: Callable[[Ledger, Plan, Person], None]
) -> None:
    stages.write_plan()
    with closing(stages.ledger()) as ledger:
        approved(ledger, stages.plan, consents=(), throttle=THROTTLE)
        cluster.once("after the call", lambda: order(ledger, stages.plan, OLIVE))
        looks_again_s = roll_operator(stages)._carry_on(ledger, stages.root, stages.plan, {})
    assert (looks_again_s, len(cluster.writes) > 0) == (operator.LOOK_AGAIN_S, True)


def test_a_roll_counts_only_an_approval_that_airflow_vouches_for(
    stages: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    policies: list[ApprovalPolicy] = []

    def reached(_plan: Plan, *given: Any) -> None:
        policies.append(given[3])
        raise Refused("that is all")

    monkeypatch.setattr("pulsar_advisor.stages.roll.reached", reached)
    with closing(stages.ledger()) as ledger, pytest.raises(Refused):
        roll_operator(stages)._carry_on(ledger, stages.root, stages.plan, {})
    assert [policy.require_authenticated for policy in policies] == [True]


@pytest.mark.slow
def test_a_roll_that_somebody_ends_fails_and_has_its_balancer_back(
    stages: Stages, run_dag: RunDag, cluster: RestartedCluster
) -> None:
    def end_it(ledger: Ledger, plan: Plan, _broker: str) -> None:
        end(ledger, plan, OLIVE)

    with meanwhile(stages, end_it):
        state, states = run_dag("pulsar_rolling_restart", FAST, Answer("Approve"))
    assert (state, states["roll"]) == ("failed", "failed")
    assert cluster.overrides == {}


@pytest.mark.slow
def test_a_roll_whose_task_failed_is_given_up_and_has_its_balancer_back(
    stages: Stages, run_dag: RunDag, cluster: RestartedCluster, calls: list[str]
) -> None:

    def lose_a_broker(ledger: Ledger, plan: Plan, broker: str) -> None:
        restarting(cluster)(ledger, plan, broker)
        cluster.brokers -= {each for each in ORDER if each != broker}

    with meanwhile(stages, lose_a_broker):
        state, states = run_dag("pulsar_rolling_restart", FAST, Answer("Approve"))
    assert (state, states["roll"], states["restore_guard"]) == ("failed", "failed", "success")
    assert cluster.overrides == {}
    with closing(stages.ledger()) as ledger:
        assert recorded_roll(ledger, digest_of(stages.plan)).is_given_up
    assert any("task.failed" in said and "are not active" in said for said in calls)
    run_dag("pulsar_rolling_restart", {"digest": digest_of(stages.plan), **FAST}, Answer("Reject"))
    body = last_request().body or ""
    assert f"- **one approval for the whole roll**: `{ORDER[1]}`, `{ORDER[2]}`, in this order" in body
    assert "**carried out in part**" in body
    assert "proposes 0 unloads and 0 splits" in body


def test_a_roll_that_a_shell_carries_on_too_is_not_given_up(
    stages: Stages, run_dag: RunDag, cluster: RestartedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operator, "LOOK_AGAIN_S", 0.0)

    def shell_is_quicker(_snapshot: str) -> None:
        with closing(stages.ledger()) as ledger:
            go_on(roll_of(recorded_plan(ledger, open_rolls(ledger, "demo")[0]), ledger, cluster))

    stages._turn = shell_is_quicker  # type: ignore[attr-defined]
    with meanwhile(stages, restarting(cluster)) as restarted:
        state, states = run_dag("pulsar_rolling_restart", FAST, Answer("Approve"))
    assert (state, states["roll"], restarted) == ("success", "success", list(ORDER))
    assert "roll given up" not in [event.kind for event in stages.ledger().events(digest_of(stages.plan))]


def test_a_turn_that_ended_early_in_a_shell_goes_on_only_once_somebody_says_so(
    stages: Stages, run_dag: RunDag, cluster: RestartedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operator, "LOOK_AGAIN_S", 0.0)
    stopped: list[str] = []

    def shell_is_stopped(_snapshot: str) -> None:
        cluster.once("after the call", lambda: stopped.append("Ctrl-C"))
        with closing(stages.ledger()) as ledger:
            plan = recorded_plan(ledger, open_rolls(ledger, "demo")[0])
            result = go_on(roll_of(plan, ledger, cluster, interruption=lambda: next(iter(stopped), None)))
            assert result is not None
            assert result.outcome == "partial"

    stages._turn = shell_is_stopped  # type: ignore[attr-defined]
    with meanwhile(stages, restarting(cluster)) as restarted:
        state, states = run_dag("pulsar_rolling_restart", FAST, Answer("Approve"))
    assert (state, states["roll"], restarted) == ("failed", "failed", [ORDER[0]])


@pytest.mark.slow
def test_a_try_of_a_roll_that_ends_with_its_worker_is_followed_by_one_that_does_the_rest(
    stages: Stages, run_dag: RunDag, cluster: RestartedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(left_off, "MAY_ACT_MS", 1000)  # waiting puts the cluster's clock ahead of the ledger's
    cluster.once("after the call", lambda: os.kill(os.getpid(), signal.SIGTERM))
    with meanwhile(stages, restarting(cluster)) as restarted:
        state, states = run_dag("pulsar_rolling_restart", FAST, Answer("Approve"))
    assert (state, states["roll"], restarted, cluster.overrides) == ("success", "success", list(ORDER), {})
    kinds = [event.kind for event in stages.ledger().events(digest_of(stages.plan))]
    of_the_run = [kind for kind in kinds if kind.startswith("run")]
    assert of_the_run == ["run started", "run stopped", "run resumed", "run done"]


@pytest.mark.slow
def test_somebody_is_called_once_if_a_broker_does_not_come_back(
    stages: Stages, run_dag: RunDag, cluster: RestartedCluster, monkeypatch: pytest.MonkeyPatch, calls: list[str]
) -> None:
    for limit in ("LATE_S", "LOOK_AGAIN_S", "BACK_WITHIN_S"):
        monkeypatch.setattr(operator, limit, 0.0)

    def restart(ledger: Ledger, plan: Plan, broker: str) -> None:
        cluster.unhealthy[ORDER[0]] = "answers 503"
        restarting(cluster)(ledger, plan, broker)

    looks = []
    why_unhealthy = cluster.why_unhealthy

    def healed(broker: str) -> str | None:
        looks.append(broker)
        return why_unhealthy(broker) if len(looks) <= 3 else None

    monkeypatch.setattr(cluster, "why_unhealthy", healed)
    with meanwhile(stages, restart):
        state, _ = run_dag("pulsar_rolling_restart", FAST, Answer("Approve"))
    assert state == "success"
    [late] = [said for said in calls if "is not back" in said]
    assert f"roll.waiting demo {ORDER[0]} is not back 0 min after its restart was announced" in late
    assert "answers 503" in late


@pytest.mark.slow
def test_a_rejected_roll_sends_nothing(stages: Stages, run_dag: RunDag, cluster: RestartedCluster) -> None:
    state, states = run_dag("pulsar_rolling_restart", FAST, Answer("Reject"))
    assert (state, states["roll"]) == ("failed", "upstream_failed")
    assert cluster.writes == []


def test_a_roll_that_restarts_no_broker_fails(stages: Stages, run_dag: RunDag, cluster: RestartedCluster) -> None:
    stages.nothing_to_do = True
    state, states = run_dag("pulsar_rolling_restart", FAST)
    assert (state, states["fresh.plan"], states["approve"]) == ("failed", "failed", "upstream_failed")


@pytest.mark.slow
def test_a_roll_of_an_old_snapshot_may_still_be_approved(
    stages: Stages, run_dag: RunDag, cluster: RestartedCluster
) -> None:
    old = snapshot_id(datetime.now(UTC) - timedelta(hours=7))
    digest = stages.write_plan(old)
    run_dag("pulsar_rolling_restart", {"digest": digest, **FAST}, Answer("Reject"))
    assert stages.ledger().events(digest)[-1].kind == "rejected"


@pytest.mark.parametrize(("roll", "its_own"), [(True, "pulsar_rebalance"), (False, "pulsar_rolling_restart")])
def test_the_digest_of_a_plan_of_the_other_kind_is_led_to_its_own_dag(
    stages: Stages, cluster: RestartedCluster, roll: bool, its_own: str
) -> None:
    plan = write_plan(stages.root, make_plan([unload_step()]) if roll else stages.plan)
    with pytest.raises(AirflowFailException, match=f"trigger {its_own} with it"):
        tasks.plan_by_digest("demo", plan.digest, roll=roll)
