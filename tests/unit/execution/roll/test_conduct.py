"""A roll drains one broker after the other, each once the last one is back, and never goes beyond what was approved."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pulsar_advisor.execution.cluster.cluster_port import Override, Reply, Unload
from pulsar_advisor.execution.consent import turn
from pulsar_advisor.execution.consent.approval import approve, standing_approval, why_not_again, withdraw
from pulsar_advisor.execution.ledger.approvals import approvals_of_plan
from pulsar_advisor.execution.ledger.audit import audit
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.lists import summaries
from pulsar_advisor.execution.ledger.pauses import lift_pause_of_plan
from pulsar_advisor.execution.ledger.plan_states import states_of
from pulsar_advisor.execution.ledger.plans import recorded_plan
from pulsar_advisor.execution.ledger.rolls import give_up, open_rolls, record_announced
from pulsar_advisor.execution.ledger.tables import Approval
from pulsar_advisor.execution.person import Person
from pulsar_advisor.execution.roll import conduct
from pulsar_advisor.execution.roll.conduct import NotBackYet, Roll, announce, end, go_on, mind_the_balancer, pause
from pulsar_advisor.execution.roll.status import ended_early, status_of, waits_for
from pulsar_advisor.execution.run.executor import carry_out
from pulsar_advisor.execution.run.guard.left_off import left_off
from pulsar_advisor.execution.run.guard.restoring import restore_what_was_left
from pulsar_advisor.execution.run.guard.settings import GUARDED, OFF
from pulsar_advisor.execution.run.ongoing_run import OngoingRun
from pulsar_advisor.execution.run.steering import abort
from pulsar_advisor.execution.run.steering import pause as pause_run
from pulsar_advisor.execution.undo import propose_undo
from pulsar_advisor.model.errors import BalancerStillOff, ClusterUnreachable, Refused, StorageError, UsageError
from pulsar_advisor.model.plans.goal import ROLL, Goal
from pulsar_advisor.model.plans.plan import Plan, PlanDecision, digest_of, short
from unit.execution.actors import ALICE, BOB, FOUR_EYES, approved, carried_out, run
from unit.execution.doubles import (
    B1,
    B2,
    B3,
    BASKETS,
    NAMESPACE,
    UPPER,
    FakeCluster,
    Killed,
    forecast,
    make_plan,
    unload_step,
)
from unit.execution.roll.doubles import (
    OLIVE,
    ORDER,
    THROTTLE,
    RestartedCluster,
    approved_roll,
    conducted,
    go_on_after,
    outcome,
    roll_of,
    roll_plan,
)


def ended(roll: Roll) -> None:
    """Olive ends it, from where the cluster can be reached."""
    end(roll.ledger, roll.plan, OLIVE)
    mind_the_balancer(roll)


def die() -> None:
    raise Killed


def die_after(send: Callable[..., Reply]) -> Callable[..., Reply]:
    def last(write: object) -> Reply:
        send(write)
        raise Killed

    return last


def is_off(cluster: FakeCluster) -> list[bool]:
    return [cluster.overrides.get(setting) == OFF for setting in GUARDED]


def test_every_broker_is_empty_before_its_restart_and_no_bundle_moves_more_often_than_approved(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster
) -> None:
    cluster.overrides = {GUARDED[0]: "true"}
    emptied = []
    go_on(roll)
    while (turn := roll.look().turn) is not None:
        emptied.append((turn.broker, cluster.owned_bundles(turn.broker)))
        assert is_off(cluster) == [True, True]
        cluster.restart(turn.broker)
        go_on_after(roll, turn.broker)
    assert emptied == [(broker, frozenset()) for broker in ORDER]
    assert max(Counter(cluster.effects).values()) <= 2
    assert roll.look().recorded.ended == "every broker was restarted"
    assert cluster.overrides == {GUARDED[0]: "true"}
    assert left_off(ledger, "live") == []
    assert audit(ledger).findings == ()


def test_a_roll_that_waits_for_a_restart_and_hears_of_none_stays_as_it_is(roll: Roll, cluster: FakeCluster) -> None:
    assert outcome(go_on(roll)) == "done"
    sent = len(cluster.writes)
    assert [go_on(roll), go_on(roll)] == [None, None]
    assert len(cluster.writes) == sent
    assert roll.look().state == "drained"


def test_the_leader_is_asked_for_before_each_turn_and_comes_last(roll: Roll, cluster: RestartedCluster) -> None:
    go_on(roll)
    cluster.restart(B1)
    cluster.led_by = B2
    go_on_after(roll, B1)
    assert roll.look().turn is not None
    assert roll.look().turn.broker == B3  # type: ignore[union-attr]
    cluster.restart(B3)
    assert outcome(go_on_after(roll, B3)) == "done"


def test_a_new_leader_before_the_first_turn_has_the_plan_made_again(roll: Roll, cluster: RestartedCluster) -> None:
    cluster.led_by = B1
    assert conducted(roll, cluster) == [B2, B3, B1]


def test_an_approved_plan_that_has_grown_old_is_made_again(roll: Roll, cluster: FakeCluster) -> None:
    cluster.time.pass_s(7 * 3600)
    assert outcome(go_on(roll)) == "done"
    assert roll.look().turn is not None
    assert roll.look().turn.plan != roll.digest  # type: ignore[union-attr]


def test_it_is_made_again_too_if_it_is_old_by_the_ledgers_clock_alone(roll: Roll, cluster: FakeCluster) -> None:
    cluster.time.pass_s(6 * 3600 + 100)
    slow = replace(roll.clock, now_ms=lambda: roll.ledger.now_ms() - 240_000)
    go_on(replace(roll, clock=slow))
    assert roll.look().turn is not None
    assert roll.look().turn.plan != roll.digest  # type: ignore[union-attr]


def test_a_broker_with_nothing_to_move_waits_for_its_restart_at_once(roll: Roll, cluster: RestartedCluster) -> None:
    go_on(roll)
    cluster.restart(B1)
    for bundle in cluster.owned_bundles(B2):
        cluster.owners[bundle] = B1
    sent = len(cluster.writes)
    assert outcome(go_on_after(roll, B1)) == "done"
    assert (roll.look().turn.broker, roll.look().state) == (B2, "drained")  # type: ignore[union-attr]
    assert len(cluster.writes) == sent


def test_its_restart_is_waited_for_with_the_balancer_off(roll: Roll, cluster: RestartedCluster) -> None:
    cluster.time.pass_s(7 * 3600)  # so that the first turn is planned anew
    for bundle in cluster.owned_bundles(B1):
        cluster.owners[bundle] = B2
    go_on(roll)
    assert (roll.look().state, is_off(cluster)) == ("drained", [True, True])


def test_a_turn_that_an_earlier_release_began_without_a_plan_is_planned_again(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster
) -> None:
    detail = {"broker": B1, "plan": None, "started_at_ms": None, "moves": 0, "moves_in_all": 0}
    with ledger.writing() as session:
        ledger.add_event(session, roll.digest, "turn begun", json.dumps(detail))
        ledger.add_event(session, roll.digest, "broker drained", json.dumps({"broker": B1}))
    assert status_of(ledger, roll.plan).turns[0].plan is None
    cluster.restart(B1)
    go_on_after(roll, B1)
    assert (roll.look().recorded.restarted, is_off(cluster)) == ((B1,), [True, True])


def test_where_the_balancer_can_not_be_switched_off_it_is_not_drained(roll: Roll, cluster: RestartedCluster) -> None:
    cluster.time.pass_s(7 * 3600)
    for bundle in cluster.owned_bundles(B1):
        cluster.owners[bundle] = B2
    cluster.rejects_overrides = True
    with pytest.raises(Refused, match="can't be switched off: answer 401"):
        go_on(roll)
    assert roll.look().state == "planned"


def test_a_turn_whose_run_has_no_step_left_is_planned_again(roll: Roll, cluster: RestartedCluster) -> None:
    cluster.replies, cluster.fails = [Reply(409, "not active")] * 2, True
    assert [outcome(go_on(roll)) for _ in range(3)] == ["partial", "partial", "done"]
    assert (roll.look().state, cluster.owned_bundles(B1)) == ("drained", frozenset())


def test_a_run_whose_process_died_after_its_last_step_is_resumed(
    roll: Roll, cluster: RestartedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr("pulsar_advisor.execution.ledger.held_run.HeldRun.end", lambda *_: die())
        go_on(roll)
    cluster.time.pass_s(181)
    assert outcome(go_on(roll)) == "done"
    assert len(roll.look().runs) == 1


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


def test_a_bundle_that_comes_to_a_broker_while_it_is_drained_leaves_it_too(roll: Roll, cluster: FakeCluster) -> None:
    """It has not reported its topics yet when the plan was carried out."""
    basket = next(iter(cluster.owned_bundles(B3)))

    def come() -> None:
        cluster.owners[basket] = B1
        cluster._moved_at_ms[basket], cluster.statistics_lag_s = cluster.time.ms, 20.0

    cluster.once("after the call", come)
    assert outcome(go_on(roll)) == "done"
    assert cluster.owned_bundles(B1) == frozenset()
    assert roll.look().state == "drained"
    assert Counter(cluster.effects)[basket] == 1


def test_a_bundle_without_clients_stays_once_the_broker_has_had_its_statistics_pass(
    roll: Roll, cluster: FakeCluster
) -> None:
    basket = next(iter(cluster.owned_bundles(B3)))
    cluster.owners[basket] = B1
    cluster._moved_at_ms[basket], cluster.statistics_lag_s = cluster.time.ms, 10_000.0
    began_ms = cluster.time.ms
    assert outcome(go_on(roll)) == "done"
    assert cluster.owned_bundles(B1) == {basket}
    assert roll.look().state == "drained"
    assert cluster.time.ms - began_ms >= 75_000


def test_a_broker_is_not_drained_as_long_as_nobody_has_looked_at_what_came_meanwhile(
    roll: Roll, cluster: FakeCluster
) -> None:
    basket = next(iter(cluster.owned_bundles(B3)))
    cluster.owners[basket] = B1
    cluster._moved_at_ms[basket], cluster.statistics_lag_s = cluster.time.ms, 10_000.0
    until_ms = cluster.time.ms + 60_000
    hurried = replace(roll, interruption=lambda: "ended by SIGTERM" if cluster.time.ms > until_ms else None)
    with pytest.raises(Refused, match=f"{B1}, which is drained except for bundles that came .*; ended by SIGTERM"):
        go_on(hurried)
    assert roll.look().state == "moved"
    assert go_on(roll) is None
    assert roll.look().state == "drained"


def test_a_broker_that_still_has_bundles_with_clients_is_not_drained(roll: Roll, cluster: FakeCluster) -> None:
    """Its new plans don't see them, as a snapshot may not."""
    blind = roll_plan(cluster)
    blind = figures(blind.model_copy(update={"steps": ()}), moves=0)

    def plan_anew(goal: Goal) -> tuple[Plan, str | None]:
        cluster.time.pass_s(1)
        return blind.model_copy(update={"snapshot": roll_plan(cluster).snapshot, "goal": goal}), None

    roll = replace(roll, plan_anew=plan_anew)
    basket = next(iter(cluster.owned_bundles(B3)))
    cluster.owners[basket] = B1
    with pytest.raises(Refused, match="keeps getting bundles that clients use"):
        go_on(roll)
    assert (roll.look().turn.broker, roll.look().state) == (B1, "moved")  # type: ignore[union-attr]


