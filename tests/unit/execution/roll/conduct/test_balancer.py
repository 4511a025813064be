"""The balancer is off from a turn's first move to the broker's restart, and comes back when the roll stops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pulsar_advisor.execution.cluster.cluster_port import Override, Reply
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.pauses import lift_pause_of_plan
from pulsar_advisor.execution.ledger.rolls import give_up
from pulsar_advisor.execution.roll import conduct
from pulsar_advisor.execution.roll.conduct import Roll, go_on, mind_the_balancer
from pulsar_advisor.execution.roll.status import status_of
from pulsar_advisor.execution.roll.steering import end, pause
from pulsar_advisor.execution.run.executor import carry_out
from pulsar_advisor.execution.run.guard.left_off import left_off
from pulsar_advisor.execution.run.guard.restoring import restore_what_was_left
from pulsar_advisor.execution.run.guard.settings import GUARDED
from pulsar_advisor.execution.run.ongoing_run import OngoingRun
from pulsar_advisor.execution.run.options import Work
from pulsar_advisor.model.errors import BalancerStillOff, ClusterUnreachable, Refused, StorageError
from unit.execution.actors import approved, run
from unit.execution.doubles import B1, B2, B3, NAMESPACE, UPPER, FakeCluster, Killed, make_plan, unload_step
from unit.execution.roll.doubles import (
    OLIVE,
    THROTTLE,
    RestartedCluster,
    conducted,
    die,
    ended,
    go_on_after,
    is_off,
    outcome,
)


def die_after(send: Callable[..., Reply]) -> Callable[..., Reply]:
    def last(write: object) -> Reply:
        send(write)
        raise Killed

    return last


def test_a_restart_is_waited_for_with_the_balancer_off(roll: Roll, cluster: RestartedCluster) -> None:
    cluster.time.pass_s(7 * 3600)  # so that the first turn is planned anew
    for bundle in cluster.owned_bundles(B1):
        cluster.owners[bundle] = B2
    go_on(roll)
    assert (roll.look().state, is_off(cluster)) == ("drained", [True, True])


def test_where_the_balancer_can_not_be_switched_off_it_is_not_drained(roll: Roll, cluster: RestartedCluster) -> None:
    cluster.time.pass_s(7 * 3600)
    for bundle in cluster.owned_bundles(B1):
        cluster.owners[bundle] = B2
    cluster.rejects_overrides = True
    with pytest.raises(Refused, match="can't be switched off: answer 401"):
        go_on(roll)
    assert roll.look().state == "planned"


def test_a_broker_that_stayed_empty_in_a_pause_waits_with_the_balancer_off_again(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster
) -> None:
    go_on(roll)
    pause(ledger, roll.plan, OLIVE)
    mind_the_balancer(roll)
    assert is_off(cluster) == [False, False]
    lift_pause_of_plan(ledger, roll.digest, OLIVE)
    go_on(roll)
    assert (roll.look().state, is_off(cluster)) == ("drained", [True, True])


def test_a_turn_that_stops_gives_the_balancer_back_and_is_resumed(roll: Roll, cluster: RestartedCluster) -> None:
    go_on(roll)
    cluster.restart(B1)
    cluster.replies, cluster.fails = [Reply(500, "no")] * 3, True
    stopped = go_on_after(roll, B1)
    assert outcome(stopped) == "partial"
    assert roll.look().state == "stopped"
    assert is_off(cluster) == [False, False], "also what an earlier turn had switched off"
    assert stopped is not None
    assert stopped.still_off == ()
    cluster.fails = False
    resumed = go_on(roll)
    assert outcome(resumed) in ("partial", "done")
    if outcome(resumed) == "partial":  # a failed step is not sent again: the turn is planned anew
        assert outcome(go_on(roll, anew=OLIVE)) == "done"
    assert is_off(cluster) == [True, True]
    assert conducted(roll, cluster)[-1] == B3


def test_a_turn_whose_process_was_killed_under_its_guard_goes_on_and_keeps_the_balancer_off(
    roll: Roll, ledger: Ledger, cluster: FakeCluster
) -> None:
    def die_at_once() -> None:
        cluster.unreadable = True  # so that nothing is restored
        raise Killed

    cluster.once("the broker is at work", die_at_once)
    with pytest.raises(Killed):
        go_on(roll)
    cluster.unreadable = False
    assert is_off(cluster) == [True, True]
    cluster.time.pass_s(200)
    assert outcome(go_on(roll)) == "done"
    assert (roll.look().state, is_off(cluster), left_off(ledger, "live")) == ("drained", [True, True], [])


def test_a_turn_with_a_failed_step_within_its_budget_gives_the_balancer_back(roll: Roll, cluster: FakeCluster) -> None:
    cluster.replies, cluster.fails = [Reply(204, ""), Reply(401, "no longer a super-user")], True
    result = go_on(roll)
    assert result is not None
    assert (result.outcome, result.still_off) == ("partial", ())
    assert is_off(cluster) == [False, False]


def test_a_balancer_that_can_not_be_switched_on_again_after_a_stop_is_known_to_be_off(
    roll: Roll, cluster: RestartedCluster
) -> None:
    go_on(roll)
    cluster.restart(B1)
    cluster.replies, cluster.fails = [Reply(500, "no")] * 3, True
    cluster.rejects_overrides = True
    stopped = go_on_after(roll, B1)
    assert stopped is not None
    assert (stopped.still_off, stopped.exit_code) == (GUARDED, 8)
    cluster.rejects_overrides = False
    ended(roll)
    assert is_off(cluster) == [False, False]


def test_of_a_cluster_that_can_not_be_reached_any_more_it_is_said_that_its_balancer_is_off(
    roll: Roll, cluster: RestartedCluster
) -> None:
    lines: list[str] = []
    go_on(roll)
    pause(roll.ledger, roll.plan, OLIVE)
    cluster.unreadable = True
    mind_the_balancer(replace(roll, progress=lines.append))
    assert lines == [
        "ATTENTION: the cluster's own balancer could not be switched on again: http://10.0.0.1:8080: connection refused"
    ]


def test_a_paused_roll_waits_for_a_broker_that_has_just_died_to_have_its_balancer_back(
    roll: Roll, cluster: RestartedCluster
) -> None:
    go_on(roll)
    pause(roll.ledger, roll.plan, OLIVE)
    shown, until_ms = cluster.override, cluster.time.ms + 20_000

    def override(setting: str) -> str | None:
        if cluster.time.ms < until_ms:
            raise ClusterUnreachable("http://10.0.0.1:8080: connection refused")
        return shown(setting)

    cluster.override = override  # type: ignore[method-assign]
    mind_the_balancer(roll)
    assert is_off(cluster) == [False, False]


def test_a_paused_roll_has_its_balancer_back_and_looks_at_the_drained_broker_again(
    ledger: Ledger, roll: Roll, cluster: FakeCluster
) -> None:
    go_on(roll)
    pause(ledger, roll.plan, OLIVE)
    with pytest.raises(Refused, match=r"the roll is paused by olive \(airflow\)"):
        go_on(roll)
    assert is_off(cluster) == [False, False]
    basket = next(iter(cluster.owned_bundles(B3)))
    cluster.owners[basket] = B1  # as the balancer decided meanwhile
    lift_pause_of_plan(ledger, roll.digest, OLIVE)
    assert outcome(go_on(roll)) == "done"
    assert (roll.look().state, cluster.owned_bundles(B1)) == ("drained", frozenset())
    assert is_off(cluster) == [True, True]


def test_a_roll_that_was_given_up_has_its_balancer_back_and_looks_at_the_drained_broker_again(
    ledger: Ledger, roll: Roll, cluster: FakeCluster
) -> None:
    go_on(roll)
    name = roll.plan.identity.cluster_name
    assert not left_off(ledger, name)
    give_up(ledger, roll.digest)
    assert {switch.setting for switch in left_off(ledger, name)} == set(GUARDED), "for whoever comes next to restore"
    restore_what_was_left(Work(ledger, cluster, roll.progress, roll.clock), name)
    basket = next(iter(cluster.owned_bundles(B3)))
    cluster.owners[basket] = B1  # as the balancer decided meanwhile
    status = status_of(ledger, roll.plan)
    assert status.restart is None, "clients use it"
    assert "the roll's process has ended" in status.sentence
    assert outcome(go_on(roll)) == "done"
    assert (roll.look().state, cluster.owned_bundles(B1)) == ("drained", frozenset())
    assert (is_off(cluster), list(left_off(ledger, name))) == ([True, True], [])


def test_a_given_up_roll_restarts_no_broker_that_was_not_looked_at_before_the_balancer_was_on(
    ledger: Ledger, roll: Roll, cluster: FakeCluster
) -> None:
    cluster.reported_bundles = lambda _broker: die()  # type: ignore[method-assign, assignment, func-returns-value]
    with pytest.raises(Killed):
        go_on(roll)
    del cluster.reported_bundles  # type: ignore[method-assign]
    give_up(ledger, roll.digest)
    restore_what_was_left(Work(ledger, cluster, roll.progress, roll.clock), "live")
    assert outcome(go_on(roll)) == "done"
    assert (roll.look().state, is_off(cluster)) == ("drained", [True, True])


def test_a_roll_paused_while_its_drained_broker_was_looked_at_restarts_no_broker_in_use(
    ledger: Ledger, roll: Roll, cluster: FakeCluster
) -> None:
    cluster.statistics_lag_s = 60.0
    reports, [basket] = cluster.reported_bundles, cluster.owned_bundles(B3)

    def pause_and_report(broker: str) -> frozenset[str]:
        pause(ledger, roll.plan, OLIVE)
        return reports(broker)

    def comes_meanwhile() -> None:
        cluster.owners[basket], cluster._moved_at_ms[basket] = B1, cluster.time.ms

    cluster.once("after the call", comes_meanwhile)
    cluster.reported_bundles = pause_and_report  # type: ignore[method-assign]
    with pytest.raises(Refused, match="paused by olive"):
        go_on(roll)
    cluster.reported_bundles = reports  # type: ignore[method-assign]
    cluster.owners[basket] = B3  # as the balancer decided in the pause
    lift_pause_of_plan(ledger, roll.digest, OLIVE)
    assert outcome(go_on(roll)) == "done"
    assert (roll.look().state, is_off(cluster)) == ("drained", [True, True])


def test_a_roll_paused_after_its_drained_broker_was_looked_at_restarts_no_broker_in_use(
    ledger: Ledger, roll: Roll, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = conduct._require_balancer_off

    def suspended_after_it(*of: Any) -> None:
        look(*of)
        pause(ledger, roll.plan, OLIVE)
        mind_the_balancer(roll)
        lift_pause_of_plan(ledger, roll.digest, OLIVE)

    monkeypatch.setattr(conduct, "_require_balancer_off", suspended_after_it)
    with pytest.raises(Refused, match=f"paused or carried on while {B1} was looked at: `pulsar-advisor roll continue"):
        go_on(roll)
    assert (status_of(ledger, roll.plan).restart, is_off(cluster)) == (None, [False, False])


def test_a_roll_is_given_up_before_its_balancer_is_back_so_that_a_new_approval_restarts_no_broker_in_use(
    ledger: Ledger, roll: Roll, cluster: FakeCluster
) -> None:
    go_on(roll)
    cluster.time.pass_s(25 * 3600)  # its approval expires while it waits for the restart
    cluster.send = die_after(cluster.send)  # type: ignore[method-assign]
    with pytest.raises(Killed):
        restore_what_was_left(Work(ledger, cluster, roll.progress, roll.clock), "live")
    assert is_off(cluster) == [False, True]
    approved(ledger, roll.plan, throttle=THROTTLE)
    assert status_of(ledger, roll.plan).restart is None


def test_a_roll_given_up_during_its_moves_has_its_balancer_back_and_restarts_no_broker_yet(
    ledger: Ledger, roll: Roll, cluster: FakeCluster
) -> None:
    cluster.once("after the call", lambda: give_up(ledger, roll.digest))  # as Airflow does while a shell carries it on
    assert outcome(go_on(roll)) == "done"
    assert (status_of(ledger, roll.plan).restart, is_off(cluster)) == (None, [False, False])
    assert outcome(go_on(roll)) == "done"
    assert (status_of(ledger, roll.plan).restart, is_off(cluster)) == (B1, [True, True])


def test_a_turn_that_is_cut_short_after_its_last_move_gives_the_balancer_back_and_is_planned_again(
    roll: Roll, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut_short(run: OngoingRun) -> None:
        carry_out(run)
        raise StorageError("the ledger's disk is full")

    monkeypatch.setattr("pulsar_advisor.execution.apply.carry_out", cut_short)
    assert outcome(go_on(roll)) == "partial"
    assert (roll.look().state, is_off(cluster)) == ("stopped", [False, False])
    monkeypatch.undo()
    assert outcome(go_on(roll)) == "done"
    assert (roll.look().state, is_off(cluster)) == ("drained", [True, True])


def test_a_turn_whose_balancer_somebody_switched_on_after_its_last_move_restarts_no_broker(
    roll: Roll, ledger: Ledger, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def switched_on(run: OngoingRun) -> None:
        carry_out(run)
        cluster.overrides[GUARDED[0]] = "true"

    monkeypatch.setattr("pulsar_advisor.execution.apply.carry_out", switched_on)
    assert outcome(go_on(roll)) == "partial"
    assert status_of(ledger, roll.plan).restart is None


def test_a_drained_broker_whose_balancer_somebody_has_switched_on_is_drained_again_before_its_restart(
    roll: Roll, ledger: Ledger, cluster: FakeCluster
) -> None:
    go_on(roll)
    cluster.overrides[GUARDED[0]] = "true"
    basket = next(iter(cluster.owned_bundles(B3)))
    cluster.owners[basket] = B1
    said = f"{B1} was drained, but {GUARDED[0]} is 'true', .* Don't restart it; .*: pulsar-advisor roll continue"
    with pytest.raises(Refused, match=said):
        go_on(roll)
    assert status_of(ledger, roll.plan).restart is None
    assert outcome(go_on(roll)) == "done"
    assert (roll.look().state, cluster.owned_bundles(B1), is_off(cluster)) == ("drained", frozenset(), [True, True])


def test_no_broker_is_drained_before_a_late_call_of_an_earlier_run_can_not_switch_the_balancer_on_any_more(
    roll: Roll, ledger: Ledger, cluster: FakeCluster
) -> None:
    approved(ledger, before := make_plan([unload_step(1, UPPER)]))
    run(before, ledger, cluster, guard=True)
    cluster.owners[f"{NAMESPACE}/{UPPER}"] = B1
    cluster.later(100, lambda: cluster.overrides.update({GUARDED[0]: "true"}))
    with pytest.raises(Refused, match=f"{GUARDED[0]} is 'true', as somebody, or another process"):
        go_on(roll)
    assert status_of(ledger, roll.plan).restart is None
    assert outcome(go_on(roll)) == "done"
    assert is_off(cluster) == [True, True]


def test_no_broker_is_drained_before_a_late_call_of_a_pause_that_is_over_can_not_switch_the_balancer_on_any_more(
    roll: Roll, ledger: Ledger, cluster: FakeCluster
) -> None:
    go_on(roll)
    send = cluster.send

    def hang(write: Override) -> Reply:
        cluster.send = send  # type: ignore[method-assign]
        cluster.later(100, lambda: cluster.overrides.pop(write.setting, None))
        raise Killed

    cluster.send = hang  # type: ignore[method-assign, assignment]
    pause(ledger, roll.plan, OLIVE)
    with pytest.raises(Killed):
        mind_the_balancer(roll)
    lift_pause_of_plan(ledger, roll.digest, OLIVE)
    with pytest.raises(Refused, match=f"{GUARDED[0]} is not overridden, as somebody, or another process"):
        go_on(roll)
    assert status_of(ledger, roll.plan).restart is None


def test_after_a_pause_whose_balancer_was_long_back_no_such_call_is_waited_for(
    roll: Roll, ledger: Ledger, cluster: FakeCluster
) -> None:
    go_on(roll)
    pause(ledger, roll.plan, OLIVE)
    mind_the_balancer(roll)
    cluster.time.pass_s(200)
    lift_pause_of_plan(ledger, roll.digest, OLIVE)
    said: list[str] = []
    go_on(replace(roll, progress=said.append))
    assert roll.look().state == "drained"
    assert not [line for line in said if "may still switch" in line]


def test_whoever_stops_a_roll_need_not_wait_for_such_a_call(roll: Roll, ledger: Ledger, cluster: FakeCluster) -> None:
    approved(ledger, before := make_plan([unload_step(1, UPPER)]))
    run(before, ledger, cluster, guard=True)
    cluster.owners[f"{NAMESPACE}/{UPPER}"] = B1
    said: list[str] = []
    stopped = replace(
        roll,
        progress=said.append,
        interruption=lambda: "SIGTERM" if any("may still switch" in line for line in said) else None,
    )
    with pytest.raises(Refused, match=f"the turn of {B1}, .*; SIGTERM"):
        go_on(stopped)


def test_a_turn_that_can_not_begin_forgets_no_call_of_the_turn_before_that_may_still_act(
    roll: Roll, ledger: Ledger, cluster: FakeCluster
) -> None:
    send = cluster.send
    for lost in GUARDED[::-1]:
        cluster.send = lambda write, lost=lost: (  # type: ignore[method-assign, misc]
            Reply(None, "timed out") if write.setting == lost else send(write)
        )
        with pytest.raises(BalancerStillOff, match="can't be switched off: no answer"):
            go_on(roll)
    assert {switch.setting for switch in left_off(ledger, "live")} == set(GUARDED)


def test_a_roll_that_is_over_is_not_given_up(ledger: Ledger, roll: Roll) -> None:
    go_on(roll)
    end(ledger, roll.plan, OLIVE)
    before = ledger.head()
    give_up(ledger, roll.digest)
    assert ledger.head() == before


def test_a_pause_in_a_later_turn_brings_the_balancer_back_only_after_its_moves_in_flight(
    ledger: Ledger, roll: Roll, cluster: RestartedCluster
) -> None:
    go_on(roll)
    cluster.restart(B1)
    in_flight: list[bool] = []

    def pause_it() -> None:
        pause(ledger, roll.plan, OLIVE)
        mind_the_balancer(roll)
        in_flight.extend(is_off(cluster))

    cluster.once("the broker is at work", pause_it)
    go_on_after(roll, B1)
    assert (in_flight, is_off(cluster)) == ([True, True], [False, False])


def test_what_a_suspended_turn_switches_off_after_it_was_restored_is_restored_when_the_roll_ends(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster
) -> None:
    send = cluster.send

    def suspended(write: Override) -> Reply:
        cluster.send = send  # type: ignore[method-assign]
        cluster.time.pass_s(181)
        restore_what_was_left(roll, "live")
        return send(write)

    cluster.send = suspended  # type: ignore[method-assign, assignment]
    go_on(roll)
    ended(roll)
    assert (cluster.overrides, left_off(ledger)) == ({}, [])