def gone(cluster: RestartedCluster) -> None:
    cluster.brokers.discard(B1)


def sick(cluster: RestartedCluster) -> None:
    cluster.unhealthy[B1] = "HTTP 500"


def the_same(cluster: RestartedCluster) -> None:
    cluster.started[B1] = 1


def unreported(cluster: RestartedCluster) -> None:
    cluster.unreported.add(B1)


def unknown(cluster: RestartedCluster) -> None:
    cluster.unknown |= cluster.owned_bundles(B2)


def unseen(cluster: RestartedCluster) -> None:
    cluster.shows_the_leaders_view = False


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (gone, f"{B1} is not among the active brokers"),
        (sick, f"{B1} is not healthy: HTTP 500"),
        (the_same, f"{B1} has not been restarted"),
        (unreported, f"the leader has no report of {B1} since its restart"),
        (unknown, f"the leader has no report of {B2} yet that lists shop/"),
        (unseen, r"the reports that the leader has can't be read here .* 15 more min "),
    ],
)
def test_the_next_turn_waits_until_the_broker_is_back_and_the_leader_knows_it(
    roll: Roll, cluster: RestartedCluster, spoil: Callable[[RestartedCluster], None], why: str
) -> None:
    go_on(roll)
    cluster.restart(B1)
    spoil(cluster)
    sent = len(cluster.writes)
    with pytest.raises(Refused, match=f"the roll can't continue yet: {why}"):
        go_on_after(roll, B1, wait_s=30)
    assert len(cluster.writes) == sent
    assert roll.look().recorded.restarted == ()
    assert is_off(cluster) == [True, True], "it goes on as soon as somebody says it again"


def test_no_restart_is_waited_for_once_the_roll_has_ended(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster
) -> None:
    go_on(roll)
    cluster.unhealthy[B1] = "HTTP 500"
    cluster.later(10, lambda: end(ledger, roll.plan, OLIVE))
    began_ms = cluster.time.ms
    with pytest.raises(Refused, match="has ended: ended by olive"):
        go_on_after(roll, B1, wait_s=1200)
    assert cluster.time.ms - began_ms < 30_000


def test_a_restart_that_two_hosts_wait_for_is_recorded_once(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster
) -> None:
    go_on(roll)
    cluster.unhealthy[B1] = "HTTP 500"
    announce(ledger, roll.plan, B1, OLIVE)

    def elsewhere() -> None:
        cluster.unhealthy.clear()
        cluster.restart(B1)
        go_on(roll)

    cluster.later(10, elsewhere)
    go_on(roll, wait_s=1200)
    assert roll.look().recorded.restarted == (B1,)


def test_a_restart_that_another_host_confirms_at_the_same_moment_is_confirmed(
    roll: Roll, cluster: RestartedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on(roll)
    cluster.restart(B1)
    announce(roll.ledger, roll.plan, B1, OLIVE)
    confirm = conduct._confirm

    def confirmed_meanwhile(*arguments: Any) -> None:
        monkeypatch.setattr(conduct, "_confirm", confirm)
        go_on(roll)
        confirm(*arguments)

    monkeypatch.setattr(conduct, "_confirm", confirmed_meanwhile)
    go_on(roll)
    assert roll.look().recorded.restarted == (B1,)


def test_where_the_leaders_view_can_not_be_seen_brokers_get_the_time_to_publish(
    roll: Roll, cluster: RestartedCluster
) -> None:
    cluster.shows_the_leaders_view = False
    go_on(roll)
    cluster.restart(B1)
    began_ms = cluster.time.ms
    assert outcome(go_on_after(roll, B1, wait_s=1200)) == "done"
    assert cluster.time.ms - began_ms >= 890_000


def test_the_leader_has_to_know_of_the_moves_of_all_plans_of_a_turn(roll: Roll, cluster: RestartedCluster) -> None:
    basket = next(iter(cluster.owned_bundles(B3)))
    cluster.once("after the call", lambda: cluster.owners.update({basket: B1}))
    go_on(roll)
    first, second = roll.look().runs
    assert [record.bundle for record in roll.look().steps[second.id].values()] == [basket]
    cluster.restart(B1)
    cluster.unknown = {record.bundle for record in roll.look().steps[first.id].values()}
    with pytest.raises(Refused, match=r"the leader has no report of .* yet that lists"):
        go_on_after(roll, B1)
    cluster.unknown.clear()
    assert outcome(go_on(roll)) == "done"


def test_a_process_that_does_not_say_when_it_started_is_taken_at_the_persons_word(
    roll: Roll, cluster: RestartedCluster
) -> None:
    cluster.started = dict.fromkeys(ORDER)
    go_on(roll)
    assert outcome(go_on_after(roll, B1)) == "done"


@pytest.mark.parametrize(
    ("broker", "refusal", "why"),
    [
        (B1, Refused, f"{B1} has had its turn, and its restart is recorded: it is the turn of {B2}, which is drained"),
        (B3, Refused, f"{B3} was not drained: it is the turn of {B2}"),
        ("10.9.9.9", UsageError, f"there is no broker '10.9.9.9'.*; the roll has {B1}, {B2}, {B3}"),
    ],
)
def test_a_broker_whose_turn_it_is_not_was_not_drained(
    roll: Roll, cluster: RestartedCluster, broker: str, refusal: type[Exception], why: str
) -> None:
    go_on(roll)
    cluster.restart(B1)
    go_on_after(roll, B1)
    with pytest.raises(refusal, match=why):
        go_on_after(roll, broker)
    assert roll.look().recorded.restarted == (B1,)


def test_nothing_is_sent_without_an_approval_nor_once_it_is_withdrawn_and_the_balancer_comes_back(
    ledger: Ledger, cluster: RestartedCluster
) -> None:
    with pytest.raises(Refused, match="has no approval"):
        go_on(roll_of(roll_plan(cluster), ledger, cluster))
    assert cluster.writes == []
    plan = approved_roll(ledger, cluster)
    roll = roll_of(plan, ledger, cluster)
    go_on(roll)
    cluster.restart(B1)
    go_on_after(roll, B1)
    sent, turn = len(cluster.writes), roll.look().turn
    assert turn is not None
    assert turn.plan is not None
    assert withdraw(ledger, digest_of(plan), BOB) == 2, "the roll's approval and that of the turn under it"
    assert all(row.withdrawn_at_ms for row in approvals_of_plan(ledger, turn.plan))
    cluster.restart(B2)
    with pytest.raises(Refused, match="was withdrawn"):
        go_on_after(roll, B2)
    assert len(cluster.writes) == sent
    assert is_off(cluster) == [False, False]
    assert audit(ledger).findings == ()


def test_an_approval_that_expires_while_a_broker_restarts_ends_the_roll_and_its_guard(
    roll: Roll, ledger: Ledger, cluster: FakeCluster
) -> None:
    go_on(roll)
    assert left_off(ledger, "live") == []
    cluster.time.pass_s(25 * 3600)
    assert [switch.setting for switch in left_off(ledger, "live")] == list(GUARDED)
    with pytest.raises(Refused, match="expired"):
        go_on_after(roll, B1)
    assert is_off(cluster) == [False, False]


def test_the_run_of_its_first_turn_keeps_a_roll_from_no_further_approval_until_the_roll_is_over(
    roll: Roll, ledger: Ledger
) -> None:
    go_on(roll)
    assert why_not_again(ledger, roll.digest) is None
    end(ledger, roll.plan, ALICE)
    assert str(why_not_again(ledger, roll.digest)).startswith("is a roll that is over, ended by alice")


def test_a_roll_that_is_approved_again_looks_at_the_drained_broker_again(
    roll: Roll, ledger: Ledger, cluster: FakeCluster
) -> None:
    go_on(roll)
    cluster.time.pass_s(25 * 3600)
    with pytest.raises(Refused, match="have it approved again"):
        go_on(roll)
    cluster.owners[f"{NAMESPACE}/{UPPER}"] = B1  # as the balancer decided, which is on again
    approve(ledger, roll.plan, digest=roll.digest, approver=BOB, policy=roll.policy, throttle=THROTTLE)
    assert status_of(ledger, roll.plan).restart is None, "clients use it"
    assert outcome(go_on(roll)) == "done"
    assert (roll.look().state, cluster.owned_bundles(B1)) == ("drained", frozenset())
    assert is_off(cluster) == [True, True]


def test_no_other_plan_is_applied_while_a_roll_goes_on(roll: Roll, ledger: Ledger, cluster: FakeCluster) -> None:
    go_on(roll)
    other = approved(ledger, make_plan([unload_step(source=B3, destination=B2)]))
    with pytest.raises(Refused, match="is under way on this cluster"):
        run(other, ledger, cluster)
    ended(roll)
    assert run(other, ledger, cluster).outcome == "done"


def test_a_roll_whose_first_turn_is_done_is_not_carried_out_yet(
    roll: Roll, ledger: Ledger, cluster: FakeCluster
) -> None:
    go_on(roll)
    with pytest.raises(Refused, match=f"`pulsar-advisor roll continue {short(digest_of(roll.plan))}` carries it out"):
        run(roll.plan, ledger, cluster)


def state_of(roll: Roll) -> str:
    shown = states_of(roll.ledger, roll.plan.cluster, summaries(roll.ledger, roll.plan.cluster))
    return next(one.state for one in shown if one.digest == digest_of(roll.plan))


def test_a_roll_between_two_turns_is_being_applied(roll: Roll) -> None:
    go_on(roll)
    assert state_of(roll) == "applying"


def test_a_roll_is_applied_once_every_broker_was_restarted(roll: Roll, cluster: RestartedCluster) -> None:
    conducted(roll, cluster)
    assert state_of(roll) == "applied"


def test_a_roll_that_somebody_ended_before_is_aborted(roll: Roll) -> None:
    go_on(roll)
    ended(roll)
    assert state_of(roll) == "aborted"


def test_a_roll_whose_own_plan_was_made_again_is_being_applied_nevertheless(
    roll: Roll, cluster: RestartedCluster
) -> None:
    cluster.time.pass_s(7 * 3600)
    go_on(roll)
    assert state_of(roll) == "applying"


def test_a_roll_whose_later_turn_stopped_has_stopped(roll: Roll, cluster: RestartedCluster) -> None:
    go_on(roll)
    cluster.restart(B1)
    cluster.replies, cluster.fails = [Reply(500, "no")] * 3, True
    go_on_after(roll, B1)
    assert state_of(roll) == "stopped"


def undo(roll: Roll, cluster: RestartedCluster) -> None:
    """What the roll's first turn has moved goes back."""
    run(approved(roll.ledger, propose_undo(roll.plan, roll.ledger, cluster)), roll.ledger, cluster)


def test_a_roll_whose_first_turn_was_undone_in_a_pause_goes_on(roll: Roll, cluster: RestartedCluster) -> None:
    go_on(roll)
    pause(roll.ledger, roll.plan, OLIVE)
    undo(roll, cluster)
    assert state_of(roll) == "applying"
    lift_pause_of_plan(roll.ledger, roll.digest, OLIVE)
    assert outcome(go_on(roll)) == "done"


def test_a_turn_that_stopped_and_was_undone_is_planned_again_when_somebody_says_so(
    roll: Roll, cluster: RestartedCluster
) -> None:
    cluster.whenever("after the call", lambda: cluster.brokers.discard(B2))
    assert outcome(go_on(roll)) == "partial"
    cluster.on_event = lambda _what: None
    cluster.brokers.add(B2)
    undo(roll, cluster)
    anew = f"`pulsar-advisor roll continue {short(roll.digest)} --anew` plans the turn again"
    with pytest.raises(Refused, match=f"has been undone since: {anew}"):
        go_on(roll)
    assert outcome(go_on(roll, anew=OLIVE)) == "done"
    assert state_of(roll) == "applying"


def test_a_turn_that_ended_early_is_for_a_person_until_its_pause_is_lifted(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster
) -> None:
    assert ended_early(ledger, roll.plan) is None
    cluster.once("after the call", lambda: pause(ledger, roll.plan, OLIVE))
    go_on(roll)
    assert "1 of 2 steps confirmed" in (ended_early(ledger, roll.plan) or "")
    lift_pause_of_plan(ledger, roll.digest, OLIVE)
    assert ended_early(ledger, roll.plan) is None


def test_the_rolls_of_a_cluster_are_those_that_were_begun_and_are_not_over(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster
) -> None:
    cluster.time.pass_s(1)
    second = roll_of(approved_roll(ledger, cluster), ledger, cluster)
    assert open_rolls(ledger, roll.plan.cluster) == []
    go_on(roll)
    pause(ledger, roll.plan, OLIVE)
    with pytest.raises(Refused, match=f"not on {B1} any more"):
        go_on(second)
    assert open_rolls(ledger, roll.plan.cluster) == [second.digest, roll.digest]
    ended(roll)
    assert open_rolls(ledger, roll.plan.cluster) == [second.digest]


def test_one_roll_at_a_time(roll: Roll, ledger: Ledger, cluster: RestartedCluster) -> None:
    cluster.time.pass_s(1)
    second = roll_of(approved_roll(ledger, cluster), ledger, cluster)
    go_on(roll)
    sent = len(cluster.writes)
    with pytest.raises(Refused, match=f"the roll {roll.digest} is under way"):
        go_on(second)
    assert len(cluster.writes) == sent
    assert is_off(cluster) == [True, True]
    ended(roll)
    with pytest.raises(Refused, match=f"not on {B1} any more"):
        go_on(second)
    assert outcome(go_on(second)) == "done", "planned anew: the broker is empty already"
    assert second.look().state == "drained"


def test_nor_does_a_second_one_begin_a_turn_that_it_planned_while_the_first_one_began(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster
) -> None:
    cluster.time.pass_s(7 * 3600)  # so that its first turn is planned anew
    first = roll_of(approved_roll(ledger, cluster), ledger, cluster)
    plan_anew = roll.plan_anew

    def planned_meanwhile(goal: Goal) -> tuple[Plan, str | None]:
        go_on(first)
        return plan_anew(goal)

    with pytest.raises(Refused, match=f"the roll {first.digest} is under way"):
        go_on(replace(roll, plan_anew=planned_meanwhile))
    assert (status_of(ledger, first.plan).restart, is_off(cluster)) == (B1, [True, True])


@pytest.fixture
def killed_in_its_second_turn(roll: Roll, cluster: RestartedCluster) -> Roll:
    """A roll whose process died while it drained the second broker, longer ago than its lease."""
    go_on(roll)
    cluster.restart(B1)
    cluster.once("before the call", die)
    with pytest.raises(Killed):
        go_on_after(roll, B1)
    cluster.time.pass_s(181)
    return roll


def test_what_to_do_about_a_turn_that_crashed_leads_to_its_roll(
    killed_in_its_second_turn: Roll, ledger: Ledger, cluster: RestartedCluster
) -> None:
    roll = killed_in_its_second_turn
    (_, turn) = roll.look().recorded.turns
    plan = recorded_plan(ledger, str(turn.plan))
    go_on_with = f"`pulsar-advisor roll continue {short(roll.digest)}` carries it out"
    with pytest.raises(Refused, match=f"plan {turn.plan} is active .*crashed, {go_on_with}"):
        carried_out(ledger, cluster, unload_step())
    with pytest.raises(Refused, match=f"the plan is a turn of the roll {roll.digest}: {go_on_with}"):
        run(plan, ledger, cluster, resume=True)
    with pytest.raises(Refused, match=f"{turn.plan} is a turn of the roll {roll.digest}: name the roll"):
        go_on(roll_of(plan, ledger, cluster))
    assert outcome(go_on(roll)) == "done"


@pytest.mark.parametrize("stopped_by", [abort, pause_run])
def test_who_would_stop_a_roll_like_a_plan_reads_how_rolls_are_stopped(
    killed_in_its_second_turn: Roll, stopped_by: Callable[[Ledger, Plan, Person], object]
) -> None:
    with pytest.raises(Refused, match=r"it is a roll, .* `roll pause` pauses it, `roll end` ends it"):
        stopped_by(killed_in_its_second_turn.ledger, killed_in_its_second_turn.plan, OLIVE)


def test_a_turn_that_is_ended_half_way_leaves_no_call_unnamed(killed_in_its_second_turn: Roll) -> None:
    lines: list[str] = []
    assert outcome(go_on(replace(killed_in_its_second_turn, progress=lines.append), anew=OLIVE)) == "done"
    (line,) = [line for line in lines if "the outcome of its call is unknown" in line]
    assert line.startswith("ATTENTION: step-001, ")


def test_nor_does_the_end_of_a_roll(killed_in_its_second_turn: Roll) -> None:
    roll = killed_in_its_second_turn
    (line,) = end(roll.ledger, roll.plan, OLIVE)
    assert line.startswith("ATTENTION: step-001, ")


def test_of_two_hosts_that_go_on_at_once_one_begins_the_turn(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster
) -> None:
    go_on(roll)
    cluster.restart(B1)
    announce(ledger, roll.plan, B1, OLIVE)

    def planned_meanwhile(goal: Goal) -> tuple[Plan, str | None]:
        cluster.once("before the call", die)  # for this test it goes on: its lease does
        with pytest.raises(Killed):
            go_on(roll)
        cluster.time.pass_s(1)
        return roll_plan(cluster, goal.brokers), None

    with pytest.raises(Refused, match="another process carries out a turn of the roll, run 2: wait until it ends"):
        go_on(replace(roll, plan_anew=planned_meanwhile))
    assert [turn.broker for turn in roll.look().recorded.turns] == [B1, B2]
    assert roll.look().state == "moving"
    assert waits_for(ledger, roll.plan) == f"another process drains {B2}"
    with pytest.raises(Refused, match=f"the turn of {B2}, which is being drained, by another process: wait until"):
        go_on(roll)


def test_a_turn_that_another_host_has_carried_out_meanwhile_is_not_begun_again(
    roll: Roll, cluster: RestartedCluster
) -> None:
    go_on(roll)
    cluster.restart(B1)
    announce(roll.ledger, roll.plan, B1, OLIVE)

    def planned_meanwhile(goal: Goal) -> tuple[Plan, str | None]:
        plan = roll_plan(cluster, goal.brokers)
        go_on(roll)
        return plan, None

    with pytest.raises(Refused, match="another process has carried the roll on since this turn was planned"):
        go_on(replace(roll, plan_anew=planned_meanwhile))
    assert roll.look().state == "drained"


def test_apply_carries_out_no_roll_and_a_roll_no_other_plan(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster
) -> None:
    with pytest.raises(Refused, match=f"`pulsar-advisor roll continue {short(digest_of(roll.plan))}` carries it out"):
        run(roll.plan, ledger, cluster)
    drain = approved(ledger, make_plan([unload_step()]))
    with pytest.raises(Refused, match="is not a roll"):
        go_on(roll_of(drain, ledger, cluster))
    ended(roll)
    with pytest.raises(Refused, match=r"which is over, ended by olive .*: capture again and make a new plan"):
        run(roll.plan, ledger, cluster)
    assert cluster.writes == []


def changed(plan: Plan, **changes: object) -> Plan:
    return plan.model_copy(update=changes)


def figures(plan: Plan, **changes: object) -> Plan:
    decision = plan.decision.model_dump() | {"figures": {**plan.decision.figures, **changes}}
    return changed(plan, decision=PlanDecision(**decision))


WORSE = forecast({B1: 0.8, B2: 0.9, B3: 0.3})


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda p: changed(p, cluster="staging"), "it is for another cluster"),
        (lambda p: changed(p, shedder="drain"), "it is not a roll"),
        (lambda p: changed(p, goal=Goal(ROLL, p.goal.brokers, None, 0.95)), "its ceiling, limits or settings"),
        (lambda p: changed(p, limits={"max_unloads": 900}), "its ceiling, limits or settings"),
        (lambda p: changed(p, goal=replace(p.goal, brokers=(B3, B2))), f"its order is {B3}, {B2}"),
        (lambda p: changed(p, snapshot="20261120T000000Z"), "is not later than the roll's"),
        (lambda p: changed(p, steps=(p.steps[0].model_copy(update={"source": B3}),)), "is not an unload from"),
        (lambda p: changed(p, predicted=p.predicted.model_copy(update={"after": WORSE})), "--accept-worse"),
        (lambda p: figures(p, highest_usage_ratio=0.9), "--accept-worse"),
        (lambda p: figures(p, highest_usage_ratio=1), "--accept-worse"),  # 1.0, as a plan's file has it
        (lambda p: figures(p, moves=9), f"it doesn't empty {B2}"),
    ],
)
def test_a_turn_that_goes_beyond_what_was_approved_is_refused_and_nothing_is_sent(
    roll: Roll, cluster: RestartedCluster, spoil: Callable[[Plan], Plan], reason: str
) -> None:
    roll = replace(roll, plan_anew=lambda goal: (spoil(roll_plan(cluster, goal.brokers)), None))
    go_on(roll)
    cluster.restart(B1)
    sent = len(cluster.writes)
    with pytest.raises(Refused, match=f"goes beyond what was approved: .*{reason}"):
        go_on_after(roll, B1)
    assert len(cluster.writes) == sent


def test_what_the_rolls_approval_consents_to_its_turns_may_do(ledger: Ledger, cluster: RestartedCluster) -> None:
    plan = approved(ledger, roll_plan(cluster), consents=["worse"], valid_for_s=24 * 3600, throttle=THROTTLE)

    def worse(goal: Goal) -> tuple[Plan, str | None]:
        cluster.time.pass_s(1)
        made = roll_plan(cluster, goal.brokers)
        return changed(made, predicted=made.predicted.model_copy(update={"after": WORSE})), None

    roll = roll_of(plan, ledger, cluster, plan_anew=worse)
    go_on(roll)
    cluster.restart(B1)
    assert outcome(go_on_after(roll, B1)) == "done"


def test_a_bundle_that_would_move_more_often_than_foretold_is_refused(
    ledger: Ledger, cluster: RestartedCluster
) -> None:
    once = roll_plan(cluster)
    once = figures(once, moves_of_a_bundle=1)
    plan = approved_roll(ledger, cluster, decision=once.decision)
    roll = roll_of(plan, ledger, cluster)
    go_on(roll)
    cluster.restart(B1)
    with pytest.raises(Refused, match="would move 2 times, more often than the approved 1"):
        go_on_after(roll, B1)


@pytest.mark.parametrize("most", [None, "2", 2.0])
def test_a_roll_that_sets_no_bound_to_the_moves_of_a_bundle_is_not_approved(
    ledger: Ledger, cluster: FakeCluster, most: object
) -> None:
    unbounded = figures(roll_plan(cluster), moves_of_a_bundle=most)
    with pytest.raises(Refused, match="doesn't say how often it moves a bundle"):
        approved_roll(ledger, cluster, decision=unbounded.decision)


def test_a_plan_that_was_not_computed_here_is_refused(roll: Roll, cluster: RestartedCluster) -> None:
    go_on(roll)
    cluster.restart(B1)
    roll = replace(roll, plan_anew=lambda goal: (roll_plan(cluster, goal.brokers), "somebody sent it"))
    with pytest.raises(Refused, match="was not computed here: somebody sent it"):
        go_on_after(roll, B1)


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
    restore_what_was_left(ledger, name, cluster, roll.progress, roll.clock)
    basket = next(iter(cluster.owned_bundles(B3)))
    cluster.owners[basket] = B1  # as the balancer decided meanwhile
    status = status_of(ledger, roll.plan)
    assert status.restart is None, "clients use it"
    assert "the roll's process has ended" in status.sentence
    assert outcome(go_on(roll)) == "done"
    assert (roll.look().state, cluster.owned_bundles(B1)) == ("drained", frozenset())
    assert (is_off(cluster), list(left_off(ledger, name))) == ([True, True], [])


def test_nor_does_one_restart_a_broker_that_was_not_looked_at_before_the_balancer_was_on(
    ledger: Ledger, roll: Roll, cluster: FakeCluster
) -> None:
    cluster.reported_bundles = lambda _broker: die()  # type: ignore[method-assign, assignment, func-returns-value]
    with pytest.raises(Killed):
        go_on(roll)
    del cluster.reported_bundles  # type: ignore[method-assign]
    give_up(ledger, roll.digest)
    restore_what_was_left(ledger, "live", cluster, roll.progress, roll.clock)
    assert outcome(go_on(roll)) == "done"
    assert (roll.look().state, is_off(cluster)) == ("drained", [True, True])


def test_nor_does_one_that_was_paused_while_it_was_looked_at(ledger: Ledger, roll: Roll, cluster: FakeCluster) -> None:
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


def test_it_is_given_up_before_its_balancer_is_back_so_that_a_new_approval_restarts_no_broker_in_use(
    ledger: Ledger, roll: Roll, cluster: FakeCluster
) -> None:
    go_on(roll)
    cluster.time.pass_s(25 * 3600)  # its approval expires while it waits for the restart
    cluster.send = die_after(cluster.send)  # type: ignore[method-assign]
    with pytest.raises(Killed):
        restore_what_was_left(ledger, "live", cluster, roll.progress, roll.clock)
    assert is_off(cluster) == [False, True]
    approved(ledger, roll.plan, throttle=THROTTLE)
    assert status_of(ledger, roll.plan).restart is None


def test_nor_does_one_that_was_given_up_during_its_moves(ledger: Ledger, roll: Roll, cluster: FakeCluster) -> None:
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


def test_so_is_one_whose_balancer_somebody_switched_on_after_its_last_move(
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
    with pytest.raises(Refused, match=f"{B1}, which is drained, .*, but {GUARDED[0]} is 'true', as somebody"):
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


def stopped_turn(roll: Roll, ledger: Ledger, cluster: RestartedCluster) -> None:
    """The second turn is paused after its first move."""
    go_on(roll)
    cluster.restart(B1)
    cluster.once("after the call", lambda: pause(ledger, roll.plan, OLIVE))
    assert outcome(go_on_after(roll, B1)) == "partial"
    lift_pause_of_plan(ledger, roll.digest, OLIVE)


def test_a_turn_goes_on_under_the_approval_that_its_roll_was_given_anew(
    ledger: Ledger, cluster: RestartedCluster
) -> None:
    plan = approved(ledger, roll_plan(cluster), consents=(), valid_for_s=3600, throttle=THROTTLE)
    roll = roll_of(plan, ledger, cluster)
    stopped_turn(roll, ledger, cluster)
    cluster.time.pass_s(3600)
    approve(ledger, plan, digest=roll.digest, approver=BOB, policy=FOUR_EYES, throttle=THROTTLE)
    assert outcome(go_on(roll)) == "done"
    again = recorded_plan(ledger, str(roll.look().turn.plan))  # type: ignore[union-attr]
    turn.approve_as_roll(ledger, plan, again, FOUR_EYES)
    assert len(approvals_of_plan(ledger, digest_of(again))) == 2, "once, however often it is resumed"


def test_a_stopped_turn_that_is_too_old_to_be_resumed_is_planned_again(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster
) -> None:
    stopped_turn(roll, ledger, cluster)
    cluster.time.pass_s(7 * 3600)
    assert outcome(go_on(roll)) == "done"
    assert [run.state for run in roll.look().runs] == ["done", "aborted", "done"]


def test_so_is_one_whose_next_step_the_cluster_does_not_match_any_more(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster
) -> None:
    """Each try to resume it would end as the last one did."""
    stopped_turn(roll, ledger, cluster)
    cluster.owners |= {f"{NAMESPACE}/{UPPER}": B3, f"{BASKETS}/{UPPER}": B2}
    assert outcome(go_on(roll)) == "done"
    assert (roll.look().state, cluster.owned_bundles(B2)) == ("drained", frozenset())
    assert [run.state for run in roll.look().runs] == ["done", "aborted", "done"]


def test_but_one_with_a_call_of_unknown_outcome_is_not(roll: Roll, ledger: Ledger, cluster: RestartedCluster) -> None:
    stopped_turn(roll, ledger, cluster)
    cluster.replies, cluster.fails = [Reply(None, "timed out")] * 3, True
    assert outcome(go_on(roll)) == "partial"
    cluster.time.pass_s(7 * 3600)
    sent = len(cluster.writes)
    with pytest.raises(Refused, match=f"roll continue {short(roll.digest)} --anew` plans the turn again"):
        go_on(roll)
    assert not any(isinstance(write, Unload) for write in cluster.writes[sent:])


def test_unless_the_cluster_shows_its_outcome_by_then(roll: Roll, ledger: Ledger, cluster: RestartedCluster) -> None:
    stopped_turn(roll, ledger, cluster)
    cluster.replies, cluster.fails = [Reply(None, "timed out")] * 3, True
    assert outcome(go_on(roll)) == "partial"
    cluster.fails = False
    [called] = [record for record in roll.look().steps[2].values() if record.is_open]
    cluster.owners[called.bundle] = next(
        step.destination
        for step in recorded_plan(ledger, roll.look().runs[-1].digest).steps
        if step.id == called.step_id
    )
    cluster.time.pass_s(7 * 3600)
    assert outcome(go_on(roll)) == "done"
    assert (roll.look().state, cluster.owned_bundles(B2)) == ("drained", frozenset())


def test_a_roll_that_is_over_is_not_given_up(ledger: Ledger, roll: Roll) -> None:
    go_on(roll)
    end(ledger, roll.plan, OLIVE)
    before = ledger.head()
    give_up(ledger, roll.digest)
    assert ledger.head() == before


def test_a_pause_ends_a_turn_after_its_moves_in_flight(ledger: Ledger, roll: Roll, cluster: FakeCluster) -> None:
    cluster.once("after the call", lambda: pause(ledger, roll.plan, OLIVE))
    assert outcome(go_on(roll)) == "partial"
    assert roll.look().state == "stopped"
    assert sum(isinstance(call, Unload) for call in cluster.writes) == 1
    lift_pause_of_plan(ledger, roll.digest, OLIVE)
    assert outcome(go_on(roll)) == "done"


def test_a_first_turn_is_resumed_under_the_approval_of_its_roll(
    ledger: Ledger, roll: Roll, cluster: FakeCluster
) -> None:
    cluster.once("after the call", lambda: pause(ledger, roll.plan, OLIVE))
    go_on(roll)
    lift_pause_of_plan(ledger, roll.digest, OLIVE)
    assert outcome(go_on(roll)) == "done"
    assert len(approvals_of_plan(ledger, roll.digest)) == 1


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


def test_a_restart_that_was_announced_is_not_forgotten(roll: Roll, cluster: RestartedCluster) -> None:
    go_on(roll)
    with pytest.raises(NotBackYet, match="has not been restarted"):
        go_on_after(roll, B1)
    cluster.restart(B1)
    assert outcome(go_on(roll)) == "done"
    assert roll.look().recorded.restarted == (B1,)


def test_a_single_wrong_answer_brings_no_broker_back(roll: Roll, cluster: RestartedCluster) -> None:
    go_on(roll)
    cluster.restart(B1)
    cluster.unhealthy[B1] = "HTTP 500"
    cluster.mistaken_once("why_unhealthy", lambda: None)
    with pytest.raises(NotBackYet, match="HTTP 500"):
        go_on_after(roll, B1)
    assert roll.look().recorded.restarted == ()


def test_a_broker_that_does_not_answer_is_not_back(
    roll: Roll, cluster: RestartedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(broker: str) -> str | None:
        raise ClusterUnreachable(f"http://{broker}: connection refused")

    go_on(roll)
    cluster.restart(B1)
    monkeypatch.setattr(cluster, "why_unhealthy", refused)
    with pytest.raises(NotBackYet, match="connection refused"):
        go_on_after(roll, B1)


def test_an_approval_that_is_withdrawn_at_the_last_moment_covers_no_further_turn(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on(roll)
    cluster.restart(B1)

    def just_before(*arguments: Any) -> Approval:
        base = standing_approval(*arguments)
        withdraw(ledger, roll.digest, BOB)
        return base

    monkeypatch.setattr(turn, "standing_approval", just_before)
    with pytest.raises(Refused, match="the approval of bob was withdrawn"):
        go_on_after(roll, B1)
    assert [each.broker for each in roll.look().recorded.turns] == [B1]


def test_an_announcement_that_comes_after_its_turn_is_none_of_the_next_broker(
    roll: Roll, cluster: RestartedCluster
) -> None:
    cluster.started[B2] = None  # so that a person's word is enough
    go_on(roll)
    cluster.restart(B1)
    go_on_after(roll, B1)
    record_announced(roll.ledger, roll.digest, B1, OLIVE)
    go_on(roll)
    assert roll.look().left == (B2, B3)


def test_a_restart_is_not_announced_to_a_turn_or_another_plan(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster
) -> None:
    """As a DAG might that was given the digest of another plan."""
    go_on(roll)
    cluster.restart(B1)
    go_on_after(roll, B1)
    turn = roll.look().turn
    assert turn is not None and turn.plan is not None
    with pytest.raises(Refused, match=f"{turn.plan} is a turn of the roll {roll.digest}: name the roll"):
        announce(ledger, recorded_plan(ledger, turn.plan), B2, OLIVE)
    with pytest.raises(Refused, match="is not a roll"):
        announce(ledger, approved(ledger, make_plan([unload_step()])), B2, OLIVE)
    assert roll.look().recorded.announced is None


def test_a_restart_before_the_first_turn_is_none(roll: Roll, cluster: RestartedCluster) -> None:
    cluster.restart(B1)
    with pytest.raises(Refused, match=f"{B1} was not drained: no turn is under way. If you restarted it before"):
        go_on_after(roll, B1)


def test_a_broker_is_not_taken_for_restarted_before_anything_was_moved(roll: Roll, cluster: RestartedCluster) -> None:
    cluster.migration = "COPYING"
    with pytest.raises(Refused, match="is being migrated"):
        go_on(roll)
    cluster.restart(B1)
    with pytest.raises(Refused, match=f"{B1} was not drained: it is the turn of {B1}, which is not drained yet"):
        go_on_after(roll, B1)
    assert roll.look().recorded.restarted == ()


def test_a_broker_that_is_killed_while_it_is_drained_counts_as_restarted_once_it_is_back(
    roll: Roll, cluster: RestartedCluster
) -> None:
    def killed() -> None:
        cluster.brokers.discard(B1)
        cluster.restart(B1)

    cluster.once("after the call", killed)
    assert outcome(go_on(roll)) == "partial"
    with pytest.raises(Refused, match=f"{B1} is not among the active brokers"):
        go_on_after(roll, B1)
    cluster.brokers.add(B1)
    assert outcome(go_on_after(roll, B1)) == "done"
    assert roll.look().recorded.restarted == (B1,)


def test_a_broker_that_is_away_is_waited_for_by_a_person(roll: Roll, cluster: RestartedCluster) -> None:
    go_on(roll)
    cluster.restart(B1)
    cluster.brokers.discard(B3)
    with pytest.raises(Refused, match=f"{B3} is not active: bring it back"):
        go_on_after(roll, B1)
    cluster.brokers.discard(B2)
    with pytest.raises(Refused, match=f"{B2}, {B3} are not active: bring them back"):
        go_on(roll)
    cluster.brokers |= {B2, B3}
    assert outcome(go_on(roll)) == "done"


def test_a_roll_that_was_ended_before_it_began_is_not_approved_again(roll: Roll) -> None:
    ended(roll)
    with pytest.raises(Refused, match=r"is over, ended by olive .*: capture again and make a new plan"):
        approved(roll.ledger, roll.plan)


def test_the_end_takes_everything_back_that_would_let_it_go_on(
    roll: Roll, ledger: Ledger, cluster: FakeCluster
) -> None:
    go_on(roll)
    ended(roll)
    assert is_off(cluster) == [False, False]
    assert all(row.withdrawn_at_ms for row in approvals_of_plan(ledger, roll.digest))
    for act in (lambda: go_on(roll), lambda: ended(roll)):
        with pytest.raises(Refused, match="has ended: ended by olive"):
            act()


def test_another_cluster_of_that_name_is_refused(roll: Roll, cluster: FakeCluster) -> None:
    cluster.name = "staging"
    with pytest.raises(Refused, match="the plan is for cluster 'live'"):
        go_on(roll)


def test_who_proposed_the_roll_proposes_its_turns_and_who_approved_it_approves_them(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster
) -> None:
    go_on(roll)
    cluster.restart(B1)
    go_on_after(roll, B1)
    turn = roll.look().turn
    assert turn is not None
    assert turn.plan is not None
    [approval] = approvals_of_plan(ledger, turn.plan)
    assert (approval.approver, approval.source) == (BOB.name, BOB.source)
    assert approval.throttle.guard
    assert all(isinstance(write, Unload | Override) for write in cluster.writes)
    assert ALICE.name in ledger.events(turn.plan)[0].detail
